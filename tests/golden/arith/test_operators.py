"""Operators of the vector engine against SoftFloat, numpy's integers and written-out results."""

import numpy as np
import pytest

from golden.arith import float32, operators
from isa.fields import AluOp
from verif import softfloat
from verif.equality import assert_same
from verif.known_cases import QUOTIENTS
from verif.vectors import FP32, addition_pairs, corner_pairs, quotient_pairs, word_pairs

SEED = 23
COUNT = 50_000
NIGHTLY_COUNT = 1_000_000
LONG_COUNT = 1_100_000
"""Where numpy is the reference."""
NAN, INF = 0x7FC00000, 0x7F800000
ONE, ZERO, MINUS_ZERO = 0x3F800000, 0x00000000, 0x80000000


def real(code):
    return np.asarray(code, np.uint32).view(np.float32)


def value(op, a, b, reverse=0):
    """Codes of a op b for codes."""
    result = operators.alu(op, real(a), real(b), reverse)
    assert result.dtype == np.float32
    return np.ascontiguousarray(result).view(np.uint32)


def comparable(count, seed):
    """Near pairs, half of them equal in magnitude."""
    rng = np.random.default_rng(seed)
    a, b = addition_pairs(FP32, rng, count)
    b[::3] = a[::3] ^ (rng.integers(0, 2, len(b[::3]), dtype=np.uint32) << 31)
    return a, b


@pytest.fixture(scope="module")
def long_pairs():
    """Comparable ones, and zeros of both signs."""
    a, b = comparable(LONG_COUNT, SEED + 2)
    rng = np.random.default_rng(SEED + 3)
    for code in (a, b):
        code[rng.random(code.size) < 0.1] &= np.uint32(1 << 31)
    return a, b


@pytest.fixture(scope="module")
def long_words():
    return word_pairs(np.random.default_rng(SEED + 4), LONG_COUNT)


def check_quotients(count, seed):
    a, b = quotient_pairs(FP32, np.random.default_rng(seed), count)
    assert_same(value(AluOp.DIVIDE, a, b), softfloat.divide(a, b), seed=seed, a=a, b=b)


def check_comparisons(count, seed):
    a, b = comparable(count, seed)
    equal, less, less_equal = softfloat.compare(a, b)
    nan = ((a & 0x7FFFFFFF) > INF) | ((b & 0x7FFFFFFF) > INF)
    expected = {
        AluOp.EQUAL: equal,
        AluOp.NOT_EQUAL: ~equal,
        AluOp.LESS: less,
        AluOp.LESS_EQUAL: less_equal,
        AluOp.GREATER: ~less_equal & ~nan,
        AluOp.GREATER_EQUAL: ~less & ~nan,
    }
    for op, truth in expected.items():
        assert_same(value(op, a, b), np.where(truth, ONE, ZERO), seed=f"{seed} {op!r}", a=a, b=b)


def test_every_operator_has_a_function_in_its_class():
    assert set(operators.VALUES) == {op for op in AluOp if not op.raw} - {AluOp.BYPASS}
    assert set(operators.WORDS) == {op for op in AluOp if op.raw}


def test_quotients_equal_softfloat():
    check_quotients(COUNT, SEED)
    a, b = corner_pairs(FP32)
    assert_same(value(AluOp.DIVIDE, a, b), softfloat.divide(a, b), a=a, b=b)


def test_comparisons_equal_softfloat():
    check_comparisons(COUNT, SEED)


@pytest.mark.nightly
def test_quotients_and_comparisons_at_length():
    check_quotients(NIGHTLY_COUNT, SEED + 1)
    check_comparisons(NIGHTLY_COUNT, SEED + 1)


@pytest.mark.parametrize("name", QUOTIENTS)
def test_known_quotient(name):
    a, b, expected = QUOTIENTS[name]
    assert_same(value(AluOp.DIVIDE, [a], [b]), [expected])
    assert_same(value(AluOp.DIVIDE, [b], [a], reverse=1), [expected])


def test_quotient_then_product():
    """The product takes the subnormal quotient in full, and not the dividend."""
    quotient = value(AluOp.DIVIDE, [0x98E7D58F], [0x5F4135EF])
    assert_same(quotient, [0x80000133])
    assert_same(value(AluOp.MULTIPLY, quotient, [0x5F4135EF]), [0x98E7B3AE])


