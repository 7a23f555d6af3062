"""FP32 numbers as integer fields, and back: the ends of every function's datapath.

All integers are int64 and all functions element-wise on arrays of any shape.
"""

import numpy as np
from numpy.typing import NDArray

from golden.arith.float32 import Float32Array

Int64Array = NDArray[np.int64]

FRACTION_BITS = 23
FRACTION_MASK = (1 << FRACTION_BITS) - 1
_BIAS = 127
_INFINITY = 255 << FRACTION_BITS


def unpack(x: Float32Array) -> tuple[Int64Array, Int64Array]:
    """(exponent, significand), |x| = significand * 2^(exponent - 23), significand of 24 bits.

    A subnormal comes out normalised. Zeros, infinities and NaNs read as 1.
    """
    regular = np.isfinite(x) & (x != 0)
    fraction, exponent = np.frexp(np.where(regular, np.abs(x), np.float32(1)))
    significand = np.asarray(fraction * np.float32(1 << 24)).astype(np.int64)
    return np.asarray(exponent).astype(np.int64) - 1, significand


def pack(negative, significand: Int64Array, exponent: Int64Array) -> Float32Array:
    """significand * 2^(exponent - 23), significand in [2^23, 2^24]: both ends are included.

    Overflow gives infinity; a result below 2^-126 zero of the same sign.
    """
    bits = ((exponent + (_BIAS - 1)) << FRACTION_BITS) + significand
    bits = np.where(bits < 1 << FRACTION_BITS, 0, np.minimum(bits, _INFINITY))
    bits = bits | (np.asarray(negative).astype(np.int64) << 31)
    return bits.astype(np.uint32).view(np.float32)


def round_even(value: Int64Array, shift) -> Int64Array:
    """value / 2^shift to the nearest integer, ties to even; 1 <= shift <= 62, value >= 0."""
    one = np.int64(1)
    return (value + (one << (shift - 1)) - 1 + ((value >> shift) & 1)) >> shift
