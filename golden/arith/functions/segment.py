"""A quadratic over 128 segments, in integers: the datapath that all table functions share.

The fraction's top 7 bits choose the segment, the rest is t, read as a number in [0, 1):

    t2 = (t * t) >> 16
    y  = ((c0 << 4) + (c1 * t >> 11) + (c2 * t2 >> 10) + 8) >> 4

with c0 in Q27 (28 bits), c1 in Q26 (20 bits), c2 in Q25 (11 bits), shifts arithmetic, y in Q27.
The signs of c1 and c2 are constant over a table. A fraction wider than 23 bits makes t wider: the
product with c1 takes all of t, the square its top 16 bits.
"""

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]

SEGMENTS = 128
INDEX_BITS = 7
T_BITS = 16
Y_BITS = 27
"""Fraction bits of the result."""
_GUARD = 4


def evaluate(table: Int64Array, fraction: Int64Array, fraction_bits: int = 23) -> Int64Array:
    """y in Q27 for integers `fraction` in [0, 2^fraction_bits); `table` is [128, 3] (c0, c1, c2).

    Any shape; the result has that of `fraction`.
    """
    extra = fraction_bits - INDEX_BITS - T_BITS
    if extra < 0:
        raise ValueError(f"a fraction has 23 bits or more, not {fraction_bits}")
    index = fraction >> (fraction_bits - INDEX_BITS)
    t = fraction & ((1 << (fraction_bits - INDEX_BITS)) - 1)
    coarse = t >> extra
    c0, c1, c2 = (table[index, column] for column in range(3))
    linear = (c1 * t) >> (11 + extra)
    square = (c2 * ((coarse * coarse) >> T_BITS)) >> 10
    return ((c0 << _GUARD) + linear + square + (1 << (_GUARD - 1))) >> _GUARD
