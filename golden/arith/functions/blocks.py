"""Element-wise work in blocks that stay in the cache."""

from collections.abc import Callable

import numpy as np

from golden.arith.float32 import Float32Array

BLOCK = 1 << 14
"""Elements of a block."""


def blockwise(function: Callable, x) -> Float32Array:
    """`function` of flat float32 blocks of `x`, as a new array of its shape.

    Raises `TypeError` unless `x` is a float32 array or scalar.
    """
    if getattr(x, "dtype", None) != np.float32:
        raise TypeError(f"float32 array expected, not {getattr(x, 'dtype', type(x).__name__)}")
    x = np.asarray(x)
    if x.ndim == 1 and x.size <= BLOCK and x.flags.c_contiguous:
        with np.errstate(all="ignore"):
            return function(x)
    result = np.empty(x.shape, np.float32)
    flat, flat_result = np.ascontiguousarray(x).reshape(-1), result.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, BLOCK):
            block = slice(start, start + BLOCK)
            flat_result[block] = function(flat[block])
    return result