@pytest.mark.parametrize("op", [AluOp.MAX, AluOp.MIN, AluOp.ABS_MAX, AluOp.ABS_MIN])
def test_extrema_choose_an_operand_in_the_order_of_the_numbers(op, long_pairs):
    """By numpy's comparisons, and of equal zeros by their signs."""
    a, b = long_pairs
    x, y = (code & 0x7FFFFFFF if op in (AluOp.ABS_MAX, AluOp.ABS_MIN) else code for code in (a, b))
    with np.errstate(invalid="ignore"):
        greater, equal = real(x) > real(y), real(x) == real(y)
    nan = np.isnan(real(a)) | np.isnan(real(b))
    greater |= equal & (x >> 31 < y >> 31)
    first = greater if op in (AluOp.MAX, AluOp.ABS_MAX) else ~greater
    expected = np.where(nan, np.uint32(NAN), np.where(first, x, y))
    assert_same(value(op, a, b), expected, seed=SEED + 2, a=a, b=b)


@pytest.mark.parametrize(
    ("op", "truth"),
    [
        (AluOp.LOGICAL_AND, np.logical_and),
        (AluOp.LOGICAL_OR, np.logical_or),
        (AluOp.LOGICAL_XOR, np.logical_xor),
    ],
)
def test_logical_operators_equal_those_of_numpy(op, truth, long_pairs):
    a, b = long_pairs
    with np.errstate(invalid="ignore"):
        true = truth(real(a), real(b))
    expected = np.where(true, np.uint32(ONE), np.uint32(ZERO))
    assert_same(value(op, a, b), expected, seed=SEED + 2, a=a, b=b)


@pytest.mark.parametrize(
    ("op", "table"),
    [(AluOp.LOGICAL_AND, 0b1000), (AluOp.LOGICAL_OR, 0b1110), (AluOp.LOGICAL_XOR, 0b0110)],
)
def test_everything_but_zero_is_true(op, table):
    false = [ZERO, MINUS_ZERO]
    true = [ONE, 0xBF800000, 0x00000001, 0x80000001, INF, 0xFF800000, NAN, 0xFF800001, 0x7F7FFFFF]
    codes = np.array(false + true, np.uint32)
    a, b = (part.ravel() for part in np.meshgrid(codes, codes))
    row = 2 * np.isin(a, true) + np.isin(b, true)
    assert_same(value(op, a, b), np.where(table >> row & 1, ONE, ZERO), a=a, b=b)


def signed(x):
    return np.where(x >> 31, x.astype(np.int64) - (1 << 32), x.astype(np.int64))


def far(b):
    """Numbers of bits that int64 can be shifted by: from 33 to 63 all are alike."""
    return np.minimum(b, 63)


REFERENCES = {
    AluOp.BITWISE_AND: lambda a, b: a & b,
    AluOp.BITWISE_OR: lambda a, b: a | b,
    AluOp.BITWISE_XOR: lambda a, b: a ^ b,
    AluOp.SHIFT_LEFT: lambda a, b: a << far(b),
    AluOp.SHIFT_RIGHT: lambda a, b: a >> far(b),
    AluOp.SHIFT_RIGHT_ARITHMETIC: lambda a, b: signed(a) >> far(b),
    AluOp.INT_ADD: lambda a, b: signed(a) + signed(b),
    AluOp.INT_SUBTRACT: lambda a, b: signed(a) - signed(b),
    AluOp.INT_MULTIPLY: lambda a, b: signed(a) * signed(b),
    AluOp.INT_MAX: lambda a, b: np.maximum(signed(a), signed(b)),
    AluOp.INT_MIN: lambda a, b: np.minimum(signed(a), signed(b)),
    AluOp.INT_EQUAL: lambda a, b: a == b,
    AluOp.INT_NOT_EQUAL: lambda a, b: a != b,
    AluOp.INT_GREATER: lambda a, b: signed(a) > signed(b),
    AluOp.INT_GREATER_EQUAL: lambda a, b: signed(a) >= signed(b),
    AluOp.INT_LESS: lambda a, b: signed(a) < signed(b),
    AluOp.INT_LESS_EQUAL: lambda a, b: signed(a) <= signed(b),
    AluOp.UINT_GREATER: lambda a, b: a > b,
    AluOp.UINT_GREATER_EQUAL: lambda a, b: a >= b,
    AluOp.UINT_LESS: lambda a, b: a < b,
    AluOp.UINT_LESS_EQUAL: lambda a, b: a <= b,
}
"""On int64 arrays of the unsigned words: exact, but for what SHIFT_LEFT moves beyond 64 bits."""


