"""Functions of the scalar engine over the whole range of FP32: every exponent, limits, special
values, symmetries, and derivatives against differences.
"""

import numpy as np
import pytest

from golden.arith.functions.program import apply
from isa.fields import Function
from verif.equality import assert_same
from verif.function_errors import fp32, sample
from verif.function_reference import REFERENCES, SLOPE, reference


def sweep():
    """Every exponent with both signs and mantissas at both ends and between."""
    mantissas = [0, 1, 2, 0x2AAAAA, 0x3FFFFF, 0x400000, 0x490FDB, 0x555555, 0x7FFFFE, 0x7FFFFF]
    codes = (np.arange(512)[:, None] << 23) | np.array(mantissas)
    return codes.ravel().astype(np.uint32).view(np.float32)


WORST = {
    Function.GELU: 70,
    Function.GELU_TANH: 200,
    Function.GELU_DERIVATIVE: 200,
    Function.LOG: 4e5,
    Function.TANH: 330,
    Function.SIN: 330,
    Function.COS: 330,
}
"""Worst error in ulp where it is more than 10, next to zeros or in tails."""
RANGES = {
    Function.SIGMOID: (0, 1),
    Function.TANH: (-1, 1),
    Function.ERF: (-1, 1),
    Function.SIN: (-1, 1),
    Function.COS: (-1, 1),
    Function.ARCTAN: (-np.float32(np.pi / 2), np.float32(np.pi / 2)),
    Function.SOFTPLUS: (0, np.inf),
    Function.EXP: (0, np.inf),
    Function.RELU: (0, np.inf),
    Function.GELU: (-0.17, np.inf),
    Function.GELU_TANH: (-0.1701, np.inf),
    Function.SILU: (-0.2785, np.inf),
    Function.MISH: (-0.3089, np.inf),
    Function.GELU_DERIVATIVE: (-0.129, 1.129),
    Function.SILU_DERIVATIVE: (-0.09985, 1.09985),
}


@pytest.mark.parametrize("function", Function)
def test_every_exponent(function):
    """No exponent wraps, no intermediate overflows into garbage: all 256 exponents, both signs."""
    x = sweep()
    y = apply(function, x, np.float32(SLOPE))
    errors = fp32(function, x, y)
    assert errors.worst <= WORST.get(function, 10)
    low, high = RANGES.get(function, (-np.inf, np.inf))
    y = y[~np.isnan(y)]
    assert y.min() >= low
    assert y.max() <= high


def test_softplus_far_below_zero_is_the_exponential():
    """Where 1 + e^z rounds to 1 and further, until e^z is below 2^-126."""
    x = np.linspace(-87.3, -17, 100_000).astype(np.float32)
    found, e = apply(Function.SOFTPLUS, x), apply(Function.EXP, x)
    assert (np.abs(found - e) <= np.spacing(e)).all()


@pytest.mark.parametrize("function", [Function.SILU, Function.MISH, Function.GELU_TANH])
def test_products_with_a_reciprocal_near_the_end_of_the_range(function):
    """|z| >= 2^119, where a reciprocal by iteration has lost its start: z or -0."""
    x = np.float32(2.0**119) * np.linspace(1, 255, 4001, dtype=np.float32)
    assert np.array_equal(apply(function, x), x)
    below = apply(function, -x)
    assert (below == 0).all()
    assert np.signbit(below).all()


