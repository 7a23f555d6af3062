"""FP32 quotients."""

import numpy as np

from golden.arith.float32 import Float32Array, canonicalise


def divide(a, b) -> Float32Array:
    """a / b: IEEE binary32, round to nearest even, gradual underflow.

    x / +-0 is infinity of the sign of the quotient; 0 / 0, infinity / infinity and NaNs give the
    canonical NaN. Subnormal quotients stay: what is flushed are products alone. float32 arrays (or
    scalars) that broadcast; `TypeError` for another dtype.
    """
    with np.errstate(all="ignore"):
        return canonicalise(np.asarray(np.divide(canonicalise(a), canonicalise(b))))
