"""Access patterns and memory stand-ins for benches of what reads or writes SBUF and PSUM.

A pattern is a plain dict with the names of `hdl.lib.issue.Pattern`; `step` and `count` are
innermost first.
"""

from collections import deque

import numpy as np

from golden.arith import convert, formats
from hdl.lib.issue import Pattern
from hdl.memory.ports import WIDE_READ_CYCLES
from isa.dtypes import DType
from isa.fields import DIMS, Space

_STEPS = (-9, -3, -2, -1, 0, 1, 1, 1, 2, 3, 4, 8, 17)


def space_bytes(config, space):
    """Bytes of a partition of SBUF or PSUM."""
    return config.sbuf_bytes if space == Space.SBUF else config.psum_bytes


def element_offsets(pattern):
    """Byte offset of every element in its partition, in the order of the walk."""
    size = DType(pattern["dtype"]).itemsize
    offsets = np.zeros(1, dtype=np.int64)
    for step, count in zip(pattern["step"], pattern["count"], strict=True):
        offsets = (np.arange(count)[:, None] * step * size + offsets[None, :]).ravel()
    return offsets + pattern["offset"]


def make_pattern(config, *, space, dtype, offset, dims, partition=0, partition_count=None):
    """A pattern from `dims`, [(step, count), ...] innermost first; low and high are filled in."""
    dims = [*dims, *[(0, 1)] * (DIMS - len(dims))]
    pattern = {
        "space": int(space), "dtype": int(dtype), "size": DType(dtype).itemsize.bit_length() - 1,
        "partition": partition,
        "partition_count": config.partitions - partition if partition_count is None
        else partition_count,
        "offset": offset,
        "step": [step for step, _ in dims], "count": [count for _, count in dims],
    }
    offsets = element_offsets(pattern)
    pattern["low"], pattern["high"] = int(offsets.min()), int(offsets.max()) + dtype.itemsize
    if pattern["low"] < 0 or pattern["high"] > space_bytes(config, space):
        raise ValueError(f"pattern leaves its memory: bytes {pattern['low']}..{pattern['high']}")
    return pattern


