"""Numbers in the programs of `isa.functions`, all FP32.

The polynomials, lowest coefficient first, are those that `golden.arith.functions.minimax` finds;
the numbers here are the specification.
"""

_hex = float.fromhex

PLACE = 2.5
"""TAIL and ERFC are polynomials in 1 / (a + PLACE)."""
TAIL = (
    _hex("-0x1.b110f4p-17"),
    _hex("0x1.996774p-2"),
    _hex("0x1.f1fb28p-1"),
    _hex("0x1.3e67a2p+1"),
    _hex("-0x1.236058p-1"),
    _hex("0x1.8de8dap+4"),
    _hex("-0x1.708dacp+6"),
    _hex("0x1.eebf42p+6"),
    _hex("-0x1.e932ccp+5"),
)
"""Phi(-a) e^(a^2 / 2) for a in [0, 13.3]."""
ERFC = (
    _hex("0x1.b0f1a0p-9"),
    _hex("0x1.c8c08ap-2"),
    _hex("0x1.67b2eep+1"),
    _hex("-0x1.13149ep+2"),
    _hex("0x1.929da0p+4"),
)
"""erfc(a) e^(a^2) for a in [11/16, 3.95]."""
ERF = (
    _hex("0x1.20dd74p+0"),
    _hex("-0x1.8125ccp-2"),
    _hex("0x1.cdd60ap-4"),
    _hex("-0x1.b0bf30p-6"),
    _hex("0x1.141d00p-8"),
)
"""erf(a) / a in a^2, for a in [0, 11/16]."""
LOG1P = (
    1.0,
    _hex("-0x1.ffff6ep-2"),
    _hex("0x1.552838p-2"),
    _hex("-0x1.f73d0ap-3"),
    _hex("0x1.414e58p-3"),
)
"""log(1 + e) / e in e, for e in [0, 1/8]."""
SINE = (
    _hex("-0x1.55554cp-3"),
    _hex("0x1.110ed6p-7"),
    _hex("-0x1.9f6fb0p-13"),
    _hex("0x1.5db1b0p-19"),
)
"""(sin(r) / r - 1) / r^2 in r^2, for r in [0, 1.578]."""
ARCTANGENT = (
    _hex("-0x1.5554dcp-2"),
    _hex("0x1.9978ecp-3"),
    _hex("-0x1.230a9cp-3"),
    _hex("0x1.b4dfe6p-4"),
    _hex("-0x1.35567cp-4"),
    _hex("0x1.62042cp-5"),
    _hex("-0x1.0c3c64p-6"),
    _hex("0x1.7f02cep-9"),
)
"""(arctan(m) / m - 1) / m^2 in m^2, for m in [0, 1]."""
INVERSE_PI = _hex("0x1.45f306p-2")
HALF_PI = _hex("0x1.921fb6p+0")
PI_OF_SIN = (_hex("0x1.92p+1"), _hex("0x1.fbp-11"), _hex("0x1.5110b4p-21"))
"""pi in parts of 8, 9 and 24 bits: the products of the first two with integers of 15 bits are
exact.  None is negative, so that -0 stays -0.
"""
PI_OF_COS = (_hex("0x1.92p+1"), _hex("0x1.fcp-11"), _hex("-0x1.5777a6p-20"))
"""pi in parts of 8, 8 and 24 bits, for halves of odd integers of 16 bits."""
DENSITY = _hex("0x1.988454p-2")
"""1 / sqrt(2 pi)."""
GELU_TANH_LINEAR = _hex("0x1.988454p+0")
"""2 sqrt(2 / pi)."""
GELU_TANH_CUBIC = _hex("0x1.2444f2p-4")
"""0.044715 times that."""
