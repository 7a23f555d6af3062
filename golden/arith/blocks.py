"""Element-wise work in blocks that stay in the cache, and what arrays it takes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike, NDArray

BLOCK = 1 << 15
"""Elements of a block."""

# The C library gives freed memory back to the system, page by page, until it has seen a large block
# freed; without this, page faults take as long as the arithmetic.
_freed = np.empty(24 << 20, np.uint8)
del _freed


def blockwise(function: Callable, x, *others, dtype: DTypeLike = np.float32) -> NDArray:
    """`function` of flat blocks of `x` and of `others`, arrays of one shape, which give blocks of
    `dtype`: a new array of that shape.
    """
    flat = [np.ascontiguousarray(array).reshape(-1) for array in (x, *others)]
    with np.errstate(all="ignore"):
        if x.ndim == 1 and x.size <= BLOCK:
            return function(*flat)
        result = np.empty(x.shape, dtype)
        flat_result = result.reshape(-1)
        for start in range(0, x.size, BLOCK):
            block = slice(start, start + BLOCK)
            flat_result[block] = function(*(array[block] for array in flat))
    return result


def checked(x, dtype: DTypeLike = np.float32) -> NDArray:
    """`x` as an array; `TypeError` unless it is an array or scalar of numpy of just that type."""
    if getattr(x, "dtype", None) != dtype:
        raise TypeError(f"{np.dtype(dtype).name} array expected, not {kind(x)}")
    return np.asarray(x)


def kind(x):
    """What to call the type of something that may be an array."""
    return getattr(x, "dtype", type(x).__name__)
