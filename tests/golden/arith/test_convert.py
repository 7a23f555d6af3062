"""Casts between FP32 and the other formats against ml_dtypes: every code and every midpoint."""

import numpy as np
import pytest

from golden.arith import convert
from golden.arith.formats import BF16, FORMATS, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32
from isa.dtypes import DType
from verif import vectors
from verif.equality import assert_same
from verif.known_cases import NARROWINGS

SMALL = [form for form in FORMATS if form.bits <= 16]
NAN = 0x7FC00000
small = pytest.mark.parametrize("form", SMALL, ids=lambda form: form.name)
every = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)


def floats(*codes):
    return np.array(codes, np.uint32).view(np.float32)


def codes_of(x):
    return np.ascontiguousarray(x).view(np.uint32)


def all_codes(form):
    return np.arange(1 << form.bits).astype(form.dtype)


def host(form):
    return DType[form.name.upper()].numpy


def canonical(x):
    return np.where(np.isnan(x), np.uint32(NAN), codes_of(x))


def oracle(x, form, saturate=False):
    """ml_dtypes and numpy, made to saturate and without signs of NaNs; exact scaling for TF32."""
    with np.errstate(all="ignore"):
        if saturate:
            x = np.clip(x, np.float32(-form.max_finite), np.float32(form.max_finite))
        if form is TF32:
            exponent = np.frexp(np.abs(x).astype(np.float64))[1] - 1
            step = np.ldexp(1.0, np.maximum(np.where(np.isfinite(x), exponent, 0), -126) - 10)
            return canonical((np.rint(x / step) * step).astype(np.float32))
        rounded = x.astype(host(form))
    nan = np.isnan(rounded.astype(np.float32))
    return np.where(nan, form.dtype.type(form.nan), rounded.view(form.dtype))


def around_midpoints(form):
    """All numbers of the format, all midpoints, the one to overflow too, and their neighbours."""
    number = all_codes(form)[: form.max_code + 1].view(host(form)).astype(np.float64)
    number = np.append(number, 2 * number[-1] - number[-2])
    points = np.concatenate([number, (number[1:] + number[:-1]) / 2])
    with np.errstate(over="ignore"):
        code = codes_of(points.astype(np.float32))
    assert (code.view(np.float32)[number.size :] == points[number.size :]).all()
    code = np.unique(np.concatenate([code, code + np.uint32(1), code[code > 0] - np.uint32(1)]))
    return np.concatenate([code, code | np.uint32(1 << 31)]).view(np.float32)


def random_numbers(form, rng, count):
    """A third each: any FP32 code, specials, and codes within the range of the format."""
    low = 127 + form.min_exponent - form.fraction_bits - 3
    high = 127 + np.frexp(form.max_finite)[1] + 2
    third = count // 3
    within = vectors.FP32.join(
        rng.integers(0, 2, third),
        rng.integers(max(low, 0), min(high, 256), third),
        rng.integers(0, 1 << 23, third),
    )
    uniform = rng.integers(0, 1 << 32, third, dtype=np.uint32)
    special = vectors.random_codes(vectors.FP32, rng, third)
    return np.concatenate([within, uniform, special]).view(np.float32)


@small
def test_widening_every_code(form):
    code = all_codes(form)
    with np.errstate(all="ignore"):
        expected = canonical(code.view(host(form)).astype(np.float32))
    assert_same(codes_of(convert.widen(code, form)), expected, x=code)


@small
def test_narrowing_gives_back_every_code(form):
    code = all_codes(form)
    wide = convert.widen(code, form)
    expected = np.where(np.isnan(wide), form.dtype.type(form.nan), code)
    assert_same(convert.narrow(wide, form), expected, x=code)


@pytest.mark.parametrize("form", [FP32, TF32], ids=lambda form: form.name)
def test_reading_32_bit_formats(form):
    """A NaN with its payload in ignored bits stays NaN; FP32 subnormals stay."""
    x = np.concatenate([vectors.specials(vectors.FP32), codes_of(floats(0x7F801FFF, 0x1FFF, 1))])
    mask = np.uint32(0xFFFFE000 if form is TF32 else 0xFFFFFFFF)
    expected = np.where(np.isnan(x.view(np.float32)), np.uint32(NAN), x & mask)
    assert_same(codes_of(convert.widen(x, form)), expected, x=x)


@pytest.mark.parametrize("saturate", [False, True])
@small
def test_narrowing_at_every_midpoint(form, saturate):
    x = around_midpoints(form)
    got = convert.narrow(x, form, saturate)
    assert_same(got, oracle(x, form, saturate), x=codes_of(x))


@small
@pytest.mark.parametrize("saturate", [False, True])
def test_between_short_formats(form, saturate):
    """Every code of BF16 and FP16 to every short format: casts that had been tried on few numbers
    only round at ties, at the subnormals or beyond the largest otherwise."""
    for source in (BF16, FP16):
        x = convert.widen(all_codes(source), source)
        assert_same(convert.narrow(x, form, saturate), oracle(x, form, saturate), x=codes_of(x))


