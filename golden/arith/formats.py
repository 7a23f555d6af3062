"""The floating formats of the chip, one frozen description each.

A code is sign, exponent and fraction from the top. With exponent field e, fraction field f and
F = `fraction_bits` its value is (-1)^s * 2^(e - bias) * (1 + f / 2^F), or, where e is 0,
(-1)^s * 2^(1 - bias) * f / 2^F. An exponent of all ones means infinity (f = 0) or NaN, except in
FP8 e4m3fn, which has no infinity and only f = 7 as NaN. TF32 is stored as FP32 whose low 13 bits
are zero when written and ignored when read.

Names are those of `isa.dtypes`. Sources: IEEE 754-2019 section 3 (FP32, FP16, and by its rules
BF16, TF32, e5m2, e4m3, e3m4); OCP 8-bit floating point specification, revision 1.0 (e4m3fn).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Format:
    """A floating format; codes are unsigned integers of type `dtype`."""

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    has_inf: bool
    nan: int
    """Code of the one NaN that is ever produced, positive and quiet."""
    max_code: int
    """Code of the largest finite number."""
    padding: int = 0
    """Bits below the fraction: written as zero, ignored when read."""

    @property
    def bits(self) -> int:
        """Width of a stored code."""
        return 1 + self.exponent_bits + self.fraction_bits + self.padding

    @property
    def dtype(self) -> np.dtype:
        """The unsigned integer type of codes."""
        return np.dtype(f"u{self.bits // 8}")

    @property
    def sign(self) -> int:
        """Code of -0."""
        return 1 << (self.bits - 1)

    @property
    def overflow(self) -> int:
        """Code of what lies beyond the largest finite number: infinity, or NaN without one."""
        return self.max_code + (1 << self.padding)

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal, which is also that of the subnormals."""
        return 1 - self.bias

    @property
    def max_finite(self) -> float:
        """The largest finite number."""
        code = self.max_code >> self.padding
        exponent, fraction = divmod(code, 1 << self.fraction_bits)
        return 2.0 ** (exponent - self.bias) * (1 + fraction / (1 << self.fraction_bits))


FP32 = Format("fp32", 8, 23, 127, True, 0x7FC00000, 0x7F7FFFFF)
TF32 = Format("tf32", 8, 10, 127, True, 0x7FC00000, 0x7F7FE000, padding=13)
BF16 = Format("bf16", 8, 7, 127, True, 0x7FC0, 0x7F7F)
FP16 = Format("fp16", 5, 10, 15, True, 0x7E00, 0x7BFF)
FP8_E5M2 = Format("fp8_e5m2", 5, 2, 15, True, 0x7E, 0x7B)
FP8_E4M3 = Format("fp8_e4m3", 4, 3, 7, True, 0x7C, 0x77)
FP8_E3M4 = Format("fp8_e3m4", 3, 4, 3, True, 0x78, 0x6F)
FP8_E4M3FN = Format("fp8_e4m3fn", 4, 3, 7, False, 0x7F, 0x7E)

FORMATS = (FP32, TF32, BF16, FP16, FP8_E5M2, FP8_E4M3, FP8_E3M4, FP8_E4M3FN)
