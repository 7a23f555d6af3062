"""Table functions: worst error over all significands, correctly rounded BF16 at every input.

The oracle is float64 of numpy, whose errors are some 2^-29 of an FP32 ulp; it is itself held
against `decimal` on a sample. Where a BF16 result is compared, the reference is narrowed from
float64 straight to BF16 in integers, so it is rounded once.
"""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from golden.arith import bfloat16
from golden.arith.functions import segment, tables
from golden.arith.functions.exponential import exp
from golden.arith.functions.logarithm import log
from golden.arith.functions.program import apply
from golden.arith.functions.reciprocal import reciprocal
from golden.arith.functions.root import rsqrt, sqrt
from isa.fields import Function
from verif.equality import assert_same

NAN = 0x7FC00000
INF = 0x7F800000
BLOCK = 1 << 20
TINY = 2.0**-126


def real(code):
    return np.asarray(code, np.uint32).view(np.float32)


def code(value):
    assert value.dtype == np.float32
    return np.ascontiguousarray(value).view(np.uint32)


def sigmoid(x):
    return apply(Function.SIGMOID, x)


def tanh(x):
    return apply(Function.TANH, x)


def wide(x):
    return x.astype(np.float64)


REFERENCES = {
    exp: np.exp,
    reciprocal: lambda x: 1 / x,
    sqrt: np.sqrt,
    rsqrt: lambda x: 1 / np.sqrt(x),
    log: np.log,
    sigmoid: lambda x: 1 / (1 + np.exp(-x)),
    tanh: np.tanh,
}


def errors(function, x):
    """|function(x) - reference| in ulp of the reference, for results in the normal range."""
    with np.errstate(all="ignore"):
        expected = REFERENCES[function](wide(x))
    ulp = np.exp2(np.floor(np.log2(np.abs(expected))) - 23)
    return np.abs(wide(function(x)) - expected) / ulp


def worst_error(function, first, step, bits=23):
    """The worst over significands: codes first, first + step, ... below first + 2^bits."""
    worst = 0.0
    for start in range(first, first + (1 << bits), BLOCK * step):
        end = min(start + BLOCK * step, first + (1 << bits))
        worst = max(worst, errors(function, real(np.arange(start, end, step))).max())
    return worst


ONE = 0x3F800000
TWO = 0x40000000
BARS = [
    (reciprocal, ONE, 0.88),
    (sqrt, ONE, 0.6),
    (sqrt, TWO, 0.6),
    (rsqrt, ONE, 0.72),
    (rsqrt, TWO, 0.7),
]
"""(function, code of the first argument of a binade, ulp): measured, and all below 1."""


@pytest.mark.parametrize(("function", "first", "bar"), BARS)
def test_worst_error_of_every_8th_significand(function, first, bar):
    assert worst_error(function, first, 8) <= bar <= 1


@pytest.mark.nightly
@pytest.mark.parametrize(("function", "first", "bar"), BARS)
def test_worst_error_of_every_significand(function, first, bar):
    assert worst_error(function, first, 1) <= bar <= 1


def exp2_errors(step):
    """The table of 2^v at every `step`-th v of 23 bits, rounded to 24 bits, in ulp."""
    columns, v = tables.columns("exp2"), np.arange(0, 1 << 23, step)
    rounded = np.rint(np.array([segment.evaluate(*columns, f, 0, 0) for f in v.tolist()]) / 16)
    return np.abs(rounded - np.exp2(v / 2**23) * 2**23)


def test_worst_error_of_exp2():
    assert exp2_errors(8).max() <= 0.62


@pytest.mark.nightly
def test_worst_error_of_exp2_everywhere():
    assert exp2_errors(1).max() <= 0.62


@pytest.mark.parametrize("function", [sqrt, rsqrt])
@pytest.mark.parametrize("exponent", [1, 2, 63, 126, 253, 254])
def test_roots_in_other_binades(function, exponent):
    assert worst_error(function, exponent << 23, 64) <= 0.72


LOG_BAR = 2.0**-25.8


def log_errors(step):
    """(absolute error near 1, order kept, sign right) over [1/2, 2)."""
    x = real(np.arange(0x3F000000, TWO, step))
    y, expected = log(x), np.log(wide(x))
    error = np.abs(wide(y) - expected)
    # In [7/8, 5/4) the result's own rounding is below 2^-27; elsewhere half an ulp comes on top.
    bar = np.where((x >= 0.875) & (x < 1.25), LOG_BAR, LOG_BAR + 2.0**-25)
    return (error <= bar).all(), (np.diff(y) >= 0).all(), (np.sign(y) == np.sign(expected)).all()


def test_log_around_one():
    assert all(log_errors(8))


