"""Tiles on which the multiply-accumulate of others went wrong, through the tensor engine."""

import numpy as np
import pytest

from isa.dtypes import DType
from isa.fields import Part
from isa.geometry import preset
from verif.equality import assert_same
from verif.tensor_bench import Access, Load, Multiply, TensorBench
from verif.tensor_formats import FP8, NATIVE

CONFIG = preset("tiny").with_(double_row=1)
P = CONFIG.partitions
NAN, INF = 0x7FC00000, 0x7F800000
MOVING = 512
"""Byte of the moving operand."""
MODES = [*((form, 0) for form in NATIVE), *((form, 1) for form in FP8)]
every_mode = pytest.mark.parametrize(
    ("form", "pairs"), MODES, ids=[f.name + "-pairs" * pairs for f, pairs in MODES]
)


@pytest.fixture(scope="module")
def bench():
    return TensorBench(CONFIG)


def flat(start, count):
    return Access(0, P, start, (count, 1, 1, 1), (1, 0, 0, 0))


def encode(values, dtype):
    """Codes of numbers that the dtype has."""
    wide = np.asarray(values, np.float32)
    code = wide.astype(dtype.numpy)
    assert (code.astype(np.float32) == wide).all()
    return code


def product(bench, dtype, a, b, *, psum=None, times=1, part=Part.FULL):
    """PSUM [P, N] after the tile of a [K, M] and b [K, N] was added `times` times to `psum`, or
    to nothing: the first one overwrites.  Operands with a third axis are pairs.

    K and M are at most the size of the array; what lacks is zero.  PSUM is the bench's: the sums of
    the real one are in the tests of the memory.
    """
    count, pairs = b.shape[1], int(a.ndim == 3)
    full_a, full_b = np.zeros((P, P, 1 + pairs)), np.zeros((P, count, 1 + pairs))
    full_a[: a.shape[0], : a.shape[1]] = a.reshape(*a.shape[:2], -1)
    full_b[: b.shape[0]] = b.reshape(*b.shape[:2], -1)
    sbuf = np.zeros((P, CONFIG.sbuf_bytes), np.uint8)
    for place, values in ((0, full_a), (MOVING, full_b)):
        raw = encode(values, dtype).reshape(P, -1).view(np.uint8)
        sbuf[:, place : place + raw.shape[1]] = raw
    size = dtype.itemsize << pairs
    modes = {"dtype": dtype, "part": part, "double_row": pairs}
    moving, result = flat(MOVING // size, count), flat(0, count)
    program = [Load(flat(0, P), **modes)]
    for index in range(times):
        program.append(Multiply(moving, result, psum is not None or index > 0, **modes))
    words = np.full((P, CONFIG.psum_words), 0x40400000, np.uint32)
    if psum is not None:
        words[:, :count] = psum
    return bench.run(program, sbuf, words, cycle_limit=5_000).psum[:, :count]


@pytest.mark.parametrize(
    ("dtype", "part", "bits"),
    [(DType.BF16, Part.FULL, 8), (DType.TF32, Part.FULL, 11), (DType.FP32, Part.HIGH, 12)],
)
def test_partial_sums_underflow_gradually(bench, dtype, part, bits):
    """A subtractor gave twice a subnormal difference, another lost the carry back to the normals.

    (2^n - 1)^2 - (2^(n - 1) - 1) 2^(n + 1) = 1, both products in the least normal binade.
    """
    scale = 1 - 126 - 2 * bits
    first, second = scale // 2, scale - scale // 2
    a = np.ldexp([(1 << bits) - 1, 1 - (1 << (bits - 1))], first)[:, None]
    b = np.ldexp([(1 << bits) - 1, 1 << (bits + 1)], second)[:, None]
    one = 1 << (24 - 2 * bits)
    assert product(bench, dtype, a, b, part=part)[0, 0] == one
    old = np.array([0x00800000 - one, 0x80800000, 0x80000000 | one, one], np.uint32)
    total = [0x00800000, 0x80800000 - one, 0x00000000, 2 * one]
    found = product(bench, dtype, a, np.tile(b, 4), psum=old, part=part)
    assert_same(found[0], np.array(total, np.uint32), old=old)


@pytest.mark.parametrize(
    ("small", "code"), [(2.0**-24, 0x3F7FFFFF), (2.0**-25, 0x3F800000), (2.0**-60, 0x3F800000)]
)
def test_a_small_product_is_never_dropped_too_early(bench, small, code):
    """An adder dropped addends that were too small by its own count: 1 - 2^-24 is exact, 1 - 2^-25
    a tie to 1, and just above the tie it is 1 - 2^-24.
    """
    a = np.array([[1], [-1]])
    b = np.array([[1, 1], [small, small * (1 + 2.0**-7)]])
    above = 0x3F7FFFFF if small >= 2.0**-25 else 0x3F800000
    assert_same(product(bench, DType.BF16, a, b)[0], np.array([code, above], np.uint32))
    # The same by PSUM.
    one = np.uint32(0x3F800000)
    found = product(bench, DType.BF16, -a[:1], b[1:], psum=one)
    assert_same(found[0], np.array([code, above], np.uint32))


def wide_sum(form):
    """Powers of two (big, small, small'): big^2 + small * small' takes the 24 bits of FP32, or as
    many as the format can reach; and that sum.
    """
    top = min(int(np.floor(np.log2(form.max_finite))), 60)
    low = max(2 * top - 23, 2 * (form.min_exponent - form.fraction_bits))
    powers = np.ldexp(1.0, [top, low // 2, low - low // 2])
    return (*powers, 2.0 ** (2 * top) + 2.0**low)


@every_mode
def test_no_sum_is_narrower_than_fp32(bench, form, pairs):
    """Partial sums of the width of an operand, or of BF16, hid behind small random numbers: here
    every way that a sum takes has to hold a large and a small product together.
    """
    dtype = DType[form.name.upper()]
    big, small, other, exact = wide_sum(form)
    expected = np.float32(exact).view(np.uint32)
    assert float(np.float32(exact)) == exact
    if pairs:
        found = product(
            bench, dtype, np.array([[[big, small]]]), np.array([[[big, other], [other, big]]])
        )
        assert found[0, 0] == expected
        a, b = np.array([[[0, big]], [[small, 0]]]), np.array([[[7, big]], [[other, 5]]])
    else:
        a, b = np.array([[big], [small]]), np.array([[big], [other]])
    assert product(bench, dtype, a, b)[0, 0] == expected
    # Into PSUM, where the larger term waits.
    old = np.uint32(np.float32(big * big).view(np.uint32))
    assert product(bench, dtype, a[1:], b[1:], psum=old)[0, 0] == expected


@every_mode
def test_largest_magnitudes_over_many_rows(bench, form, pairs):
    """All operands at the largest number and its negative, many times into PSUM."""
    dtype = DType[form.name.upper()]
    shape = (P, 2, 2)[: 2 + pairs]
    a = np.full(shape, form.max_finite)
    b = np.array([1.0, -1.0]).reshape(1, 2, 1)[:, :, : 1 if pairs else None]
    b = np.broadcast_to(b if pairs else b[:, :, 0], shape) * form.max_finite
    found = product(bench, dtype, a, b, times=9)
    total = np.float32(0)
    with np.errstate(all="ignore"):
        square = np.float32(form.max_finite) * np.float32(form.max_finite)
        term = square + square if pairs else square
        tile = np.float32(0)
        for _ in range(P):
            tile = tile + term
        for _ in range(9):
            total = total + tile
    assert found[0].view(np.float32).tolist() == [total, -total]
    assert np.isinf(total) == (form.exponent_bits == 8)


def test_sums_beyond_the_largest_are_infinite(bench):
    """Accumulators of others wrapped on dense layers.  Each product, 1.5 * 2^127, is finite."""
    a = np.array([[2.0**64]] * 3)
    b = 1.5 * 2.0**63 * np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    finite = 0x7F400000
    minus = 1 << 31 | INF
    assert_same(product(bench, DType.BF16, a, b)[0], np.array([INF, finite, minus], np.uint32))
    again = product(bench, DType.BF16, a, b, times=2)
    assert_same(again[0], np.array([INF, INF, minus], np.uint32))
    found = product(bench, DType.BF16, a, -b, psum=again[0])
    assert_same(found[0], np.array([NAN, INF, NAN], np.uint32))


@every_mode
def test_small_integers_are_exact(bench, form, pairs):
    """On silicon of others sums of small integers, some negative, were not exact."""
    dtype = DType[form.name.upper()]
    rng = np.random.default_rng(form.bits + pairs)
    limit = min(2 << form.fraction_bits, int(form.max_finite), 256)
    shape = (P, 16, 2)[: 2 + pairs]
    for _ in range(4):
        a, b = rng.integers(-limit, limit + 1, (2, *shape))
        a = a[:, :P]
        found = product(bench, dtype, a, b, times=3).view(np.float32)
        exact = 3 * np.einsum("kmi,kni->mn" if pairs else "km,kn->mn", a, b)
        assert_same(found.astype(np.int64), exact)
    a, b = np.array([[-1], [3], [8]]), np.array([[1], [8], [4]])
    if pairs:
        a, b = (np.repeat(x[:, :, None], 2, 2) for x in (a, b))
    assert product(bench, dtype, a, b).view(np.float32)[0, 0] == 55 << pairs
