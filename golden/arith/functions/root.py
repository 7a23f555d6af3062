"""sqrt(x) and 1/sqrt(x): the exponent halved, the significand through one of two tables."""

import numpy as np

from golden.arith.float32 import NAN, Float32Array, canonicalise
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import TABLES

_ZERO, _INFINITY = np.float32(0), np.float32(np.inf)


def sqrt(x: Float32Array) -> Float32Array:
    """sqrt(x). sqrt(+-0) = +-0, sqrt(+inf) = +inf; NaN below zero.

    x = m 2^(2h + odd), m in [1, 2): y = sqrt(m 2^odd) in [1, 2) in Q27, rounded to even in Q23,
    times 2^h.
    """
    x = canonicalise(x)
    y, half = _root("sqrt", x)
    result = fields.pack(False, fields.round_even(y, Y_BITS - 23), half)
    result = np.where(np.isposinf(x), _INFINITY, result)
    result = np.where(x < 0, NAN, result)
    return np.where((x == 0) | np.isnan(x), x, result)


def rsqrt(x: Float32Array) -> Float32Array:
    """1/sqrt(x). 1/sqrt(+-0) = +-inf, 1/sqrt(+inf) = +0; NaN below zero.

    x = m 2^(2h + odd), m in [1, 2): y = 1/sqrt(m 2^odd) in (1/2, 1] in Q27, rounded to even in
    Q24, times 2^-h.
    """
    x = canonicalise(x)
    y, half = _root("rsqrt", x)
    result = fields.pack(False, fields.round_even(y, Y_BITS - 24), -1 - half)
    result = np.where(np.isposinf(x), _ZERO, result)
    result = np.where(x < 0, NAN, result)
    result = np.where(x == 0, np.copysign(_INFINITY, x), result)
    return np.where(np.isnan(x), NAN, result)


def _root(name: str, x: Float32Array) -> tuple[fields.Int64Array, fields.Int64Array]:
    """(y in Q27, h)."""
    exponent, significand = fields.unpack(x)
    fraction = significand & fields.FRACTION_MASK
    even = evaluate(TABLES[f"{name}_even"], fraction)
    odd = evaluate(TABLES[f"{name}_odd"], fraction)
    return np.where(exponent & 1, odd, even), exponent >> 1
