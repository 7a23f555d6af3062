"""sigmoid and tanh, composed of exp, reciprocal and FP32 additions and products."""

import numpy as np

from golden.arith.float32 import NAN, Float32Array, add, canonicalise, multiply, subtract
from golden.arith.functions.exponential import exp
from golden.arith.functions.reciprocal import reciprocal

TANH_IDENTITY_BELOW = np.float32(2.0**-11)

_ONE, _MINUS_TWO = np.float32(1), np.float32(-2)


def sigmoid(x: Float32Array) -> Float32Array:
    """1 / (1 + e^-x), each operation rounded to FP32; +0 at -inf, 1 at +inf."""
    return reciprocal(add(_ONE, exp(np.negative(canonicalise(x)))))


def tanh(x: Float32Array) -> Float32Array:
    """(1 - e) (1 / (1 + e)) with e = e^(-2|x|) and the sign of x; x itself where |x| < 2^-11.

    Each operation is rounded to FP32. Close above 2^-11 the cancellation in 1 - e leaves an error
    of hundreds of ulp: the error is small as an absolute one.
    """
    x = canonicalise(x)
    e = exp(multiply(np.abs(x), _MINUS_TWO))
    result = multiply(subtract(_ONE, e), reciprocal(add(_ONE, e)))
    result = np.where(np.abs(x) < TANH_IDENTITY_BELOW, x, np.copysign(result, x))
    return np.where(np.isnan(x), NAN, result)
