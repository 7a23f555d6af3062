"""The processing element behind its decoders: every pair of formats, double rows, transpose."""

import itertools

import numpy as np
import pytest

from golden.arith import float32, formats, matmul
from hdl.arith.decode import OperandFormat
from isa.fields import Part
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.pe_stream import PeStream
from verif.tensor_formats import FP8, KINDS, kind_name, operand_format, random_operand, value_of
from verif.vectors import FP32, random_codes

SEED = 57
COUNT = 30_000
PAIRS = list(itertools.product(KINDS, KINDS))
BYTE_PAIRS = list(itertools.product(FP8, FP8))


def codes_of(value):
    return np.ascontiguousarray(value).view(np.uint32)


@pytest.fixture(scope="module")
def double():
    """Of an array with double rows; it computes single ones too."""
    return compile_unit(PeStream(multiply_stages=1, add_stages=2, double_row=1))


@pytest.fixture(scope="module")
def single():
    return compile_unit(PeStream(multiply_stages=1, add_stages=2))


def stream(unit, a, b, c, kinds, *, transpose=0, pair=0, active=1):
    """kinds: of b, and of a unless the bits of a pass."""
    format_a = OperandFormat.RAW if transpose else operand_format(kinds[0])
    return unit.stream(
        a=a,
        b=b,
        c=c,
        format_a=format_a.value,
        format_b=operand_format(kinds[1]).value,
        transpose=transpose,
        pair=pair,
        active=active,
    ).o


def sums(rng, products):
    """Addends: any code, or one within a few binades of the product."""
    c = random_codes(FP32, rng, products.size)
    near = codes_of(products) + rng.integers(-(8 << 23), 8 << 23, c.size).astype(np.uint32)
    return np.where(rng.random(c.size) < 0.7, near ^ rng.integers(0, 2, c.size) << 31, c).astype(
        np.uint32
    )


def check_pair(unit, kinds, a, b, rng):
    x, y = (matmul.operand(codes, *kind) for codes, kind in zip((a, b), kinds, strict=True))
    product = float32.multiply(x, y)
    c = sums(rng, product)
    expected = float32.add(c.view(np.float32), product)
    assert_same(stream(unit, a, b, c, kinds), codes_of(expected), seed=SEED, a=a, b=b, c=c)


@pytest.mark.parametrize("kinds", PAIRS, ids=lambda kinds: "-".join(map(kind_name, kinds)))
def test_hard_vectors_of_every_pair_of_formats(single, kinds):
    rng = np.random.default_rng([SEED, PAIRS.index(kinds)])
    a, b = (random_operand(form, rng, COUNT) for form, _ in kinds)
    check_pair(single, kinds, a, b, rng)


@pytest.mark.parametrize("forms", BYTE_PAIRS, ids=lambda forms: "-".join(f.name for f in forms))
def test_every_product_of_two_bytes(single, forms):
    every = np.arange(256, dtype=np.uint8)
    a, b = np.repeat(every, 256), np.tile(every, 256)
    kinds = [(form, Part.FULL) for form in forms]
    check_pair(single, kinds, a, b, np.random.default_rng(SEED))


@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_subnormal_operands_count_in_full(single, kind):
    """Multipliers of others took subnormal operands for zero, scaled them by the wrong exponent or
    lost the carry out of an all-ones one.  All of them with both signs, on either side; numbers by
    ml_dtypes and float64.
    """
    form, part = kind
    low, high = form.padding, form.padding + form.fraction_bits
    if form is formats.FP32:
        low, high = (0, 12) if part == Part.LOW else (12, 23)
    fraction = np.arange(1, 1 << (high - low)) << low
    code = np.concatenate([fraction, fraction | form.sign]).astype(form.dtype)
    other = [1, 2, -0.5, 255 / 128, 2.0**23, 255 * 2.0**-8, -(2.0**100), 3 * 2.0**9, 2.0**-110]
    other = np.array(other, np.float32)
    exact = value_of(code, kind).astype(np.float64)[:, None] * other
    assert (exact != 0).all()
    expected = np.where(np.abs(exact) < 2.0**-126, 0, exact).astype(np.float32)
    assert ((expected == exact) | (expected == 0)).all()
    a = np.repeat(code, other.size).astype(np.uint32)
    b = np.tile(codes_of(other) >> 16, code.size)
    bf16 = (formats.BF16, Part.FULL)
    zero = np.zeros_like(a)
    want = codes_of(expected).ravel()
    assert_same(stream(single, a, b, zero, (kind, bf16)), want, a=a, b=b)
    assert_same(stream(single, b, a, zero, (bf16, kind)), want, a=b, b=a)


