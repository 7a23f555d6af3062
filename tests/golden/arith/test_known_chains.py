"""Tiles on which the multiply-accumulate of others went wrong, by exact integers and by hand."""

import numpy as np
import pytest

from golden.arith import formats, matmul
from golden.arith.convert import narrow
from isa.fields import Part
from verif.equality import assert_same
from verif.tensor_formats import FP8, KINDS, NATIVE, kind_name

SEED = 47
NAN, INF = 0x7FC00000, 0x7F800000
LAYOUT = {
    "bf16": (8, 7),
    "fp16": (5, 10),
    "tf32": (8, 10),
    "fp32": (8, 23),
    "fp8_e5m2": (5, 2),
    "fp8_e4m3": (4, 3),
    "fp8_e3m4": (3, 4),
    "fp8_e4m3fn": (4, 3),
}
"""Bits of exponent and fraction."""
WIDE_KINDS = [
    ((formats.BF16, Part.FULL), 8),
    ((formats.TF32, Part.FULL), 11),
    ((formats.FP32, Part.HIGH), 12),
]
"""Kinds with the exponents of FP32, and the bits of their significands."""


def codes_of(value):
    assert value.dtype == np.float32
    return np.ascontiguousarray(value).view(np.uint32)


def encode(values, form):
    """Codes of numbers that the format has."""
    wide = np.asarray(values, np.float32)
    if form.bits == 32:
        return wide.view(np.uint32)
    code = wide.astype(NATIVE[form])
    assert (code.astype(np.float32) == wide).all()
    return code.view(form.dtype)


def tile_of(kinds, a, b):
    """The tile of codes [K, M] and [K, N]; of pairs [K, M, 2] and [K, N, 2]."""
    operands = [matmul.operand(x, *kind) for x, kind in zip((a, b), kinds, strict=True)]
    return (matmul.chain_double_row if a.ndim == 3 else matmul.chain)(*operands)


def subnormals(kind):
    """(codes, significands): every subnormal that the kind can tell apart, both signs; the value
    is the significand times the least subnormal.
    """
    form, part = kind
    exponent_bits, fraction_bits = LAYOUT[form.name]
    low, high = 0, fraction_bits
    if form is formats.FP32:
        low, high = (0, 12) if part == Part.LOW else (12, 23)
    significand = np.arange(1, 1 << (high - low)) << low
    code = significand << (form.bits - 1 - exponent_bits - fraction_bits)
    return (
        np.concatenate([code, code | 1 << (form.bits - 1)]).astype(form.dtype),
        np.concatenate([significand, -significand]),
    )


def exact_products(kind, significands, others):
    """float32 codes of significand * least subnormal * other, -0 and all below 2^-126 as +0."""
    exponent_bits, fraction_bits = LAYOUT[kind[0].name]
    least = 2 - (1 << (exponent_bits - 1)) - fraction_bits
    found = np.zeros((significands.size, others.size), np.float32)
    for n, other in enumerate(others):
        numerator, denominator = float(other).as_integer_ratio()
        shift = least - (denominator.bit_length() - 1)
        for m, significand in enumerate(significands.tolist()):
            integer = significand * numerator
            if abs(integer).bit_length() + shift > -126:  # at least 2^-126
                found[m, n] = np.ldexp(float(integer), shift)
                assert float(found[m, n]) == np.ldexp(float(integer), shift)
    return codes_of(found)


@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_subnormal_operands_count_in_full(kind):
    """Multipliers of others took subnormal operands for zero, scaled them by the wrong exponent or
    lost the carry out of an all-ones one. Here only what is below 2^-126 itself is zero.
    """
    codes, significands = subnormals(kind)
    others = [1, 2, -0.5, 255 / 128, 2.0**23, 255 * 2.0**-8, -(2.0**100), 3 * 2.0**9, 2.0**-110]
    others = np.array(others, np.float32)
    moving = encode(others, formats.BF16)
    expected = exact_products(kind, significands, others)
    assert (expected != 0).any()
    bf16 = (formats.BF16, Part.FULL)
    tile = tile_of((kind, bf16), codes[None], moving[None])
    assert_same(codes_of(tile), expected, a=codes[:, None], b=moving[None])
    tile = tile_of((bf16, kind), moving[None], codes[None])
    assert_same(codes_of(tile), expected.T, a=moving[:, None], b=codes[None])


@pytest.mark.parametrize(
    ("form", "a", "b", "product"),
    [
        (formats.BF16, 0x007F, 0x4000, 0x00FE0000),  # the all-ones subnormal, twice, is normal
        (formats.BF16, 0x807F, 0x4000, 0x80FE0000),
        (formats.BF16, 0x00FF, 0x3F00, 0x00000000),  # half of all ones is below the normals
        (formats.BF16, 0x0001, 0x3F80, 0x00000000),  # exact, and flushed all the same
        (formats.BF16, 0x0080, 0x3F80, 0x00800000),
        (formats.FP16, 0xE3FF, 0x0001, 0xB87FE000),  # a tie to the least normal of FP16
        (formats.FP16, 0x03FF, 0x4000, 0x38FFC000),
        (formats.FP8_E4M3FN, 0x07, 0x40, 0x3CE00000),  # 7/8 * 2^-6 * 2
        (formats.FP8_E4M3, 0x01, 0x38, 0x3B000000),
        (formats.FP8_E3M4, 0x0F, 0x40, 0x3EF00000),  # 15/16 * 2^-2 * 2
        (formats.FP8_E5M2, 0x83, 0x3C, 0xB8400000),
    ],
)
def test_known_products_of_subnormals(form, a, b, product):
    """Tables and decoders of others with a hard-coded exponent had all subnormals wrong."""
    kind = (form, Part.FULL)
    for x, y in ((a, b), (b, a)):
        operands = (np.array([[code]], form.dtype) for code in (x, y))
        assert_same(codes_of(tile_of((kind, kind), *operands)), [[product]], a=x, b=y)
    if product == 0xB87FE000:
        assert_same(narrow(np.array([product], np.uint32).view(np.float32), form), [0x8400])


