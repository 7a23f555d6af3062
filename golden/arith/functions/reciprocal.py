"""1/x: the exponent negated, the significand through a table; at most 1 ulp."""

import numpy as np

from golden.arith.blocks import blockwise, checked
from golden.arith.float32 import Float32Array
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

_COLUMNS = columns("reciprocal")
_SIGN = np.uint32(1 << 31)
_ZERO, _INFINITY = np.float32(0), np.float32(np.inf)


def reciprocal(x: Float32Array) -> Float32Array:
    """1/x. 1/(+-0) = +-inf, 1/(+-inf) = +-0; overflow from |x| <= 2^-128, zero from |x| > 2^126.

    x = m 2^e, m in [1, 2): y = 1/m in (1/2, 1] in Q27, rounded to even in Q24, times 2^-e.
    """
    return blockwise(_reciprocal, checked(x))


def _reciprocal(x):
    exponent, fraction = fields.unpack(x)
    y = fields.round_even(evaluate(_COLUMNS, fraction), Y_BITS - 24)
    result = fields.pack(y, np.int32(-1) - exponent)
    result.view(np.uint32)[...] |= x.view(np.uint32) & _SIGN
    return fields.special(x, result, zero=_at_zero, infinite=_at_infinity)


def _at_zero(x):
    return np.copysign(_INFINITY, x)


def _at_infinity(x):
    return np.copysign(_ZERO, x)
