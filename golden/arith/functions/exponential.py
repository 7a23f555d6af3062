"""e^x = 2^(x log2 e): a fixed-point product, its integer part the exponent, the rest a table."""

import numpy as np

from golden.arith.float32 import Float32Array
from golden.arith.functions import fields
from golden.arith.functions.blocks import blockwise
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

LOG2_E = 1549082005
"""log2(e) in Q30, 31 bits, to nearest."""
PLACE_BITS = 26
"""Fraction bits of x log2(e): 7 choose the segment, 19 are t."""

_SHIFT_OF_ONE = 23 + 30 - PLACE_BITS
_LARGEST_EXPONENT = 7
_LARGEST_SHIFT = 60
_COLUMNS = columns("exp2")
_ONE, _ZERO, _INFINITY = np.float32(1), np.float32(0), np.float32(np.inf)


def exp(x: Float32Array) -> Float32Array:
    """e^x. exp(-inf) = +0, exp(+inf) = +inf; a result below 2^-126 is +0.

    |x| = s 2^(e-23): z = s LOG2_E in Q26, to the nearest (ties to even), then given the sign of x;
    n = floor(z); y = 2^(z - n) in [1, 2] in Q27, rounded to even in Q23, times 2^n.

    From |x| = 128 on e is taken as 7: the result is beyond the range all the same, and z fits in
    35 bits. A shift of 60 already leaves zero of the 55-bit product.
    """
    return blockwise(_exp, x)


def _exp(x):
    exponent, fraction = fields.unpack(x)
    np.minimum(exponent, np.int32(_LARGEST_EXPONENT), out=exponent)
    shift = np.minimum(np.int32(_SHIFT_OF_ONE) - exponent, np.int32(_LARGEST_SHIFT))
    product = (fraction | np.int32(1 << fields.FRACTION_BITS)) * np.int64(LOG2_E)
    z = fields.round_even(product, shift)
    np.negative(z, out=z, where=x < 0)
    place = z.astype(np.int32) & np.int32((1 << PLACE_BITS) - 1)
    y = fields.round_even(evaluate(_COLUMNS, place, PLACE_BITS), Y_BITS - 23)
    result = fields.pack(y, (z >> np.int64(PLACE_BITS)).astype(np.int32))
    return fields.special(x, result, zero=lambda _: _ONE, infinite=_at_infinity)


def _at_infinity(x):
    return np.where(x > 0, _INFINITY, _ZERO)