@pytest.mark.parametrize("op", REFERENCES)
def test_words_equal_wide_integers(op, long_words):
    a, b = long_words
    found = operators.alu(op, a, b)
    assert found.dtype == np.uint32
    wide = REFERENCES[op](a.astype(np.int64), b.astype(np.int64))
    expected = (wide.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
    assert_same(found, expected, seed=SEED + 4, a=a, b=b)


PYTHON = {
    AluOp.SHIFT_LEFT: lambda a, b: a << min(b, 32),
    AluOp.SHIFT_RIGHT: lambda a, b: a >> min(b, 32),
    AluOp.INT_ADD: lambda a, b: a + b,
    AluOp.INT_SUBTRACT: lambda a, b: a - b,
    AluOp.INT_MULTIPLY: lambda a, b: a * b,
}


@pytest.mark.parametrize("op", PYTHON)
def test_words_equal_unbounded_integers(op):
    a, b = word_pairs(np.random.default_rng(SEED), COUNT // 2)
    exact = [PYTHON[op](x, y) & 0xFFFFFFFF for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert_same(operators.alu(op, a, b), np.array(exact, np.uint32), seed=SEED, a=a, b=b)


def test_reverse_swaps_the_operands_of_every_operator():
    a, b = word_pairs(np.random.default_rng(SEED), 5000)
    for op in operators.WORDS:
        assert_same(operators.alu(op, a, b, 1), operators.alu(op, b, a))
    for op in operators.VALUES:
        assert_same(value(op, a, b, 1), value(op, b, a))
    assert operators.alu(AluOp.BYPASS, a, b, 1) is a


@pytest.mark.parametrize("op", operators.VALUES)
def test_subnormals_and_signed_zeros_are_no_special_case(op):
    """As float64 finds them, where FP32 results are exact or rounded once; products are flushed."""
    codes = [ZERO, MINUS_ZERO, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x00800001, ONE]
    a, b = (part.ravel() for part in np.meshgrid(np.array(codes, np.uint32), codes))
    b = b.astype(np.uint32)
    x, y = real(a).astype(np.float64), real(b).astype(np.float64)
    smaller = (x < y) | ((x == y) & np.signbit(x) & ~np.signbit(y))
    p, q = np.abs(x), np.abs(y)
    with np.errstate(all="ignore"):
        exact = {
            AluOp.ADD: x + y,
            AluOp.SUBTRACT: x - y,
            AluOp.MULTIPLY: np.where(p * q < 2.0**-126, np.copysign(0, x * y), x * y),
            AluOp.MAX: np.where(smaller, y, x),
            AluOp.MIN: np.where(smaller, x, y),
            AluOp.DIVIDE: x / y,
            AluOp.ABS_MAX: np.maximum(p, q),
            AluOp.ABS_MIN: np.minimum(p, q),
            AluOp.EQUAL: x == y,
            AluOp.NOT_EQUAL: x != y,
            AluOp.GREATER: x > y,
            AluOp.GREATER_EQUAL: x >= y,
            AluOp.LESS: x < y,
            AluOp.LESS_EQUAL: x <= y,
            AluOp.LOGICAL_AND: (x != 0) & (y != 0),
            AluOp.LOGICAL_OR: (x != 0) | (y != 0),
            AluOp.LOGICAL_XOR: (x != 0) ^ (y != 0),
        }.get(op)
        if exact is None:
            assert op == AluOp.POWER  # has a test file of its own
            return
        expected = float32.canonicalise(exact.astype(np.float32)).view(np.uint32)
    assert_same(value(op, a, b), expected, seed=f"{op!r}", a=a, b=b)


@pytest.mark.parametrize("op", [AluOp.DIVIDE, AluOp.POWER, AluOp.EQUAL, AluOp.ABS_MIN])
def test_another_dtype_is_refused(op):
    with pytest.raises(TypeError, match="float32 array expected, not float64"):
        operators.alu(op, np.ones(2), np.ones(2, np.float32))
    with pytest.raises(TypeError, match="uint32 array expected, not int32"):
        operators.alu(AluOp.SHIFT_LEFT, np.ones(2, np.uint32), np.ones(2, np.int32))
