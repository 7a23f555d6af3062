"""Operators on raw 32-bit words: bits, shifts, and integers modulo 2^32.

All functions take uint32 arrays (or scalars), broadcast like numpy and return new uint32 arrays.
Another dtype raises `TypeError`. Signed operators read the words as two's complement; comparisons
give 1 or 0.
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

BITS = 32


def bitwise_and(a, b) -> Words:
    """a & b."""
    return np.bitwise_and(_checked(a), _checked(b))


def bitwise_or(a, b) -> Words:
    """a | b."""
    return np.bitwise_or(_checked(a), _checked(b))


def bitwise_xor(a, b) -> Words:
    """a ^ b."""
    return np.bitwise_xor(_checked(a), _checked(b))


def shift_left(a, b) -> Words:
    """a * 2^b modulo 2^32; b is the whole unsigned word, so 0 from 32 on."""
    a, b = _checked(a), _checked(b)
    return np.where(b < BITS, np.left_shift(a, _amount(b)), np.uint32(0))


def shift_right(a, b) -> Words:
    """floor(a / 2^b) of the unsigned a; 0 from b = 32 on."""
    a, b = _checked(a), _checked(b)
    return np.where(b < BITS, np.right_shift(a, _amount(b)), np.uint32(0))


def shift_right_arithmetic(a, b) -> Words:
    """floor(a / 2^b) of the signed a; -1 or 0 from b = 32 on."""
    return np.right_shift(_signed(a), _amount(_checked(b)).view(np.int32)).view(np.uint32)


def add(a, b) -> Words:
    """a + b modulo 2^32."""
    with np.errstate(over="ignore"):
        return np.add(_checked(a), _checked(b))


def subtract(a, b) -> Words:
    """a - b modulo 2^32."""
    with np.errstate(over="ignore"):
        return np.subtract(_checked(a), _checked(b))


def multiply(a, b) -> Words:
    """a * b modulo 2^32: the same for signed and unsigned."""
    with np.errstate(over="ignore"):
        return np.multiply(_checked(a), _checked(b))


def maximum(a, b) -> Words:
    """The larger of signed a and b."""
    return np.maximum(_signed(a), _signed(b)).view(np.uint32)


def minimum(a, b) -> Words:
    """The smaller of signed a and b."""
    return np.minimum(_signed(a), _signed(b)).view(np.uint32)


def equal(a, b) -> Words:
    """1 where a = b."""
    return _truth(_checked(a) == _checked(b))


def not_equal(a, b) -> Words:
    """1 where a and b differ."""
    return _truth(_checked(a) != _checked(b))


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
    return _truth(_checked(a) > _checked(b))


def unsigned_greater_equal(a, b) -> Words:
    """1 where unsigned a >= b."""
    return _truth(_checked(a) >= _checked(b))


def unsigned_less(a, b) -> Words:
    """1 where unsigned a < b."""
    return _truth(_checked(a) < _checked(b))


def unsigned_less_equal(a, b) -> Words:
    """1 where unsigned a <= b."""
    return _truth(_checked(a) <= _checked(b))


def _amount(b):
    """What numpy can shift by: at most 31."""
    return np.minimum(b, np.uint32(BITS - 1))


def _signed(x) -> NDArray[np.int32]:
    return _checked(x).view(np.int32)


def _truth(condition) -> Words:
    return np.asarray(condition).astype(np.uint32)


def _checked(x) -> Words:
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype != np.uint32:
        kind = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"uint32 words expected, not {kind}")
    return np.asarray(x, np.uint32)
