"""The descriptions of the floating formats against ml_dtypes, numpy and the ISA's types."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from golden.arith.formats import FORMATS, TF32
from isa.dtypes import DType

HOST = {form.name: DType[form.name.upper()].numpy for form in FORMATS}
"""TF32 has no host type of its own."""


@pytest.mark.parametrize("form", [f for f in FORMATS if f is not TF32], ids=lambda f: f.name)
def test_format_equals_the_host_type(form):
    host = HOST[form.name]
    info = ml_dtypes.finfo(host)
    assert (form.bits, form.fraction_bits) == (info.bits, info.nmant)
    assert form.bits == 1 + form.exponent_bits + form.fraction_bits
    assert form.min_exponent == info.minexp
    assert form.max_finite == float(info.max)
    codes = np.array([form.max_code, form.overflow, form.nan, form.sign], form.dtype)
    largest, beyond, nan, zero = codes.view(host).astype(np.float32)
    assert largest == form.max_finite
    assert np.isinf(beyond) if form.has_inf else np.isnan(beyond)
    assert np.isnan(nan)
    assert np.array(np.nan, np.float32).astype(host).view(form.dtype) == form.nan
    assert zero == 0 and np.signbit(zero)


def test_tf32_is_fp32_without_the_low_13_bits():
    assert (TF32.exponent_bits, TF32.fraction_bits, TF32.padding, TF32.bits) == (8, 10, 13, 32)
    assert np.uint32(TF32.max_code).view(np.float32) == TF32.max_finite
    assert np.isinf(np.uint32(TF32.overflow).view(np.float32))
    assert np.isnan(np.uint32(TF32.nan).view(np.float32))


@pytest.mark.parametrize(
    ("name", "largest"),
    [("fp16", 65504), ("fp8_e5m2", 57344), ("fp8_e4m3", 240), ("fp8_e3m4", 15.5)]
    + [("fp8_e4m3fn", 448)],
)
def test_largest_finite_number(name, largest):
    assert next(form for form in FORMATS if form.name == name).max_finite == largest


def test_every_floating_type_of_the_isa_is_described_once():
    names = [form.name for form in FORMATS]
    assert sorted(names) == sorted(d.text for d in DType if "int" not in d.text)
    for form in FORMATS:
        assert DType[form.name.upper()].itemsize * 8 == form.bits == form.dtype.itemsize * 8


def test_descriptions_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TF32.bias = 15  # type: ignore[misc]
