"""1/x: the exponent negated, the significand through a table; at most 1 ulp."""

import numpy as np

from golden.arith.element import choose, element, unary
from golden.arith.float32 import NAN
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

_C0, _C1, _C2 = columns("reciprocal")
_ZERO, _INFINITY = np.float32(0), np.float32(np.inf)


@element
def inverse(x):
    """`reciprocal` of one number."""
    exponent, fraction = fields.unpack(x)
    y = evaluate(_C0, _C1, _C2, fraction, 0, 0)
    result = fields.pack(fields.round_even(y, Y_BITS - 24), -1 - exponent)
    result = choose(x == 0, _INFINITY, result)
    result = choose(abs(x) == _INFINITY, _ZERO, result)
    return choose(x == x, np.copysign(result, x), NAN)


@unary
def reciprocal(x):
    """1/x. 1/(+-0) = +-inf, 1/(+-inf) = +-0; overflow from |x| <= 2^-128, zero from |x| > 2^126.

    x = m 2^e, m in [1, 2): y = 1/m in (1/2, 1] in Q27, rounded to even in Q24, times 2^-e.
    """
    return inverse(x)