@pytest.mark.parametrize("saturate", [False, True])
@every
def test_narrowing_random_numbers(form, saturate):
    seed = 31
    x = random_numbers(form, np.random.default_rng(seed), 300_000)
    got = convert.narrow(x, form, saturate)
    assert_same(got, oracle(x, form, saturate), seed=seed, x=codes_of(x))


@pytest.mark.nightly
@every
def test_narrowing_at_length(form):
    seed = 32
    rng = np.random.default_rng(seed)
    for _ in range(10):
        x = random_numbers(form, rng, 3_000_000)
        assert_same(convert.narrow(x, form), oracle(x, form), seed=seed, x=codes_of(x))


@pytest.mark.nightly
@pytest.mark.parametrize("saturate", [False, True])
@every
def test_narrowing_every_code(form, saturate):
    """All 2^32."""
    for high in range(1 << 9):
        x = np.arange(high << 23, (high + 1) << 23, dtype=np.uint32)
        number = x.view(np.float32)
        assert_same(convert.narrow(number, form, saturate), oracle(number, form, saturate), x=x)


@every
def test_narrowing_specials(form):
    x = vectors.specials(vectors.FP32).view(np.float32)
    assert_same(convert.narrow(x, form), oracle(x, form), x=codes_of(x))


@pytest.mark.parametrize("saturate", [False, True])
@every
def test_every_nan_becomes_the_canonical_one(form, saturate):
    x = floats(0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800400, 0x7F801FFF, 0x7FFFFFFF, 0x7FA00000)
    random = np.full(x.shape, 0xFFFFFFFF, np.uint32)
    expected = np.full(x.shape, form.nan, form.dtype)
    assert_same(convert.narrow(x, form, saturate), expected)
    assert_same(convert.narrow(x, form, saturate, random), expected)


@pytest.mark.parametrize("name", NARROWINGS)
def test_known_narrowing(name):
    x, expected = NARROWINGS[name]
    assert_same(convert.narrow(floats(x), BF16), [expected], x=x)


@pytest.mark.parametrize(
    ("x", "code", "saturated"),
    [(464.0, 0x7E, 0x7E), (464.00003, 0x7F, 0x7E), (465.0, 0x7F, 0x7E), (1e30, 0x7F, 0x7E)]
    + [(np.inf, 0x7F, 0x7E), (-448.0, 0xFE, 0xFE), (-465.0, 0x7F, 0xFE), (-np.inf, 0x7F, 0xFE)],
)
def test_e4m3fn_beyond_448(x, code, saturated):
    x = np.array([x], np.float32)
    assert_same(convert.narrow(x, FP8_E4M3FN), [code])
    assert_same(convert.narrow(x, FP8_E4M3FN, saturate=True), [saturated])


@pytest.mark.parametrize(
    ("form", "x", "code"),
    [
        (FP16, 0xB87FE000, 0x8400),  # a tie that rounds onto the smallest normal
        (FP16, 0x33000000, 0x0000),  # half the smallest subnormal
        (FP16, 0x477FF000, 0x7C00),  # 65520, the tie to overflow
        (TF32, 0x7F800001, 0x7FC00000),  # cut off, its payload would leave an infinity
        (TF32, 0x7F7FFFFF, 0x7F800000),
        (TF32, 0x3F801000, 0x3F800000),
        (TF32, 0x3F803000, 0x3F804000),
        (TF32, 0x00001001, 0x00002000),
        (FP8_E5M2, 0x38900000, 0x04),  # a tie to even above the smallest normal
        (FP32, 0xFF800400, 0x7FC00000),
        (FP32, 0x80000001, 0x80000001),
    ],
)
def test_known_narrowing_of_other_formats(form, x, code):
    assert_same(convert.narrow(floats(x), form), np.array([code], form.dtype), x=x)


def test_only_the_types_of_the_chip_are_converted():
    """From float64 the cast would round twice: -431.99999999999994 would become -448."""
    x = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match="float32 array expected, not float64"):
        convert.narrow(np.array([-431.99999999999994]), FP8_E4M3FN)
    with pytest.raises(TypeError, match="uint8 array expected, not uint16"):
        convert.widen(np.zeros(4, np.uint16), FP8_E4M3FN)
    with pytest.raises(TypeError, match="uint32 array expected, not int64"):
        convert.narrow(x, BF16, random=np.zeros(4, np.int64))
    with pytest.raises(ValueError, match=r"random words of shape \(4,\) expected, not \(3,\)"):
        convert.narrow(x, BF16, random=np.zeros(3, np.uint32))


@every
def test_shapes_are_kept_across_blocks(form):
    x = np.random.default_rng(35).standard_normal((3, 2 * 8191, 2), np.float32)[:, ::2]
    code = convert.narrow(x, form)
    assert code.shape == (3, 8191, 2) and code.dtype == form.dtype
    assert_same(code, oracle(np.ascontiguousarray(x), form))
    assert convert.widen(code[:, ::3], form).shape == (3, 2731, 2)
    assert convert.narrow(x[:0], form).shape == (0, 8191, 2)
    assert convert.narrow(np.float32(1), form).shape == ()
