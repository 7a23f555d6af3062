"""Conversions between FP32 and integers against exact integer arithmetic."""

import numpy as np
import pytest

from golden.arith import convert
from golden.arith.formats import BF16
from verif.equality import assert_same
from verif.vectors import FP32, random_codes, specials

COUNT = 1_100_000


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


def nearest_integer(code, dtype):
    """Significand times a power of two: shifted in int64, what is left compared with a half."""
    code, limits = code.astype(np.int64), np.iinfo(dtype)
    exponent, fraction = (code >> 23) & 0xFF, code & 0x7FFFFF
    significand = np.where(exponent > 0, fraction + (1 << 23), fraction)
    shift = np.maximum(exponent, 1) - 150
    # From 2^34 times 2^23 on all is beyond the ends, below 2^-26 times 2^24 all is nothing.
    up, down = np.clip(shift, 0, 34), np.clip(-shift, 0, 26)
    whole = significand >> down
    left = 2 * (significand - (whole << down))
    whole += (left > 1 << down) | ((left == 1 << down) & (whole & 1 == 1))
    number = np.where(code >> 31, -whole, whole) << up
    nan = (exponent == 0xFF) & (fraction > 0)
    return np.where(nan, 0, np.clip(number, limits.min, limits.max)).astype(dtype)


def hard_numbers(dtype, rng):
    """FP32 codes: specials, any, and integers and halves of all sizes, the ends too, and what is
    next to them.
    """
    limits = np.iinfo(dtype)
    third = COUNT // 3
    size = rng.integers(-3, 8 * np.dtype(dtype).itemsize + 2, third)
    points = np.rint(np.ldexp(rng.uniform(1, 2, third), size) * 2) / 2
    ends = np.array([limits.min, limits.max, 0], np.float64)
    near_ends = np.rint(rng.choice(ends, third) * 2 + rng.integers(-1024, 1025, third)) / 2
    points = np.concatenate([points * rng.choice([-1, 1], third), near_ends])
    code = codes_of(points.astype(np.float32)).astype(np.int64)
    code += rng.integers(-1, 2, code.size)
    rest = [specials(FP32), random_codes(FP32, rng, COUNT - 2 * third)]
    return np.concatenate([np.clip(code, 0, 0xFFFFFFFF).astype(np.uint32), *rest])


@pytest.mark.parametrize("dtype", convert.INTEGERS, ids=str)
def test_to_integer_equals_shifted_significands(dtype):
    seed = 35
    x = hard_numbers(dtype, np.random.default_rng(seed))
    expected = nearest_integer(x, dtype)
    assert_same(convert.to_integer(x.view(np.float32), dtype), expected, seed=seed, x=x)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", convert.INTEGERS, ids=str)
def test_every_code_to_integer(dtype):
    for high in range(1 << 9):
        x = np.arange(high << 23, (high + 1) << 23, dtype=np.uint32)
        assert_same(convert.to_integer(x.view(np.float32), dtype), nearest_integer(x, dtype), x=x)


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


def nearest_code(x):
    """The 24 bits from the leading one on, rounded by what is cut off; sign and exponent apart."""
    x = x.astype(np.int64)
    magnitude = np.abs(x)
    length = np.searchsorted(1 << np.arange(33, dtype=np.int64), magnitude, side="right")
    cut = np.maximum(length - 24, 0)
    kept = magnitude >> cut
    left = 2 * (magnitude - (kept << cut))
    kept += (left > 1 << cut) | ((left == 1 << cut) & (kept & 1 == 1))
    # The leading one adds one to the exponent field, a carry out of the 24 bits another.
    code = ((length + 125) << 23) + (kept << np.maximum(24 - length, 0))
    return (np.where(x == 0, 0, code) | (x < 0).astype(np.int64) << 31).astype(np.uint32)


def hard_integers(dtype, rng):
    """Of every length, with ties, what is next to them, all ones, or anything behind 24 bits."""
    limits = np.iinfo(dtype)
    length = rng.integers(1, 33, COUNT)
    cut = np.maximum(length - 24, 0)
    half = (1 << cut) >> 1
    tails = (half, half - 1, half + 1, 0 * half, (1 << cut) - 1, rng.integers(0, 1 << cut))
    tail = np.choose(rng.integers(0, len(tails), COUNT), tails) & ((1 << cut) - 1)
    head = rng.integers(1 << (length - 1 - cut), 1 << (length - cut))
    ones = rng.random(COUNT) < 0.1
    head[ones] = (1 << (length - cut)[ones]) - 1
    number = (head << cut | tail) * (rng.choice([-1, 1], COUNT) if limits.min < 0 else 1)
    ends = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1]
    return np.concatenate([number[(limits.min <= number) & (number <= limits.max)], ends])


@pytest.mark.parametrize("dtype", ["i4", "u4"])
def test_from_integer_equals_24_rounded_bits(dtype):
    """Shorter integers are tried all."""
    seed = 36
    x = hard_integers(dtype, np.random.default_rng(seed)).astype(dtype)
    assert x.size > 1_000_000
    found = codes_of(convert.from_integer(x))
    assert_same(found, nearest_code(x), seed=seed, x=x.astype(np.int64))


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
