"""Datapath instructions recomputed one element after the other, in the plainest way.

Shares nothing with the golden model but the declarations: memories are byte arrays, addresses are
computed per element, numbers are numpy float32 scalars. Only for small operands.
"""

from itertools import product

import ml_dtypes
import numpy as np

from isa.dtypes import DType
from isa.fields import AluOp
from isa.functions import PROGRAMS
from isa.pattern import ColumnPattern
from isa.values import Bits
from verif.plain_program import run

_NAN32 = 0x7FC00000
_TINY = 2.0**-126
_NO_SLOPE = Bits(0)


class PlainMachine:
    """memories: {Space: uint8 array [partitions, bytes]}, changed in place by `execute`."""

    def __init__(self, memories):
        self.memories = memories
        self.stationary = None

    def execute(self, name, arguments):
        """Runs one instruction; arguments as for the program builder, without registers."""
        with np.errstate(all="ignore"):
            getattr(self, f"_{name}")(**arguments)

    # elements

    def _places(self, pattern):
        """Per partition the byte offsets of all elements, in order."""
        found = []
        for index in product(*(range(count) for _, count in pattern.dims)):
            steps = sum(i * step for i, (step, _) in zip(index, pattern.dims, strict=True))
            found.append(pattern.offset + steps * pattern.dtype.itemsize)
        return found

    def _code(self, pattern, lane, place):
        row = self.memories[pattern.space][pattern.partition + lane]
        return int.from_bytes(row[place : place + pattern.dtype.itemsize].tobytes(), "little")

    def _value(self, pattern, lane, place):
        code = self._code(pattern, lane, place)
        return _float(code << 16 if pattern.dtype == DType.BF16 else code)

    def _put_code(self, pattern, lane, place, code):
        size = pattern.dtype.itemsize
        row = self.memories[pattern.space][pattern.partition + lane]
        row[place : place + size] = np.frombuffer(code.to_bytes(size, "little"), np.uint8)

    def _put(self, pattern, lane, place, value):
        if pattern.dtype == DType.FP32:
            self._put_code(pattern, lane, place, _bits(value))
        elif np.isnan(value):
            self._put_code(pattern, lane, place, 0x7FC0)
        else:
            code = np.array(value, np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
            self._put_code(pattern, lane, place, int(code))

    def _column(self, operand, lane):
        if isinstance(operand, ColumnPattern):
            return self._value(operand.pattern(lane + 1), lane, operand.offset)
        return _float(operand.value)

    def _map(self, sources, dst, function):
        """dst[i] = function(lane, sources' values i); sources are read before dst is written."""
        for lane in range(dst.partition_count):
            read = [[self._value(s, lane, at) for at in self._places(s)] for s in sources]
            for i, place in enumerate(self._places(dst)):
                self._put(dst, lane, place, function(lane, *(values[i] for values in read)))

    # instructions

    def _tensor_tensor(self, src0, src1, dst, op0):
        self._map((src0, src1), dst, lambda lane, a, b: _alu(op0, a, b))

    def _tensor_scalar(self, src0, dst, operand0, operand1, op0, op1, reverse0, reverse1):
        def function(lane, x):
            for op, operand, reverse in ((op0, operand0, reverse0), (op1, operand1, reverse1)):
                if op != AluOp.BYPASS:
                    y = self._column(operand, lane)
                    x = _alu(op, y, x) if reverse else _alu(op, x, y)
            return x

        self._map((src0,), dst, function)

    def _activation(self, src0, dst, scale, bias, func, imm2=_NO_SLOPE):
        def function(lane, x):
            given = (self._column(scale, lane), self._column(bias, lane), _float(imm2.value))
            return run(PROGRAMS[func], x, *given)

        self._map((src0,), dst, function)

    def _tensor_copy(self, src0, dst):
        if src0.dtype != dst.dtype:
            for lane in range(dst.partition_count):
                places = zip(self._places(src0), self._places(dst), strict=True)
                for source, target in [*places]:
                    if dst.dtype == DType.FP32:
                        self._put_code(dst, lane, target, self._code(src0, lane, source) << 16)
                    else:
                        self._put(dst, lane, target, self._value(src0, lane, source))
            return
        for lane in range(dst.partition_count):
            codes = [self._code(src0, lane, place) for place in self._places(src0)]
            for place, code in zip(self._places(dst), codes, strict=True):
                self._put_code(dst, lane, place, code)

    def _tensor_reduce(self, src0, dst, op0, reduce_dims):
        group = 1
        for _, count in src0.dims[len(src0.dims) - reduce_dims :]:
            group *= count
        for lane in range(dst.partition_count):
            values = [self._value(src0, lane, place) for place in self._places(src0)]
            for i, place in enumerate(self._places(dst)):
                part = values[i * group : (i + 1) * group]
                self._put(dst, lane, place, _largest(part) if op0 == AluOp.MAX else _sum(part))

    def _memset(self, dst, imm0):
        self._map((), dst, lambda lane: _float(imm0.value))

    def _load_stationary(self, src0):
        self.stationary = [
            [self._value(src0, row, place) for place in self._places(src0)]
            for row in range(src0.partition_count)
        ]

    def _multiply_moving(self, src0, dst, accumulate):
        moving = [
            [self._value(src0, row, place) for place in self._places(src0)]
            for row in range(src0.partition_count)
        ]
        for m in range(dst.partition_count):
            for n, place in enumerate(self._places(dst)):
                total = np.float32(0)
                for weights, row in zip(self.stationary, moving, strict=True):
                    total = _alu(AluOp.ADD, total, _alu(AluOp.MULTIPLY, weights[m], row[n]))
                if accumulate:
                    total = _alu(AluOp.ADD, self._value(dst, m, place), total)
                self._put(dst, m, place, total)


def _float(code):
    return np.array(code, np.uint32).view(np.float32)[()]


def _bits(value):
    return int(np.array(value, np.float32).view(np.uint32))


def _alu(op, a, b):
    if op in (AluOp.MAX, AluOp.MIN):
        if np.isnan(a) or np.isnan(b):
            return _float(_NAN32)
        if a == b:  # zeros: -0 below +0
            a_first = np.signbit(a) == (op == AluOp.MIN)
        else:
            a_first = (a > b) == (op == AluOp.MAX)
        return a if a_first else b
    if op == AluOp.ADD:
        result = a + b
    elif op == AluOp.SUBTRACT:
        result = a - b
    else:
        result = a * b
        if abs(float(result)) < _TINY:
            result = np.copysign(np.float32(0), result)
    return _float(_NAN32) if np.isnan(result) else result


def _sum(values):
    partials = [np.float32(0)] * 8
    for i, value in enumerate(values):
        partials[i % 8] = _alu(AluOp.ADD, partials[i % 8], value)
    while len(partials) > 1:
        partials = [
            _alu(AluOp.ADD, partials[i], partials[i + 1]) for i in range(0, len(partials), 2)
        ]
    return partials[0]


def _largest(values):
    result = _float(0xFF800000)
    for value in values:
        result = _alu(AluOp.MAX, result, value)
    return result
