"""Reductions of the vector engine: the order is part of the definition."""

import numpy as np
import pytest

from golden.arith import float32
from verif import softfloat
from verif.equality import assert_same
from verif.vectors import FP32, corner_codes, random_codes

SEED = 21
LENGTHS = (0, 1, 2, 7, 8, 9, 15, 16, 17, 64, 100)
LONG_COUNT = 1_050_000
LONG_LENGTHS = (2, 3, 5, 7, 8, 9, 10, 12, 15, 16, 17, 20, 24, 25)


def codes_of(value):
    return np.ascontiguousarray(value).view(np.uint32)


def reference_sum(row):
    """Scalar SoftFloat, written out as the definition reads."""
    partial = [np.zeros(1, np.uint32) for _ in range(8)]
    for index, element in enumerate(row):
        partial[index % 8] = softfloat.add(partial[index % 8], [element])
    pair = [softfloat.add(partial[i], partial[i + 1]) for i in (0, 2, 4, 6)]
    return softfloat.add(softfloat.add(pair[0], pair[1]), softfloat.add(pair[2], pair[3]))[0]


def rows(rng, count, length):
    """Finite values of like size, so that the order matters, with specials in a few rows."""
    x = rng.standard_normal((count, length)).astype(np.float32).view(np.uint32)
    special = rng.random((count, length)) < 0.02
    special[: count // 2] = False
    x[special] = random_codes(FP32, rng, int(special.sum()))
    return x


def numpy_add(a, b):
    with np.errstate(all="ignore"):
        total = a.view(np.float32) + b.view(np.float32)
    return np.where(np.isnan(total), np.uint32(0x7FC00000), total.view(np.uint32))


def column_sums(x, add):
    """The definition on codes [rows, elements], all rows at once; `add` on codes."""
    partial = [np.zeros(len(x), np.uint32) for _ in range(8)]
    for index, column in enumerate(x.T):
        partial[index % 8] = add(partial[index % 8], np.ascontiguousarray(column))
    pair = [add(partial[i], partial[i + 1]) for i in (0, 2, 4, 6)]
    return add(add(pair[0], pair[1]), add(pair[2], pair[3]))


def hard_rows(rng, count, length):
    """Exponents of a row lie close together, so that sums round, tie and become subnormal or too
    large; many elements cancel the one that they meet in their partial or behind it, all but a few
    of the last bits; every tenth row has specials.
    """
    pool = random_codes(FP32, rng, 1 << 18)
    fraction = rng.choice(pool, (count, length)) & np.uint32(0x807FFFFF)
    middle = rng.choice([1, 12, 30, 127, 200, 240, 254], (count, 1))
    exponent = np.clip(middle + rng.integers(-14, 15, (count, length)), 0, 254)
    x = fraction | exponent.astype(np.uint32) << np.uint32(23)
    flipped = np.uint32(1 << 31) ^ rng.integers(0, 4, (count, length), dtype=np.uint32)
    cancels = rng.random((count, length)) < 0.25
    for distance in (8, 1):
        for at in range(distance, length):
            here = cancels[:, at] & (rng.random(count) < 0.5)
            x[here, at] = x[here, at - distance] ^ flipped[here, at]
    special = rng.random((count, length)) < 0.15
    special[count // 10 :] = False
    x[special] = rng.choice(pool, int(special.sum()))
    return x


def check_hard_sums(add, seed):
    """More than a million sums."""
    rng = np.random.default_rng(seed)
    for length in LONG_LENGTHS:
        x = hard_rows(rng, LONG_COUNT // len(LONG_LENGTHS), length)
        found = codes_of(float32.reduce_add(x.view(np.float32)))
        assert np.isfinite(found.view(np.float32)).mean() > 0.7
        assert_same(found, column_sums(x, add), seed=f"{seed}, {length} elements")


def test_hard_sums_equal_numpy_element_by_element():
    check_hard_sums(numpy_add, SEED + 1)


@pytest.mark.nightly
def test_hard_sums_equal_softfloat():
    check_hard_sums(softfloat.add, SEED + 2)


@pytest.mark.parametrize("length", LENGTHS)
def test_sum_in_the_defined_order(length):
    x = rows(np.random.default_rng(SEED), 40, length)
    expected = np.array([reference_sum(row) for row in x], np.uint32)
    assert_same(codes_of(float32.reduce_add(x.view(np.float32))), expected, seed=SEED)


def test_sum_along_another_axis():
    x = rows(np.random.default_rng(SEED), 24, 20).view(np.float32)
    along_rows = codes_of(float32.reduce_add(x))
    assert_same(codes_of(float32.reduce_add(x.T, axis=0)), along_rows)
    cube = np.stack([x, x])
    assert_same(codes_of(float32.reduce_add(np.moveaxis(cube, 2, 1), axis=1))[1], along_rows)


def test_sum_differs_from_sequential_and_from_numpy_order():
    """The test above could not tell orders apart if none of its rows depended on the order."""
    x = rows(np.random.default_rng(SEED), 200, 100)[:100].view(np.float32)
    ours = codes_of(float32.reduce_add(x))
    sequential = codes_of(np.add.accumulate(x, axis=1)[:, -1])
    assert (ours != sequential).any()
    assert (ours != codes_of(float32.reduce_add(x[:, ::-1]))).any()


def test_sum_of_minus_zeros_is_plus_zero():
    x = np.full((1, 9), -0.0, np.float32)
    assert_same(codes_of(float32.reduce_add(x)), [0])


def test_sum_keeps_subnormals():
    x = np.full((1, 1000), 1, np.uint32)
    assert_same(codes_of(float32.reduce_add(x.view(np.float32))), [1000])


def test_maximum_of_corners():
    """By Python over every pair of corners, NaN and signed zeros included."""
    corners = corner_codes(FP32)
    x = np.stack(np.meshgrid(corners, corners, indexing="ij"), -1).reshape(-1, 2)
    expected = codes_of(float32.maximum(x[:, 0].view(np.float32), x[:, 1].view(np.float32)))
    assert_same(codes_of(float32.reduce_max(x.view(np.float32))), expected)


def test_maximum_is_canonical_nan_wherever_the_nan_stands():
    for position in range(9):
        x = np.full((1, 9), 0x7F800000, np.uint32)
        x[0, position] = 0xFFC00001
        assert_same(codes_of(float32.reduce_max(x.view(np.float32))), [0x7FC00000])


def test_extrema_of_hard_rows():
    """More than a million, by float64 and, where that finds a zero, by the signs in the row."""
    rng = np.random.default_rng(SEED + 3)
    for length in LONG_LENGTHS[::3]:
        count = LONG_COUNT // len(LONG_LENGTHS[::3])
        x = hard_rows(rng, count, length)
        x[rng.random(x.shape) < 0.2] &= np.uint32(1 << 31)
        value = x.view(np.float32)
        nan = np.isnan(value).any(axis=1)
        with np.errstate(invalid="ignore"):
            largest = np.where(np.isnan(value), 0, value).astype(np.float64).max(axis=1)
        zero = np.where((x == 0).any(axis=1), 0.0, -0.0)
        expected = np.where(largest == 0, zero, largest).astype(np.float32).view(np.uint32)
        expected = np.where(nan, np.uint32(0x7FC00000), expected)
        assert_same(codes_of(float32.reduce_max(value)), expected, seed=SEED + 3)
        mirrored = np.where(nan, np.uint32(0x7FC00000), expected ^ np.uint32(1 << 31))
        negative = (x ^ np.uint32(1 << 31)).view(np.float32)
        assert_same(codes_of(float32.reduce_min(negative)), mirrored, seed=SEED + 3)


def test_maximum_of_nothing_and_of_minus_zeros():
    assert_same(codes_of(float32.reduce_max(np.zeros((2, 0), np.float32))), [0xFF800000] * 2)
    assert_same(codes_of(float32.reduce_max(np.full((1, 5), -0.0, np.float32))), [0x80000000])
    assert float32.reduce_max(np.ones((3, 4, 5), np.float32), axis=1).shape == (3, 5)


def test_minimum_mirrors_the_maximum():
    corners = corner_codes(FP32)
    x = np.stack(np.meshgrid(corners, corners, indexing="ij"), -1).reshape(-1, 2)
    expected = codes_of(float32.minimum(x[:, 0].view(np.float32), x[:, 1].view(np.float32)))
    assert_same(codes_of(float32.reduce_min(x.view(np.float32))), expected)
    assert_same(codes_of(float32.reduce_min(np.zeros((2, 0), np.float32))), [0x7F800000] * 2)