def double_vectors(rng, forms, count):
    """(pairs of a, of b, their term as float32)."""
    codes = rng.integers(0, 256, (2, count, 2), dtype=np.uint8)
    x, y = (matmul.operand(code, form) for code, form in zip(codes, forms, strict=True))
    products = float32.multiply(x, y)
    a, b = (code[:, 0].astype(np.uint32) | code[:, 1].astype(np.uint32) << 8 for code in codes)
    return a, b, float32.add(products[:, 0], products[:, 1])


@pytest.mark.parametrize("forms", BYTE_PAIRS, ids=lambda forms: "-".join(f.name for f in forms))
def test_double_rows(double, forms):
    rng = np.random.default_rng([SEED, BYTE_PAIRS.index(forms)])
    a, b, term = double_vectors(rng, forms, COUNT)
    c = sums(rng, term)
    got = stream(double, a, b, c, [(form, Part.FULL) for form in forms], pair=1)
    assert_same(got, codes_of(float32.add(c.view(np.float32), term)), seed=SEED, a=a, b=b, c=c)


@pytest.mark.parametrize("kinds", PAIRS[::7], ids=lambda kinds: "-".join(map(kind_name, kinds)))
def test_single_rows_of_a_double_array_give_the_same(double, single, kinds):
    """Whatever lies above the element."""
    rng = np.random.default_rng([SEED, PAIRS.index(kinds)])
    a, b = (random_operand(form, rng, COUNT) for form, _ in kinds)
    check_pair(double, kinds, a, b, rng)
    junk = [
        x
        | (
            rng.integers(0, 1 << 32, COUNT, dtype=np.uint32) << np.uint32(form.bits)
            if form.bits < 32
            else np.uint32(0)
        )
        for x, (form, _) in zip((a, b), kinds, strict=True)
    ]
    junk = [x.astype(np.uint32) for x in junk]
    c = random_codes(FP32, rng, COUNT)
    assert_same(stream(double, *junk, c, kinds), stream(single, a, b, c, kinds), seed=SEED)


@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_transpose_passes_every_code(single, double, kind):
    """NaN and infinity select as any number does, and a zero of either sign does not."""
    rng = np.random.default_rng(SEED)
    words = np.arange(1 << 16, dtype=np.uint32)
    b = random_operand(kind[0], rng, words.size)
    b[rng.random(words.size) < 0.2] = 0
    b[rng.random(words.size) < 0.1] = kind[0].sign
    y = matmul.operand(b, *kind)
    assert (y != 0).any()
    expected = np.where(y != 0, words, 0)
    above = words | rng.integers(0, 1 << 16, words.size, dtype=np.uint32) << np.uint32(16)
    other = rng.integers(0, 1 << 22, words.size, dtype=np.uint32)
    for unit, a in itertools.product((single, double), (words, above)):
        for c in (np.zeros_like(words), other):
            got = stream(unit, a, b, c, (None, kind), transpose=1)
            assert_same(got, expected + c, seed=SEED, a=a, b=b)


def test_unused_rows_leave_every_sum(single, double):
    """NaN and infinity among the operands, -0 and NaN among the sums, in every mode."""
    rng = np.random.default_rng(SEED)
    kinds = ((formats.BF16, Part.FULL),) * 2
    a, b = (random_operand(formats.BF16, rng, COUNT) for _ in range(2))
    c = codes_of(float32.canonicalise(random_codes(FP32, rng, COUNT).view(np.float32)))
    for transpose, pair in ((0, 0), (1, 0), (0, 1)):
        for unit in (single, double):
            got = stream(unit, a, b, c, kinds, transpose=transpose, pair=pair, active=0)
            assert_same(got, c, seed=SEED, a=a, b=b)