@pytest.mark.parametrize(("kind", "bits"), WIDE_KINDS, ids=["bf16", "tf32", "fp32_high"])
def test_partial_sums_underflow_gradually(kind, bits):
    """A subtractor gave twice a subnormal difference, another lost the carry back to the normals.

    (2^n - 1)^2 - (2^(n - 1) - 1) 2^(n + 1) = 1, both products in the least normal binade.
    """
    scale = 1 - 126 - 2 * bits
    first, second = scale // 2, scale - scale // 2
    a = np.ldexp([(1 << bits) - 1, 1 - (1 << (bits - 1))], first)
    b = np.ldexp([(1 << bits) - 1, 1 << (bits + 1)], second)
    one = 1 << (24 - 2 * bits)
    codes = [encode(x[:, None], kind[0]) for x in (a, b)]
    tile = tile_of((kind, kind), *codes)
    assert_same(codes_of(tile), [[one]])
    for old, total in (
        (0x00800000 - one, 0x00800000),
        (0x80800000, 0x80800000 - one),
        (0x80000000 | one, 0x00000000),
        (one, 2 * one),
    ):
        psum = np.array([[old]], np.uint32).view(np.float32)
        assert_same(codes_of(matmul.accumulate(psum, tile)), [[total]], old=old)


def wide_sum(form):
    """Powers of two (big, small, small) as codes: big^2 + small * small' takes the 24 bits of FP32,
    or as many as the format can reach.
    """
    top = min(int(np.floor(np.log2(form.max_finite))), 60)
    least = form.min_exponent - form.fraction_bits
    low = max(2 * top - 23, 2 * least)
    powers = np.ldexp(1.0, [top, low // 2, low - low // 2])
    return encode(powers, form), 2.0 ** (2 * top) + 2.0**low


@pytest.mark.parametrize("form", NATIVE, ids=lambda form: form.name)
def test_no_sum_is_narrower_than_fp32(form):
    """Partial sums of the width of an operand, or of BF16, hid behind small random numbers: here
    every way that a sum takes has to hold a large and a small product together.
    """
    (big, small, other), exact = wide_sum(form)
    zero, kind = form.dtype.type(0), (form, Part.FULL)

    def tile(a, b):
        return tile_of((kind, kind), np.array(a, form.dtype), np.array(b, form.dtype))

    expected = [[int(np.float32(exact).view(np.uint32))]]
    down_the_column = tile([[big], [small]], [[big], [other]])
    assert_same(codes_of(down_the_column), expected)
    assert float(down_the_column[0, 0]) == exact
    large, little = tile([[big]], [[big]]), tile([[small]], [[other]])
    assert_same(codes_of(matmul.accumulate(large, little)), expected)
    if form in FP8:
        assert_same(codes_of(tile([[[big, small]]], [[[big, other]]])), expected)
        rows = tile([[[big, zero]], [[zero, small]]], [[[big, zero]], [[zero, other]]])
        assert_same(codes_of(rows), expected)


def test_sums_beyond_the_largest_are_infinite():
    """Accumulators of others wrapped on dense layers.  Each product, 1.5 * 2^127, is finite."""
    kind = (formats.BF16, Part.FULL)
    a = np.array([[2.0**64]] * 3)
    b = 1.5 * 2.0**63 * np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    tile = tile_of((kind, kind), encode(a, formats.BF16), encode(b, formats.BF16))
    finite = 0x7F400000
    assert_same(codes_of(tile), [[INF, finite, 1 << 31 | INF]])
    again = matmul.accumulate(tile, tile)
    assert_same(codes_of(again), [[INF, INF, 1 << 31 | INF]])
    assert_same(codes_of(matmul.accumulate(again, -again)), [[NAN] * 3])


@pytest.mark.parametrize("form", FP8, ids=lambda form: form.name)
def test_small_integers_of_pairs_are_exact(form):
    """On silicon of others sums of small integers, some negative, were not exact."""
    rng = np.random.default_rng(SEED)
    limit = min(2 << form.fraction_bits, int(form.max_finite))
    a, b = (rng.integers(-limit, limit + 1, (64, n, 2)) for n in (12, 20))
    kind = (form, Part.FULL)
    tile = tile_of((kind, kind), encode(a, form), encode(b, form))
    exact = np.einsum("kmi,kni->mn", a, b)
    assert_same(tile.astype(np.int64), exact, seed=SEED)
    a, b = np.array([[[-1, 3]], [[8, 0]]]), np.array([[[1, 8]], [[4, 7]]])
    assert tile_of((kind, kind), encode(a, form), encode(b, form))[0, 0] == 55
