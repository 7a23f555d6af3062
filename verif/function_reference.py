"""What the functions of the scalar engine should give: float64, by formulas that lose nothing.

Errors are a few units of 2^-52 of the result (some 200 of them where e^(-x^2/2) is tiny), far below
an ulp of FP32. At infinities each is the limit.
"""

import math

import numpy as np

from isa.fields import Function
from isa.functions import LARGEST_ANGLE

_erf, _erfc = (np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc))
_SQRT_HALF, _DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)
_GELU_TANH = 2 * math.sqrt(2 / math.pi)
SLOPE = 0.25
"""Slope of prelu in measurements."""


def _limited(function, low=None, high=None):
    """`function`, with its limits at -inf and +inf where the formula gives NaN there."""

    def value(x):
        y = function(x)
        if low is not None:
            y = np.where(np.isneginf(x), low, y)
        return y if high is None else np.where(np.isposinf(x), high, y)

    return value


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _gelu(x):
    return x * _erfc(-x * _SQRT_HALF) / 2


def _gelu_derivative(x):
    return _erfc(-x * _SQRT_HALF) / 2 + x * np.exp(-x * x / 2) * _DENSITY


def _gelu_tanh(x):
    return x * _sigmoid(_GELU_TANH * (x + 0.044715 * x * x * x))


def _silu_derivative(x):
    s, rest = _sigmoid(x), _sigmoid(-x)
    return s * (1 + x * rest)


def _mish(x):
    return x * np.tanh(np.logaddexp(0, x))


def _angle(function):
    return lambda x: function(np.where(np.abs(x) < LARGEST_ANGLE, x, np.nan))


REFERENCES = {
    Function.COPY: lambda x: x,
    Function.RELU: lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)),
    Function.EXP: np.exp,
    Function.LOG: np.log,
    Function.SQRT: np.sqrt,
    Function.RSQRT: lambda x: 1 / np.sqrt(x),
    Function.RECIPROCAL: lambda x: 1 / x,
    Function.SIGMOID: _sigmoid,
    Function.TANH: np.tanh,
    Function.GELU: _limited(_gelu, low=-0.0),
    Function.GELU_TANH: _limited(_gelu_tanh, low=-0.0),
    Function.GELU_DERIVATIVE: _limited(_gelu_derivative, low=-0.0, high=1.0),
    Function.SILU: _limited(lambda x: x * _sigmoid(x), low=-0.0),
    Function.SILU_DERIVATIVE: _limited(_silu_derivative, low=-0.0, high=1.0),
    Function.SOFTPLUS: lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    Function.MISH: _limited(_mish, low=-0.0),
    Function.ERF: _erf,
    Function.SIN: _angle(np.sin),
    Function.COS: _angle(np.cos),
    Function.ARCTAN: np.arctan,
    Function.SQUARE: lambda x: x * x,
    Function.ABS: np.abs,
    Function.SIGN: np.sign,
    Function.PRELU: lambda x: np.where(x >= 0, x, SLOPE * x),
}


def reference(function, x):
    """float64 values for float32 x."""
    with np.errstate(all="ignore"):
        return REFERENCES[function](np.asarray(x).astype(np.float64))
