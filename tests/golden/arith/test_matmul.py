"""The golden tile product of BF16: order, flush and speed."""

import time

import numpy as np
import pytest

from golden.arith import float32, formats, matmul
from golden.arith.bfloat16 import narrow, widen
from verif import softfloat
from verif.equality import assert_same
from verif.vectors import BF16, product_pairs, random_codes

SEED = 24


def codes_of(value):
    assert value.dtype == np.float32
    return np.ascontiguousarray(value).view(np.uint32)


def chain(stationary, moving):
    """The tile of BF16 codes."""
    return matmul.chain(*(matmul.operand(x, formats.BF16) for x in (stationary, moving)))


def normals(rng, *shape):
    return narrow(rng.standard_normal(shape).astype(np.float32))


def reference(stationary, moving):
    """SoftFloat, one flushed product and one sum a row, as the definition reads."""
    k, m = stationary.shape
    n = moving.shape[1]
    a, b = (x.astype(np.uint32) << 16 for x in (stationary, moving))
    accumulator = np.zeros(m * n, np.uint32)
    for row in range(k):
        product = softfloat.multiply(np.repeat(a[row], n), np.tile(b[row], m))
        accumulator = softfloat.add(accumulator, product)
    return accumulator.reshape(m, n)


def check(stationary, moving, seed=None):
    tile = codes_of(chain(stationary, moving))
    assert_same(tile, reference(stationary, moving), seed=seed)
    return tile


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 4, 4), (5, 3, 7), (128, 4, 6), (16, 1, 40)])
def test_chain_equals_softfloat(shape):
    k, m, n = shape
    rng = np.random.default_rng(SEED)
    check(normals(rng, k, m), normals(rng, k, n), SEED)


def test_chain_of_specials_equals_softfloat():
    rng = np.random.default_rng(SEED)
    k, m, n = 6, 40, 40
    check(
        random_codes(BF16, rng, k * m).reshape(k, m),
        random_codes(BF16, rng, k * n).reshape(k, n),
        SEED,
    )


def test_chain_of_products_at_the_flush_border_equals_softfloat():
    """Products within a few binades of 2^-126: some rows flush, some do not."""
    rng = np.random.default_rng(SEED)
    a, b = product_pairs(BF16, rng, 8000)
    quiet = ((a & 0x7FFF) < 0x7F80) & ((b & 0x7FFF) < 0x7F80)
    a, b = a[quiet][:6000].reshape(-1, 1), b[quiet][:6000].reshape(-1, 1)
    with np.errstate(all="ignore"):
        products = widen(a) * widen(b)
    subnormal = (np.abs(products) < float32.TINY) & (products != 0)
    assert 200 < subnormal.sum() < len(products) - 200
    # One row each, so that the decision to test for a flush is made for every single product.
    for start in range(0, len(a), 500):
        part = slice(start, start + 500)
        tiles = [
            codes_of(chain(x[None], y[None]))[0, 0] for x, y in zip(a[part], b[part], strict=True)
        ]
        wide = [x[part, 0].astype(np.uint32) << 16 for x in (a, b)]
        expected = softfloat.add(np.zeros(len(tiles)), softfloat.multiply(*wide))
        assert_same(np.array(tiles, np.uint32), expected, seed=SEED, a=a[part, 0], b=b[part, 0])


