"""Refusal to compute where float32 subnormals do not survive.

Libraries built with fast-math options set flush-to-zero for the whole process when they are
loaded. Every golden value below 2^-126 would then be silently wrong. Asked at import and at each
start of a program, since such a library may come later.
"""

import numpy as np

_SMALLEST_NORMAL_BITS = 0x00800000
_LARGEST_SUBNORMAL_BITS = 0x007FFFFF


def subnormals_survive() -> bool:
    """Whether float32 subnormals survive as results and as operands, in vector and short loops."""
    for count in (1, 64):
        normal = np.full(count, _SMALLEST_NORMAL_BITS, np.uint32).view(np.float32)
        subnormal = np.full(count, _LARGEST_SUBNORMAL_BITS, np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            halved = (normal * np.float32(0.5)).view(np.uint32)
            doubled = (subnormal + subnormal).view(np.uint32)
        if (halved != _SMALLEST_NORMAL_BITS >> 1).any():
            return False
        if (doubled != 2 * _LARGEST_SUBNORMAL_BITS).any():
            return False
    return True


def require_subnormals() -> None:
    """Raises `RuntimeError` if float32 subnormals are flushed in this process."""
    if not subnormals_survive():
        raise RuntimeError(
            "float32 subnormals are flushed to zero in this process, so golden results would be "
            "wrong; a library built with -ffast-math has probably set flush-to-zero when it was "
            "loaded: keep it out of this process, whatever the order of imports"
        )
