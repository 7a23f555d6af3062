"""ln(x) = (e + log2 m) ln 2: the exponent beside a table's result, times a constant."""

import numpy as np

from golden.arith.element import choose, element, unary
from golden.arith.float32 import NAN
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

LN_2 = 186065279
"""ln(2) in Q28, 28 bits, to nearest."""
_UNIT = np.float32(2.0 ** -(Y_BITS + 28))
_C0, _C1, _C2 = columns("log2")
_INFINITY = np.float32(np.inf)


@element
def natural_logarithm(x):
    """`log` of one number."""
    exponent, fraction = fields.unpack(x)
    logarithm = (exponent << Y_BITS) + evaluate(_C0, _C1, _C2, fraction, 0, 0)
    # From an integer of 62 bits to float32 is one rounding, to nearest even.
    result = np.float32(logarithm * LN_2) * _UNIT
    result = choose(x == _INFINITY, x, result)
    result = choose(x == 0, -_INFINITY, result)
    return choose(x >= 0, result, NAN)


@unary
def log(x):
    """ln(x). ln(+-0) = -inf, ln(+inf) = +inf, ln(1) = +0; NaN below zero.

    x = m 2^e, m in [1, 2): l = e 2^27 + y, y = log2(m) in Q27; |l| LN_2 in Q55 (at most 62 bits) is
    rounded to 24 bits, ties to even, and given the sign of l. The error is absolute: 2^-26 or so,
    which near x = 1 is many ulp.
    """
    return natural_logarithm(x)
