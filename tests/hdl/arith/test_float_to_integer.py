# amaranth: UnusedElaboratable=no
"""FP32 to integers against numpy's rounding in double precision."""

import numpy as np
import pytest

from golden.arith import convert
from hdl.arith.float_to_integer import FloatToInteger
from isa.dtypes import DType
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, random_codes, specials

SEED = 37
INTEGERS = [d for d in DType if "INT" in d.name]


@pytest.fixture(scope="module", params=[0, 3])
def unit(request):
    return compile_unit(FloatToInteger(stages=request.param))


@pytest.fixture(scope="module")
def combinational():
    return compile_unit(FloatToInteger())


def nearest(x, dtype):
    """Two's complement in 32 bits."""
    limits = np.iinfo(dtype.numpy)
    with np.errstate(invalid="ignore"):
        value = np.rint(x.view(np.float32).astype(np.float64))
    value = np.where(np.isnan(value), 0, np.clip(value, limits.min, limits.max))
    return value.astype(np.int64).astype(np.uint32)


def words(dtype):
    """FP32 codes: special, any, halves of all sizes up to beyond the range, and next to them."""
    rng = np.random.default_rng(SEED)
    bits = 8 * dtype.itemsize
    size = rng.integers(-3, bits + 2, 200_000)
    halves = np.rint(2.0**size * (1 + rng.random(size.size)) * 2) / 2
    ends = 2.0 ** np.arange(-3, 34)
    exact = np.concatenate([halves, ends, ends - 0.5, ends + 0.5]).astype(np.float32)
    code = exact.view(np.uint32).astype(np.int64)
    code = np.concatenate([code - 1, code, code + 1]).clip(0, 0x7FFFFFFF)
    both = np.concatenate([code, code | 1 << 31]).astype(np.uint32)
    return np.concatenate([specials(FP32), random_codes(FP32, rng, 100_000), both])


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.text)
def test_nearest_and_saturated(unit, dtype):
    x = words(dtype)
    got = unit.stream(i=x, dtype=int(dtype)).o
    assert_same(got, nearest(x, dtype), i=x)
    kind = np.dtype(f"u{dtype.itemsize}")
    golden = convert.to_integer(x.view(np.float32), dtype.numpy).view(kind)
    assert_same(got.astype(kind), golden, i=x)


def test_the_dtype_may_change_every_cycle(unit):
    rng = np.random.default_rng(SEED + 1)
    x = np.concatenate([rng.choice(words(d), 30_000) for d in INTEGERS])
    dtype = rng.integers(int(DType.INT8), int(DType.UINT32) + 1, x.size)
    expected = np.choose(dtype - int(DType.INT8), [nearest(x, d) for d in INTEGERS])
    assert_same(unit.stream(i=x, dtype=dtype).o, expected, i=x, dtype=dtype)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (DType.INT8, 2.5, 2),
        (DType.INT8, 3.5, 4),
        (DType.INT8, -2.5, -2),
        (DType.INT8, 127.5, 127),
        (DType.INT8, -128.5, -128),
        (DType.INT8, -129.0, -128),
        (DType.UINT8, -0.5, 0),
        (DType.UINT8, -7.0, 0),
        (DType.UINT8, 255.5, 255),
        (DType.INT32, 2147483648.0, 2147483647),
        (DType.INT32, -2147483648.0, -2147483648),
        (DType.UINT32, 4294967040.0, 4294967040),
        (DType.UINT32, np.inf, 4294967295),
        (DType.INT16, -np.inf, -32768),
        (DType.INT32, np.nan, 0),
        (DType.UINT16, 65535.5, 65535),
        (DType.INT32, 8388607.5, 8388608),
    ],
)
def test_ties_to_even_and_ends(combinational, dtype, value, expected):
    x = np.array([value], np.float32).view(np.uint32)
    got = combinational.stream(i=x, dtype=int(dtype)).o
    assert_same(got, [expected % (1 << 32)], i=x)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.text)
def test_every_float(combinational, dtype, part):
    for high in range(part << 5, (part + 1) << 5):
        x = np.arange(high << 24, (high + 1) << 24, dtype=np.uint32)
        assert_same(combinational.stream(i=x, dtype=int(dtype)).o, nearest(x, dtype), i=x)