INF, ZERO, MINUS, ONE, NAN = 0x7F800000, 0, 0x80000000, 0x3F800000, 0x7FC00000
HALF, HALF_PI, LN_2 = 0x3F000000, 0x3FC90FDB, 0x3F317218
AT_SPECIALS = {
    Function.COPY: (MINUS | INF, MINUS, ZERO, INF),
    Function.RELU: (ZERO, ZERO, ZERO, INF),
    Function.EXP: (ZERO, ONE, ONE, INF),
    Function.LOG: (NAN, MINUS | INF, MINUS | INF, INF),
    Function.SQRT: (NAN, MINUS, ZERO, INF),
    Function.RSQRT: (NAN, MINUS | INF, INF, ZERO),
    Function.RECIPROCAL: (MINUS, MINUS | INF, INF, ZERO),
    Function.SIGMOID: (ZERO, HALF, HALF, ONE),
    Function.TANH: (MINUS | ONE, MINUS, ZERO, ONE),
    Function.GELU: (MINUS, MINUS, ZERO, INF),
    Function.GELU_TANH: (MINUS, MINUS, ZERO, INF),
    Function.GELU_DERIVATIVE: (MINUS, HALF, HALF, ONE),
    Function.SILU: (MINUS, MINUS, ZERO, INF),
    Function.SILU_DERIVATIVE: (MINUS, HALF, HALF, ONE),
    Function.SOFTPLUS: (ZERO, LN_2, LN_2, INF),
    Function.MISH: (MINUS, MINUS, ZERO, INF),
    Function.ERF: (MINUS | ONE, MINUS, ZERO, ONE),
    Function.SIN: (NAN, MINUS, ZERO, NAN),
    Function.COS: (NAN, ONE, ONE, NAN),
    Function.ARCTAN: (MINUS | HALF_PI, MINUS, ZERO, HALF_PI),
    Function.SQUARE: (INF, ZERO, ZERO, INF),
    Function.ABS: (INF, ZERO, ZERO, INF),
    Function.SIGN: (MINUS | ONE, MINUS, ZERO, ONE),
    Function.PRELU: (MINUS | INF, MINUS, ZERO, INF),
}
"""Codes at -inf, -0, +0, +inf: limits, and zeros of the sign of the argument or of the limit."""


@pytest.mark.parametrize("function", Function)
def test_special_values(function):
    z = np.array([MINUS | INF, MINUS, ZERO, INF], np.uint32).view(np.float32)
    found = apply(function, z, np.float32(0.25)).view(np.uint32)
    assert_same(found, np.array(AT_SPECIALS[function], np.uint32), z=z.view(np.uint32))
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FA12345], np.uint32)
    assert (apply(function, nans.view(np.float32)).view(np.uint32) == NAN).all()


ODD = (Function.TANH, Function.ERF, Function.SIN, Function.ARCTAN, Function.SIGN, Function.COPY)
EVEN = (Function.SQUARE, Function.ABS)


@pytest.mark.parametrize("function", ODD + EVEN)
def test_symmetry(function):
    x = sample(200_000, seed=3)
    left, right = apply(function, -x), apply(function, x)
    right = np.negative(right) if function in ODD else right
    nan = np.isnan(right)
    assert np.array_equal(np.isnan(left), nan)
    assert np.array_equal(left[~nan].view(np.uint32), right[~nan].view(np.uint32))


@pytest.mark.parametrize("function", [Function.SIN, Function.COS])
def test_angles_at_the_end_of_their_range(function):
    last = np.nextafter(np.float32(98304), np.float32(0))
    edge = np.array([last, -last, 65536, -65536], np.float32)
    assert np.abs(apply(function, edge) - reference(function, edge)).max() < 1e-7
    beyond = np.array([98304, -98304, 1e10, -3e38, np.inf, -np.inf], np.float32)
    assert (apply(function, beyond).view(np.uint32) == 0x7FC00000).all()


PAIRS = [
    (Function.GELU, Function.GELU_DERIVATIVE),
    (Function.SILU, Function.SILU_DERIVATIVE),
    (Function.SOFTPLUS, Function.SIGMOID),
    (Function.SIN, Function.COS),
]


@pytest.mark.parametrize(("function", "derivative"), PAIRS)
def test_derivatives_against_finite_differences(function, derivative):
    """Of the float64 function closely, of our own forward results as far as FP32 lets them."""
    x = np.linspace(-12, 12, 4001).astype(np.float32)
    found = apply(derivative, x).astype(np.float64)
    f, wide, step = REFERENCES[function], x.astype(np.float64), 1e-5
    difference = (f(wide + step) - f(wide - step)) / (2 * step)
    assert np.abs(found - difference).max() < 1e-6
    step = np.float32(2.0**-6)
    right, left = x + step, x - step
    ours = apply(function, right).astype(np.float64) - apply(function, left)
    assert np.abs(found - ours / (right.astype(np.float64) - left)).max() < 2e-4
