"""Operators on raw 32-bit words: bits, shifts, and integers modulo 2^32.

All functions take uint32 arrays (or scalars), broadcast like numpy and return new uint32 arrays.
Another dtype raises `TypeError`. Signed operators read the words as two's complement; comparisons
give 1 or 0.
"""

import numpy as np
from numpy.typing import NDArray

from golden.arith.blocks import checked

Words = NDArray[np.uint32]

BITS = 32


def bitwise_and(a, b) -> Words:
    """a & b."""
    return np.bitwise_and(checked(a, np.uint32), checked(b, np.uint32))


def bitwise_or(a, b) -> Words:
    """a | b."""
    return np.bitwise_or(checked(a, np.uint32), checked(b, np.uint32))


def bitwise_xor(a, b) -> Words:
    """a ^ b."""
    return np.bitwise_xor(checked(a, np.uint32), checked(b, np.uint32))


def shift_left(a, b) -> Words:
    """a * 2^b modulo 2^32; b is the whole unsigned word, so 0 from 32 on."""
    a, b = checked(a, np.uint32), checked(b, np.uint32)
    return np.where(b < BITS, np.left_shift(a, _amount(b)), np.uint32(0))


def shift_right(a, b) -> Words:
    """floor(a / 2^b) of the unsigned a; 0 from b = 32 on."""
    a, b = checked(a, np.uint32), checked(b, np.uint32)
    return np.where(b < BITS, np.right_shift(a, _amount(b)), np.uint32(0))


def shift_right_arithmetic(a, b) -> Words:
    """floor(a / 2^b) of the signed a; -1 or 0 from b = 32 on."""
    return np.right_shift(_signed(a), _amount(checked(b, np.uint32)).view(np.int32)).view(np.uint32)


def add(a, b) -> Words:
    """a + b modulo 2^32."""
    with np.errstate(over="ignore"):
        return np.add(checked(a, np.uint32), checked(b, np.uint32))


def subtract(a, b) -> Words:
    """a - b modulo 2^32."""
    with np.errstate(over="ignore"):
        return np.subtract(checked(a, np.uint32), checked(b, np.uint32))


def multiply(a, b) -> Words:
    """a * b modulo 2^32: the same for signed and unsigned."""
    with np.errstate(over="ignore"):
        return np.multiply(checked(a, np.uint32), checked(b, np.uint32))


def maximum(a, b) -> Words:
    """The larger of signed a and b."""
    return np.maximum(_signed(a), _signed(b)).view(np.uint32)


def minimum(a, b) -> Words:
    """The smaller of signed a and b."""
    return np.minimum(_signed(a), _signed(b)).view(np.uint32)


def equal(a, b) -> Words:
    """1 where a = b."""
    return _truth(checked(a, np.uint32) == checked(b, np.uint32))


def not_equal(a, b) -> Words:
    """1 where a and b differ."""
    return _truth(checked(a, np.uint32) != checked(b, np.uint32))


def signed_greater(a, b) -> Words:
    """1 where signed a > b."""
    return _truth(_signed(a) > _signed(b))


def signed_greater_equal(a, b) -> Words:
    """1 where signed a >= b."""
    return _truth(_signed(a) >= _signed(b))


def signed_less(a, b) -> Words:
    """1 where signed a < b."""
    return _truth(_signed(a) < _signed(b))


def signed_less_equal(a, b) -> Words:
    """1 where signed a <= b."""
    return _truth(_signed(a) <= _signed(b))


def unsigned_greater(a, b) -> Words:
    """1 where unsigned a > b."""
    return _truth(checked(a, np.uint32) > checked(b, np.uint32))


def unsigned_greater_equal(a, b) -> Words:
    """1 where unsigned a >= b."""
    return _truth(checked(a, np.uint32) >= checked(b, np.uint32))


def unsigned_less(a, b) -> Words:
    """1 where unsigned a < b."""
    return _truth(checked(a, np.uint32) < checked(b, np.uint32))


def unsigned_less_equal(a, b) -> Words:
    """1 where unsigned a <= b."""
    return _truth(checked(a, np.uint32) <= checked(b, np.uint32))


def _amount(b):
    """What numpy can shift by: at most 31."""
    return np.minimum(b, np.uint32(BITS - 1))


def _signed(x) -> NDArray[np.int32]:
    return checked(x, np.uint32).view(np.int32)


def _truth(condition) -> Words:
    return np.asarray(condition).astype(np.uint32)
