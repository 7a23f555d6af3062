"""Golden FP32 operations against SoftFloat, and against the rules that SoftFloat has not."""

import numpy as np
import pytest

from golden.arith import float32
from verif import softfloat
from verif.equality import assert_same
from verif.known_cases import PRODUCTS, SUMS
from verif.vectors import FP32, addition_pairs, corner_codes, corner_pairs, product_pairs, specials

SEED = 20
COUNT = 100_000
NIGHTLY_COUNT = 1_000_000


def real(code):
    return np.asarray(code, np.uint32).view(np.float32)


def code(value):
    assert value.dtype == np.float32
    return np.ascontiguousarray(value).view(np.uint32)


def check_sums(count, seed):
    a, b = addition_pairs(FP32, np.random.default_rng(seed), count)
    sums, differences = float32.add(real(a), real(b)), float32.subtract(real(a), real(b))
    assert_same(code(sums), softfloat.add(a, b), seed=seed, a=a, b=b)
    assert_same(code(differences), softfloat.subtract(a, b), seed=seed, a=a, b=b)


def check_products(count, seed):
    a, b = product_pairs(FP32, np.random.default_rng(seed), count)
    products = float32.multiply(real(a), real(b))
    assert_same(code(products), softfloat.multiply(a, b), seed=seed, a=a, b=b)


def test_sums_equal_softfloat():
    check_sums(COUNT, SEED)


def test_products_equal_flushed_softfloat():
    check_products(COUNT, SEED)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_sums_equal_softfloat_at_length(seed):
    check_sums(NIGHTLY_COUNT, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_products_equal_flushed_softfloat_at_length(seed):
    check_products(NIGHTLY_COUNT, seed)


@pytest.mark.parametrize("name", SUMS)
def test_known_sum(name):
    a, b, expected = SUMS[name]
    assert_same(code(float32.add(real(a), real(b))), [expected], a=a, b=b)
    negated = np.uint32(b) ^ np.uint32(1 << 31)
    assert_same(code(float32.subtract(real(a), real(negated))), [expected], a=a, b=b)


@pytest.mark.parametrize("name", PRODUCTS)
def test_known_product(name):
    a, b, expected = PRODUCTS[name]
    assert_same(code(float32.multiply(real(a), real(b))), [expected], a=a, b=b)
    assert_same(code(float32.multiply(real(b), real(a))), [expected], a=b, b=a)


def test_no_product_is_subnormal():
    a, b = product_pairs(FP32, np.random.default_rng(SEED), COUNT)
    magnitude = code(float32.multiply(real(a), real(b))) & 0x7FFFFFFF
    assert not ((magnitude > 0) & (magnitude < 0x00800000)).any()
    assert (magnitude == 0x00800000).sum() > 100, "the vectors do not reach the border"


def test_products_then_sums_are_not_fused():
    """A fused operation would round once, to 00010001."""
    product = float32.multiply(real(0x97000800), real(0x1CFFF001))
    assert_same(code(float32.add(product, real(0x00010002))), [0x00010002])


def test_dependent_operations_back_to_back():
    """(1 - 2^-24) is kept between the operations, and so is the rounding of each."""
    below_one = float32.subtract(real(0x3F800000), real(0x33800000))
    assert_same(code(float32.multiply(below_one, below_one)), [0x3F7FFFFE])


def test_canonicalise_touches_only_nans_and_not_its_operand():
    codes = specials(FP32)
    kept = codes.copy()
    nan = (codes & 0x7FFFFFFF) > 0x7F800000
    expected = np.where(nan, 0x7FC00000, codes)
    assert_same(code(float32.canonicalise(real(codes))), expected, x=codes)
    assert_same(codes, kept)


def key(codes):
    """-0 below +0, by Python integers: sign and magnitude as one number."""
    return [-(c & 0x7FFFFFFF) - 1 if c >> 31 else c for c in codes.tolist()]


@pytest.mark.parametrize("pick", ["maximum", "minimum"])
def test_maximum_and_minimum(pick):
    a, b = corner_pairs(FP32)
    nan = ((a & 0x7FFFFFFF) > 0x7F800000) | ((b & 0x7FFFFFFF) > 0x7F800000)
    larger = np.array(key(a)) >= np.array(key(b))
    expected = np.where(larger if pick == "maximum" else ~larger, a, b)
    expected[nan] = 0x7FC00000
    operation = getattr(float32, pick)
    assert_same(code(operation(real(a), real(b))), expected, a=a, b=b)
    assert_same(code(operation(real(b), real(a))), expected, a=b, b=a)


def test_maximum_of_zeros_and_nan():
    plus, minus, nan = real(0), real(0x80000000), real(0xFFC00001)
    assert_same(code(float32.maximum(minus, plus)), [0x00000000])
    assert_same(code(float32.minimum(plus, minus)), [0x80000000])
    assert_same(code(float32.maximum(nan, real(0x7F800000))), [0x7FC00000])
    assert_same(code(float32.minimum(real(0xFF800000), nan)), [0x7FC00000])


def test_relu():
    x = corner_codes(FP32)
    expected = np.where(x >> 31 == 1, 0, x)
    expected[(x & 0x7FFFFFFF) > 0x7F800000] = 0x7FC00000
    assert_same(code(float32.relu(real(x))), expected, x=x)


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_operands_must_be_float32(operation):
    one = np.ones(3, np.float32)
    for other in (np.ones(3), np.ones(3, np.float16), np.ones(3, np.int32), 1.0):
        with pytest.raises(TypeError, match="float32 array expected"):
            getattr(float32, operation)(one, other)


def test_operands_are_not_changed_and_broadcast():
    a = real(np.array([[0x00000001, 0xFFC00001], [0x00800000, 0x3F800000]]))
    before = code(a).copy()
    result = float32.multiply(a, np.float32(0.5))
    assert result.shape == (2, 2)
    assert_same(code(a), before)
    assert_same(code(result), [[0, 0x7FC00000], [0, 0x3F000000]])
