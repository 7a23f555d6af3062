# amaranth: UnusedElaboratable=no
"""FP32 to the shorter formats: nearest against ml_dtypes, TF32 and stochastic against integers."""

import ml_dtypes
import numpy as np
import pytest

from golden.arith import convert, formats
from hdl.arith.narrow import FloatNarrow, NarrowFormat
from isa.dtypes import DType
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.known_cases import NARROWINGS
from verif.vectors import FP32, random_codes, specials

SEED = 73
COUNT = 200_000
F = NarrowFormat
ALL = list(F)
FP8 = (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3, ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3fn)
TYPES = dict(zip(ALL, (ml_dtypes.bfloat16, np.float16, np.float32, *FP8), strict=True))
"""Host types; that of TF32 holds its numbers, but does not round to them."""
PADDING = {form: 13 if form is F.TF32 else 0 for form in ALL}
# In the order of ALL; SMALLEST is the FP32 exponent field of the smallest normal.
NAN = dict(zip(ALL, (0x7FC0, 0x7E00, 0x7FC00000, 0x7E, 0x7C, 0x78, 0x7F), strict=True))
LARGEST = dict(zip(ALL, (0x7F7F, 0x7BFF, 0x7F7FE000, 0x7B, 0x77, 0x6F, 0x7E), strict=True))
FRACTION_BITS = dict(zip(ALL, (7, 10, 10, 2, 3, 4, 3), strict=True))
SMALLEST = dict(zip(ALL, (1, 113, 1, 113, 121, 125, 121), strict=True))


@pytest.fixture(scope="module", params=[0, 4])
def unit(request):
    return compile_unit(FloatNarrow(stages=request.param))


@pytest.fixture(scope="module")
def combinational():
    return compile_unit(FloatNarrow())


def narrow(unit, form, x, *, saturate=0, random=None):
    """Codes of float32 codes; stochastic if `random` is given."""
    chosen = {"stochastic": int(random is not None), "random": 0 if random is None else random}
    return unit.stream(i=x, format=form.value, saturate=saturate, **chosen).o


def bits_of(form):
    return 8 * np.dtype(TYPES[form]).itemsize


def nearest(form, x, saturate=0):
    """By ml_dtypes or numpy, from float32; one NaN, and saturated if asked for."""
    if form is F.TF32:
        return nearest_tf32(x, saturate)
    dtype = np.dtype(TYPES[form])
    value = x.view(np.float32)
    with np.errstate(all="ignore"):
        result = value.astype(dtype)
        beyond = ~np.isfinite(result.astype(np.float32))
    code = result.view(f"u{dtype.itemsize}").astype(np.uint32)
    if saturate:
        sign = (x >> 31) << (bits_of(form) - 1)
        code = np.where(beyond, LARGEST[form] | sign, code)
        nan = np.isnan(value)
    else:
        with np.errstate(invalid="ignore"):
            nan = np.isnan(result.astype(np.float32))
    return np.where(nan, NAN[form], code).astype(np.uint32)


def nearest_tf32(x, saturate=0):
    """By integers: steps of 2^13 codes, and of what is left of one more or less than its half."""
    steps, left = np.divmod(x & np.uint32(0x7FFFFFFF), np.uint32(1 << 13))
    steps += (left > 1 << 12) | ((left == 1 << 12) & (steps % 2 == 1))
    largest = np.uint32(LARGEST[F.TF32] >> 13)
    code = np.minimum(steps, largest + np.uint32(1 - saturate)) << np.uint32(13)
    code |= x & np.uint32(1 << 31)
    return np.where((x & 0x7FFFFFFF) > 0x7F800000, np.uint32(NAN[F.TF32]), code)


def stochastic(form, x, random, saturate=0):
    """(bits + r) >> n with all n discarded bits, r from the top of 24 random bits, by integers.

    `bits` is the magnitude as a code: exponent field counted from the smallest normal above the
    24-bit significand; below that, the significand alone, whose point moves with the exponent.
    """
    x, random = x.astype(np.int64), random.astype(np.int64)
    exponent, fraction = (x >> 23) & 0xFF, x & 0x7FFFFF
    significand = np.where(exponent > 0, fraction | 1 << 23, fraction)
    over = np.maximum(exponent, 1) - SMALLEST[form]
    # At n > 24 bits, those below the lowest random bit do not count.
    n = 23 - FRACTION_BITS[form] + np.maximum(-over, 0)
    short, ignored = np.minimum(n, 24), np.minimum(np.maximum(n - 24, 0), 63)
    bits = (significand >> ignored) + (np.maximum(over, 0) << 23)
    code = (bits + (random >> (24 - short))) >> short
    largest = LARGEST[form] >> PADDING[form]
    beyond = code > largest
    code = np.where(beyond, largest + 1 - saturate, code) << PADDING[form]
    code |= (x >> 31) << (bits_of(form) - 1)
    nan = (x & 0x7FFFFFFF) > 0x7F800000
    if form is F.FP8_E4M3FN and not saturate:
        nan |= beyond
    return np.where(nan, NAN[form], code).astype(np.uint32)


