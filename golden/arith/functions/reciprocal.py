"""1/x: the exponent negated, the significand through a table; at most 1 ulp."""

import numpy as np

from golden.arith.float32 import NAN, Float32Array, canonicalise
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import TABLES

_ZERO, _INFINITY = np.float32(0), np.float32(np.inf)


def reciprocal(x: Float32Array) -> Float32Array:
    """1/x. 1/(+-0) = +-inf, 1/(+-inf) = +-0; overflow from |x| <= 2^-128, zero from |x| > 2^126.

    x = m 2^e, m in [1, 2): y = 1/m in (1/2, 1] in Q27, rounded to even in Q24, times 2^-e.
    """
    x = canonicalise(x)
    exponent, significand = fields.unpack(x)
    y = evaluate(TABLES["reciprocal"], significand & fields.FRACTION_MASK)
    rounded = fields.round_even(y, Y_BITS - 24)
    result = fields.pack(np.signbit(x), rounded, -1 - exponent)
    result = np.where(x == 0, np.copysign(_INFINITY, x), result)
    result = np.where(np.isinf(x), np.copysign(_ZERO, x), result)
    return np.where(np.isnan(x), NAN, result)
