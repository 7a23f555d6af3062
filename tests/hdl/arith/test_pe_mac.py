"""The multiplier of a processing element, and chains of rows made of it and the adder."""

import ml_dtypes
import numpy as np
import pytest

from golden.arith import float32, formats, matmul
from golden.arith.bfloat16 import narrow, widen
from hdl.arith.operand import Operand
from hdl.arith.pe_mac import PeMultiply
from verif import softfloat
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.mac import Bf16Mac, Bf16Product
from verif.stage_sweep import StageSweep
from verif.vectors import BF16, corner_pairs, product_pairs, random_codes

SEED = 33
COUNT = 200_000
NIGHTLY_COUNT = 4_000_000
SOFTFLOAT_COUNT = 1_000_000
MOST_STAGES = 4
MINUS_ZERO = 0x80000000


def golden(a, b):
    return float32.multiply(widen(a), widen(b)).view(np.uint32)


@pytest.fixture(scope="module")
def product():
    return compile_unit(Bf16Product())


@pytest.fixture(scope="module")
def mac():
    return compile_unit(Bf16Mac(multiply_stages=2, add_stages=4))


def column(mac, stationary, moving, active=None):
    """The tile of a K x M array: row by row, all outputs of a row streamed through one unit."""
    (k, m), n = stationary.shape, moving.shape[1]
    active = np.ones(k, np.uint32) if active is None else active
    partial = np.zeros(m * n, np.uint32)
    for row in range(k):
        partial = mac.stream(
            a=np.repeat(stationary[row], n),
            b=np.tile(moving[row], m),
            c=partial,
            active=active[row],
        ).o
    return partial.reshape(m, n)


def chain(stationary, moving):
    return matmul.chain(*(matmul.operand(x, formats.BF16) for x in (stationary, moving)))


def codes_of(tile):
    return np.ascontiguousarray(tile).view(np.uint32)


@pytest.mark.parametrize("stages", [0, 2, 4])
def test_products_equal_golden(stages):
    a, b = product_pairs(BF16, np.random.default_rng(SEED + stages), COUNT)
    unit = compile_unit(Bf16Product(stages=stages))
    got = unit.stream(a=a, b=b, active=1).o
    assert_same(got, golden(a, b), seed=SEED + stages, a=a, b=b)


def test_corner_pairs_equal_softfloat(product):
    a, b = corner_pairs(BF16)
    wide = [x.astype(np.uint32) << 16 for x in (a, b)]
    assert_same(product.stream(a=a, b=b, active=1).o, softfloat.multiply(*wide), a=a, b=b)


def operands(rng, count):
    """Packed operands of any format: all significands, exponents of FP32 halves included."""
    sign = rng.integers(0, 2, count)
    exponent = rng.integers(-149, 128, count)
    significand = rng.integers(1 << 11, 1 << 12, count)
    significand[rng.random(count) < 0.1] = (1 << 12) - 1
    layout = Operand.as_shape()
    place = {name: field.offset for name, field in layout}
    packed = (
        (sign << place["sign"])
        | ((exponent & 0x3FF) << place["exponent"])
        | (significand << place["significand"])
    )
    value = np.ldexp((1 - 2 * sign) * significand.astype(np.float64), exponent - 11)
    return packed.astype(np.uint32), value


def test_operands_of_twelve_bits_at_every_number_of_stages():
    """Wider than BF16: the product fills all 24 bits and is exact, flushed or infinite."""
    sweep = compile_unit(StageSweep(PeMultiply, most_stages=MOST_STAGES))
    rng = np.random.default_rng(SEED)
    a, x = operands(rng, COUNT)
    b, y = operands(rng, COUNT)
    exact = x * y
    expected = np.where(np.abs(exact) < 2.0**-126, np.copysign(0, exact), exact)
    with np.errstate(over="ignore"):
        expected = expected.astype(np.float32)
    finite = np.isfinite(expected) & (expected != 0)
    assert (expected[finite].astype(np.float64) == exact[finite]).all()
    results = sweep.stream(a=a, b=b, active=1)
    for stages in range(MOST_STAGES + 1):
        got = getattr(results, f"o_{stages}")
        assert_same(got, codes_of(expected), seed=SEED, a=a, b=b)


def test_an_unused_row_gives_minus_zero(product):
    rng = np.random.default_rng(SEED)
    corner = corner_pairs(BF16)
    a, b = (np.concatenate([x, random_codes(BF16, rng, 10_000)]) for x in corner)
    active = rng.integers(0, 2, len(a), dtype=np.uint32)
    expected = np.where(active == 1, golden(a, b), np.uint32(MINUS_ZERO))
    assert_same(product.stream(a=a, b=b, active=active).o, expected, seed=SEED, a=a, b=b)


def test_column_equals_golden_chain(mac):
    rng = np.random.default_rng(SEED)
    stationary, moving = (narrow(rng.standard_normal((128, n), np.float32)) for n in (30, 50))
    expected = codes_of(chain(stationary, moving))
    assert_same(column(mac, stationary, moving), expected, seed=SEED)