def test_long_cancellation_chains():
    """Partial sums that grow large and cancel leave small results, every bit of which counts."""
    rng = np.random.default_rng(SEED)
    k, m, n = 128, 8, 8
    a, b = normals(rng, k, m), normals(rng, k, n)
    scale = narrow((2.0 ** rng.integers(-20, 21, (k // 2, 1))).astype(np.float32))
    a[: k // 2] = narrow(widen(a[: k // 2]) * widen(scale))
    order = rng.permutation(k // 2)
    a[k // 2 :], b[k // 2 :] = a[order] ^ 0x8000, b[order]
    tile = check(a, b, SEED)
    assert len(np.unique(tile)) > 1, "nothing but zeros: the chains do not test the rounding"


def test_the_order_of_rows_matters_and_is_ascending():
    """2^24 + 1 + 1: ascending, each one is lost as a tie; descending, they are not."""
    a = narrow(np.array([[2.0**24], [1], [1]], np.float32))
    b = narrow(np.ones((3, 1), np.float32))
    assert_same(codes_of(chain(a, b)), [[0x4B800000]])
    assert_same(codes_of(chain(a[::-1], b)), [[0x4B800001]])


def test_four_by_four_of_1_195():
    """Accumulators cut to the width of BF16 fail on this one.

    4 * (153 / 128)^2 = 23409 / 4096 is exact in FP32. Its nearest BF16 is 40B7; 40B6 is what
    truncation gives.
    """
    operand = np.full((4, 4), 0x3F99, np.uint16)
    tile = chain(operand, operand)
    assert_same(codes_of(tile), np.full((4, 4), 0x40B6E200, np.uint32))
    assert tile[0, 0] == 23409 / 4096
    assert_same(narrow(tile), np.full((4, 4), 0x40B7, np.uint16))


def test_small_integers_are_exact():
    rng = np.random.default_rng(SEED)
    a, b = rng.integers(-64, 65, (2, 128, 16))
    tile = chain(narrow(a.astype(np.float32)), narrow(b.astype(np.float32)))
    exact = (a[:, :, None] * b[:, None, :]).cumsum(axis=0)[-1]
    assert_same(tile.astype(np.int64), exact, seed=SEED)
    known = narrow(np.array([[-1], [3], [8]], np.float32)), np.array([[1], [8], [4]], np.float32)
    assert chain(known[0], narrow(known[1]))[0, 0] == 55


def test_factorisations_of_one_product_agree():
    for a, b in ((0x0001, 0x4980), (0x0700, 0x3F80), (0x4980, 0x0001)):
        tile = chain(np.array([[a]], np.uint16), np.array([[b]], np.uint16))
        assert_same(codes_of(tile), [[0x07000000]])


def test_minus_zeros_sum_to_plus_zero():
    a = np.full((3, 2), 0x8000, np.uint16)
    b = np.full((3, 2), 0x3F80, np.uint16)
    assert_same(codes_of(chain(a, b)), np.zeros((2, 2), np.uint32))


def test_zero_times_infinity_and_nan_are_canonical():
    a = np.array([[0x0000, 0xFFC1, 0x3F80]], np.uint16)
    b = np.array([[0xFF80, 0x7F81]], np.uint16)
    nan = 0x7FC00000
    assert_same(codes_of(chain(a, b)), [[nan, nan], [nan, nan], [0xFF800000, nan]])


def test_accumulation_is_one_sum():
    """old + (tile), not one longer chain."""
    tile = chain(narrow(np.ones((2, 1), np.float32)), narrow(np.array([[1], [1]], np.float32)))
    old = np.array([[2.0**24]], np.float32)
    assert_same(codes_of(matmul.accumulate(old, tile)), [[0x4B800001]])
    nan = np.array([[0xFFC00001]], np.uint32).view(np.float32)
    assert_same(codes_of(matmul.accumulate(nan, tile)), [[0x7FC00000]])
    minus_zero = np.array([[-0.0]], np.float32)
    assert_same(codes_of(matmul.accumulate(minus_zero, minus_zero)), [[0x80000000]])


def test_no_rows_no_columns():
    empty = np.zeros((0, 2), np.uint16)
    assert_same(codes_of(chain(empty, np.zeros((0, 3), np.uint16))), np.zeros((2, 3), int))
    assert chain(np.zeros((4, 0), np.uint16), np.zeros((4, 3), np.uint16)).shape == (0, 3)


def test_shapes_and_types_are_checked():
    two, three = np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32)
    for stationary, moving in ((two, three), (two, two[0]), (two, two[:, :, None])):
        with pytest.raises(ValueError, match=r"\[K, M\] and \[K, N\] expected"):
            matmul.chain(stationary, moving)
    with pytest.raises(TypeError, match="float32 array expected, not uint16"):
        matmul.chain(two, two.astype(np.uint16))
    with pytest.raises(TypeError, match="uint16 array expected, not float32"):
        matmul.operand(two, formats.BF16)


def test_operands_are_not_changed():
    rng = np.random.default_rng(SEED)
    a, b = random_codes(BF16, rng, 64).reshape(8, 8), random_codes(BF16, rng, 64).reshape(8, 8)
    kept = a.copy(), b.copy()
    chain(a, b)
    assert_same(a, kept[0])
    assert_same(b, kept[1])


def test_speed_is_that_of_the_bare_chain():
    """At most 1.2 times a bare multiply-and-add loop of the same shape: no flush tests for it."""
    rng = np.random.default_rng(SEED)
    stationary, moving = normals(rng, 128, 128), normals(rng, 128, 512)
    a, b = widen(stationary), widen(moving)

    def bare():
        accumulator = np.zeros((128, 512), np.float32)
        product = np.empty_like(accumulator)
        for row_a, row_b in zip(a, b, strict=True):
            np.multiply(row_a[:, None], row_b[None, :], out=product)
            np.add(accumulator, product, out=accumulator)
        return accumulator

    def seconds(run):
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    # Alternate and take the best of many: the machine may be shared.
    times = [(seconds(bare), seconds(lambda: chain(stationary, moving))) for _ in range(60)]
    best_bare, best_chain = (min(column) for column in zip(*times, strict=True))
    assert best_chain <= 1.2 * best_bare, f"{best_chain * 1e3:.2f} ms, bare {best_bare * 1e3:.2f}"
