"""Datapath instructions recomputed one element after the other, in the plainest way.

Shares nothing with the golden model but the declarations: memories are byte arrays, addresses are
computed per element, numbers are numpy float32 scalars. Only for small operands.
"""

from itertools import product

import numpy as np

from isa.dtypes import DType
from isa.fields import AluOp, Part
from isa.functions import PROGRAMS
from isa.pattern import ColumnPattern
from isa.values import Bits
from verif.plain_numbers import Generator, alu, bits_of, code_of, float_of, value_of, word_of
from verif.plain_program import run

_NO_SLOPE = Bits(0)


class PlainMachine:
    """memories: {Space: uint8 array [partitions, bytes]}, changed in place by `execute`.

    The generators of random words are those of one engine: all instructions with some must be its.
    """

    def __init__(self, memories):
        self.memories = memories
        self.stationary = None
        rows = max(len(memory) for memory in memories.values())
        self.generators = [Generator() for _ in range(rows)]

    def execute(self, name, arguments):
        """Runs one instruction; arguments as for the program builder, without registers."""
        with np.errstate(all="ignore"):
            getattr(self, f"_{name}")(**arguments)

    # elements

    def _places(self, pattern, size=None):
        """Per partition the byte offsets of all elements, in order."""
        found = []
        for index in product(*(range(count) for _, count in pattern.dims)):
            steps = sum(i * step for i, (step, _) in zip(index, pattern.dims, strict=True))
            found.append(pattern.offset + steps * (size or pattern.dtype.itemsize))
        return found

    def _code(self, pattern, lane, place):
        row = self.memories[pattern.space][pattern.partition + lane]
        return int.from_bytes(row[place : place + pattern.dtype.itemsize].tobytes(), "little")

    def _value(self, pattern, lane, place, raw=False):
        code = self._code(pattern, lane, place)
        return (word_of if raw else value_of)(code, pattern.dtype)

    def _put_code(self, pattern, lane, place, code):
        size = pattern.dtype.itemsize
        code %= 1 << (8 * size)
        row = self.memories[pattern.space][pattern.partition + lane]
        row[place : place + size] = np.frombuffer(code.to_bytes(size, "little"), np.uint8)

    def _put(self, pattern, lane, place, value, sat=0, stochastic=0):
        generator = self.generators[pattern.partition + lane]
        random = generator.draw() if stochastic else None
        self._put_code(pattern, lane, place, code_of(value, pattern.dtype, sat, random))

    def _column(self, operand, lane, raw=False):
        if isinstance(operand, ColumnPattern):
            return self._value(operand.pattern(lane + 1), lane, operand.offset, raw)
        return operand.value if raw else float_of(operand.value)

    def _map(self, sources, dst, function, raw=False, **rounding):
        """dst[i] = function(lane, sources' values i); sources are read before dst is written."""
        for lane in range(dst.partition_count):
            read = [[self._value(s, lane, at, raw) for at in self._places(s)] for s in sources]
            for i, place in enumerate(self._places(dst)):
                result = function(lane, *(values[i] for values in read))
                if raw:
                    self._put_code(dst, lane, place, result)
                else:
                    self._put(dst, lane, place, result, **rounding)

    # instructions

    def _tensor_tensor(self, src0, src1, dst, op0, **rounding):
        raw = AluOp(op0).raw
        self._map((src0, src1), dst, lambda lane, a, b: alu(op0, a, b), raw, **rounding)

    def _tensor_scalar(
        self, src0, dst, operand0, operand1, op0, op1, reverse0, reverse1, **rounding
    ):
        raw = AluOp(op0).raw

        def function(lane, x):
            for op, operand, reverse in ((op0, operand0, reverse0), (op1, operand1, reverse1)):
                if op != AluOp.BYPASS:
                    y = self._column(operand, lane, raw)
                    x = alu(op, y, x) if reverse else alu(op, x, y)
            return x

        self._map((src0,), dst, function, raw, **rounding)

    def _tensor_tensor_scan(self, src0, src1, dst, initial, op0, op1, **rounding):
        carried = {}

        def function(lane, a, b):
            before = carried.get(lane)
            before = self._column(initial, lane) if before is None else before
            carried[lane] = alu(op1, alu(op0, a, before), b)
            return carried[lane]

        self._map((src0, src1), dst, function, **rounding)

    def _rand_set_state(self, src0):
        for lane in range(src0.partition_count):
            words = [self._code(src0, lane, place) for place in self._places(src0)]
            self.generators[src0.partition + lane].words = words

    def _rand_get_state(self, dst):
        for lane in range(dst.partition_count):
            words = self.generators[dst.partition + lane].words
            for place, word in zip(self._places(dst), words, strict=True):
                self._put_code(dst, lane, place, word)

    def _activation(self, src0, dst, scale, bias, func, imm2=_NO_SLOPE, **rounding):
        def function(lane, x):
            given = (self._column(scale, lane), self._column(bias, lane), float_of(imm2.value))
            return run(PROGRAMS[func], x, *given)

        self._map((src0,), dst, function, **rounding)

    def _tensor_copy(self, src0, dst, **rounding):
        moves = src0.dtype == dst.dtype
        widens = src0.dtype == DType.BF16 and dst.dtype == DType.FP32
        for lane in range(dst.partition_count):
            codes = [self._code(src0, lane, place) for place in self._places(src0)]
            for place, code in zip(self._places(dst), codes, strict=True):
                if moves or widens:  # codes of NaNs stay
                    self._put_code(dst, lane, place, code << 16 if widens else code)
                else:
                    self._put(dst, lane, place, value_of(code, src0.dtype), **rounding)

    def _tensor_reduce(self, src0, dst, op0, reduce_dims, **rounding):
        group = 1
        for _, count in src0.dims[len(src0.dims) - reduce_dims :]:
            group *= count
        for lane in range(dst.partition_count):
            values = [self._value(src0, lane, place) for place in self._places(src0)]
            for i, place in enumerate(self._places(dst)):
                part = values[i * group : (i + 1) * group]
                result = _sum(part) if op0 == AluOp.ADD else _extreme(op0, part)
                self._put(dst, lane, place, result, **rounding)

    def _memset(self, dst, imm0, **rounding):
        self._map((), dst, lambda lane: float_of(imm0.value), **rounding)

    def _load_stationary(self, src0, transpose=0, **modes):
        self.stationary = self._operand(src0, codes=transpose, **modes)

    def _operand(self, src0, double_row=0, part=Part.FULL, codes=0):
        """Rows of elements, each a tuple of the one or two numbers in it (or codes)."""
        size = src0.dtype.itemsize
        places = self._places(src0, size * (1 + double_row))

        def element(row, place):
            if codes:
                return self._code(src0, row, place)
            return _part(self._value(src0, row, place), part)

        return [
            [tuple(element(row, at + size * i) for i in range(1 + double_row)) for at in places]
            for row in range(src0.partition_count)
        ]

    def _multiply_moving(self, src0, dst, accumulate, transpose=0, **modes):
        moving = self._operand(src0, **modes)
        for m in range(dst.partition_count):
            for n, place in enumerate(self._places(dst)):
                total = np.float32(0)
                for weights, row in zip(self.stationary, moving, strict=True):
                    if transpose:
                        passes = row[n][0] != 0
                        term = float_of(weights[m][0]) if passes else np.float32(0)
                    else:
                        pairs = zip(weights[m], row[n], strict=True)
                        products = [alu(AluOp.MULTIPLY, a, b) for a, b in pairs]
                        term = products[0]
                        if len(products) == 2:
                            term = alu(AluOp.ADD, *products)
                    total = alu(AluOp.ADD, total, term)
                if accumulate:
                    total = alu(AluOp.ADD, self._value(dst, m, place), total)
                self._put(dst, m, place, total)


def _part(value, part):
    if part == Part.FULL:
        return value
    if not np.isfinite(value):
        return value if part == Part.HIGH else np.float32(0)
    high = float_of(bits_of(value) & 0xFFFFF000)
    return value - high if part == Part.LOW else high


def _sum(values):
    partials = [np.float32(0)] * 8
    for i, value in enumerate(values):
        partials[i % 8] = alu(AluOp.ADD, partials[i % 8], value)
    while len(partials) > 1:
        partials = [
            alu(AluOp.ADD, partials[i], partials[i + 1]) for i in range(0, len(partials), 2)
        ]
    return partials[0]


def _extreme(op, values):
    result = float_of(0xFF800000 if op == AluOp.MAX else 0x7F800000)
    for value in values:
        result = alu(op, result, value)
    return result
