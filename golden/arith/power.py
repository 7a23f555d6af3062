"""a ** b in FP32, composed of log, a product and exp."""

import numpy as np

from golden.arith.float32 import NAN, Float32Array, canonicalise, multiply
from golden.arith.functions.exponential import exp
from golden.arith.functions.logarithm import log

_ONE = np.float32(1)
_ODD_BELOW = np.float32(2.0**24)
"""From here on every number is an even integer."""


def power(a, b) -> Float32Array:
    """|a| ** b = exp(b * log(|a|)), each of the three rounded to FP32, with a sign.

    The product is that of the vector engine, and log and exp are those of the scalar engine, with
    their values at 0 and infinity.  In the order of precedence:

    * b = +-0: 1, for every a, NaN included;
    * a = 1: 1, for every b, NaN included;
    * a or b NaN: NaN;
    * a below zero and finite, b finite and no integer: NaN;
    * |a| = 1: magnitude 1, b = +-infinity included; else magnitude exp(b * log(|a|));
    * negative if a is negative (-0 and -infinity included) and b an odd integer.

    These are the special values of C99, F.9.4.4.  With relative errors near 2^-23 of b * log(|a|)
    a result is off by at most some |b log(a)| 2^-23 of itself, and where a is next to 1, by
    |b| 2^-26; below 2^-126 it is flushed to zero like every result of exp.  float32 arrays (or
    scalars) that broadcast; `TypeError` for another dtype.
    """
    a, b = np.broadcast_arrays(canonicalise(a), canonicalise(b))
    magnitude = np.abs(a)
    result = exp(multiply(b, log(magnitude)))
    result = np.where((magnitude == 1) & ~np.isnan(b), _ONE, result)
    whole, odd = _integer(b)
    result = np.where(np.signbit(a) & odd, np.negative(result), result)
    root = (a < 0) & np.isfinite(a) & np.isfinite(b) & ~whole
    result = np.where(root, NAN, result)  # NaNs have gone through log and the product
    return np.where((b == 0) | (a == 1), _ONE, result)


def _integer(b):
    """(is a finite integer, is an odd one)."""
    finite = np.where(np.isfinite(b), b, np.float32(0))
    whole = np.isfinite(b) & (np.rint(finite) == finite)
    small = np.where(np.abs(finite) < _ODD_BELOW, finite, np.float32(0))
    odd = whole & ((np.rint(small).astype(np.int32) & 1) != 0)
    return whole, odd
