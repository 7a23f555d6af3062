"""sqrt(x) and 1/sqrt(x): the exponent halved, the significand through one of two tables."""

import numpy as np

from golden.arith.element import choose, element, unary
from golden.arith.float32 import NAN
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

_S0, _S1, _S2 = columns("sqrt_even", "sqrt_odd")
_R0, _R1, _R2 = columns("rsqrt_even", "rsqrt_odd")
_ZERO, _INFINITY = np.float32(0), np.float32(np.inf)


@element
def root(x):
    """`sqrt` of one number."""
    exponent, fraction = fields.unpack(x)
    y = evaluate(_S0, _S1, _S2, fraction, 0, exponent & 1)
    result = fields.pack(fields.round_even(y, Y_BITS - 23), exponent >> 1)
    result = choose((x == 0) | (x == _INFINITY), x, result)
    return choose(x >= 0, result, NAN)


@element
def inverse_root(x):
    """`rsqrt` of one number."""
    exponent, fraction = fields.unpack(x)
    y = evaluate(_R0, _R1, _R2, fraction, 0, exponent & 1)
    result = fields.pack(fields.round_even(y, Y_BITS - 24), -1 - (exponent >> 1))
    result = choose(x == 0, np.copysign(_INFINITY, x), result)
    result = choose(x == _INFINITY, _ZERO, result)
    return choose(x >= 0, result, NAN)


@unary
def sqrt(x):
    """sqrt(x). sqrt(+-0) = +-0, sqrt(+inf) = +inf; NaN below zero.

    x = m 2^(2h + odd), m in [1, 2): y = sqrt(m 2^odd) in [1, 2) in Q27, rounded to even in Q23,
    times 2^h.
    """
    return root(x)


@unary
def rsqrt(x):
    """1/sqrt(x). 1/sqrt(+-0) = +-inf, 1/sqrt(+inf) = +0; NaN below zero.

    x = m 2^(2h + odd), m in [1, 2): y = 1/sqrt(m 2^odd) in (1/2, 1] in Q27, rounded to even in
    Q24, times 2^-h.
    """
    return inverse_root(x)
