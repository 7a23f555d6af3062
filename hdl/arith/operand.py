"""The operand of a processing element, decoded once at the edge of the tensor array."""

from amaranth.hdl import signed
from amaranth.lib import data

from hdl.arith.fp32 import BIAS

SIGNIFICAND_BITS = 12
EXPONENT_BITS = 10
RAW_BITS = 16


class Operand(data.Struct):
    """A number of any input format of the tensor engine, 26 bits.

    With no flag set the value is (-1)^sign * significand / 2^11 * 2^exponent, and the significand
    has its top bit set, also for numbers that are subnormal in their own format. At most one of
    the flags is set; then exponent and significand mean nothing, and with `nan` nor does sign.

    Raw bits, which pass through a multiplier unchanged, are no number: all 12 bits of the
    significand and above them the low four of the exponent, flags and sign 0. Their partner is
    `PASS`, which alone has both `nan` and `inf` set.
    """

    sign: 1
    exponent: signed(EXPONENT_BITS)
    significand: SIGNIFICAND_BITS
    nan: 1
    inf: 1
    zero: 1


PASS = Operand.const({"exponent": -BIAS, "significand": 1, "nan": 1, "inf": 1})
"""Multiplies by one unit of the product: raw bits come to lie at its low end."""
