"""ln(x) = (e + log2 m) ln 2: the exponent beside a table's result, times a constant."""

import numpy as np

from golden.arith.float32 import NAN, Float32Array, canonicalise
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import TABLES

LN_2 = 186065279
"""ln(2) in Q28, 28 bits, to nearest."""
_PRODUCT_BITS = Y_BITS + 28
_NORMALISED = 61

_INFINITY = np.float32(np.inf)


def log(x: Float32Array) -> Float32Array:
    """ln(x). ln(+-0) = -inf, ln(+inf) = +inf, ln(1) = +0; NaN below zero.

    x = m 2^e, m in [1, 2): l = e 2^27 + y, y = log2(m) in Q27; |l| LN_2 in Q55 (at most 62 bits) is
    rounded to 24 bits, ties to even, and given the sign of l. The error is absolute: 2^-26 or so,
    which near x = 1 is many ulp.
    """
    x = canonicalise(x)
    exponent, significand = fields.unpack(x)
    y = evaluate(TABLES["log2"], significand & fields.FRACTION_MASK)
    logarithm = (exponent << Y_BITS) + y
    result = _rounded(logarithm < 0, np.abs(logarithm) * LN_2)
    result = np.where(np.isposinf(x), _INFINITY, result)
    result = np.where(x < 0, NAN, result)
    result = np.where(x == 0, -_INFINITY, result)
    return np.where(np.isnan(x), NAN, result)


def _rounded(negative, product: fields.Int64Array) -> Float32Array:
    """+-product / 2^55, 0 <= product < 2^62, as FP32; +0 for zero."""
    normal = product
    exponent = np.full(np.shape(product), _NORMALISED - _PRODUCT_BITS, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        small = normal < np.int64(1) << (_NORMALISED + 1 - step)
        normal = np.where(small, normal << step, normal)
        exponent = exponent - np.where(small, step, 0)
    significand = fields.round_even(normal, _NORMALISED - fields.FRACTION_BITS)
    result = fields.pack(negative, significand, exponent)
    return np.where(product == 0, np.float32(0), result)