def random_pattern(rng, config, *, spaces=(Space.SBUF, Space.PSUM), max_elements=40, dtypes=None,
                   counts=None, part=(0.0, 1.0)):
    """A legal pattern with all kinds of dimensions, often at an end of the memory.

    dtypes : by default all
    counts : elements of each dimension, innermost first, instead of random ones
    part : lies between these fractions of the memory
    """
    space = Space(int(rng.choice(spaces)))
    dtype = DType(int(rng.choice(dtypes or list(DType))))
    partition = config.quadrant * int(rng.integers(4))
    count = int(rng.integers(1, config.partitions - partition + 1))
    while True:
        some = counts or [1 + int(n) for n in rng.integers(9, size=rng.integers(1, DIMS + 1))]
        dims = [(int(rng.choice(_STEPS)), n) for n in some]
        if counts is None and np.prod([n for _, n in dims]) > max_elements:
            continue
        size = dtype.itemsize
        low = sum(min(0, step * (n - 1)) for step, n in dims) * size
        high = sum(max(0, step * (n - 1)) for step, n in dims) * size + size
        start, end = (int(fraction * space_bytes(config, space)) for fraction in part)
        first, last = start - low, end - high
        if first > last:
            continue
        place = rng.integers(4)
        middle = size * int(rng.integers(first // size, last // size + 1))
        offset = {0: first, 1: last}.get(int(place), middle)
        return make_pattern(config, space=space, dtype=dtype, offset=offset, dims=dims,
                            partition=partition, partition_count=count)


def pattern_const(pattern):
    """The pattern as a value for a port."""
    return Pattern.const(pattern)


def _codes(memory, pattern):
    """Codes of the elements of all lanes, unsigned [elements, P]."""
    turned = np.roll(memory, -pattern["partition"], axis=0)
    size = DType(pattern["dtype"]).itemsize
    offsets = element_offsets(pattern)
    columns = np.ascontiguousarray(turned[:, offsets[:, None] + np.arange(size)])
    return columns.view(f"u{size}")[..., 0].T


def load_lanes(memory, pattern, raw=0):
    """FP32 bits, or elements as words, uint32 [elements, P] that a reader gives for `memory`
    (uint8 [P, bytes]) in all lanes.
    """
    codes, dtype = np.ascontiguousarray(_codes(memory, pattern)), DType(pattern["dtype"])
    integers = codes.view(dtype.numpy)
    if raw or dtype == DType.FP32:
        signed = dtype in (DType.INT8, DType.INT16, DType.INT32)
        return integers.astype(np.int32).view(np.uint32) if signed else codes.astype(np.uint32)
    if dtype == DType.BF16:
        return codes.astype(np.uint32) << np.uint32(16)
    if dtype.name in formats.__dict__:
        return convert.widen(codes, getattr(formats, dtype.name)).view(np.uint32)
    return integers.astype(np.float32).view(np.uint32)


def narrow(bits):
    """BF16 nearest to FP32 bits, ties to even, canonical NaN: by hand, apart from any library."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0
    upper, rest = bits >> 16, bits & 0xFFFF
    return upper + (rest > 0x8000 or (rest == 0x8000 and upper & 1))


def store_lanes(memory, pattern, values, raw=0, sat=0, random=None):
    """What a writer does with words [elements, P], one after another, in uint8 [P, bytes].

    random: uint32 of the same shape, in the lanes of the pattern, to round stochastically
    """
    dtype = DType(pattern["dtype"])
    values = np.ascontiguousarray(values, np.uint32)
    if raw or dtype == DType.FP32:
        codes = values
    elif dtype == DType.BF16 and random is None and not sat:
        codes = np.vectorize(lambda bits: narrow(int(bits)), otypes=[np.uint32])(values)
    elif dtype.name in formats.__dict__:
        form = getattr(formats, dtype.name)
        codes = convert.narrow(values.view(np.float32), form, bool(sat), random)
    else:
        codes = convert.to_integer(values.view(np.float32), dtype.numpy)
    codes = codes.astype(f"u{dtype.itemsize}")
    for at, lanes in zip(element_offsets(pattern), codes, strict=True):
        first, size = pattern["partition"], pattern["partition_count"]
        rows = memory[first:first + size, at:at + dtype.itemsize]
        rows[...] = lanes[:size, None].view(np.uint8).reshape(size, -1)


def pack(values, bits):
    """Integers side by side in one, the first in the low bits."""
    total = 0
    for index, value in enumerate(values):
        total |= int(value) << (bits * index)
    return total


def unpack(value, bits, count):
    """Inverse of `pack`."""
    mask = (1 << bits) - 1
    return [(value >> (bits * index)) & mask for index in range(count)]


class ReadModel:
    """Answers a wide read port out of a uint8 [P, bytes] array; refuses some requests by `deny`.

    Every cycle: set the port from `ready`, `valid`, `data`, then call `clock` with what was
    sampled.
    """

    def __init__(self, memory, word_bytes, rng=None, deny=0.0):
        self.memory, self.word_bytes, self.rng, self.deny = memory, word_bytes, rng, deny
        self.ready, self.valid, self.data = 1, 0, 0
        self.taken = 0
        self._pipe = deque([None] * (WIDE_READ_CYCLES - 1))

    def clock(self, req_valid, word):
        answer = None
        if req_valid and self.ready:
            self.taken += 1
            at = word * self.word_bytes
            assert at + self.word_bytes <= self.memory.shape[1], f"word {word} is outside"
            rows = self.memory[:, at:at + self.word_bytes]
            answer = int.from_bytes(np.ascontiguousarray(rows).tobytes(), "little")
        self._pipe.append(answer)
        answer = self._pipe.popleft()
        self.valid, self.data = (0, 0) if answer is None else (1, answer)
        self.ready = int(self.rng is None or self.rng.random() >= self.deny)


def store_word(memory, word_bytes, word, partitions, byte_mask, data):
    """A wide write into a uint8 [P, bytes] array."""
    at = word * word_bytes
    for p in range(memory.shape[0]):
        if partitions >> p & 1:
            for b in range(word_bytes):
                if byte_mask >> b & 1:
                    memory[p, at + b] = data >> 8 * (p * word_bytes + b) & 0xFF
