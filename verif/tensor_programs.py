"""Random programs for the tensor engine, and what they leave in PSUM."""

import numpy as np

from golden.arith import matmul
from golden.arith.float32 import add
from golden.arith.formats import FORMATS
from isa.dtypes import FP8, MATMUL, TRANSPOSED, DType
from isa.fields import Part
from verif.tensor_bench import Access, Load, Multiply
from verif.vectors import BF16, FP32, corner_codes

_CENTRES = (127, 127, 100, 64, 190)
"""Exponents round which operands lie: at 64 products meet the flush border, at 190 they
overflow."""
_HALVES = (Part.HIGH, Part.LOW, Part.HIGH_FINITE)
_FORMATS = {form.name: form for form in FORMATS}


def images(config, rng):
    """SBUF (bytes) and PSUM (FP32 codes): BF16 numbers of one scale, some specials, sometimes
    anything; most of them are numbers in every other format too, and sometimes many are zero.
    """
    shape = (config.partitions, config.sbuf_bytes // 2)
    centre = rng.choice(_CENTRES)
    exponent = np.clip(centre + rng.integers(-6, 7, shape), 0, 254)
    sbuf = BF16.join(rng.integers(0, 2, shape), exponent, rng.integers(0, 128, shape))
    if rng.random() < 0.7:
        sbuf &= 0xFFBF  # No byte of a fraction has the exponent of an infinity in FP8.
    wild = rng.random(shape) < rng.choice([0.0, 0.002, 0.02])
    sbuf = np.where(wild, rng.choice(corner_codes(BF16), shape), sbuf).astype(np.uint16)
    sbuf[rng.random(shape) < rng.choice([0.0, 0.6])] = 0
    shape = (config.partitions, config.psum_words)
    exponent = np.clip(2 * centre - 127 + rng.integers(-6, 7, shape), 0, 254)
    psum = FP32.join(rng.integers(0, 2, shape), exponent, rng.integers(0, 1 << 23, shape))
    wild = rng.random(shape) < 0.02
    psum = np.where(wild, rng.choice(corner_codes(FP32), shape), psum).astype(np.uint32)
    return sbuf.astype("<u2").view(np.uint8), psum


def random_program(config, rng, length):
    """Loads and multiplies in any order but one load first, with shapes, patterns, formats and
    modes of every kind."""
    program = []
    rows = columns = 0
    modes = {}
    for index in range(length):
        if index == 0 or rng.random() < 0.45:
            rows, columns = (int(n) for n in rng.integers(1, config.partitions + 1, 2))
            if rng.random() < 0.4:
                rows, columns = config.partitions, config.partitions
            draw = rng.random()
            modes = {
                "double_row": int(draw < 0.25 and config.double_row),
                "transpose": int(draw > 0.8),
            }
            dtypes = TRANSPOSED if modes["transpose"] else MATMUL
            kind = _kind(rng, dtypes, modes)
            program.append(Load(_source(config, rng, rows, columns, kind), **kind))
        else:
            limit = min(config.max_moving, 48)
            n = int(rng.integers(1, limit + 1))
            kind = _kind(rng, MATMUL, modes)
            program.append(
                Multiply(
                    _source(config, rng, rows, n, kind),
                    _result(config, rng, columns, n),
                    bool(rng.random() < 0.6),
                    **kind,
                )
            )
    return _with_spoils(program)


def _kind(rng, dtypes, modes):
    """dtype, part and modes of an instruction."""
    dtypes = FP8 if modes["double_row"] else dtypes
    dtype = dtypes[int(rng.integers(len(dtypes)))]
    part = _HALVES[int(rng.integers(3))] if dtype == DType.FP32 else Part.FULL
    return {"dtype": dtype, "part": part, **modes}


def expected_psum(program, sbuf, psum):
    """PSUM after strictly sequential execution, by the golden arithmetic."""
    psum = psum.copy()
    weights = None
    for instruction in program:
        codes = _codes(instruction, sbuf)
        if isinstance(instruction, Load):
            weights = codes if instruction.transpose else _numbers(instruction, codes)
            continue
        moving = _numbers(instruction, codes)
        if instruction.transpose:
            tile = matmul.transpose(weights, moving)
        elif instruction.double_row:
            tile = matmul.chain_double_row(weights, moving)
        else:
            tile = matmul.chain(weights, moving)
        result = instruction.result
        rows = slice(result.partition, result.partition + result.partition_count)
        for n, word in enumerate(result.elements):
            value = tile[:, n]
            if instruction.accumulate:
                value = add(psum[rows, word].view(np.float32), value)
            psum[rows, word] = value.view(np.uint32)
    return psum


def _codes(instruction, sbuf):
    """Codes of the source, [K, elements], of pairs [K, elements, 2]."""
    source, size = instruction.source, instruction.itemsize
    rows = sbuf[source.partition : source.partition + source.partition_count]
    places = source.elements[:, None] * size + np.arange(size)
    codes = np.ascontiguousarray(rows[:, places]).view(f"<u{instruction.dtype.itemsize}")
    return codes if instruction.double_row else codes[:, :, 0]


def _numbers(instruction, codes):
    return matmul.operand(codes, _FORMATS[instruction.dtype.text], instruction.part)


def _with_spoils(program):
    """Lets the bench overwrite each source that no later instruction reads."""
    later = []
    for index in reversed(range(len(program))):
        low, high = program[index].source.span(program[index].itemsize)
        if not any(low < end and start < high for start, end in later):
            program[index] = type(program[index])(**{**vars(program[index]), "spoil": (low, high)})
        later.append((low, high))
    return program


def _source(config, rng, partitions, elements, kind):
    size = kind["dtype"].itemsize << kind["double_row"]
    return _access(config, rng, partitions, elements, low=0, high=config.sbuf_bytes // size)


def _result(config, rng, partitions, elements):
    words = config.psum_words // 8
    bank = int(rng.integers(0, 8)) if rng.random() < 0.5 else 0
    return _access(config, rng, partitions, elements, low=bank * words, high=(bank + 1) * words)


def _access(config, rng, partitions, elements, *, low, high):
    """Any pattern of `elements` within [low, high): contiguous, strided, backwards, repeated."""
    quadrants = [q for q in range(4) if q * config.quadrant + partitions <= config.partitions]
    partition = int(rng.choice(quadrants)) * config.quadrant
    while True:
        counts, left = [], elements
        for _ in range(3):
            divisors = [d for d in range(1, left + 1) if left % d == 0]
            counts.append(int(rng.choice([left, *divisors])))
            left //= counts[-1]
        counts.append(left)
        steps, extent = [], 1
        for count in counts:
            steps.append(int(rng.choice([extent, extent, 0, -extent, rng.integers(-9, 10)])))
            extent = max(1, abs(steps[-1]) * count)
        offsets = Access(0, 1, 0, tuple(counts), tuple(steps)).elements
        room_low, room_high = low - offsets.min(), high - offsets.max()
        if room_low < room_high:
            start = int(rng.integers(room_low, room_high))
            if rng.random() < 0.5:
                start = max(int(room_low), start & ~7)
            return Access(partition, partitions, start, tuple(counts), tuple(steps))
