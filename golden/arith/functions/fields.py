"""FP32 numbers as integer fields, and back: the ends of every function's datapath."""

import numpy as np

from golden.arith.element import bits, choose, element, number

FRACTION_BITS = 23
MAGNITUDE = 0x7FFFFFFF
_ONE = 1 << FRACTION_BITS
_BIAS = 127
_INFINITY = 255 << FRACTION_BITS
_LIFT = 32
_LIFTED = np.float32(2.0**_LIFT)


@element
def unpack(x):
    """(exponent, fraction): |x| = (1 + fraction / 2^23) 2^exponent.

    A subnormal comes out normalised. Zeros, infinities and NaNs give fields that mean nothing.
    """
    magnitude = bits(x) & MAGNITUDE
    lifted = bits(abs(x) * _LIFTED) - (_LIFT << FRACTION_BITS)
    normal = choose(magnitude < _ONE, lifted, magnitude)
    return (normal >> FRACTION_BITS) - _BIAS, normal & (_ONE - 1)


@element
def pack(significand, exponent):
    """significand * 2^(exponent - 23), significand in [2^23, 2^24]: both ends are included.

    Overflow gives infinity; a result below 2^-126 zero.
    """
    code = ((exponent + _BIAS - 1) << FRACTION_BITS) + significand
    return number(choose(code < _ONE, 0, choose(code > _INFINITY, _INFINITY, code)))


@element
def round_even(value, shift):
    """value / 2^shift to the nearest integer, ties to even; value >= 0, shift >= 1."""
    odd = (value >> shift) & 1
    return (value + odd + (1 << (shift - 1)) - 1) >> shift
