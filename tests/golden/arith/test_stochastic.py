"""Stochastic rounding: every count of round-ups, its mean, and what it is for."""

from fractions import Fraction

import numpy as np
import pytest

from golden.arith import convert, float32
from golden.arith.formats import BF16, FORMATS, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32
from golden.arith.xorwow import Xorwow
from isa.dtypes import DType
from verif.equality import assert_same
from verif.vectors import FP32 as FP32_CODES
from verif.vectors import random_codes, specials

CUT = [form for form in FORMATS if form is not FP32]
cut = pytest.mark.parametrize("form", CUT, ids=lambda form: form.name)
LANES = 128


def magnitudes(form):
    """float64 value of each code from 0 to the overflow, whose value goes on like a number's."""
    code = np.arange(0, form.max_code + 1, 1 << form.padding).astype(form.dtype)
    value = code.view(DType[form.name.upper()].numpy).astype(np.float64)
    return np.append(value, 2 * value[-1] - value[-2])


def oracle(x, form, random, saturate):
    """The two neighbours from the table of all numbers; the upper one if fraction + r >= 1."""
    value = magnitudes(form)
    size = np.abs(x).astype(np.float64)
    index = np.clip(np.searchsorted(value, size, side="right") - 1, 0, len(value) - 2)
    fraction = (size - value[index]) / (value[index + 1] - value[index])
    threshold = np.floor(np.minimum(fraction, 1.0) * 2.0**32)
    index = np.minimum(index + (threshold + random >= 2.0**32), len(value) - 1 - saturate)
    code = (index << form.padding) | np.where(np.signbit(x), form.sign, 0)
    overflowed = index == len(value) - 1
    nan = np.isnan(x) | (overflowed & (not form.has_inf))
    return np.where(nan, form.nan, code).astype(form.dtype)


