"""FP32 comparisons, logical operators and magnitudes: results 1.0 or 0.0, or one of the operands.

All functions take float32 arrays (or scalars), broadcast like numpy and return new float32 arrays.
A comparison with NaN is false, except `not_equal`; -0 equals +0. Everything but +-0 is true, NaN
included.
"""

import numpy as np

from golden.arith.float32 import Float32Array, canonicalise, maximum, minimum


def abs_max(a, b) -> Float32Array:
    """max(|a|, |b|); NaN if either is NaN."""
    return maximum(np.abs(canonicalise(a)), np.abs(canonicalise(b)))


def abs_min(a, b) -> Float32Array:
    """min(|a|, |b|); NaN if either is NaN."""
    return minimum(np.abs(canonicalise(a)), np.abs(canonicalise(b)))


def equal(a, b) -> Float32Array:
    """a = b."""
    return _truth(canonicalise(a) == canonicalise(b))


def not_equal(a, b) -> Float32Array:
    """a, b differ, or one of them is NaN."""
    return _truth(canonicalise(a) != canonicalise(b))


def greater(a, b) -> Float32Array:
    """a > b."""
    return _truth(canonicalise(a) > canonicalise(b))


def greater_equal(a, b) -> Float32Array:
    """a >= b."""
    return _truth(canonicalise(a) >= canonicalise(b))


def less(a, b) -> Float32Array:
    """a < b."""
    return _truth(canonicalise(a) < canonicalise(b))


def less_equal(a, b) -> Float32Array:
    """a <= b."""
    return _truth(canonicalise(a) <= canonicalise(b))


def logical_and(a, b) -> Float32Array:
    """a and b are true."""
    return _truth(_true(a) & _true(b))


def logical_or(a, b) -> Float32Array:
    """a or b is true."""
    return _truth(_true(a) | _true(b))


def logical_xor(a, b) -> Float32Array:
    """One of a and b is true."""
    return _truth(_true(a) ^ _true(b))


def _true(x):
    return canonicalise(x) != 0


def _truth(condition) -> Float32Array:
    return np.asarray(condition).astype(np.float32)
