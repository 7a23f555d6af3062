"""Random programs for the vector and scalar engines alone."""

import numpy as np

from isa.dtypes import NARROW, DType
from isa.fields import DIMS, AluOp, Function, Space
from isa.instructions import BY_NAME
from verif.memory_bench import element_offsets, make_pattern, space_bytes
from verif.vectors import BF16, FP32, corner_codes

_SLOW = (AluOp.DIVIDE, AluOp.POWER)
_RAW = tuple(op for op in AluOp if op.raw)
_FAST = tuple(op for op in AluOp if not op.raw and op not in (AluOp.BYPASS, *_SLOW))
_SCAN = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)
_STEPS = (-5, -2, -1, 1, 1, 1, 1, 2, 3, 7)
VECTOR = (
    *("tensor_tensor", "tensor_scalar", "tensor_copy", "tensor_reduce", "memset"),
    *("tensor_tensor_scan", "rand_set_state", "rand_get_state"),
)
SCALAR = ("activation", "rand_set_state", "rand_get_state")


def random_memories(rng, config):
    """Images of SBUF and PSUM: near exponents (operands that meet), specials, uniform codes."""
    return tuple(
        _random_bytes(rng, config.partitions, size)
        for size in (config.sbuf_bytes, config.psum_bytes)
    )


