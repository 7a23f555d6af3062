"""The golden tile product of every pair of formats and of the halves of FP32.

Numbers are widened here by ml_dtypes and numpy, chains are float32 loops or SoftFloat.
"""

import itertools

import numpy as np
import pytest

from golden.arith import formats, matmul
from isa.fields import Part
from verif import softfloat
from verif.equality import assert_same
from verif.tensor_formats import KINDS, NATIVE, kind_name, random_operand, value_of
from verif.vectors import FP32 as FP32_VECTORS
from verif.vectors import addition_pairs, corner_codes, random_codes, specials

SEED = 43
NAN = 0x7FC00000
PAIRS = list(itertools.product(KINDS, KINDS))


def pair_name(value):
    return "-".join(map(kind_name, value))


def codes_of(value):
    assert value.dtype == np.float32
    return np.ascontiguousarray(value).view(np.uint32)


def loop(a, b):
    """The definition, one output at a time in numpy's float32 scalars."""
    tile = np.zeros((a.shape[1], b.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for m, n in np.ndindex(tile.shape):
            acc = np.float32(0)
            for x, y in zip(a[:, m], b[:, n], strict=True):
                p = x * y
                acc = acc + (np.copysign(np.float32(0), p) if abs(p) < 2.0**-126 else p)
            tile[m, n] = acc
    return one_nan(codes_of(tile))


def one_nan(codes):
    return np.where((codes & 0x7FFFFFFF) > 0x7F800000, np.uint32(NAN), codes)


@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_operands_equal_an_independent_widening(kind):
    """Every code of the short formats, hard vectors of the long ones; one NaN."""
    form, part = kind
    if form.bits <= 16:
        codes = np.arange(1 << form.bits, dtype=form.dtype)
    else:
        rng = np.random.default_rng(SEED)
        codes = np.concatenate(
            [
                specials(FP32_VECTORS),
                corner_codes(FP32_VECTORS),
                random_codes(FP32_VECTORS, rng, 50_000),
                *addition_pairs(FP32_VECTORS, rng, 50_000),
            ]
        )
    expected = value_of(codes, kind)
    if form == formats.FP32:
        # A half that is zero has the sign of the whole.
        expected = np.copysign(expected, codes.view(np.float32))
    got = matmul.operand(codes, form, part)
    assert_same(codes_of(got), one_nan(codes_of(expected)), seed=SEED, codes=codes)


@pytest.mark.parametrize("pair", PAIRS, ids=pair_name)
def test_chains_of_every_pair_equal_float32_loops(pair):
    rng = np.random.default_rng([SEED, PAIRS.index(pair)])
    a, b = (random_operand(form, rng, (9, 12)) for form, _ in pair)
    tile = matmul.chain(*(matmul.operand(x, *kind) for x, kind in zip((a, b), pair, strict=True)))
    values = [value_of(x, kind) for x, kind in zip((a, b), pair, strict=True)]
    assert_same(codes_of(tile), loop(*values), seed=SEED)


@pytest.mark.parametrize("pair", PAIRS[:: len(PAIRS) // 12], ids=pair_name)
def test_sampled_chains_equal_softfloat(pair):
    rng = np.random.default_rng([SEED, 1, PAIRS.index(pair)])
    k, m, n = 12, 10, 10
    codes = [
        random_operand(form, rng, (k, size)) for (form, _), size in zip(pair, (m, n), strict=True)
    ]
    values = [value_of(x, kind) for x, kind in zip(codes, pair, strict=True)]
    accumulator = np.zeros(m * n, np.uint32)
    for a, b in zip(*map(codes_of, values), strict=True):
        accumulator = softfloat.add(accumulator, softfloat.multiply(np.repeat(a, n), np.tile(b, m)))
    tile = matmul.chain(*(matmul.operand(x, *kind) for x, kind in zip(codes, pair, strict=True)))
    assert_same(codes_of(tile), accumulator.reshape(m, n), seed=SEED)


@pytest.mark.parametrize("form", NATIVE, ids=lambda form: form.name)
def test_small_integers_are_exact(form):
    """Partial sums in other precisions or orders would show."""
    rng = np.random.default_rng(SEED)
    top = 1 << (form.fraction_bits + 1)
    limit = min(top, int(form.max_finite), 256)
    a, b = rng.integers(-limit, limit + 1, (2, 64, 20))
    codes = [x.astype(np.float32).astype(NATIVE[form]).view(form.dtype) for x in (a, b)]
    tile = matmul.chain(*(matmul.operand(x, form) for x in codes))
    exact = np.einsum("km,kn->mn", a, b)
    assert abs(exact).max() < 1 << 24
    assert_same(tile.astype(np.int64), exact, seed=SEED)


def test_e4m3fn_chains_are_exact():
    """Products are multiples of 2^-18: with small sums no step rounds."""
    form = formats.FP8_E4M3FN
    rng = np.random.default_rng(SEED)
    # Up to 2^-1: sums stay below 2^6 and fill the 24 bits.
    codes = [rng.integers(0, 0x30, (128, n), dtype=np.uint8) for n in (40, 50)]
    codes = [x | (rng.integers(0, 2, x.shape, dtype=np.uint8) << 7) for x in codes]
    a, b = (x.view(NATIVE[form]).astype(np.float64) for x in codes)
    exact = np.zeros((40, 50))
    for x, y in zip(a, b, strict=True):
        exact += x[:, None] * y[None, :]
    tile = matmul.chain(*(matmul.operand(x, form) for x in codes))
    assert (exact * 2.0**18 == np.rint(exact * 2.0**18)).all()
    assert (np.log2(np.abs(exact[exact != 0])) < 6).all()
    assert (tile.astype(np.float64) == exact).all()


def test_reversed_rows_differ():
    """Otherwise the order would not be tested."""
    rng = np.random.default_rng(SEED)
    codes = [rng.standard_normal((64, 16)).astype(np.float16).view(np.uint16) for _ in range(2)]
    a, b = (matmul.operand(x, formats.FP16) for x in codes)
    assert (matmul.chain(a, b) != matmul.chain(a[::-1], b[::-1])).mean() > 0.3


def four_passes(a, b, passes=None):
    total = np.zeros((a.shape[1], b.shape[1]), np.float32)
    h, f, low = Part.HIGH, Part.HIGH_FINITE, Part.LOW
    for part_a, part_b in passes or ((low, low), (low, f), (f, low), (h, h)):
        operands = matmul.operand(a, formats.FP32, part_a), matmul.operand(b, formats.FP32, part_b)
        total = matmul.accumulate(total, matmul.chain(*operands))
    return total


def test_four_passes_of_fp32_equal_a_plain_model_and_are_as_good_as_fp32():
    rng = np.random.default_rng(SEED)
    a, b = (rng.standard_normal((128, n)).astype(np.float32) for n in (24, 30))
    high = [(codes_of(x) & np.uint32(0xFFFFF000)).view(np.float32) for x in (a, b)]
    low = [x - h for x, h in zip((a, b), high, strict=True)]
    total = np.zeros((24, 30), np.float32)
    for x, y in ((low[0], low[1]), (low[0], high[1]), (high[0], low[1]), (high[0], high[1])):
        tile = np.zeros_like(total)
        for row_x, row_y in zip(x, y, strict=True):
            tile = tile + np.multiply.outer(row_x, row_y)
        total = total + tile
    got = four_passes(codes_of(a), codes_of(b))
    assert_same(codes_of(got), codes_of(total), seed=SEED)

    exact = np.einsum("km,kn->mn", a.astype(np.float64), b.astype(np.float64))
    size = np.einsum("km,kn->mn", np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
    error = (got - exact) / size
    native = np.zeros_like(total)
    for row_a, row_b in zip(a, b, strict=True):
        native = native + np.multiply.outer(row_a, row_b)
    # As good as a chain of native FP32 products, and far below an ulp of the sum of magnitudes.
    assert np.abs(error).max() < 2.0**-22
    assert np.sqrt((error**2).mean()) < 1.2 * np.sqrt((((native - exact) / size) ** 2).mean())


def test_infinity_and_nan_count_in_one_pass_alone():
    """inf * 1.5 = inf, inf * 0 = NaN, NaN * x = NaN; a half never meets inf as a zero."""
    codes = {
        "inf": 0x7F800000,
        "-inf": 0xFF800000,
        "nan": 0x7F800001,
        "1.5": 0x3FC00000,
        "0": 0,
        "-1+": 0xBF800001,
        "max": 0x7F7FFFFF,
    }
    a = np.array([[codes[x] for x in ("inf", "-inf", "nan")]], np.uint32)
    b = np.array([[codes[x] for x in ("1.5", "0", "-1+", "max", "inf", "nan")]], np.uint32)
    inf, ninf = 0x7F800000, 0xFF800000
    expected = [
        [inf, NAN, ninf, inf, inf, NAN],
        [ninf, NAN, inf, ninf, ninf, NAN],
        [NAN] * 6,
    ]
    assert_same(codes_of(four_passes(a, b)), np.array(expected, np.uint32))
    for part in (Part.LOW, Part.HIGH_FINITE):
        assert_same(
            codes_of(matmul.operand(a, formats.FP32, part)),
            np.array([[0, 0x80000000, 0]], np.uint32),
        )


def test_two_passes_suffice_for_ones_and_zeros():
    """A stationary of 0 and 1 has no low half: HIGH * LOW and HIGH * HIGH are all."""
    rng = np.random.default_rng(SEED)
    a = rng.integers(0, 2, (64, 16)).astype(np.float32)
    b = rng.standard_normal((64, 20)).astype(np.float32)
    two = ((Part.HIGH_FINITE, Part.LOW), (Part.HIGH, Part.HIGH))
    got = four_passes(codes_of(a), codes_of(b), two)
    assert_same(codes_of(got), codes_of(four_passes(codes_of(a), codes_of(b))), seed=SEED)
    # A selection comes out as it is.
    one = np.eye(64, dtype=np.float32)[:, :8]
    assert_same(codes_of(four_passes(codes_of(one), codes_of(b), two)), codes_of(b[:8]), seed=SEED)


@pytest.mark.parametrize("code", [0x7F800001, 0xFF800400, 0x7F801FFF])
def test_nan_whose_payload_lies_in_the_bits_cut_off(code):
    for form, part in ((formats.TF32, Part.FULL), (formats.FP32, Part.HIGH)):
        assert_same(codes_of(matmul.operand(np.array([code], np.uint32), form, part)), [NAN])


def test_growing_length_keeps_the_error_of_float32():
    """Relative to the sum of magnitudes the error of random chains does not grow with their length,
    as that of float32 does not.
    """
    rng = np.random.default_rng(SEED)
    for k in (64, 1024, 16384):
        codes = [rng.standard_normal((k, 6)).astype(np.float16).view(np.uint16) for _ in range(2)]
        a, b = (x.view(np.float16).astype(np.float64) for x in codes)
        exact = np.einsum("km,kn->mn", a, b)
        tile = np.zeros((6, 6), np.float32)
        for start in range(0, k, 128):  # As the engine: tiles of 128 rows into one PSUM word.
            rows = slice(start, start + 128)
            part = matmul.chain(*(matmul.operand(x[rows], formats.FP16) for x in codes))
            tile = matmul.accumulate(tile, part)
        size = np.einsum("km,kn->mn", np.abs(a), np.abs(b))
        assert 0 < (np.abs(tile - exact) / size).max() < 2.0**-23, k


@pytest.mark.parametrize("form", NATIVE, ids=lambda form: form.name)
def test_largest_magnitudes_over_many_rows(form):
    """Sums wider than any operand format: K products of the largest number."""
    codes = np.full((128, 2), form.max_code, form.dtype)
    tile = matmul.chain(*(matmul.operand(x, form) for x in (codes, codes)))
    acc, value = np.float32(0), np.float32(form.max_finite)
    with np.errstate(all="ignore"):
        for _ in range(128):
            acc = acc + value * value
    assert_same(codes_of(tile), np.full((2, 2), acc.view(np.uint32)))


@pytest.mark.parametrize("exponent", [24, 25, 26, 60])
def test_a_small_product_is_never_dropped_too_early(exponent):
    """1 - 2^-24 is exact, 1 - 2^-25 ties to 1, and just above the tie it is 1 - 2^-24."""
    small = np.array([[1], [-(2.0 ** -(exponent // 2))]], np.float32)
    other = np.array([[1], [2.0 ** -(exponent - exponent // 2)]], np.float32)
    codes = [(codes_of(x) >> 16).astype(np.uint16) for x in (small, other)]
    tile = matmul.chain(*(matmul.operand(x, formats.BF16) for x in codes))
    assert_same(codes_of(tile), [[0x3F7FFFFF if exponent == 24 else 0x3F800000]])
    codes[0][1, 0] += 1  # A little more than the power of two.
    tile = matmul.chain(*(matmul.operand(x, formats.BF16) for x in codes))
    assert_same(codes_of(tile), [[0x3F7FFFFF if exponent <= 25 else 0x3F800000]])
