"""BF16 as uint16 bit patterns: widening and narrowing.

Narrowing starts from float32 only; a cast from anything wider would round twice.
"""

import numpy as np
from numpy.typing import NDArray

from golden.arith.blocks import checked

NAN_BITS = 0x7FC0

_HALF_LESS_ONE = np.uint32(0x7FFF)


def widen(bits) -> NDArray[np.float32]:
    """The float32 with the same value. Exact; a pure move, so a NaN keeps its code and sign."""
    bits = checked(bits, np.uint16)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def narrow(x) -> NDArray[np.uint16]:
    """The nearest BF16, ties to even: gradual underflow, overflow to infinity, canonical NaN."""
    x = checked(x)
    bits = np.ascontiguousarray(x).view(np.uint32).reshape(x.shape)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    # The codes of one sign are ordered like their values, so a carry out of the fraction is right
    # at binade boundaries, into the normals, and into infinity.
    rounded = np.asarray((bits + _HALF_LESS_ONE + odd) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(NAN_BITS), rounded)
