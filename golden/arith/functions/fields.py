"""FP32 numbers as integer fields, and back: the ends of every function's datapath.

All functions work element by element on flat arrays; fields are int32.
"""

import numpy as np
from numpy.typing import NDArray

from golden.arith.float32 import NAN, Float32Array

Int32Array = NDArray[np.int32]

FRACTION_BITS = 23
FRACTION_MASK = (1 << FRACTION_BITS) - 1
_ONE = 1 << FRACTION_BITS
_BIAS = 127
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 255 << FRACTION_BITS
_LIFT = 32


def unpack(x: Float32Array) -> tuple[Int32Array, Int32Array]:
    """(exponent, fraction): |x| = (1 + fraction / 2^23) 2^exponent.

    A subnormal comes out normalised. Zeros, infinities and NaNs give fields that mean nothing.
    """
    magnitude = x.view(np.int32) & np.int32(_MAGNITUDE)
    exponent = (magnitude >> np.int32(FRACTION_BITS)) - np.int32(_BIAS)
    subnormal = magnitude < _ONE
    if subnormal.any():
        lifted = np.abs(x[subnormal]) * np.float32(2.0**_LIFT)
        magnitude[subnormal] = lifted.view(np.int32)
        exponent[subnormal] = (magnitude[subnormal] >> FRACTION_BITS) - (_BIAS + _LIFT)
    return exponent, magnitude & np.int32(FRACTION_MASK)


def pack(significand: Int32Array, exponent: Int32Array) -> Float32Array:
    """significand * 2^(exponent - 23), significand in [2^23, 2^24]: both ends are included.

    Overflow gives infinity; a result below 2^-126 zero.
    """
    exponent = np.minimum(np.maximum(exponent, np.int32(-_BIAS - 1)), np.int32(_BIAS + 1))
    bits = ((exponent + np.int32(_BIAS - 1)) << np.int32(FRACTION_BITS)) + significand
    np.copyto(bits, np.int32(0), where=bits < _ONE)
    # One binade beyond the last the sum may have wrapped.
    np.copyto(bits, np.int32(_INFINITY), where=exponent > _BIAS)
    return bits.view(np.float32)


def round_even(value, shift):
    """value / 2^shift to the nearest integer, ties to even; value >= 0 of any width, shift >= 1."""
    one = value.dtype.type(1)
    shift = np.asarray(shift, value.dtype)
    rounded = value >> shift
    rounded &= one
    rounded += (one << (shift - one)) - one
    rounded += value
    rounded >>= shift
    return rounded


def special(x: Float32Array, result: Float32Array, *, zero=None, infinite=None, negative=None):
    """`result`, in place, with what the datapath does not give.

    zero, infinite: functions of the zeros and infinities among x; negative: the result everywhere
    below zero; NaN becomes the canonical one.
    """
    magnitude = x.view(np.int32) & np.int32(_MAGNITUDE)
    if zero is not None and not magnitude.all():
        where = magnitude == 0
        result[where] = zero(x[where])
    top = magnitude >= _INFINITY
    if top.any():
        where = magnitude == _INFINITY
        if infinite is not None:
            result[where] = infinite(x[where])
        result[np.isnan(x)] = NAN
    if negative is not None:
        np.copyto(result, negative, where=x < 0)
    return result
