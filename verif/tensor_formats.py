"""Operands of the tensor engine in every format: kinds, numbers by other means, hard codes.

A kind is (format, part). Numbers come from ml_dtypes, numpy and float64 arithmetic alone.
"""

import ml_dtypes
import numpy as np

from golden.arith import formats
from hdl.arith.decode import OperandFormat
from isa.fields import Part
from verif.vectors import BF16 as BF16_VECTORS
from verif.vectors import FP32 as FP32_VECTORS
from verif.vectors import random_codes

NATIVE = {
    formats.BF16: ml_dtypes.bfloat16,
    formats.FP16: np.float16,
    formats.FP8_E5M2: ml_dtypes.float8_e5m2,
    formats.FP8_E4M3: ml_dtypes.float8_e4m3,
    formats.FP8_E3M4: ml_dtypes.float8_e3m4,
    formats.FP8_E4M3FN: ml_dtypes.float8_e4m3fn,
}
"""numpy types of the short formats."""
FP8 = tuple(form for form in NATIVE if form.bits == 8)
KINDS = (
    *((form, Part.FULL) for form in (*NATIVE, formats.TF32)),
    *((formats.FP32, part) for part in (Part.HIGH, Part.LOW, Part.HIGH_FINITE)),
)


def kind_name(kind):
    """bf16, fp32_high, ..."""
    form, part = kind
    return form.name if part == Part.FULL else f"{form.name}_{part.name.lower()}"


def value_of(codes, kind):
    """float32 numbers by ml_dtypes, numpy, and float64 arithmetic for the halves."""
    form, part = kind
    with np.errstate(all="ignore"):
        if form in NATIVE:
            return codes.view(NATIVE[form]).astype(np.float32)
        whole = codes.view(np.float32).astype(np.float64)
        cut = 13 if form == formats.TF32 else 12
        kept = (codes >> np.uint32(cut) << np.uint32(cut)).view(np.float32).astype(np.float64)
        finite = np.isfinite(whole)
        if part == Part.LOW:
            value = np.where(finite, whole - kept, 0)
        elif part == Part.HIGH_FINITE:
            value = np.where(finite, kept, 0)
        else:
            value = np.where(finite, kept, whole)
        return value.astype(np.float32)


def random_operand(form, rng, shape):
    """Codes: uniform, which for 8 exponent bits are at the ends of the range, or near one."""
    codes = rng.integers(0, 1 << form.bits, shape, dtype=form.dtype)
    if form.exponent_bits == 8:
        vectors = BF16_VECTORS if form == formats.BF16 else FP32_VECTORS
        hard = random_codes(vectors, rng, codes.size).reshape(shape)
        codes = np.where(rng.random(shape) < 0.5, hard, codes)
        exponent = rng.integers(60, 68, shape) << (form.bits - 9)
        near = codes & ~np.array(0xFF << (form.bits - 9), form.dtype) | exponent.astype(form.dtype)
        codes = np.where(rng.random(shape) < 0.7, near, codes)
    return codes


def operand_format(kind):
    """Code of the decoders for a kind."""
    form, part = kind
    if form == formats.FP32:
        halves = {Part.HIGH: "FP32_HIGH", Part.LOW: "FP32_LOW"}
        return OperandFormat[halves.get(part, "FP32_HIGH_FINITE")]
    return OperandFormat[form.name.upper()]
