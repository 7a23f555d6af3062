"""Elements, roundings and operators on single numbers, in Python's integers and fractions.

Shares nothing with the golden model, but for the logarithm and the exponential in `power`.
"""

import operator
from fractions import Fraction
from math import floor

import ml_dtypes
import numpy as np

from golden.arith.power import power
from isa.dtypes import DType
from isa.fields import AluOp

NAN32 = 0x7FC00000
NANS = {
    DType.TF32: NAN32,
    DType.BF16: 0x7FC0,
    DType.FP16: 0x7E00,
    DType.FP8_E5M2: 0x7E,
    DType.FP8_E4M3: 0x7C,
    DType.FP8_E3M4: 0x78,
    DType.FP8_E4M3FN: 0x7F,
}
_MASK = (1 << 32) - 1
_TINY = 2.0**-126
_COMPARISONS = {
    AluOp.EQUAL: operator.eq,
    AluOp.NOT_EQUAL: operator.ne,
    AluOp.GREATER: operator.gt,
    AluOp.GREATER_EQUAL: operator.ge,
    AluOp.LESS: operator.lt,
    AluOp.LESS_EQUAL: operator.le,
}


def float_of(code):
    """The float32 with this code."""
    return np.array(code, np.uint32).view(np.float32)[()]


def bits_of(value):
    """The code of a float32."""
    return int(np.array(value, np.float32).view(np.uint32))


def word_of(code, dtype):
    """An element as a word: signed integers extended by their sign."""
    signed = dtype in (DType.INT8, DType.INT16, DType.INT32)
    if signed and code >> (8 * dtype.itemsize - 1):
        code -= 1 << (8 * dtype.itemsize)
    return code & _MASK


def value_of(code, dtype):
    """The float32 of an element."""
    if dtype in (DType.FP32, DType.BF16):
        return float_of(code << 16 if dtype == DType.BF16 else code)
    if dtype == DType.TF32:
        return float_of(NAN32 if np.isnan(float_of(code)) else code & 0xFFFFE000)
    number = np.array(code, f"u{dtype.itemsize}").view(dtype.numpy)
    if dtype in NANS:
        number = number.astype(np.float32)[()]
        return float_of(NAN32) if np.isnan(number) else number
    return np.float32(int(number))


def code_of(value, dtype, sat=False, random=None):
    """The element of a float32; random: word of 32 bits for stochastic rounding."""
    if dtype == DType.FP32:
        return bits_of(value)
    if dtype not in NANS:
        limits = np.iinfo(dtype.numpy)
        if np.isnan(value):
            return 0
        nearest = round(float(value)) if np.isfinite(value) else int(np.sign(value)) << 40
        return min(max(nearest, limits.min), limits.max) % (1 << (8 * dtype.itemsize))
    if np.isnan(value):
        return NANS[dtype]
    return _short_code(float(value), dtype, sat, random)


def _short_code(value, dtype, sat, random):
    if dtype == DType.TF32:
        fraction_bits, lowest, largest = 10, -126, Fraction(2) ** 127 * (2 - Fraction(1, 1 << 10))
    else:
        facts = ml_dtypes.finfo(dtype.numpy)
        fraction_bits, lowest, largest = facts.nmant, int(facts.minexp), Fraction(float(facts.max))
    negative = np.signbit(value)
    rounded = None
    if np.isfinite(value):
        magnitude = abs(Fraction(value))
        exponent = max(int(np.frexp(value)[1]) - 1, lowest)
        step = Fraction(2) ** (exponent - fraction_bits)
        count = magnitude / step
        if random is None:
            rounded = round(count) * step
        else:
            rounded = (floor(count * (1 << 32)) + random >> 32) * step
    if rounded is None or rounded > largest:
        if dtype == DType.FP8_E4M3FN and not sat:
            return NANS[dtype]
        rounded = float(largest) if sat else np.inf
    result = np.copysign(float(rounded), -1.0 if negative else 1.0)
    if dtype == DType.TF32:
        return bits_of(np.float32(result))
    return int(np.array(result).astype(dtype.numpy).view(f"u{dtype.itemsize}"))


