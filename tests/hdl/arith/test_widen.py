# amaranth: UnusedElaboratable=no
"""Elements to FP32: every code of 8 and 16 bits, hard and random ones of 32."""

import numpy as np
import pytest

from hdl.arith.widen import Widen
from isa.dtypes import DType
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, random_codes, specials

SEED = 31
NAN = 0x7FC00000
SIGNED = (DType.INT8, DType.INT16, DType.INT32)
WORDS = [d for d in DType if d.itemsize == 4]


@pytest.fixture(scope="module", params=[0, 3])
def unit(request):
    return compile_unit(Widen(stages=request.param))


@pytest.fixture(scope="module")
def combinational():
    return compile_unit(Widen())


def extended(codes, dtype):
    """Element codes as the words that the unit gets."""
    if dtype in SIGNED:
        return codes.view(dtype.numpy).astype(np.int32).view(np.uint32)
    return codes.astype(np.uint32)


def expected(codes, dtype):
    """FP32 codes of the values by numpy and ml_dtypes; NaNs as the instruction set says."""
    if dtype == DType.FP32:
        return codes
    if dtype == DType.BF16:
        return codes.astype(np.uint32) << np.uint32(16)
    if dtype == DType.TF32:
        nan = np.isnan(codes.view(np.float32))
        return np.where(nan, np.uint32(NAN), codes & np.uint32(0xFFFFE000))
    value = codes.view(dtype.numpy).astype(np.float32)
    return np.where(np.isnan(value), np.uint32(NAN), value.view(np.uint32))


def check(unit, codes, dtype):
    i = extended(codes, dtype)
    assert_same(unit.stream(i=i, dtype=int(dtype), raw=0).o, expected(codes, dtype), i=i)


@pytest.mark.parametrize("dtype", [d for d in DType if d.itemsize < 4], ids=lambda d: d.text)
def test_every_short_code(unit, dtype):
    codes = np.arange(1 << (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}")
    check(unit, codes, dtype)


def hard_words():
    """FP32 codes; integers at the ends of binades, at ties of FP32 and next to both."""
    rng = np.random.default_rng(SEED)
    powers = np.uint64(1) << np.arange(33, dtype=np.uint64)
    ties = (powers[24:32, None] >> np.uint64(24)) * np.arange(1 << 24, (1 << 24) + 64, 1, np.uint64)
    ends = np.concatenate([powers, ties.reshape(-1)]).astype(np.int64)
    near = (ends[:, None] + np.arange(-2, 3)).reshape(-1)
    integers = np.concatenate([near, -near]).astype(np.uint32)
    any_size = rng.integers(0, 1 << 32, 200_000, np.uint32) >> rng.integers(
        0, 32, 200_000, np.uint32
    )
    return np.concatenate(
        [
            specials(FP32),
            random_codes(FP32, rng, 100_000),
            integers,
            any_size,
            np.uint32(0) - any_size,
        ]
    )


@pytest.mark.parametrize("dtype", WORDS, ids=lambda d: d.text)
def test_words(unit, dtype):
    check(unit, hard_words(), dtype)


def test_raw_passes_and_everything_may_change_every_cycle(unit):
    rng = np.random.default_rng(SEED + 1)
    words, dtypes, results = [], [], []
    for dtype in DType:
        codes = rng.choice(hard_words(), 20_000).astype(f"u{dtype.itemsize}")
        words.append(extended(codes, dtype))
        dtypes.append(np.full(codes.size, int(dtype)))
        results.append(expected(codes, dtype))
    order = rng.permutation(sum(w.size for w in words))
    i, dtype, result = (np.concatenate(x)[order] for x in (words, dtypes, results))
    raw = rng.integers(0, 2, i.size)
    got = unit.stream(i=i, dtype=dtype, raw=raw).o
    assert_same(got, np.where(raw == 1, i, result), i=i, dtype=dtype, raw=raw)


def test_tf32_nan_whose_payload_is_all_in_the_ignored_bits(combinational):
    i = np.array(
        [0x7F800001, 0xFF800FFF, 0x7F801FFF, 0x7F800000, 0xFF800000, 0x3F801FFF], np.uint32
    )
    got = combinational.stream(i=i, dtype=int(DType.TF32), raw=0).o
    assert_same(got, [NAN, NAN, NAN, 0x7F800000, 0xFF800000, 0x3F800000], i=i)


def test_bf16_keeps_the_codes_of_nans(combinational):
    i = np.array([0x7F81, 0xFFFF, 0x7FC0, 0xFFC1], np.uint32)
    got = combinational.stream(i=i, dtype=int(DType.BF16), raw=0).o
    assert_same(got, i << np.uint32(16), i=i)


@pytest.mark.parametrize(
    ("dtype", "smallest"),
    [
        (DType.FP8_E5M2, 2.0**-16),
        (DType.FP8_E4M3, 2.0**-9),
        (DType.FP8_E3M4, 2.0**-6),
        (DType.FP8_E4M3FN, 2.0**-9),
        (DType.FP16, 2.0**-24),
    ],
    ids=str,
)
def test_zero_and_the_smallest_subnormal_of_short_floats(combinational, dtype, smallest):
    sign = 1 << (8 * dtype.itemsize - 1)
    got = combinational.stream(i=[0, sign, 1, sign | 1], dtype=int(dtype), raw=0).o
    values = np.array([0.0, -0.0, smallest, -smallest], np.float32)
    assert_same(got, values.view(np.uint32))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("dtype", [DType.INT32, DType.UINT32, DType.TF32], ids=lambda d: d.text)
def test_every_word(combinational, dtype, part):
    for high in range(part << 5, (part + 1) << 5):
        check(combinational, np.arange(high << 24, (high + 1) << 24, dtype=np.uint32), dtype)
