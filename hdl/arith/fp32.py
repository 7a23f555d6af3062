"""Fields and codes of binary32 that the units share."""

from amaranth.hdl import C, Cat, Mux

FRACTION = slice(0, 23)
EXPONENT = slice(23, 31)
MAGNITUDE = slice(0, 31)
SIGN = 31

BIAS = 127
EXPONENT_ONES = 255
NAN_BITS = 0x7FC00000
_QUIET_FRACTION = 1 << 22


def pack_special(*, sign, exponent, fraction, nan, infinite):
    """The binary32 code of a result, replaced by infinity of that sign or the canonical NaN.

    `nan` wins over `infinite`. Returns a 32-bit value.
    """
    special = nan | infinite
    return Cat(
        Mux(special, Mux(nan, C(_QUIET_FRACTION, 23), 0), fraction),
        Mux(special, C(EXPONENT_ONES, 8), exponent),
        sign & ~nan,
    )
