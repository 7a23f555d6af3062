"""e^x = 2^(x log2 e): a fixed-point product, its integer part the exponent, the rest a table."""

from fractions import Fraction

import numpy as np

from golden.arith.blocks import blockwise, checked
from golden.arith.float32 import Float32Array
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

LOG2_E = 1549082005
"""log2(e) in Q30, 31 bits, to nearest."""
PLACE_BITS = 26
"""Fraction bits of x log2(e): 7 choose the segment, 19 are t."""

_LOG2_E = np.float64(LOG2_E / 2 ** (30 - PLACE_BITS))
_PLACES = np.float64(1 << PLACE_BITS)
_BEYOND = np.float32(1 << 8)
"""A magnitude whose result is beyond the range."""
_COLUMNS = columns("exp2")
_ONE, _ZERO, _INFINITY = np.float32(1), np.float32(0), np.float32(np.inf)


def exp(x: Float32Array) -> Float32Array:
    """e^x. exp(-inf) = +0, exp(+inf) = +inf; a result below 2^-126 is +0.

    z = x LOG2_E in Q26, to the nearest (ties to even); n = floor(z); y = 2^(z - n) in [1, 2] in
    Q27, rounded to even in Q23, times 2^n.
    """
    return blockwise(_exp, checked(x))


def _exp(x):
    z = _scaled(np.clip(x, -_BEYOND, _BEYOND))
    floor = np.floor(z / _PLACES)
    place = (z - floor * _PLACES).astype(np.int32)
    y = fields.round_even(evaluate(_COLUMNS, place, PLACE_BITS), Y_BITS - 23)
    result = fields.pack(y, floor.astype(np.int32))
    return fields.special(x, result, zero=lambda _: _ONE, infinite=_at_infinity)


def _scaled(x):
    """The integers next to x LOG2_E in Q26, as float64; all steps but the product are exact.

    The product has 55 bits, two more than fit. They matter only where float64 shows a tie.
    """
    product = x.astype(np.float64)
    product *= _LOG2_E
    z = np.rint(product)
    product -= z
    tie = np.abs(product, out=product) == 0.5
    if tie.any():
        z[tie] = [_nearest(number) for number in x[tie].tolist()]
    return z


def _nearest(number):
    """The same for one Python float, in integers of any width."""
    numerator, denominator = number.as_integer_ratio()
    return round(Fraction(numerator * LOG2_E, denominator << (30 - PLACE_BITS)))


def _at_infinity(x):
    return np.where(x > 0, _INFINITY, _ZERO)
