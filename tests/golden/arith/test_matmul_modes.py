"""The golden tile product with double rows and with transpose."""

import itertools

import numpy as np
import pytest

from golden.arith import formats, matmul
from isa.fields import Part
from verif.equality import assert_same
from verif.tensor_formats import FP8, NATIVE, value_of

SEED = 44
NAN = 0x7FC00000


def codes_of(value):
    assert value.dtype == np.float32
    return np.ascontiguousarray(value).view(np.uint32)


def one_nan(codes):
    return np.where((codes & 0x7FFFFFFF) > 0x7F800000, np.uint32(NAN), codes)


@pytest.mark.parametrize(
    "forms", list(itertools.product(FP8, FP8)), ids=lambda f: "-".join(form.name for form in f)
)
def test_double_rows_equal_float32_loops(forms):
    rng = np.random.default_rng([SEED, FP8.index(forms[0]), FP8.index(forms[1])])
    codes = [rng.integers(0, 256, (7, n, 2), dtype=np.uint8) for n in (30, 40)]
    if rng.random() < 0.9:  # Mostly without NaN.
        codes = [
            np.where((x & 0x7F) > form.max_code, 0x25, x).astype(np.uint8)
            for x, form in zip(codes, forms, strict=True)
        ]
    a, b = (value_of(x, (form, Part.FULL)) for x, form in zip(codes, forms, strict=True))
    acc = np.zeros((30, 40), np.float32)
    with np.errstate(all="ignore"):
        for x, y in zip(a, b, strict=True):
            pair = x[:, None, 0] * y[None, :, 0] + x[:, None, 1] * y[None, :, 1]
            assert pair.dtype == np.float32
            acc = acc + pair
    tile = matmul.chain_double_row(
        *(matmul.operand(x, form) for x, form in zip(codes, forms, strict=True))
    )
    assert_same(codes_of(tile), one_nan(codes_of(acc)), seed=SEED)


def test_a_double_row_rounds_its_pair_before_the_chain():
    """2^24 + (1 + 1) keeps the two that a chain of single rows loses one by one."""
    form = formats.FP8_E5M2
    a = np.array([[[2.0**12, 0]], [[1, 1]]], np.float32)
    b = np.array([[[2.0**12, 0]], [[1, 1]]], np.float32)
    codes = [x.astype(NATIVE[form]).view(np.uint8) for x in (a, b)]
    operands = [matmul.operand(x, form) for x in codes]
    assert matmul.chain_double_row(*operands)[0, 0] == 2.0**24 + 2
    single = [x.transpose(0, 2, 1).reshape(4, 1) for x in operands]
    assert matmul.chain(*single)[0, 0] == 2.0**24
    # The pair itself is rounded: 2^24 + 1 ties to 2^24.
    a, b = np.array([[[2.0**12, 1]]], np.float32), np.array([[[2.0**12, 1]]], np.float32)
    operands = [matmul.operand(x.astype(NATIVE[form]).view(np.uint8), form) for x in (a, b)]
    assert matmul.chain_double_row(*operands)[0, 0] == 2.0**24


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_transpose_passes_all_bits(dtype):
    """Every code, NaN codes and all, with a moving operand that selects one row a column."""
    rng = np.random.default_rng(SEED)
    words = rng.integers(0, np.iinfo(dtype).max + 1, (128, 128)).astype(dtype)
    words[:4, :3] = np.array([[0, 0x7F, 0xFF]], dtype)
    expected = words.astype(np.uint32).T[:, ::-1]
    for one in (1.0, -3.5, np.inf, np.nan, 1e-45):
        moving = np.where(np.eye(128)[:, ::-1] == 1, np.float32(one), np.float32(-0.0))
        tile = matmul.transpose(words, moving.astype(np.float32))
        assert_same(codes_of(tile), expected)


def test_several_transposed_terms_add_up():
    words = np.array([[0xFFFF, 1], [0xFFFF, 2], [7, 0x8000]], np.uint16)
    moving = np.array([[1, 1, 0], [1, 0, 0], [np.nan, 1, -0.0]], np.float32)
    expected = [[0x1FFFE + 7, 0xFFFF + 7, 0], [0x8003, 0x8001, 0]]
    assert_same(codes_of(matmul.transpose(words, moving)), expected)
    most = np.full((128, 1), 0xFFFF, np.uint16)
    assert_same(codes_of(matmul.transpose(most, np.ones((128, 1), np.float32))), [[128 * 0xFFFF]])


def test_parts_and_shapes_are_checked():
    codes = np.zeros((2, 2), np.uint32)
    with pytest.raises(ValueError, match="part of fp32 must be high, low or high_finite, not full"):
        matmul.operand(codes, formats.FP32)
    with pytest.raises(ValueError, match="part of tf32 must be full, not low"):
        matmul.operand(codes, formats.TF32, Part.LOW)
    pair = np.zeros((2, 3, 2), np.float32)
    for stationary, moving in ((pair, pair[:1]), (pair, pair[:, :, :1]), (pair[:, :, 0], pair)):
        with pytest.raises(ValueError, match=r"\[K, M, 2\] and \[K, N, 2\] expected"):
            matmul.chain_double_row(stationary, moving)
    with pytest.raises(TypeError, match="uint8 or uint16 array expected, not uint32"):
        matmul.transpose(codes, np.zeros((2, 2), np.float32))
