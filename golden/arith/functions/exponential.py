"""e^x = 2^(x log2 e): a fixed-point product, its integer part the exponent, the rest a table."""

import numpy as np

from golden.arith.element import bits, choose, element, unary
from golden.arith.float32 import NAN
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

LOG2_E = 1549082005
"""log2(e) in Q30, 31 bits, to nearest."""
PLACE_BITS = 26
"""Fraction bits of x log2(e): 7 choose the segment, 19 are t."""

_C0, _C1, _C2 = columns("exp2")
_ONE = np.float32(1)
_BEYOND = np.float32(1 << 8)
"""A magnitude whose result is beyond the range."""


@element
def exponential(x):
    """`exp` of one number."""
    exponent, fraction = fields.unpack(choose(abs(x) > _BEYOND, _BEYOND, x))
    # 55 bits; all of them are cut off, and less than a half, where the shift is limited
    product = ((1 << fields.FRACTION_BITS) + fraction) * LOG2_E
    cut = fields.FRACTION_BITS + 30 - PLACE_BITS - exponent
    magnitude = fields.round_even(product, choose(cut > 60, 60, cut))
    z = choose(bits(x) > fields.MAGNITUDE, -magnitude, magnitude)
    place = z & ((1 << PLACE_BITS) - 1)
    y = evaluate(_C0, _C1, _C2, place, PLACE_BITS - 23, 0)
    result = fields.pack(fields.round_even(y, Y_BITS - 23), z >> PLACE_BITS)
    result = choose(x == 0, _ONE, result)
    return choose(x == x, result, NAN)


@unary
def exp(x):
    """e^x. exp(-inf) = +0, exp(+inf) = +inf; a result below 2^-126 is +0.

    z = x LOG2_E in Q26, to the nearest (ties to even); n = floor(z); y = 2^(z - n) in [1, 2] in
    Q27, rounded to even in Q23, times 2^n.
    """
    return exponential(x)