@pytest.mark.nightly
def test_log_around_one_everywhere():
    assert all(log_errors(1))


@pytest.mark.parametrize("first", [1, 1 << 23, 63 << 23, 130 << 23, 254 << 23])
def test_log_far_from_one(first):
    assert worst_error(log, first, 16, 22) <= 0.8


def test_log_just_above_one_keeps_a_relative_error():
    """The pinned first segment: c0 is 0, so the error shrinks with the logarithm."""
    x = real(np.arange(ONE + 1, ONE + (1 << 16)))
    expected = np.log(wide(x))
    assert (np.abs(wide(log(x)) - expected) / expected).max() < 0.004


def exp_arguments(count, seed):
    """Uniform over the range with normal results, and over exponents towards zero."""
    rng = np.random.default_rng(seed)
    x = np.concatenate(
        [
            rng.uniform(-87.33, 88.72, count),
            np.exp2(rng.uniform(-40, 6.4, count)) * rng.choice([-1, 1], count),
        ]
    )
    return x.astype(np.float32)


def test_worst_error_of_exp():
    x = exp_arguments(200_000, 31)
    assert errors(exp, x).max() <= 0.95


@pytest.mark.nightly
def test_worst_error_of_exp_at_length():
    x = exp_arguments(4_000_000, 32)
    assert errors(exp, x).max() <= 0.95


def test_worst_error_of_sigmoid_and_tanh():
    x = exp_arguments(200_000, 34)
    assert errors(sigmoid, x[x > -87.3]).max() <= 3
    assert np.abs(wide(tanh(x)) - np.tanh(wide(x))).max() <= 1.2e-7


ALL_BF16 = np.arange(1 << 16, dtype=np.uint16)
NORMAL_BF16 = ALL_BF16[((ALL_BF16 & 0x7F80) != 0) & ((ALL_BF16 & 0x7F80) != 0x7F80)]


def to_bf16(value):
    """BF16 codes nearest to float64 values in the normal range, ties to even; one rounding."""
    fraction, exponent = np.frexp(np.abs(value))
    significand = np.rint(np.ldexp(fraction, 8)).astype(np.int64)
    magnitude = ((exponent.astype(np.int64) + 125) << 7) + significand
    return (magnitude | (np.signbit(value).astype(np.int64) << 15)).astype(np.uint16)


@pytest.mark.parametrize("function", REFERENCES)
def test_bf16_is_correctly_rounded(function):
    """Every finite normal BF16 input whose result is a normal BF16."""
    x = bfloat16.widen(NORMAL_BF16)
    with np.errstate(all="ignore"):
        expected = REFERENCES[function](wide(x))
    size = np.abs(expected)
    normal = (size >= TINY) & (size < 2.0**128 * (1 - 2.0**-9))
    assert normal.sum() > 30_000
    found = bfloat16.narrow(function(x))
    assert_same(found[normal], to_bf16(expected[normal]), x=NORMAL_BF16[normal])


@pytest.mark.parametrize("function", REFERENCES)
def test_every_bf16_input_is_defined(function):
    """NaN exactly where the function is not defined; beyond the range infinity, below it zero."""
    x = bfloat16.widen(ALL_BF16)
    with np.errstate(all="ignore"):
        expected = REFERENCES[function](wide(x))
    found, size = code(function(x)), np.abs(expected)
    sign = np.signbit(expected).astype(np.uint32) << 31
    nan, huge = np.isnan(expected), size >= 2.0**128
    small = size < (0 if function is tanh else TINY * (1 - 2.0**-20))
    assert_same(found[nan], np.full(nan.sum(), NAN), x=ALL_BF16[nan])
    assert not np.isnan(real(found[~nan])).any()
    if huge.any():
        assert_same(found[huge], INF | sign[huge], x=ALL_BF16[huge])
    if small.any():
        assert_same(found[small], sign[small], x=ALL_BF16[small])


EXACT = {
    exp: lambda x: x.exp(),
    reciprocal: lambda x: 1 / x,
    sqrt: lambda x: x.sqrt(),
    rsqrt: lambda x: 1 / x.sqrt(),
    log: lambda x: x.ln(),
    sigmoid: lambda x: 1 / (1 + (-x).exp()),
    tanh: lambda x: 1 - 2 / ((2 * x).exp() + 1),
}


@pytest.mark.parametrize("function", EXACT)
def test_oracle_against_decimal(function):
    x = np.random.default_rng(33).uniform(0.01, 80, 500)
    with localcontext() as context:
        context.prec = 40
        exact = np.array([float(EXACT[function](Decimal(float(value)))) for value in x])
    np.testing.assert_allclose(REFERENCES[function](x), exact, rtol=2.0**-50)
