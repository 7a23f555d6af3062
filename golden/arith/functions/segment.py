"""A quadratic over 128 segments, in integers: the datapath that all table functions share.

The fraction's top 7 bits choose the segment, the rest is t, read as a number in [0, 1):

    t2 = (t * t) >> 16
    y  = ((c0 << 4) + (c1 * t >> 11) + (c2 * t2 >> 10) + 8) >> 4

with c0 in Q27 (28 bits), c1 in Q26 (20 bits), c2 in Q25 (11 bits), shifts arithmetic, y in Q27.
The signs of c1 and c2 are constant over a table. A fraction wider than 23 bits makes t wider: the
product with c1 takes all of t, the square its top 16 bits.

Here all is done in 32 bits: c1 * t is cut in two products, floors of floors being floors, and c0
joins after the last shift, which it does not disturb.
"""

import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]

SEGMENTS = 128
INDEX_BITS = 7
T_BITS = 16
Y_BITS = 27
"""Fraction bits of the result."""
WIDEST = 26
"""Bits of the widest fraction."""
_GUARD = 4
_HALF = 8


def evaluate(columns, fraction: Int32Array, fraction_bits: int = 23, odd=None) -> Int32Array:
    """y in Q27 for int32 `fraction` in [0, 2^fraction_bits); `columns`: int32 arrays c0, c1, c2 of
    128 entries, or of 256, where `odd` (0 or 1 each) chooses the half.

    Any shape; the result has that of `fraction`.
    """
    extra = fraction_bits - INDEX_BITS - T_BITS
    if not 0 <= extra <= WIDEST - INDEX_BITS - T_BITS:
        raise ValueError(f"a fraction has 23 bits to {WIDEST}, not {fraction_bits}")
    index = fraction >> np.int32(fraction_bits - INDEX_BITS)
    if odd is not None:
        index |= odd << np.int32(INDEX_BITS)
    index = index.astype(np.intp)
    c0, c1, c2 = (np.take(column, index, mode="clip") for column in columns)
    low_bits = _HALF + extra // 2
    t = fraction & np.int32((1 << (fraction_bits - INDEX_BITS)) - 1)
    # |c1| < 2^20 and neither half of t has more than 11 bits: both products fit.
    linear = (c1 * (t & np.int32((1 << low_bits) - 1))) >> np.int32(low_bits)
    linear += c1 * (t >> np.int32(low_bits))
    linear >>= np.int32(11 + extra - low_bits)
    coarse = (t >> np.int32(extra)).view(np.uint32)
    coarse *= coarse
    coarse >>= np.uint32(T_BITS)
    c2 *= coarse.view(np.int32)
    c2 >>= np.int32(10)
    linear += c2
    linear += np.int32(1 << (_GUARD - 1))
    linear >>= np.int32(_GUARD)
    linear += c0
    return linear
