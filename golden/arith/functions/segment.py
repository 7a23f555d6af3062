"""A quadratic over 128 segments, in integers: the datapath that all table functions share.

The fraction's top 7 bits choose the segment, the rest is t, read as a number in [0, 1):

    t2 = (t * t) >> 16
    y  = ((c0 << 4) + (c1 * t >> 11) + (c2 * t2 >> 10) + 8) >> 4

with c0 in Q27 (28 bits), c1 in Q26 (20 bits), c2 in Q25 (11 bits), shifts arithmetic, y in Q27.
The signs of c1 and c2 are constant over a table. A fraction wider than 23 bits makes t wider: the
product with c1 takes all of t, the square its top 16 bits.
"""

from golden.arith.element import element

SEGMENTS = 128
INDEX_BITS = 7
T_BITS = 16
Y_BITS = 27
"""Fraction bits of the result."""


@element
def evaluate(c0, c1, c2, fraction, extra, odd):
    """y in Q27 for `fraction` in [0, 2^(23 + extra)).

    The columns c0, c1, c2 have 128 entries, or 256 where `odd` (0 or 1) chooses the half.
    """
    t_bits = T_BITS + extra
    index = (fraction >> t_bits) + (odd << INDEX_BITS)
    t = fraction & ((1 << t_bits) - 1)
    coarse = t >> extra
    t2 = (coarse * coarse) >> T_BITS
    return ((c0[index] << 4) + (c1[index] * t >> (11 + extra)) + (c2[index] * t2 >> 10) + 8) >> 4
