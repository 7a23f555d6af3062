"""The tensor engine's product of two BF16 tiles, and its accumulation into PSUM.

Each output is a chain: rows 0..K-1 in order, one flushed product and one rounded sum a row. The
chain of all outputs advances together, one row a step, so that numpy works on whole M x N planes
at about the speed of a bare float32 multiply and add. Matrix products of numpy itself are never
used: their order is not ours.
"""

import numpy as np
from numpy.typing import NDArray

from golden.arith import float32
from golden.arith.bfloat16 import widen

_MAGNITUDE = np.uint16(0x7FFF)
_INFINITY = np.uint16(0x7F80)


def chain(stationary, moving) -> NDArray[np.float32]:
    """The tile sum_k stationary[k, m] * moving[k, n], float32 of shape [M, N], NaN canonical.

    `stationary` is [K, M] and `moving` [K, N], both uint16 BF16 bits. Each accumulator starts at
    +0. Raises `ValueError` when the shapes do not agree, `TypeError` for another dtype.
    """
    a, b = widen(stationary), widen(moving)
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[0]:
        raise ValueError(f"[K, M] and [K, N] expected, not {a.shape} and {b.shape}")
    plane = (a.shape[1], b.shape[1])
    accumulator = np.zeros(plane, np.float32)
    product = np.empty(plane, np.float32)
    may_flush = _smallest(stationary) * _smallest(moving) < float(float32.TINY)
    with np.errstate(all="ignore"):
        for row_a, row_b, flush in zip(a, b, may_flush, strict=True):
            np.multiply(row_a[:, None], row_b[None, :], out=product)
            if flush:
                float32.flush(product)
            np.add(accumulator, product, out=accumulator)
    # NaN is sticky: one canonicalisation at the end equals one at each step.
    return float32.canonicalise(accumulator)


def accumulate(old, tile) -> NDArray[np.float32]:
    """PSUM accumulation: old + tile, one rounding, canonical NaN."""
    return float32.add(old, tile)


def _smallest(bits) -> NDArray[np.float64]:
    """Per row, the smallest non-zero magnitude (infinity where there is none), as float64.

    The product of two of these is exact, so a row needs the flush test only if it is below 2^-126.
    """
    magnitude = bits & _MAGNITUDE
    magnitude[magnitude == 0] = _INFINITY
    return widen(np.min(magnitude, axis=1, initial=_INFINITY)).astype(np.float64)