def _random_bytes(rng, partitions, size):
    words = rng.integers(0, 1 << 32, (partitions, size // 4), np.uint32)
    near = rng.integers(0, 1 << 32, words.shape, np.uint32) & 0x807FFFFF | (
        rng.integers(118, 136, words.shape, np.uint32) << 23
    )
    corner = rng.choice(corner_codes(FP32), words.shape)
    short = rng.choice(corner_codes(BF16).astype(np.uint32), (2, *words.shape))
    kind = rng.integers(0, 8, words.shape)
    words = np.select(
        [kind < 5, kind == 5, kind == 6], [near, corner, short[0] | short[1] << 16], words
    )
    return np.ascontiguousarray(words.astype("<u4")).view(np.uint8).copy()


class Programs:
    """Draws legal instructions: a destination is one of the sources or apart from them.

    Parameters
    ----------
    max_elements : int
        Most elements of an operand.
    window : int
        Bytes of each space in use, at least 96, at its low or high end: the smaller, the more
        instructions depend on each other.
    dtypes, slow : tuple of DType, float
        Those of operands; the share of slow operators where there may be one.
    """

    def __init__(self, rng, config, *, max_elements=40, window=None, dtypes=tuple(DType), slow=0.1):
        self.rng, self.config, self.window = rng, config, window
        self.dtypes, self.slow = dtypes, slow
        # Dense FP32 of that many elements fits into the window.
        self.max_elements = min(max_elements, (window or config.psum_bytes) // DType.FP32.itemsize)

    def draw(self, name):
        """One random instruction `name` as a dict of Issue fields."""
        while True:
            found = getattr(self, f"_{name}")()
            found |= self._rounding(name, found)
            if _legal(found):
                counts = found["src0" if "src0" in found else "dst"]["count"]
                elements = int(np.prod(counts))
                return {
                    **self._noise(name),
                    **found,
                    "opcode": BY_NAME[name].opcode,
                    "elements": elements,
                }

    def program(self, names, length):
        return [self.draw(str(self.rng.choice(names))) for _ in range(length)]

    def _noise(self, name):
        """Fields that mean nothing to `name`: an engine must not look at them."""
        rng = self.rng
        place = self._group()
        noise = {
            "src0": place([1]),
            "src1": place([3]),
            "imm0": self._code(),
            "imm1": self._code(),
            "imm2": self._code(),
            "op0": int(rng.choice(tuple(AluOp))),
            "op1": int(rng.choice(tuple(AluOp))),
            "func": int(rng.choice(tuple(Function))),
            "reverse0": int(rng.integers(2)),
            "reverse1": int(rng.integers(2)),
            "accumulate": int(rng.integers(2)),
            "reduce_dims": int(rng.integers(5)),
        }
        if not BY_NAME[name].columns:
            noise |= {"column0": self._column(place), "column1": self._column(place)}
        return noise

    def _rounding(self, name, found):
        """sat and stochastic, zero where they are not allowed."""
        legal = (
            "sat" in BY_NAME[name].options
            and found["dst"]["dtype"] in NARROW
            and not (name in ("tensor_tensor", "tensor_scalar") and AluOp(found["op0"]).raw)
            and not (name == "tensor_copy" and found["src0"]["dtype"] == found["dst"]["dtype"])
        )
        return {option: int(legal and self.rng.integers(2)) for option in ("sat", "stochastic")}

    def _op0(self):
        rng = self.rng
        if rng.random() < self.slow:
            return rng.choice(_SLOW)
        return rng.choice(_RAW if rng.random() < 0.4 else _FAST)

    def _dims(self, elements=None):
        """Counts (innermost first) of a random shape, of exactly `elements` when given."""
        rng = self.rng
        if elements is None:
            elements = 1 if rng.random() < 0.1 else int(rng.integers(1, self.max_elements + 1))
        counts, left = [], elements
        for _ in range(int(rng.integers(0, DIMS))):
            divisors = [d for d in range(1, left + 1) if left % d == 0]
            counts.append(int(rng.choice(divisors)))
            left //= counts[-1]
        return [*counts, left]

    def pattern(self, counts, partition, partition_count, dtype=None):
        """A pattern of these counts at a random place."""
        rng = self.rng
        while True:
            space = Space(int(rng.integers(1, 3)))
            kind = DType(int(rng.choice(self.dtypes))) if dtype is None else dtype
            size, total = kind.itemsize, space_bytes(self.config, space)
            limit = min(self.window or total, total)
            if rng.random() < 0.5:  # a dense one
                steps = [int(n) for n in np.cumprod([1, *counts[:-1]])]
            else:
                steps = [int(rng.choice(_STEPS)) * int(rng.choice([1, 1, n])) for n in counts]
            low = sum(min(0, s * (n - 1)) for s, n in zip(steps, counts, strict=True)) * size
            high = (
                sum(max(0, s * (n - 1)) for s, n in zip(steps, counts, strict=True)) * size + size
            )
            if high - low > limit:
                continue
            base = 0 if rng.random() < 0.5 else total - limit
            at = base + size * int(rng.integers(0, (limit - high + low) // size + 1))
            return make_pattern(
                self.config,
                space=space,
                dtype=kind,
                offset=at - low,
                dims=list(zip(steps, counts, strict=True)),
                partition=partition,
                partition_count=partition_count,
            )

    def _partition(self, count):
        quadrant = self.config.quadrant
        step = (
            quadrant
            if count <= quadrant
            else 2 * quadrant
            if count <= 2 * quadrant
            else 4 * quadrant
        )
        return int(self.rng.choice(range(0, self.config.partitions, step)))

    def _group(self):
        count = int(self.rng.integers(1, self.config.partitions + 1))
        return lambda counts, **more: self.pattern(counts, self._partition(count), count, **more)

    def _destination(self, place, source, counts, **more):
        """Somewhere, or right on top of the source; a step of 0 now and then."""
        draw = self.rng.random()
        if draw < 0.25 and len(set(element_offsets(source))) == np.prod(source["count"]):
            return dict(source)
        return place(counts, **more)

    def _column(self, place):
        pattern = place([1])
        return {name: pattern[name] for name in ("space", "dtype", "partition", "offset")}

    def _code(self):
        return int(
            self.rng.choice(
                [
                    *corner_codes(FP32)[:40],
                    *self.rng.integers(0, 1 << 32, 8, np.uint32),
                    0x3F800000,
                    0xBF800000,
                    0x3FC00000,
                ]
            )
        )

    def _tensor_tensor(self):
        counts, place = self._dims(), self._group()
        src0, src1 = place(counts), place(self._dims(int(np.prod(counts))))
        return {
            "src0": src0,
            "src1": src1,
            "op0": int(self._op0()),
            "dst": self._destination(place, src0 if self.rng.random() < 0.5 else src1, counts),
        }

    def _tensor_scalar(self):
        counts, place = self._dims(), self._group()
        src0 = place(counts)
        op0 = AluOp(self._op0())
        found = {
            "src0": src0,
            "dst": self._destination(place, src0, counts),
            "op0": int(op0),
            "op1": int(self.rng.choice((AluOp.BYPASS, *(_RAW if op0.raw else _FAST)))),
            "reverse0": int(self.rng.integers(2)),
            "reverse1": int(self.rng.integers(2)),
        }
        return self._operands(found, place)

    def _operands(self, found, place):
        for index in range(2):
            found[f"imm{index}"] = self._code()
            if self.rng.random() < 0.5:
                found[f"column{index}"] = self._column(place)
        return found

    def _tensor_copy(self):
        counts, place = self._dims(), self._group()
        src0 = place(counts)
        return {"src0": src0, "dst": self._destination(place, src0, counts)}

    def _memset(self):
        return {"dst": self._group()(self._dims()), "imm0": self._code()}

    def _tensor_reduce(self):
        rng, place = self.rng, self._group()
        dims = int(rng.integers(1, DIMS + 1))
        group = self._dims(int(rng.integers(1, 21)))[:dims]
        groups = int(rng.integers(1, max(2, self.max_elements // int(np.prod(group)))))
        group += [1] * (dims - len(group))
        outer = self._dims(groups)[: DIMS - dims] if dims < DIMS else []
        counts = [*group, *outer]
        return {
            "src0": place(counts),
            "dst": place(self._dims(int(np.prod(outer)))),
            "op0": int(rng.choice((AluOp.ADD, AluOp.MAX, AluOp.MIN))),
            "reduce_dims": dims,
        }

    def _tensor_tensor_scan(self):
        counts, place = self._dims(), self._group()
        src0, src1 = place(counts), place(self._dims(int(np.prod(counts))))
        found = {
            "src0": src0,
            "src1": src1,
            "dst": self._destination(place, src0 if self.rng.random() < 0.5 else src1, counts),
            "op0": int(self.rng.choice(_SCAN)),
            "op1": int(self.rng.choice(_SCAN)),
            "imm0": self._code(),
        }
        return found | ({"column0": self._column(place)} if self.rng.random() < 0.5 else {})

    def _rand_set_state(self):
        return {"src0": self._group()(self._dims(6), dtype=DType.UINT32)}

    def _rand_get_state(self):
        return {"dst": self._group()(self._dims(6), dtype=DType.UINT32)}

    def _activation(self):
        counts, place = self._dims(), self._group()
        src0 = place(counts)
        found = {
            "src0": src0,
            "dst": self._destination(place, src0, counts),
            "func": int(self.rng.choice(tuple(Function))),
        }
        return self._operands(found, place)


def _legal(instruction):
    """The destination is a source, element for element, or apart from it."""
    if "dst" not in instruction:
        return True
    dst = instruction["dst"]
    for name in ("src0", "src1", "column0", "column1"):
        source = instruction.get(name)
        if not source or source["space"] != dst["space"]:
            continue
        low = source.get("low", source["offset"])
        high = source.get("high", low + DType(source["dtype"]).itemsize)
        if low >= dst["high"] or dst["low"] >= high:
            continue
        same = ("dtype", "partition", "offset", "step", "count")
        if not all(source.get(field) == dst[field] for field in same):
            return False
    return True
