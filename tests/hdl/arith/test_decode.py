# amaranth: UnusedElaboratable=no
"""The decoder of all formats: every code of the short ones, hard vectors of the long ones."""

import ml_dtypes
import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.arith import float32
from hdl.arith.decode import FloatDecode, OperandFormat
from hdl.arith.operand import SIGNIFICAND_BITS, Operand
from hdl.arith.pe_mac import PeMultiply
from isa.dtypes import DType
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, addition_pairs, corner_codes, random_codes, specials

SEED = 71
COUNT = 1_000_000
F = OperandFormat
BYTES = {
    F.FP8_E5M2: ml_dtypes.float8_e5m2,
    F.FP8_E4M3: ml_dtypes.float8_e4m3,
    F.FP8_E3M4: ml_dtypes.float8_e3m4,
    F.FP8_E4M3FN: ml_dtypes.float8_e4m3fn,
}
SHORT = {F.BF16: ml_dtypes.bfloat16, F.FP16: np.float16, **BYTES}
HALVES = (F.FP32_HIGH, F.FP32_HIGH_FINITE, F.FP32_LOW)
PLACE = {
    name: (field.offset, len(field.shape) if hasattr(field.shape, "__len__") else field.width)
    for name, field in Operand.as_shape()
}


def fields(packed):
    """The fields of packed operands as int64 arrays, cut along the layout itself."""
    cut = {
        name: (packed.astype(np.int64) >> offset) & ((1 << width) - 1)
        for name, (offset, width) in PLACE.items()
    }
    top = 1 << (PLACE["exponent"][1] - 1)
    return {**cut, "exponent": (cut["exponent"] ^ top) - top}


def value_of(packed):
    """float64 values of packed operands."""
    f = fields(packed)
    assert (f["nan"] + f["inf"] + f["zero"] <= 1).all(), "more than one flag"
    number = f["nan"] + f["inf"] + f["zero"] == 0
    assert (f["significand"][number] >> (SIGNIFICAND_BITS - 1) == 1).all(), "not normalised"
    value = np.ldexp(f["significand"].astype(np.float64), f["exponent"] - (SIGNIFICAND_BITS - 1))
    value = np.select([f["nan"] == 1, f["inf"] == 1, f["zero"] == 1], [np.nan, np.inf, 0], value)
    return np.where(f["sign"] == 1, -value, value)


def bits_of(x):
    """Bit patterns of float64 values, one NaN, so that zeros are compared with their signs."""
    return np.where(np.isnan(x), np.nan, x).astype(np.float64).view(np.uint64)


def check(packed, expected, raw):
    assert_same(bits_of(value_of(packed)), bits_of(expected), seed=SEED, i=raw)


def values(form, raw):
    """float64 values of raw codes of a short format by ml_dtypes or numpy."""
    dtype = np.dtype(SHORT[form])
    with np.errstate(invalid="ignore"):  # Signalling NaNs.
        return raw.astype(f"u{dtype.itemsize}").view(dtype).astype(np.float64)


def widened(raw):
    """float64 values of FP32 codes."""
    with np.errstate(invalid="ignore"):  # Signalling NaNs.
        return raw.view(np.float32).astype(np.float64)


def codes(form):
    return np.arange(1 << (8 * np.dtype(SHORT[form]).itemsize), dtype=np.uint32)


