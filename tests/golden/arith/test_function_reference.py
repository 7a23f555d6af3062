"""The float64 references of the functions against mpmath, by the textbook formulas at 60 digits."""

import numpy as np
import pytest

from isa.fields import Function
from verif.function_reference import REFERENCES

mp = pytest.importorskip("mpmath")

TINY = 2.0**-126


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def softplus(x):
    return mp.log1p(mp.exp(x))


def gelu_tanh(x):
    inner = mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)
    return x / 2 * (1 + mp.tanh(inner))


EXACT = {
    Function.EXP: mp.exp,
    Function.SIGMOID: sigmoid,
    Function.TANH: mp.tanh,
    Function.GELU: lambda x: x * normal(x),
    Function.GELU_TANH: gelu_tanh,
    Function.GELU_DERIVATIVE: lambda x: mp.diff(lambda v: v * normal(v), x),
    Function.SILU: lambda x: x * sigmoid(x),
    Function.SILU_DERIVATIVE: lambda x: mp.diff(lambda v: v * sigmoid(v), x),
    Function.SOFTPLUS: softplus,
    Function.MISH: lambda x: x * mp.tanh(softplus(x)),
    Function.ERF: mp.erf,
    Function.SIN: mp.sin,
    Function.COS: mp.cos,
    Function.ARCTAN: mp.atan,
    Function.LOG: lambda x: mp.log(x) if x > 0 else mp.mpf(0),
}


def arguments(function):
    random = np.random.default_rng(7)
    parts = [random.uniform(-13, 13, 60), random.uniform(-80, 80, 40), random.uniform(-1, 1, 20)]
    if function in (Function.SIN, Function.COS):
        parts.append(random.uniform(-98_000, 98_000, 100))
    if function is Function.LOG:
        parts = [np.abs(part) for part in parts]
    return np.concatenate(parts).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("function", EXACT)
def test_references(function):
    x = arguments(function)
    with np.errstate(all="ignore"):
        found = REFERENCES[function](x)
    with mp.workdps(120 if "DERIVATIVE" in function.name else 60):
        exact = [EXACT[function](mp.mpf(float(value))) for value in x]
        pairs = [(f, e) for f, e in zip(found, exact, strict=True) if abs(e) > TINY]
        errors = [float(abs(mp.mpf(float(f)) - e) / abs(e)) for f, e in pairs]
    assert len(errors) > 40
    # A derivative next to its zero keeps an absolute error.
    assert max(errors) < 2.0**-42
