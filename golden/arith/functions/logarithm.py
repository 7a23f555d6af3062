"""ln(x) = (e + log2 m) ln 2: the exponent beside a table's result, times a constant."""

import numpy as np

from golden.arith.blocks import blockwise, checked
from golden.arith.float32 import NAN, Float32Array
from golden.arith.functions import fields
from golden.arith.functions.segment import Y_BITS, evaluate
from golden.arith.functions.tables import columns

LN_2 = 186065279
"""ln(2) in Q28, 28 bits, to nearest."""
_UNIT = np.float32(2.0 ** -(Y_BITS + 28))
_COLUMNS = columns("log2")
_INFINITY = np.float32(np.inf)


def log(x: Float32Array) -> Float32Array:
    """ln(x). ln(+-0) = -inf, ln(+inf) = +inf, ln(1) = +0; NaN below zero.

    x = m 2^e, m in [1, 2): l = e 2^27 + y, y = log2(m) in Q27; |l| LN_2 in Q55 (at most 62 bits) is
    rounded to 24 bits, ties to even, and given the sign of l. The error is absolute: 2^-26 or so,
    which near x = 1 is many ulp.
    """
    return blockwise(_log, checked(x))


def _log(x):
    exponent, fraction = fields.unpack(x)
    logarithm = exponent.astype(np.int64) << np.int64(Y_BITS)
    logarithm += evaluate(_COLUMNS, fraction)
    logarithm *= np.int64(LN_2)
    # From an integer of 62 bits to float32 is one rounding, to nearest even.
    result = logarithm.astype(np.float32) * _UNIT
    return fields.special(
        x, result, zero=lambda _: -_INFINITY, infinite=lambda _: _INFINITY, negative=NAN
    )
