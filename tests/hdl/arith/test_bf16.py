"""BF16 decoder and narrowing unit, every code and every midpoint."""

import numpy as np
import pytest

from golden.arith import bfloat16
from hdl.arith.bf16_decode import Bf16Decode
from hdl.arith.bf16_narrow import Bf16Narrow
from hdl.arith.operand import SIGNIFICAND_BITS, Operand
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.known_cases import NARROWINGS
from verif.vectors import FP32, specials

ALL_CODES = np.arange(1 << 16, dtype=np.uint16)


def fields(packed):
    """The fields of packed operands as int64 arrays, cut along the layout itself."""
    layout = Operand.as_shape()
    cut = {}
    for name, field in layout:
        shape = Operand.as_shape()[name].shape
        width, is_signed = getattr(shape, "width", shape), getattr(shape, "signed", False)
        value = (packed.astype(np.int64) >> field.offset) & ((1 << width) - 1)
        cut[name] = value - ((value >> (width - 1)) << width if is_signed else 0)
    return cut


@pytest.mark.parametrize("stages", [0, 1])
def test_decoding_every_code(stages):
    got = fields(compile_unit(Bf16Decode(stages=stages)).stream(i=ALL_CODES).o)
    value = bfloat16.widen(ALL_CODES)
    nan, inf, zero = np.isnan(value), np.isinf(value), value == 0
    assert_same(got["nan"], nan.astype(int), i=ALL_CODES)
    assert_same(got["inf"], inf.astype(int), i=ALL_CODES)
    assert_same(got["zero"], zero.astype(int), i=ALL_CODES)
    assert_same(got["sign"], ALL_CODES >> 15, i=ALL_CODES)
    number = ~(nan | inf | zero)
    assert (got["significand"][number] >> (SIGNIFICAND_BITS - 1) == 1).all(), "not normalised"
    magnitude = np.ldexp(
        got["significand"][number].astype(np.float64),
        got["exponent"][number] - (SIGNIFICAND_BITS - 1),
    )
    assert (magnitude == np.abs(value[number].astype(np.float64))).all()


@pytest.fixture(scope="module")
def narrow():
    return compile_unit(Bf16Narrow())


def golden(x):
    return bfloat16.narrow(x.view(np.float32))


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_narrowing_at_every_midpoint(narrow, offset):
    midpoint = (ALL_CODES.astype(np.uint32) << 16) | 0x8000
    x = (midpoint.astype(np.int64) + offset).astype(np.uint32)
    assert_same(narrow.stream(i=x).o, golden(x), i=x)


def test_narrowing_widened_codes_and_specials(narrow):
    x = np.concatenate([ALL_CODES.astype(np.uint32) << 16, specials(FP32)])
    assert_same(narrow.stream(i=x).o, golden(x), i=x)
    pipelined = compile_unit(Bf16Narrow(stages=2))
    assert_same(pipelined.stream(i=x).o, golden(x), i=x)


@pytest.mark.parametrize("name", NARROWINGS)
def test_known_narrowing(narrow, name):
    x, expected = NARROWINGS[name]
    assert_same(narrow.stream(i=[x]).o, [expected], i=x)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(8))
def test_narrowing_every_code(narrow, part):
    """All 2^32, in eight parts."""
    for high in range(part << 5, (part + 1) << 5):
        x = np.arange(high << 24, (high + 1) << 24, dtype=np.uint32)
        assert_same(narrow.stream(i=x).o, golden(x), i=x)