def alu(op, a, b):
    """a op b on float32, for a raw operator on words."""
    if AluOp(op).raw:
        return _raw(op, a, b) & _MASK
    if op in _COMPARISONS:
        return np.float32(_COMPARISONS[op](a, b))
    if op in (AluOp.LOGICAL_AND, AluOp.LOGICAL_OR, AluOp.LOGICAL_XOR):
        count = int(a != 0) + int(b != 0)
        return np.float32(
            {AluOp.LOGICAL_AND: count == 2, AluOp.LOGICAL_OR: count > 0}.get(op, count == 1)
        )
    if op in (AluOp.ABS_MAX, AluOp.ABS_MIN):
        return alu(AluOp.MAX if op == AluOp.ABS_MAX else AluOp.MIN, abs(a), abs(b))
    if op in (AluOp.MAX, AluOp.MIN):
        if np.isnan(a) or np.isnan(b):
            return float_of(NAN32)
        if a == b:  # zeros: -0 below +0
            a_first = np.signbit(a) == (op == AluOp.MIN)
        else:
            a_first = (a > b) == (op == AluOp.MAX)
        return a if a_first else b
    if op == AluOp.ADD:
        result = a + b
    elif op == AluOp.SUBTRACT:
        result = a - b
    elif op == AluOp.DIVIDE:
        result = a / b
    elif op == AluOp.POWER:
        result = power(a, b)[()]
    else:
        result = a * b
        if abs(float(result)) < _TINY:
            result = np.copysign(np.float32(0), result)
    return float_of(NAN32) if np.isnan(result) else result


def _raw(op, a, b):
    signed_a, signed_b = (x - (x >> 31 << 32) for x in (a, b))
    by = min(b, 32)
    return {
        AluOp.BITWISE_AND: lambda: a & b,
        AluOp.BITWISE_OR: lambda: a | b,
        AluOp.BITWISE_XOR: lambda: a ^ b,
        AluOp.SHIFT_LEFT: lambda: a << by,
        AluOp.SHIFT_RIGHT: lambda: a >> by,
        AluOp.SHIFT_RIGHT_ARITHMETIC: lambda: signed_a >> by,
        AluOp.INT_ADD: lambda: a + b,
        AluOp.INT_SUBTRACT: lambda: a - b,
        AluOp.INT_MULTIPLY: lambda: a * b,
        AluOp.INT_MAX: lambda: max(signed_a, signed_b),
        AluOp.INT_MIN: lambda: min(signed_a, signed_b),
        AluOp.INT_EQUAL: lambda: int(a == b),
        AluOp.INT_NOT_EQUAL: lambda: int(a != b),
        AluOp.INT_GREATER: lambda: int(signed_a > signed_b),
        AluOp.INT_GREATER_EQUAL: lambda: int(signed_a >= signed_b),
        AluOp.INT_LESS: lambda: int(signed_a < signed_b),
        AluOp.INT_LESS_EQUAL: lambda: int(signed_a <= signed_b),
        AluOp.UINT_GREATER: lambda: int(a > b),
        AluOp.UINT_GREATER_EQUAL: lambda: int(a >= b),
        AluOp.UINT_LESS: lambda: int(a < b),
        AluOp.UINT_LESS_EQUAL: lambda: int(a <= b),
    }[op]()


class Generator:
    """XORWOW of one partition; `words`: x, y, z, w, v, d."""

    def __init__(self):
        self.words = [123456789, 362436069, 521288629, 88675123, 5783321, 6615241]

    def draw(self):
        """The next word."""
        x, y, z, w, v, d = self.words
        t = x ^ (x >> 2)
        new = (v ^ (v << 4) ^ t ^ (t << 1)) & _MASK
        self.words = [y, z, w, v, new, (d + 362437) & _MASK]
        return (new + self.words[5]) & _MASK
