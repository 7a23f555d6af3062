"""Table functions: specials, one NaN, order, shapes; the tables themselves."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest

from golden.arith.functions import fields, segment, tables
from golden.arith.functions.exponential import exp
from golden.arith.functions.logarithm import log
from golden.arith.functions.program import apply
from golden.arith.functions.reciprocal import reciprocal
from golden.arith.functions.root import rsqrt, sqrt
from isa.fields import Function
from verif.equality import assert_same

NAN = 0x7FC00000
INF = 0x7F800000
SIGN = 0x80000000
ONE = 0x3F800000
TWO = 0x40000000
BLOCK = 1 << 20


def real(code):
    return np.asarray(code, np.uint32).view(np.float32)


def code(value):
    assert value.dtype == np.float32
    return np.ascontiguousarray(value).view(np.uint32)


def sigmoid(x):
    return apply(Function.SIGMOID, x)


def tanh(x):
    return apply(Function.TANH, x)


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
    sqrt: [
        *((0, 0), (SIGN, SIGN), (INF, INF), (SIGN | INF, NAN), (SIGN | ONE, NAN)),
        *((SIGN | 1, NAN), (0xFF7FFFFF, NAN), (1, 0x1A3504F3), (2, 0x1A800000)),
        *((ONE, ONE), (0x40800000, TWO), (0x00800000, 0x20000000), (0x7F000000, 0x5F3504F3)),
    ],
    rsqrt: [
        *((0, INF), (SIGN, SIGN | INF), (INF, 0), (SIGN | INF, NAN), (SIGN | ONE, NAN)),
        *((SIGN | 1, NAN), (0xFF7FFFFF, NAN), (1, 0x64B504F3), (2, 0x64800000)),
        *((ONE, ONE), (0x40800000, 0x3F000000), (0x00800000, 0x5F000000)),
        (0x7F7FFFFF, 0x1F800000),
    ],
    log: [
        *((0, SIGN | INF), (SIGN, SIGN | INF), (INF, INF), (SIGN | INF, NAN)),
        *((SIGN | ONE, NAN), (SIGN | 1, NAN), (0xFF7FFFFF, NAN), (ONE, 0)),
        *((TWO, 0x3F317218), (0x3F000000, 0xBF317218), (0x7F7FFFFF, 0x42B17218)),
        *((0x00800000, 0xC2AEAC50), (1, 0xC2CE8ED0)),
    ],
    sigmoid: [
        *((0, 0x3F000000), (SIGN, 0x3F000000), (INF, ONE), (SIGN | INF, 0)),
        *((0x7F7FFFFF, ONE), (0xFF7FFFFF, 0), (1, 0x3F000000), (SIGN | 1, 0x3F000000)),
        *((0xC2B00000, 0), (0x41A00000, ONE)),
    ],
    tanh: [
        *((0, 0), (SIGN, SIGN), (INF, ONE), (SIGN | INF, SIGN | ONE)),
        *((1, 1), (SIGN | 1, SIGN | 1), (0x007FFFFF, 0x007FFFFF), (0x39FFFFFF, 0x39FFFFFF)),
        *((0x7F7FFFFF, ONE), (0xFF7FFFFF, SIGN | ONE), (0x41200000, ONE)),
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
        function(x.astype(np.float64))


DECREASING = {reciprocal, rsqrt}
MONOTONIC = [exp, reciprocal, sqrt, rsqrt, log]


def check_order(function, codes):
    """Positive codes in rising order; +0 and +inf are among them."""
    with np.errstate(all="ignore"):
        y = function(real(codes))
    later, sooner = (y[:-1], y[1:]) if function in DECREASING else (y[1:], y[:-1])
    assert (later >= sooner).all()


@pytest.mark.parametrize("function", MONOTONIC)
def test_order_is_kept_around_every_segment(function):
    """Four codes on each side of every border of segments in every binade, and in between."""
    border = np.arange(0, INF + 1, 1 << 16)
    near = (border[:, None] + np.arange(-4, 5)).ravel()
    codes = np.unique(np.concatenate([near, np.arange(0, INF, 20_011)]))
    check_order(function, codes[(codes >= 0) & (codes <= INF)])


@pytest.mark.nightly
@pytest.mark.parametrize("function", MONOTONIC)
def test_order_is_kept_over_binades(function):
    for first in (0, ONE - (1 << 23), ONE, TWO, 0x7F000000):
        for start in range(first, first + (1 << 23), BLOCK):
            check_order(function, np.arange(start, start + BLOCK + 1))


@pytest.mark.nightly
@pytest.mark.parametrize("sign", [0, SIGN])
def test_exp_keeps_order_over_its_range(sign):
    for start in range(0x38000000, 0x42C00000, BLOCK):
        y = exp(real(np.arange(start, start + BLOCK + 1) | sign))
        assert ((y[1:] <= y[:-1]) if sign else (y[1:] >= y[:-1])).all()


DIGESTS = {
    exp: "bac1c497449c3d75",
    reciprocal: "7b1bd28ffd08e51f",
    sqrt: "ac6bb26553d6a37b",
    rsqrt: "602e924a24f35a3f",
    log: "1b26fe4812504aff",
    sigmoid: "c2f5136f45213b69",
    tanh: "ac17d39ccd90782b",
}
"""First 16 digits of the SHA-256 of the results, little endian, for every 20 011th FP32 code."""


@pytest.mark.parametrize("function", DIGESTS)
def test_results_are_pinned(function):
    """Bars leave room; the datapath does not: a rounding done otherwise is another function."""
    results = code(function(real(np.arange(0, 1 << 32, 20_011))))
    assert hashlib.sha256(results.astype("<u4").tobytes()).hexdigest()[:16] == DIGESTS[function]


def test_segment_by_its_formula():
    """Integers of Python, one at a time, with the shifts as floors of fractions."""
    rng = np.random.default_rng(35)
    for name, table in tables.TABLES.items():
        for bits in (23, 26):
            fraction = rng.integers(0, 1 << bits, 200, dtype=np.int32)
            fraction[:2] = 0, (1 << bits) - 1
            expected = []
            for index, t in ((int(v) >> (bits - 7), int(v) % (1 << (bits - 7))) for v in fraction):
                c0, c1, c2 = (int(c) for c in table[index])
                t2 = (t // 2 ** (bits - 23)) ** 2 // 2**16
                linear = c1 * t // 2 ** (11 + bits - 23)
                expected.append((c0 * 16 + linear + c2 * t2 // 2**10 + 8) // 16)
            columns = tables.columns(name)
            found = [segment.evaluate(*columns, int(v), bits - 23, 0) for v in fraction]
            assert found == expected, name


@pytest.mark.parametrize("shift", [1, 3, 4, 38])
def test_rounding_is_to_nearest_even(shift):
    """Ties and their neighbours; `round` of a fraction is exact and to even."""
    half = 1 << (shift - 1)
    value = (np.arange(64)[:, None] * half + np.array([-1, 0, 1])).ravel()
    value = value[value >= 0]
    expected = [round(Fraction(int(v), 1 << shift)) for v in value]
    assert [fields.round_even(int(v), shift) for v in value] == expected


def test_tanh_is_its_argument_below_its_border_only():
    below, above = real(np.arange(0x39FF0000, 0x3A000000)), real(np.arange(0x3A000000, 0x3A010000))
    assert_same(code(tanh(below)), code(below))
    assert (tanh(above) != above).mean() > 0.9


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


def test_two_tables_in_one():
    """`odd` chooses the second of the two."""
    both = tables.columns("sqrt_even", "sqrt_odd")
    for fraction in range(0, 1 << 23, 4099):
        for odd, name in enumerate(("sqrt_even", "sqrt_odd")):
            alone = segment.evaluate(*tables.columns(name), fraction, 0, 0)
            assert segment.evaluate(*both, fraction, 0, odd) == alone
