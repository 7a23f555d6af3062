"""BF16 casts against ml_dtypes and SoftFloat: every code, every midpoint."""

import ml_dtypes
import numpy as np
import pytest

from golden.arith import bfloat16
from verif import softfloat
from verif.equality import assert_same
from verif.known_cases import NARROWINGS
from verif.vectors import FP32, specials

ALL_CODES = np.arange(1 << 16, dtype=np.uint16)
NAN_CODES = ALL_CODES[(ALL_CODES & 0x7FFF) > 0x7F80]


def codes_of(value):
    return np.ascontiguousarray(value).view(np.uint32)


def oracle(codes):
    """ml_dtypes keeps the sign of a NaN; Celosia has one NaN."""
    with np.errstate(all="ignore"):
        rounded = codes.view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    return np.where((rounded & 0x7FFF) > 0x7F80, np.uint16(0x7FC0), rounded)


def test_widening_every_code():
    number = ALL_CODES[(ALL_CODES & 0x7FFF) <= 0x7F80]
    expected = codes_of(number.view(ml_dtypes.bfloat16).astype(np.float32))
    assert_same(codes_of(bfloat16.widen(number)), expected, x=number)


def test_widening_moves_every_nan_code():
    """A copy of a NaN must stay that NaN, never an infinity; arithmetic makes it canonical."""
    assert len(NAN_CODES) == 254
    wide = bfloat16.widen(NAN_CODES)
    assert np.isnan(wide).all()
    assert_same(codes_of(wide), NAN_CODES.astype(np.uint32) << 16)
    assert_same(bfloat16.narrow(wide), np.full(254, 0x7FC0, np.uint16), x=NAN_CODES)


def test_narrowing_gives_back_every_number():
    number = ALL_CODES[(ALL_CODES & 0x7FFF) <= 0x7F80]
    assert_same(bfloat16.narrow(bfloat16.widen(number)), number)


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_narrowing_at_every_midpoint(offset):
    midpoint = (ALL_CODES.astype(np.uint32) << 16) | 0x8000
    x = (midpoint.astype(np.int64) + offset).astype(np.uint32)
    assert_same(bfloat16.narrow(x.view(np.float32)), oracle(x), x=x)
    assert_same(bfloat16.narrow(x.view(np.float32)), softfloat.narrow(x), x=x)


def test_narrowing_specials_and_random_codes():
    seed = 22
    rng = np.random.default_rng(seed)
    x = np.concatenate([specials(FP32), rng.integers(0, 1 << 32, 200_000, dtype=np.uint32)])
    assert_same(bfloat16.narrow(x.view(np.float32)), oracle(x), seed=seed, x=x)


@pytest.mark.nightly
def test_narrowing_equals_softfloat_at_length():
    seed = 23
    x = np.random.default_rng(seed).integers(0, 1 << 32, 1_000_000, dtype=np.uint32)
    assert_same(bfloat16.narrow(x.view(np.float32)), softfloat.narrow(x), seed=seed, x=x)


@pytest.mark.parametrize("name", NARROWINGS)
def test_known_narrowing(name):
    x, expected = NARROWINGS[name]
    assert_same(bfloat16.narrow(np.array([x], np.uint32).view(np.float32)), [expected], x=x)


def test_only_float32_is_narrowed():
    """From float64 the cast would round twice: 1 + 2^-8 + 2^-40 would become 1."""
    with pytest.raises(TypeError, match="float32 array expected, not float64"):
        bfloat16.narrow(np.array([1 + 2.0**-8 + 2.0**-40]))
    with pytest.raises(TypeError, match="uint16 array expected"):
        bfloat16.widen(np.array([1], np.int32))


def test_shapes_are_kept():
    assert bfloat16.narrow(np.zeros((2, 3, 4), np.float32)[:, ::2]).shape == (2, 2, 4)
    assert bfloat16.widen(np.zeros((4, 0), np.uint16)).shape == (4, 0)
