"""e^x = 2^(x log2 e): a fixed-point product, its integer part the exponent, the rest a table."""

import numpy as np

from golden.arith.float32 import NAN, Float32Array, canonicalise
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import TABLES

LOG2_E = 1549082005
"""log2(e) in Q30, 31 bits, to nearest."""
PLACE_BITS = 26
"""Fraction bits of x log2(e): 7 choose the segment, 19 are t."""

_SHIFT_OF_ONE = 23 + 30 - PLACE_BITS
_LARGEST_EXPONENT = 7
_LARGEST_SHIFT = 60
_ZERO, _INFINITY = np.float32(0), np.float32(np.inf)


def exp(x: Float32Array) -> Float32Array:
    """e^x. exp(-inf) = +0, exp(+inf) = +inf; a result below 2^-126 is +0.

    |x| = s 2^(e-23): z = s LOG2_E in Q26, to the nearest (ties to even), then given the sign of x;
    n = floor(z); y = 2^(z - n) in [1, 2] in Q27, rounded to even in Q23, times 2^n.

    From |x| = 128 on e is taken as 7: the result is beyond the range all the same, and z fits in
    35 bits. A shift of 60 already leaves zero of the 55-bit product.
    """
    x = canonicalise(x)
    exponent, significand = fields.unpack(x)
    shift = _SHIFT_OF_ONE - np.minimum(exponent, _LARGEST_EXPONENT)
    z = fields.round_even(significand * LOG2_E, np.minimum(shift, _LARGEST_SHIFT))
    z = np.where(np.signbit(x), -z, z)
    result = _power_of_two(z)
    result = np.where(x == 0, np.float32(1), result)
    result = np.where(np.isposinf(x), _INFINITY, result)
    result = np.where(np.isneginf(x), _ZERO, result)
    return np.where(np.isnan(x), NAN, result)


def _power_of_two(z: fields.Int64Array) -> Float32Array:
    """2^z for z in Q26."""
    y = evaluate(TABLES["exp2"], z & ((1 << PLACE_BITS) - 1), PLACE_BITS)
    return fields.pack(False, fields.round_even(y, Y_BITS - 23), z >> PLACE_BITS)
