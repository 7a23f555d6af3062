"""Table functions: worst error over all significands, every BF16 input, specials, order.

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
from golden.arith.functions.reciprocal import reciprocal
from verif.equality import assert_same

NAN = 0x7FC00000
INF = 0x7F800000
SIGN = 0x80000000
BLOCK = 1 << 20
TINY = 2.0**-126


def real(code):
    return np.asarray(code, np.uint32).view(np.float32)


def code(value):
    assert value.dtype == np.float32
    return np.ascontiguousarray(value).view(np.uint32)


def wide(x):
    return x.astype(np.float64)


REFERENCES = {
    exp: np.exp,
    reciprocal: lambda x: 1 / x,
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
BARS = [(reciprocal, ONE, 0.9)]
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
    v = np.arange(0, 1 << 23, step)
    rounded = np.rint(segment.evaluate(tables.TABLES["exp2"], v) / 16)
    return np.abs(rounded - np.exp2(v / 2**23) * 2**23)


def test_worst_error_of_exp2():
    assert exp2_errors(8).max() <= 0.62


@pytest.mark.nightly
def test_worst_error_of_exp2_everywhere():
    assert exp2_errors(1).max() <= 0.62


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


EXACT = {
    exp: lambda x: x.exp(),
    reciprocal: lambda x: 1 / x,
}


@pytest.mark.parametrize("function", EXACT)
def test_oracle_against_decimal(function):
    x = np.random.default_rng(33).uniform(0.01, 80, 500)
    with localcontext() as context:
        context.prec = 40
        exact = np.array([float(EXACT[function](Decimal(float(value)))) for value in x])
    np.testing.assert_allclose(REFERENCES[function](x), exact, rtol=2.0**-50)


SPECIALS = {
    exp: [
        *((0, ONE), (SIGN, ONE), (INF, INF), (SIGN | INF, 0)),
        *((1, ONE), (SIGN | 1, ONE), (0x007FFFFF, ONE), (0x33000000, ONE)),
        *((0x42B17217, 0x7F7FFF84), (0x42B17218, INF), (0x7F7FFFFF, INF), (0x43000000, INF)),
        *((0xC2AEAC4F, 0x00800026), (0xC2AEAC50, 0), (0xFF7FFFFF, 0), (0xC3000000, 0)),
    ],
    reciprocal: [
        *((0, INF), (SIGN, SIGN | INF), (INF, 0), (SIGN | INF, SIGN)),
        *((ONE, ONE), (SIGN | ONE, SIGN | ONE), (0x40000000, 0x3F000000)),
        *((1, INF), (SIGN | 1, SIGN | INF), (0x00200000, INF), (0x00200001, 0x7F7FFFF8)),
        *((0x00400000, 0x7F000000), (0x00800000, 0x7E800000), (0x7E800000, 0x00800000)),
        *((0x7E800001, 0), (0xFE800001, SIGN), (0x7F7FFFFF, 0), (0xFF7FFFFF, SIGN)),
    ],
}


@pytest.mark.parametrize("function", SPECIALS)
def test_specials(function):
    x, expected = np.array(SPECIALS[function], np.uint32).T
    assert_same(code(function(real(x))), expected, x=x)


@pytest.mark.parametrize("function", SPECIALS)
@pytest.mark.parametrize("nan", [0x7F800001, 0x7FC00000, 0xFFC00000, 0xFFFFFFFF, 0x7FA12345])
def test_one_nan(function, nan):
    assert code(function(real([nan])))[0] == NAN


@pytest.mark.parametrize("function", SPECIALS)
def test_shapes_and_types(function):
    x = np.linspace(0.5, 4, 24, dtype=np.float32)
    shaped = function(x.reshape(2, 3, 4))
    assert_same(code(shaped.ravel()), code(function(x)))
    assert function(x[3]).shape == ()
    assert code(function(x[3])) == code(function(x))[3]
    assert function(x[:0]).shape == (0,)
    with pytest.raises(TypeError):
        function(wide(x))


def test_widths_and_signs_of_the_tables():
    """59 bits a segment: the signs of c1 and c2 belong to the table, not to the entry."""
    for name, table in tables.TABLES.items():
        assert table.shape == (128, 3), name
        c0, c1, c2 = table.T
        assert c0.min() >= 0, name
        assert c0.max() < 1 << 28, name
        assert np.abs(c1).max() < 1 << 20, name
        assert np.abs(c2).max() < 1 << 11, name
        assert not (c1.min() < 0 < c1.max()), name
        assert not (c2.min() < 0 < c2.max()), name


def test_changed_tables_are_refused():
    data = tables.PATH.read_bytes()
    assert tables.load(data).keys() == tables.TABLES.keys()
    with pytest.raises(ValueError, match="SHA-256"):
        tables.load(data.replace(b"363408", b"363409", 1))


def test_a_narrow_fraction_is_refused():
    with pytest.raises(ValueError, match="23 bits"):
        segment.evaluate(tables.TABLES["exp2"], np.zeros(1, np.int64), 22)