def words():
    """FP32 codes: special ones, those of both streams, and uniform ones."""
    rng = np.random.default_rng(SEED)
    near = addition_pairs(FP32, rng, COUNT // 4)
    uniform = rng.integers(0, 1 << 32, COUNT // 4, dtype=np.uint32)
    parts = [specials(FP32), corner_codes(FP32), *near, random_codes(FP32, rng, COUNT // 2)]
    subnormal = uniform[: COUNT // 8] & 0x807FFFFF
    sparse = uniform[COUNT // 8 :] & rng.integers(0, 1 << 32, COUNT // 8, dtype=np.uint32)
    return np.concatenate([*parts, uniform, subnormal, sparse])


@pytest.fixture(scope="module", params=[0, 2])
def decoder(request):
    return compile_unit(FloatDecode(stages=request.param))


@pytest.fixture(scope="module")
def combinational():
    return compile_unit(FloatDecode())


def test_codes_are_those_of_the_instructions():
    for form in (*SHORT, F.TF32):
        assert form.value == DType[form.name]
    assert F.FP32_HIGH.value == DType.FP32
    assert [form.value & 7 for form in HALVES[:2]] == [DType.FP32] * 2


@pytest.mark.parametrize("form", SHORT)
def test_every_code(decoder, form):
    raw = codes(form)
    check(decoder.stream(i=raw, format=form.value).o, values(form, raw), raw)


@pytest.mark.parametrize("form", SHORT)
def test_what_lies_above_the_format_is_ignored(combinational, form):
    raw = codes(form)
    above = np.random.default_rng(SEED).integers(0, 1 << 32, raw.size, dtype=np.uint32)
    above &= ~np.uint32(raw.size - 1)
    check(combinational.stream(i=raw | above, format=form.value).o, values(form, raw), raw)


@pytest.mark.parametrize("form", SHORT)
def test_every_code_at_an_edge_of_sixteen_bits(form):
    raw = codes(form)
    unit = compile_unit(FloatDecode(width=16, stages=1))
    check(unit.stream(i=raw, format=form.value).o, values(form, raw), raw)


def test_formats_may_change_every_cycle(decoder):
    rng = np.random.default_rng(SEED)
    raw = rng.integers(0, 1 << 8, 100_000, dtype=np.uint32)
    forms = list(BYTES)
    chosen = rng.integers(0, len(forms), raw.size)
    expected = np.choose(chosen, [values(form, raw) for form in forms])
    form = np.array([form.value for form in forms])[chosen]
    check(decoder.stream(i=raw, format=form).o, expected, raw)


def test_tf32(decoder):
    raw = words()
    whole, cut = widened(raw), widened(raw & ~np.uint32(0x1FFF))
    check(decoder.stream(i=raw, format=F.TF32.value).o, np.where(np.isnan(whole), whole, cut), raw)


def test_fp32_halves(decoder):
    raw = words()
    whole, cut = widened(raw), widened(raw & ~np.uint32(0xFFF))
    finite = np.isfinite(whole)
    high, high_finite, low = (
        value_of(decoder.stream(i=raw, format=form.value).o) for form in HALVES
    )
    expected = np.where(finite, cut, whole)
    assert_same(bits_of(high), bits_of(expected), seed=SEED, i=raw)
    expected = np.where(finite, cut, np.copysign(0, whole))
    assert_same(bits_of(high_finite), bits_of(expected), seed=SEED, i=raw)
    with np.errstate(invalid="ignore"):
        expected = np.copysign(np.where(finite, whole - cut, 0), whole)
    assert_same(bits_of(low), bits_of(expected), seed=SEED, i=raw)
    assert (high[finite] + low[finite] == whole[finite]).all()


@pytest.mark.parametrize("code", [0x7F800001, 0xFF800400, 0x7F801FFF])
def test_nan_whose_payload_lies_in_the_bits_cut_off(combinational, code):
    """Cutting the low bits before the test for NaN makes an infinity of these."""
    for form in (F.TF32, F.FP32_HIGH):
        got = fields(combinational.stream(i=[code], format=form.value).o)
        assert (got["nan"][0], got["inf"][0]) == (1, 0), form


class Product(wiring.Component):
    """o = the product of two raw values as a processing element forms it."""

    def __init__(self):
        self.latency = 0
        pair = {"a": In(32), "b": In(32), "format_a": In(F), "format_b": In(F)}
        super().__init__({**pair, "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.decode_a = decode_a = FloatDecode()
        m.submodules.decode_b = decode_b = FloatDecode()
        m.submodules.multiply = multiply = PeMultiply()
        m.d.comb += [
            decode_a.i.eq(self.a),
            decode_a.format.eq(self.format_a),
            decode_b.i.eq(self.b),
            decode_b.format.eq(self.format_b),
            multiply.a.eq(decode_a.o),
            multiply.b.eq(decode_b.o),
            multiply.active.eq(1),
            self.o.eq(multiply.o),
        ]
        return m


@pytest.fixture(scope="module")
def product():
    return compile_unit(Product())


def check_products(product, form_a, form_b, a, b, x, y):
    """Native float32, flushed below 2^-126, one NaN."""
    with np.errstate(all="ignore"):
        exact = x.astype(np.float32) * y.astype(np.float32)
    expected = np.where(np.abs(exact) < 2.0**-126, np.copysign(np.float32(0), exact), exact)
    expected = np.where(np.isnan(expected), np.float32(np.nan), expected).astype(np.float32)
    expected = expected.view(np.uint32)
    got = product.stream(a=a, b=b, format_a=form_a.value, format_b=form_b.value).o
    assert_same(got, expected, seed=SEED, a=a, b=b)


@pytest.mark.parametrize("form_b", BYTES)
@pytest.mark.parametrize("form_a", BYTES)
def test_every_product_of_two_bytes(product, form_a, form_b):
    a, b = (x.ravel() for x in np.meshgrid(codes(form_a), codes(form_b)))
    check_products(product, form_a, form_b, a, b, values(form_a, a), values(form_b, b))


@pytest.mark.parametrize("form_a", [F.BF16, F.FP16])
@pytest.mark.parametrize("form_b", SHORT)
def test_products_with_formats_of_sixteen_bits(product, form_a, form_b):
    a = np.tile(codes(form_a), 4)
    b = np.random.default_rng(SEED).integers(0, codes(form_b).size, a.size, dtype=np.uint32)
    check_products(product, form_a, form_b, a, b, values(form_a, a), values(form_b, b))


def test_four_passes_of_infinity_times_one_and_a_half_are_infinite(product):
    """Were a half of infinity to meet the zero low half of 1.5, the sum would be NaN."""
    total = np.zeros(1, np.float32)
    passes = [(F.FP32_LOW, F.FP32_LOW), (F.FP32_LOW, F.FP32_HIGH_FINITE)]
    passes += [(F.FP32_HIGH_FINITE, F.FP32_LOW), (F.FP32_HIGH, F.FP32_HIGH)]
    for form_a, form_b in passes:
        got = product.stream(
            a=[0xFF800000], b=[0x3FC00000], format_a=form_a.value, format_b=form_b.value
        ).o
        total = float32.add(total, got.view(np.float32))
    assert total.view(np.uint32)[0] == 0xFF800000


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="width must be 16 or 32"):
        FloatDecode(width=8)