def numbers(form, rng, count):
    """Half of them any FP32 code, half within the range of the format and a little below it."""
    low = max(127 + form.min_exponent - form.fraction_bits - 12, 0)
    high = 127 + int(np.frexp(form.max_finite)[1]) + 1
    within = rng.integers(low << 23, high << 23, count // 2) | rng.integers(0, 2, count // 2) << 31
    anything = rng.integers(0, 1 << 32, count // 2)
    return np.concatenate([within, anything]).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("saturate", [False, True])
@cut
def test_equals_a_choice_between_neighbours(form, saturate):
    seed = 41
    rng = np.random.default_rng(seed)
    x = numbers(form, rng, 200_000)
    random = rng.integers(0, 1 << 32, x.size, dtype=np.uint32)
    random[::5], random[1::5] = 0, 0xFFFFFFFF
    with np.errstate(all="ignore"):
        expected = oracle(x, form, random, saturate)
    got = convert.narrow(x, form, saturate, random)
    assert_same(got, expected, seed=seed, x=x.view(np.uint32), random=random)


def discarded(x, form):
    """(bits, n) of FP32 codes, int64: |x| as a code with n bits too many.

    `bits` is the significand below an exponent field counted from the smallest normal; below that,
    the significand alone, whose point moves with the exponent.
    """
    exponent, fraction = (x >> 23) & 0xFF, x & 0x7FFFFF
    significand = np.where(exponent > 0, fraction + (1 << 23), fraction)
    above = np.maximum(exponent, 1) - (127 + form.min_exponent)
    n = 23 - form.fraction_bits + np.maximum(-above, 0)
    return significand + (np.maximum(above, 0) << 23), n


def definition(x, form, random, saturate):
    """(bits + r) >> n by integers, r the top n bits of the word; beyond 32, the rest is ignored."""
    x, random = x.astype(np.int64), random.astype(np.int64)
    bits, n = discarded(x, form)
    drawn = np.minimum(n, 32)
    code = ((bits >> np.minimum(n - drawn, 63)) + (random >> (32 - drawn))) >> drawn
    largest = form.max_code >> form.padding
    beyond = code > largest
    code = np.where(beyond, largest if saturate else largest + 1, code) << form.padding
    code |= np.where(x >> 31, form.sign, 0)
    nan = ((x & 0x7FFFFFFF) > 0x7F800000) | (beyond & (not form.has_inf and not saturate))
    return np.where(nan, form.nan, code).astype(form.dtype)


def close_words(x, form, rng):
    """Random words; half of them are the one that just carries, one more or one less."""
    word = rng.integers(0, 1 << 32, x.size)
    bits, n = discarded(x.astype(np.int64), form)
    drawn = np.minimum(n, 32)
    field = (bits >> np.minimum(n - drawn, 63)) & ((1 << drawn) - 1)
    carry = np.clip((1 << drawn) - field + rng.integers(-1, 2, x.size), 0, (1 << drawn) - 1)
    # The bits below the drawn ones stay any.
    carry = carry << (32 - drawn) | word & ((1 << (32 - drawn)) - 1)
    return np.where(rng.random(x.size) < 0.5, carry, word).astype(np.uint32)


@cut
def test_every_draw_equals_the_integer_definition(form):
    """More than a million, half of them saturating."""
    seed = 45
    rng = np.random.default_rng(seed)
    for saturate in (False, True):
        some = [specials(FP32_CODES), random_codes(FP32_CODES, rng, 150_000)]
        x = np.concatenate([numbers(form, rng, 400_000).view(np.uint32), *some])
        random = close_words(x, form, rng)
        got = convert.narrow(x.view(np.float32), form, saturate, random)
        expected = definition(x, form, random, saturate)
        assert_same(got, expected, seed=seed, x=x, random=random)


@pytest.mark.parametrize("word", [0, 1, 0x80000000, 0xFFFFFFFF])
@cut
def test_exact_values_never_move(form, word):
    code = np.arange(0, form.overflow + 1, 1 << form.padding).astype(form.dtype)
    code = np.concatenate([code, code | form.dtype.type(form.sign)])
    x = convert.widen(code, form)
    expected = np.where(np.isnan(x), form.dtype.type(form.nan), code)
    random = np.full(x.shape, word, np.uint32)
    assert_same(convert.narrow(x, form, random=random), expected, x=code)


@pytest.mark.parametrize(
    ("form", "code", "bits"),
    [
        (BF16, 0x3F80, 16),
        (BF16, 0x0000, 16),  # FP32 subnormals
        (BF16, 0x7F7F, 16),  # carries to infinity
        (TF32, 0x3F800000, 13),
        (FP16, 0x3C00, 13),
        (FP16, 0x0200, 14),  # a subnormal result cuts one bit more
        (FP16, 0x0003, 22),
        (FP8_E5M2, 0x3C, 21),
        (FP8_E5M2, 0x02, 22),
        (FP8_E4M3FN, 0x38, 20),
        (FP8_E4M3FN, 0x04, 21),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_all_random_values_round_up_as_often_as_the_field_says(form, code, bits):
    """Enumerates all 2^bits random values for several fields of `bits` discarded bits."""
    value = np.array([code, code + (1 << form.padding)], form.dtype)
    low = convert.widen(value[:1], form).view(np.uint32)[0]
    random = np.arange(1 << bits, dtype=np.uint32) << np.uint32(32 - bits)
    # A normal's significand has 24 bits: the field is the code's tail, shorter in a subnormal.
    shift = bits - (23 - form.fraction_bits) if form.bias != FP32.bias else 0
    for field in (0, 1, 1 << (bits - 1), (1 << (bits - 1)) + 1, (1 << bits) - 1, 0x2D5 << shift):
        if shift:
            step = Fraction(2) ** (form.min_exponent - form.fraction_bits)
            exact = (Fraction(code) + Fraction(field, 1 << bits)) * step
            x = np.float32(float(exact))
            assert Fraction(float(x)) == exact, "the field does not fit in an FP32 number"
        else:
            x = np.uint32(low + field).view(np.float32)
        rounded = convert.narrow(np.full(1 << bits, x), form, random=random)
        assert int((rounded == value[1]).sum()) == field
        assert int((rounded == value[0]).sum()) == (1 << bits) - field


def test_tails_below_32_bits_are_ignored():
    """e5m2 steps by 2^-16 here: 2^-48 goes up for one word of 2^32, less than that for none."""
    x = np.array([2.0**-48, 2.0**-48, 2.0**-48 * (1 - 2.0**-24), 2.0**-149], np.float32)
    random = np.array([0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF], np.uint32)
    assert_same(convert.narrow(x, FP8_E5M2, random=random), np.array([1, 0, 0, 0], np.uint8))


def test_half_a_step_of_e5m2_goes_up_half_the_time():
    """0x38900000, a half above the smallest normal: random bits aligned too low never carry."""
    x = np.full(4096, 0x38900000, np.uint32).view(np.float32)
    rounded = convert.narrow(x, FP8_E5M2, random=np.arange(4096, dtype=np.uint32) << np.uint32(20))
    assert_same(np.bincount(rounded), np.array([0, 0, 0, 0, 2048, 2048]))


@cut
def test_mean_within_four_sigma(form):
    value = np.float32(1 + 0.37 * 2.0**-form.fraction_bits)
    field = (float(value) - 1) * 2.0**form.fraction_bits
    lanes = Xorwow(LANES, 42).step(4096)
    rounded = convert.narrow(np.full(lanes.shape, value), form, random=lanes)
    ups = int((convert.widen(rounded, form) > 1).sum())
    sigma = (lanes.size * field * (1 - field)) ** 0.5
    assert abs(ups - lanes.size * field) < 4 * sigma


def added_up(start, addend, times, form, lanes=None):
    """`addend` added `times` times in `form`, in every lane."""
    code = convert.narrow(np.full(LANES, start, np.float32), form)
    for _ in range(times):
        total = float32.add(convert.widen(code, form), np.float32(addend))
        random = None if lanes is None else lanes.step(1)[:, 0]
        code = convert.narrow(total, form, random=random)
    return convert.widen(code, form).astype(np.float64)


def test_a_half_added_2048_times_to_1024_in_fp16():
    """Each addition goes up by 1 with probability 1/2: mean 2048, deviation 22.6."""
    assert (added_up(1024, 0.5, 2048, FP16) == 1024).all()
    total = added_up(1024, 0.5, 2048, FP16, Xorwow(LANES, 43))
    assert abs(total.mean() - 2048) < 4 * 512**0.5 / LANES**0.5
    assert 18 < total.std() < 28


def test_a_thousandth_added_1000_times_to_one_in_bf16():
    """The variance of a step is at most s^2 f (1 - f), s = 2^-7 and f = 0.128: 0.083 in all."""
    assert (added_up(1, 0.001, 1000, BF16) == 1).all()
    total = added_up(1, 0.001, 1000, BF16, Xorwow(LANES, 44))
    assert abs(total.mean() - 2) < 4 * 0.083 / LANES**0.5
    assert 0.06 < total.std() < 0.11
