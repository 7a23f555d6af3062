"""Accuracy of every function of the scalar engine: BF16 at all inputs, FP32 on samples, and that
docs/functions.md says what is measured.
"""

import json

import numpy as np
import pytest

from golden.arith.functions.program import apply
from isa.fields import Function
from verif.function_accuracy import PAGE, RESULTS, cheap, everywhere, page
from verif.function_errors import fp32, sample
from verif.function_reference import REFERENCES, reference

SAMPLE = 1_200_000
ANY = np.inf

BARS = {
    Function.COPY: (0, 0, 0),
    Function.RELU: (0, 0, 0),
    Function.EXP: (0.95, 4.0e-8, 0),
    Function.LOG: (ANY, 4.2e-8, 0),
    Function.SQRT: (0.6, 3.6e-8, 0),
    Function.RSQRT: (0.72, 4.3e-8, 0),
    Function.RECIPROCAL: (0.88, 5.3e-8, 0),
    Function.SIGMOID: (2.6, 1.2e-7, 0),
    Function.TANH: (ANY, 1.2e-7, 0),
    Function.GELU: (70, 1.0e-7, 0),
    Function.GELU_TANH: (200, 1.5e-7, 1.3e-37),
    Function.GELU_DERIVATIVE: (ANY, 2.3e-7, 7e-38),
    Function.SILU: (3.1, 1.4e-7, 1.1e-36),
    Function.SILU_DERIVATIVE: (ANY, 1.2e-7, 1.1e-36),
    Function.SOFTPLUS: (10, 1.3e-7, 0),
    Function.MISH: (4.6, 1.9e-7, 1.1e-36),
    Function.ERF: (3.2, 1.9e-7, 0),
    Function.SIN: (ANY, 1.25e-7, 0),
    Function.COS: (ANY, 1.25e-7, 0),
    Function.ARCTAN: (2.3, 1.4e-7, 0),
    Function.SQUARE: (0.5, 3.0e-8, 0),
    Function.ABS: (0, 0, 0),
    Function.SIGN: (0, 0, 0),
    Function.PRELU: (0, 0, 0),
}
"""Worst error in ulp, worst absolute error where |f| < 1, largest result that became zero."""


def within(errors, bars):
    ulp, absolute, lost_below = bars
    assert errors.worst <= ulp, errors
    assert errors.absolute <= absolute, errors
    assert errors.lost_below <= lost_below, errors


@pytest.mark.parametrize("function", Function)
def test_fp32_on_a_sample(function):
    x = sample(SAMPLE, seed=1)
    assert x.size > 1_000_000
    within(fp32(function, x), BARS[function])


AWAY = [
    (Function.LOG, (0.01, 0.9), 8),
    (Function.LOG, (1.1, 100), 8),
    (Function.TANH, (0.5, 10), 3.5),
    (Function.TANH, (0, 2.0**-11), 1.4),
    (Function.GELU, (-4, 4), 10),
    (Function.GELU_TANH, (-2, 8), 6),
    (Function.GELU_DERIVATIVE, (-13, -1), 70),
    (Function.GELU_DERIVATIVE, (-0.5, 10), 10),
    (Function.SILU_DERIVATIVE, (-80, -1.5), 12),
    (Function.SILU_DERIVATIVE, (-1, 20), 4),
    (Function.SOFTPLUS, (-80, -2.1), 3),
    (Function.SIN, (-3, 3), 2),
    (Function.COS, (-1.5, 1.5), 2.2),
]
"""Away from a zero of the function the error is relative: (function, range, ulp)."""


@pytest.mark.parametrize(("function", "between", "bar"), AWAY)
def test_relative_error_away_from_zeros(function, between, bar):
    x = np.random.default_rng(2).uniform(*between, 200_000).astype(np.float32)
    assert fp32(function, x).worst <= bar


NOT_NEAREST = {
    Function.GELU_TANH: (1, 1),
    Function.GELU_DERIVATIVE: (2, 2),
    Function.SILU: (10, 9),
    Function.SILU_DERIVATIVE: (10, 9),
    Function.MISH: (9, 9),
}
"""BF16 results that are not the nearest number, and those of them that became zero; 0 of all other
functions."""


@pytest.mark.parametrize("function", Function)
def test_all_bf16_inputs_and_the_page(function):
    found = cheap(function)
    counts = found["bf16_not_nearest"], found["bf16_zero"]
    assert counts == NOT_NEAREST.get(function, (0, 0))
    assert found["bf16_ulp"] <= 0.5005
    written = json.loads(RESULTS.read_text())[function.name.lower()]
    assert {name: written[name] for name in found} == found, (
        "docs/functions.json is old: run python -m verif.function_accuracy"
    )


def test_page_is_that_of_the_results():
    assert PAGE.read_text() == page(json.loads(RESULTS.read_text())), (
        "docs/functions.md is old: run python -m verif.function_accuracy"
    )


@pytest.mark.parametrize("function", Function)
def test_measured_results_keep_the_bars(function):
    errors = json.loads(RESULTS.read_text())[function.name.lower()]["fp32"]
    ulp, absolute, lost_below = BARS[function]
    assert errors["worst"] <= ulp
    assert errors["absolute"] <= absolute
    assert errors["lost_below"] <= lost_below
    assert errors["inputs"] > 10_000_000


def sweep():
    """Every exponent with both signs and mantissas at both ends and between."""
    mantissas = [0, 1, 2, 0x2AAAAA, 0x3FFFFF, 0x400000, 0x490FDB, 0x555555, 0x7FFFFE, 0x7FFFFF]
    codes = (np.arange(512)[:, None] << 23) | np.array(mantissas)
    return codes.ravel().astype(np.uint32).view(np.float32)


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
    within(fp32(function, x), BARS[function])
    y = apply(function, x)
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


EXHAUSTIVE = (Function.EXP, Function.LOG, Function.SQRT, Function.RSQRT, Function.RECIPROCAL)


@pytest.mark.nightly
@pytest.mark.parametrize("function", EXHAUSTIVE)
def test_all_fp32_inputs(function):
    errors = everywhere(function)
    assert errors.inputs == 1 << 32
    within(errors, BARS[function])


@pytest.mark.nightly
@pytest.mark.parametrize("function", Function)
def test_fp32_on_a_large_sample(function):
    for seed in range(10, 18):
        within(fp32(function, sample(4_000_000, seed)), BARS[function])