def words(form, seed):
    """FP32 codes: special, any, and those from far below the least step up to overflow."""
    rng = np.random.default_rng(seed)
    low, high = max(SMALLEST[form] - FRACTION_BITS[form] - 14, 0), 256 - max(SMALLEST[form] - 2, 1)
    within = rng.integers(low << 23, high << 23, COUNT, dtype=np.uint32)
    within |= rng.integers(0, 2, COUNT, dtype=np.uint32) << 31
    # Few bits set: exact values and ties.
    sparse = within & ~((np.uint32(1) << rng.integers(10, 24, COUNT, dtype=np.uint32)) - 1)
    return np.concatenate([specials(FP32), random_codes(FP32, rng, COUNT // 2), within, sparse])


def random_words(count, bits=24):
    random = np.random.default_rng(SEED).integers(0, 1 << bits, count, dtype=np.uint32)
    random[::7], random[1::7] = 0, (1 << bits) - 1
    return random


def test_codes_are_those_of_the_instructions():
    assert {form.name: form.value for form in ALL} == {form.name: DType[form.name] for form in ALL}


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("form", ALL)
def test_nearest_equals_ml_dtypes(unit, form, saturate):
    x = words(form, SEED + saturate)
    got = narrow(unit, form, x, saturate=saturate)
    assert_same(got, nearest(form, x, saturate), seed=SEED + saturate, i=x)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("form", ALL)
def test_nearest_at_every_code_and_midpoint(combinational, form, saturate):
    """All numbers of the format, all midpoints of neighbours, and the FP32 codes next to both."""
    code = np.arange(0, LARGEST[form] + 1, 1 << PADDING[form]).astype(f"u{bits_of(form) // 8}")
    value = code.view(TYPES[form]).astype(np.float64)
    value = np.append(value, 2 * value[-1] - value[-2])
    middle = (value[1:] + value[:-1]) / 2
    points = np.concatenate([value, middle])
    points = points[points < 2.0**128]
    exact = points.astype(np.float32)
    assert (exact == points).all()
    x = exact.view(np.uint32).astype(np.int64)
    x = np.concatenate([x - 1, x, x + 1])
    x = np.concatenate([x, x | 1 << 31]).clip(0, 0xFFFFFFFF).astype(np.uint32)
    got = narrow(combinational, form, x, saturate=saturate)
    assert_same(got, nearest(form, x, saturate), i=x)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("form", ALL)
def test_stochastic_equals_the_integer_definition(unit, form, saturate):
    x = words(form, SEED + 2 + saturate)
    random = random_words(x.size)
    got = narrow(unit, form, x, saturate=saturate, random=random)
    expected = stochastic(form, x, random, saturate)
    assert_same(got, expected, seed=SEED + 2 + saturate, i=x, random=random)


def test_everything_may_change_every_cycle(unit):
    rng = np.random.default_rng(SEED + 5)
    x = np.concatenate([rng.choice(words(form, SEED + 5), COUNT // 4) for form in ALL])
    x = rng.permutation(x)
    random = random_words(x.size)
    chosen = rng.integers(0, len(ALL), x.size)
    saturate, mode = rng.integers(0, 2, (2, x.size), dtype=np.uint32)
    got = unit.stream(
        i=x,
        format=np.array([form.value for form in ALL])[chosen],
        stochastic=mode,
        saturate=saturate,
        random=random,
    ).o
    expected = np.zeros(x.size, np.uint32)
    for index, form in enumerate(ALL):
        for sat in (0, 1):
            here = (chosen == index) & (saturate == sat)
            rounded = [nearest(form, x[here], sat), stochastic(form, x[here], random[here], sat)]
            expected[here] = np.where(mode[here] == 1, *rounded[::-1])
    assert_same(got, expected, seed=SEED + 5, i=x, format=chosen, random=random)


@pytest.mark.parametrize("bits", [24, 32])
@pytest.mark.parametrize("form", ALL)
def test_stochastic_equals_golden(form, bits):
    x = words(form, SEED + 4)
    random = random_words(x.size, bits)
    got = narrow(compile_unit(FloatNarrow(random_bits=bits)), form, x, random=random)
    golden_form = getattr(formats, form.name)
    word = random << np.uint32(32 - bits)
    expected = convert.narrow(x.view(np.float32), golden_form, False, word)
    assert_same(got, expected.astype(np.uint32), seed=SEED + 4, i=x, random=random)


@pytest.mark.parametrize(
    ("form", "low", "discarded"),
    [
        (F.BF16, 0x3F800000, 16),
        (F.BF16, 0x00000000, 16),  # subnormals
        (F.BF16, 0x7F7F0000, 16),  # carries to infinity
        (F.FP16, 0x3F800000, 13),
        (F.TF32, 0x3F800000, 13),
        (F.TF32, 0x00000000, 13),
        (F.TF32, 0x7F7FE000, 13),
        (F.FP8_E5M2, 0x38800000, 21),
        (F.FP8_E4M3FN, 0x3F800000, 20),
    ],
)
def test_as_many_random_values_round_up_as_the_field_says(combinational, form, low, discarded):
    """Enumerates all values of as many random bits as are discarded."""
    random = np.arange(1 << discarded, dtype=np.uint32) << np.uint32(24 - discarded)
    for field in (0, 1, 0x155, 1 << (discarded - 1), (1 << discarded) - 1):
        x = np.full(random.size, low + field, np.uint32)
        got = narrow(combinational, form, x, random=random)
        floor = narrow(combinational, form, x[:1] - np.uint32(field))[0]
        ups = (got - floor) >> np.uint32(PADDING[form])
        assert_same(np.bincount(ups, minlength=2), [random.size - field, field])


def test_half_a_step_of_e5m2_goes_up_half_the_time(combinational):
    """0x38900000: random bits aligned below the discarded field never carry."""
    x = np.full(4096, 0x38900000, np.uint32)
    random = np.arange(4096, dtype=np.uint32) << np.uint32(12)
    got = narrow(combinational, F.FP8_E5M2, x, random=random)
    assert_same(np.bincount(got), [0, 0, 0, 0, 2048, 2048])


@pytest.mark.parametrize(
    ("form", "x", "saturate", "expected"),
    [
        (F.FP16, 0xB87FE000, 0, 0x8400),  # rounds to the smallest normal
        (F.FP8_E4M3FN, 0x43E80000, 0, 0x7E),  # 464 is a tie
        (F.FP8_E4M3FN, 0x43E80001, 0, 0x7F),
        (F.FP8_E4M3FN, 0x43E80001, 1, 0x7E),
        (F.FP8_E4M3FN, 0xC3E88000, 0, 0x7F),  # the NaN is positive
        (F.FP8_E4M3FN, 0xC3E88000, 1, 0xFE),
        (F.FP8_E4M3FN, 0xFF800000, 1, 0xFE),  # so does infinity saturate
        (F.FP8_E4M3, 0x43780000, 0, 0x78),  # 248
        (F.FP8_E4M3, 0x4377FFFF, 0, 0x77),
        (F.FP8_E5M2, 0x7FA00000, 0, 0x7E),  # signalling NaN
        (F.FP8_E5M2, 0xFF800001, 1, 0x7E),
        (F.BF16, 0x7EFFFF8B, 0, 0x7F00),
        (F.TF32, 0x3F801000, 0, 0x3F800000),
        (F.TF32, 0x3F801001, 0, 0x3F802000),
        (F.TF32, 0x00001001, 0, 0x00002000),  # subnormal
        (F.TF32, 0x7F7FF000, 0, 0x7F800000),
        (F.TF32, 0xFF7FF000, 1, 0xFF7FE000),
        (F.TF32, 0x7F800001, 0, 0x7FC00000),  # cut off, its payload would leave an infinity
        (F.TF32, 0xFF800FFF, 1, 0x7FC00000),
        (F.TF32, 0xFF800000, 1, 0xFF7FE000),
    ],
)
def test_vectors_that_others_failed(combinational, form, x, saturate, expected):
    assert_same(narrow(combinational, form, [x], saturate=saturate), [expected], i=x)


@pytest.mark.parametrize("name", NARROWINGS)
def test_known_narrowing(combinational, name):
    x, expected = NARROWINGS[name]
    assert_same(narrow(combinational, F.BF16, [x]), [expected], i=x)


@pytest.mark.parametrize(
    "chosen",
    [(F.BF16,), (F.TF32,), (F.BF16, F.FP16), (F.FP8_E5M2, F.FP8_E4M3FN), (F.TF32, F.FP8_E3M4)],
)
def test_a_unit_of_fewer_formats_narrows_to_them(chosen):
    unit = compile_unit(FloatNarrow(formats=chosen))
    for saturate, form in enumerate(chosen):
        x = words(form, SEED + 6)
        got = narrow(unit, form, x, saturate=saturate)
        assert_same(got, nearest(form, x, saturate), seed=SEED + 6, i=x)
        random = random_words(x.size)
        got = narrow(unit, form, x, saturate=saturate, random=random)
        assert_same(got, stochastic(form, x, random, saturate), seed=SEED + 6, i=x, random=random)


def test_parameters_are_checked():
    for bad in (16, 33, "24"):
        with pytest.raises(ValueError, match="random_bits must be an integer from 24 to 32"):
            FloatNarrow(random_bits=bad)
    for bad in ((), (1,)):
        with pytest.raises(ValueError, match="formats must be some of NarrowFormat"):
            FloatNarrow(formats=bad)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("form", ALL)
def test_nearest_of_every_code(combinational, form, part):
    """All 2^32, in eight parts, saturating and not: every input that rounding to nearest has."""
    for high in range(part << 5, (part + 1) << 5):
        x = np.arange(high << 24, (high + 1) << 24, dtype=np.uint32)
        for saturate in (0, 1):
            got = narrow(combinational, form, x, saturate=saturate)
            assert_same(got, nearest(form, x, saturate), seed=f"saturate {saturate}", i=x)
