"""Conversions between FP32 and integers against exact arithmetic of Python."""

import numpy as np
import pytest

from golden.arith import convert
from golden.arith.formats import BF16
from verif.equality import assert_same


def floats(*codes):
    return np.array(codes, np.uint32).view(np.float32)


def codes_of(x):
    return np.ascontiguousarray(x).view(np.uint32)


@pytest.mark.parametrize("dtype", convert.INTEGERS, ids=str)
def test_to_integer_equals_exact_rounding(dtype):
    """Python's round of a float is exact with ties to even."""
    seed = 33
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    points = np.arange(-70_000, 70_001, 0.5) if dtype.itemsize < 4 else np.arange(-300, 300.5, 0.5)
    with np.errstate(invalid="ignore"):
        ends = np.array([limits.min, limits.max, 2**23, 2**24, -(2.0**24)], np.float32)
        points = np.concatenate([points.astype(np.float32), ends])
        points = np.concatenate([points, np.nextafter(points, np.inf, dtype=np.float32)])
        points = np.concatenate([points, np.nextafter(points, -np.inf, dtype=np.float32)])
    spread = np.ldexp(rng.uniform(-1, 1, 20_000), rng.integers(-2, 34, 20_000)).astype(np.float32)
    x = np.concatenate([points, spread, np.array([1e30, -1e30, 3e-45, -0.0], np.float32)])
    expected = [min(max(round(v), limits.min), limits.max) for v in x.tolist()]
    assert_same(convert.to_integer(x, dtype), np.array(expected, dtype), seed=seed, x=codes_of(x))


@pytest.mark.parametrize("dtype", convert.INTEGERS, ids=str)
def test_infinities_and_nans_to_integer(dtype):
    x = floats(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001)
    limits = np.iinfo(dtype)
    expected = np.array([limits.max, limits.min, 0, 0, 0], dtype)
    assert_same(convert.to_integer(x, dtype), expected, x=codes_of(x))


def test_ties_to_integer_are_even_and_ends_saturate():
    x = np.array([0.5, 1.5, 2.5, -0.5, 2.0**31, -(2.0**31), np.nan], np.float32)
    expected = np.array([0, 2, 2, 0, 2**31 - 1, -(2**31), 0], np.int32)
    assert_same(convert.to_integer(x, np.int32), expected)
    assert_same(convert.to_integer(-x[:2], np.uint8), np.zeros(2, np.uint8))


@pytest.mark.parametrize("dtype", convert.INTEGERS, ids=str)
def test_from_integer_is_the_nearest(dtype):
    """float64 holds every 32-bit integer, so one rounding leads from there to float32."""
    seed = 34
    limits = np.iinfo(dtype)
    if dtype.itemsize < 4:
        x = np.arange(limits.min, limits.max + 1).astype(dtype)
    else:
        # All lengths, and around every tie of the highest binade's low bits.
        rng = np.random.default_rng(seed)
        any_length = rng.integers(limits.min, limits.max, 100_000) >> rng.integers(0, 31, 100_000)
        ties = limits.max - np.arange(4096)
        small_ties = 2**24 + np.arange(-64, 4096)
        x = np.concatenate([any_length, ties, small_ties, [limits.min, limits.min + 1]])
        x = x.astype(dtype)
    expected = [float(number) for number in x.tolist()]
    expected = codes_of(np.array(expected, np.float64).astype(np.float32))
    assert_same(codes_of(convert.from_integer(x)), expected, seed=seed, x=x.astype(np.int64))


@pytest.mark.parametrize(
    ("x", "nearest"),
    [(2**24 + 1, 2**24), (2**24 + 3, 2**24 + 4), (2**31 - 1, 2**31), (2**32 - 129, 2**32 - 256)]
    + [(2**32 - 128, 2**32), (2**32 - 1, 2**32)],
)
def test_large_integers_become_the_nearest(x, nearest):
    assert float(convert.from_integer(np.array([x], np.uint32))[0]) == nearest
    if x < 2**31:
        assert float(convert.from_integer(np.array([-x], np.int32))[0]) == -nearest


def test_only_the_integers_of_the_chip_are_converted():
    with pytest.raises(ValueError, match="no integer type of the chip: int64"):
        convert.to_integer(np.zeros(4, np.float32), np.int64)
    with pytest.raises(TypeError, match="float32 array expected, not float64"):
        convert.to_integer(np.zeros(4), np.int32)
    with pytest.raises(TypeError, match="8, 16 or 32-bit integers expected, not int64"):
        convert.from_integer(np.zeros(4, np.int64))


def test_shapes_of_integers_are_kept():
    x = np.arange(60, dtype=np.float32).reshape(3, 10, 2)[:, ::2]
    assert_same(convert.to_integer(x, np.int8), x.astype(np.int8))
    assert convert.to_integer(x[:0], np.int8).shape == (0, 5, 2)
    assert convert.from_integer(np.zeros((2, 3), np.uint8)).dtype == np.float32


def test_int32_to_bf16_is_rounded_twice():
    """By the contract all goes through FP32: 2^24 + 2^16 + 1 is a tie of BF16 there, and even."""
    x = np.array([(1 << 24) + (1 << 16) + 1, (1 << 24) + (1 << 16) + 2], np.int32)
    found = convert.narrow(convert.from_integer(x), BF16)
    assert found.tolist() == [0x4B80, 0x4B81]
