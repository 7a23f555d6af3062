"""FP32 operations: IEEE binary32, round to nearest even, products flushed, one NaN.

All functions take float32 arrays (or scalars), broadcast like numpy and return new float32 arrays.
Another dtype raises `TypeError`: a float64 operand would be rounded twice. `TINY` is the smallest
normal, 2^-126. Source: the numerics contract in `docs`.
"""

import numpy as np
from numpy.typing import NDArray

from golden.arith.blocks import checked
from golden.arith.element import choose, element, elementwise

Float32Array = NDArray[np.float32]

NAN_BITS = 0x7FC00000
NAN = np.uint32(NAN_BITS).view(np.float32)
TINY = np.float32(2.0**-126)
REDUCTION_PARTIALS = 8

_ZERO = np.float32(0.0)
_MAGNITUDE = np.int32(0x7FFFFFFF)


@element
def canonical(x):
    """x; for any NaN the canonical one."""
    return choose(x == x, x, NAN)


@element
def product(a, b):
    """a * b, flushed to zero of its sign below 2^-126; NaN may be any."""
    rounded = a * b
    return choose(abs(rounded) < TINY, np.copysign(_ZERO, rounded), rounded)


@elementwise
def canonicalise(x):
    """`x` with every NaN replaced by the positive quiet canonical one; all else bit for bit."""
    return canonical(x)


@elementwise
def add(a, b):
    """a + b, gradual underflow."""
    return canonical(a + b)


@elementwise
def subtract(a, b):
    """a - b, gradual underflow."""
    return canonical(a - b)


@elementwise
def multiply(a, b):
    """a * b rounded to FP32, then flushed to zero of the same sign if it is below 2^-126."""
    return canonical(product(a, b))


def maximum(a, b) -> Float32Array:
    """The larger of a and b, -0 below +0; NaN if either is NaN."""
    a, b = np.broadcast_arrays(checked(a), checked(b))
    chosen = np.where(_ordinal(a) >= _ordinal(b), a, b)
    return _with_nan(chosen, np.isnan(a) | np.isnan(b))


def minimum(a, b) -> Float32Array:
    """The smaller of a and b, -0 below +0; NaN if either is NaN."""
    a, b = np.broadcast_arrays(checked(a), checked(b))
    chosen = np.where(_ordinal(a) <= _ordinal(b), a, b)
    return _with_nan(chosen, np.isnan(a) | np.isnan(b))


def relu(x) -> Float32Array:
    """max(x, +0): NaN stays NaN, -0 becomes +0."""
    return maximum(x, _ZERO)


def reduce_add(x, axis: int = -1) -> Float32Array:
    """Sum along `axis` in the order of the vector engine; that axis disappears.

    Element i joins partial i mod 8, each partial sequential from +0; the partials are joined as
    ((0+1)+(2+3))+((4+5)+(6+7)). The sum of nothing is +0.
    """
    x = np.moveaxis(checked(x), axis, 0)
    partials = np.zeros((REDUCTION_PARTIALS, *x.shape[1:]), np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, x.shape[0], REDUCTION_PARTIALS):
            group = x[start : start + REDUCTION_PARTIALS]
            partials[: len(group)] += group
        while len(partials) > 1:
            partials = partials[0::2] + partials[1::2]
    return canonicalise(partials[0])


def reduce_max(x, axis: int = -1) -> Float32Array:
    """Maximum along `axis`, which disappears; NaN if any is NaN; of nothing, -inf."""
    x = checked(x)
    identity = int(_ordinal(np.asarray(np.float32(-np.inf))))
    # Below the ordinal of -inf there are only NaNs, and those are overruled.
    largest = np.max(_ordinal(x), axis=axis, initial=identity)
    return _with_nan(_from_ordinal(np.asarray(largest)), np.isnan(x).any(axis=axis))


def reduce_min(x, axis: int = -1) -> Float32Array:
    """Minimum along `axis`, which disappears; NaN if any is NaN; of nothing, +inf."""
    return canonicalise(np.negative(reduce_max(np.negative(checked(x)), axis)))


def _with_nan(chosen: Float32Array, nan) -> Float32Array:
    np.copyto(chosen, NAN, where=nan)
    return chosen


def _ordinal(x: Float32Array) -> NDArray[np.int32]:
    """Integers in the order of the numbers, with -0 just below +0."""
    return _reflect(np.ascontiguousarray(x).view(np.int32).reshape(x.shape))


def _from_ordinal(ordinal: NDArray[np.int32]) -> Float32Array:
    return np.asarray(_reflect(ordinal)).view(np.float32)


def _reflect(bits):
    return bits ^ ((bits >> 31) & _MAGNITUDE)