def test_column_of_specials_equals_golden_chain(mac):
    rng = np.random.default_rng(SEED)
    stationary, moving = (random_codes(BF16, rng, 5 * n).reshape(5, n) for n in (100, 200))
    expected = codes_of(chain(stationary, moving))
    assert_same(column(mac, stationary, moving), expected, seed=SEED)


def cancelling(rng, count):
    """Operands of `count` dot products, shape [128, count]: large partial sums that cancel.

    The second half takes away what the first half added, in another order; or all rows are mixed.
    A tenth of the dot products has products on both sides of 2^-126.
    """
    scale = 2.0 ** rng.integers(-20, 21, (64, 1)) * np.where(rng.random(count) < 0.1, 2.0**-118, 1)
    half = narrow(rng.standard_normal((64, count), np.float32) * scale.astype(np.float32))
    other = narrow(rng.standard_normal((64, count), np.float32))
    order = rng.permutation(64)
    rows = rng.permutation(128) if rng.random() < 0.5 else np.arange(128)
    return (
        np.concatenate([half, half[order] ^ 0x8000])[rows],
        np.concatenate([other, other[order]])[rows],
    )


def check_cancellation(mac, count, seed):
    """The unit, the golden model and the definition in float32 of numpy: every bit of every sum."""
    a, b = cancelling(np.random.default_rng(seed), count)
    partial = np.zeros(count, np.uint32)
    golden_sum = expected = np.zeros(count, np.float32)
    flushed = 0
    for row_a, row_b in zip(a, b, strict=True):
        partial = mac.stream(a=row_a, b=row_b, c=partial, active=1).o
        golden_sum = float32.add(golden_sum, float32.multiply(widen(row_a), widen(row_b)))
        x, y = row_a.view(ml_dtypes.bfloat16), row_b.view(ml_dtypes.bfloat16)
        product = x.astype(np.float32) * y.astype(np.float32)
        tiny = np.abs(product) < np.float32(2.0**-126)
        expected = expected + np.where(tiny, np.copysign(np.float32(0), product), product)
        flushed += int((tiny & (product != 0)).sum())
    assert (expected != 0).mean() > 0.5, "nothing but zeros: the chains do not test the rounding"
    assert flushed > count, "hardly any product is flushed"
    assert_same(partial, codes_of(expected), seed=seed)
    assert_same(codes_of(golden_sum), codes_of(expected), seed=seed)


def test_long_cancellation_chains(mac):
    check_cancellation(mac, 4000, SEED)


def test_padding_rows_leak_nothing(mac):
    """Rows not in use hold anything, NaN and infinity included, and do not turn -0 into +0."""
    rng = np.random.default_rng(SEED)
    active = (rng.random(24) < 0.5).astype(np.uint32)
    stationary, moving = (random_codes(BF16, rng, 24 * n).reshape(24, n) for n in (40, 40))
    used = active == 1
    ordinary = [narrow(rng.standard_normal((24, 40)).astype(np.float32)) for _ in range(2)]
    stationary[used], moving[used] = ordinary[0][used], ordinary[1][used]
    stationary[~used, 0] = 0x7FC1
    expected = codes_of(chain(stationary[used], moving[used]))
    assert_same(column(mac, stationary, moving, active), expected, seed=SEED)


def test_four_by_four_of_1_195(mac):
    """Partial sums cut to the width of BF16 fail on this one."""
    operand = np.full((4, 4), 0x3F99, np.uint16)
    assert_same(column(mac, operand, operand), np.full((4, 4), 0x40B6E200, np.uint32))


def test_factorisations_of_one_product_agree(product):
    a, b = np.array([[0x0001, 0x0700, 0x4980], [0x4980, 0x3F80, 0x0001]])
    assert_same(product.stream(a=a, b=b, active=1).o, [0x07000000] * 3, a=a, b=b)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_ten_million_cancellation_chains(mac, part):
    """A million dot products of 128 in each part."""
    for step in range(20):
        check_cancellation(mac, 50_000, 1000 * part + step)


@pytest.mark.nightly
def test_products_equal_golden_at_length(product):
    a, b = product_pairs(BF16, np.random.default_rng(SEED), NIGHTLY_COUNT)
    assert_same(product.stream(a=a, b=b, active=1).o, golden(a, b), seed=SEED, a=a, b=b)


@pytest.mark.nightly
def test_products_equal_softfloat_at_length(product):
    a, b = product_pairs(BF16, np.random.default_rng(SEED + 1), SOFTFLOAT_COUNT)
    expected = softfloat.multiply(*(x.astype(np.uint32) << 16 for x in (a, b)))
    assert_same(product.stream(a=a, b=b, active=1).o, expected, seed=SEED + 1, a=a, b=b)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(16))
def test_every_product(product, part):
    """All 2^32, in sixteen parts."""
    every = np.arange(1 << 16, dtype=np.uint16)
    rows = 64
    b = np.tile(every, rows)
    for first in range(part << 12, (part + 1) << 12, rows):
        a = np.repeat(every[first : first + rows], 1 << 16)
        assert_same(product.stream(a=a, b=b, active=1).o, golden(a, b), a=a, b=b)
