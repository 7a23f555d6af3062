"""sqrt(x) and 1/sqrt(x): the exponent halved, the significand through one of two tables."""

import numpy as np

from golden.arith.blocks import blockwise, checked
from golden.arith.float32 import NAN, Float32Array
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

_SQRT = columns("sqrt_even", "sqrt_odd")
_RSQRT = columns("rsqrt_even", "rsqrt_odd")
_ZERO, _INFINITY = np.float32(0), np.float32(np.inf)


def sqrt(x: Float32Array) -> Float32Array:
    """sqrt(x). sqrt(+-0) = +-0, sqrt(+inf) = +inf; NaN below zero.

    x = m 2^(2h + odd), m in [1, 2): y = sqrt(m 2^odd) in [1, 2) in Q27, rounded to even in Q23,
    times 2^h.
    """
    return blockwise(_sqrt, checked(x))


def rsqrt(x: Float32Array) -> Float32Array:
    """1/sqrt(x). 1/sqrt(+-0) = +-inf, 1/sqrt(+inf) = +0; NaN below zero.

    x = m 2^(2h + odd), m in [1, 2): y = 1/sqrt(m 2^odd) in (1/2, 1] in Q27, rounded to even in
    Q24, times 2^-h.
    """
    return blockwise(_rsqrt, checked(x))


def _sqrt(x):
    y, half = _root(_SQRT, x)
    result = fields.pack(fields.round_even(y, Y_BITS - 23), half)
    return fields.special(
        x, result, zero=lambda zero: zero, infinite=lambda _: _INFINITY, negative=NAN
    )


def _rsqrt(x):
    y, half = _root(_RSQRT, x)
    result = fields.pack(fields.round_even(y, Y_BITS - 24), np.int32(-1) - half)
    return fields.special(
        x,
        result,
        zero=lambda zero: np.copysign(_INFINITY, zero),
        infinite=lambda _: _ZERO,
        negative=NAN,
    )


def _root(table, x):
    """(y in Q27, h)."""
    exponent, fraction = fields.unpack(x)
    y = evaluate(table, fraction, odd=exponent & np.int32(1))
    return y, exponent >> np.int32(1)
