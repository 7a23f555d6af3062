"""FP32 divider: two bits of the quotient a cycle, a fixed number of cycles."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import BIAS, EXPONENT, EXPONENT_ONES, FRACTION, SIGN, pack_special
from hdl.arith.pipeline import bind
from hdl.arith.shift import leading_zeros, shift_left

_QUOTIENT_BITS = 25  # 24 of the significand and one to round by; the remainder is the rest.
_DIGITS = (_QUOTIENT_BITS + 1) // 2
_FIRST_DIGIT = 3
DIVIDE_STEPS = _FIRST_DIGIT + _DIGITS + 1
"""Cycles from the operands to the quotient, the first and the last included."""


class Fp32Divide(wiring.Component):
    """o = a / b: IEEE binary32, round to nearest even, gradual underflow, canonical NaN.

    Both significands are normalised (steps 0 and 1), then digits of two bits are found by
    comparing the remainder with b, 2b and 3b (from step 3 on).  A subnormal quotient has fewer
    bits: it gets fewer digits, and needs no shift.  Equals `golden.arith.division.divide` bit for
    bit.

    Takes DIVIDE_STEPS = 17 cycles whatever the operands, and the next quotient may begin in the
    next cycle: one result in 17 cycles.

    Formats: binary32. Sources: IEEE 754-2019, 5.4.1, rounded to nearest, ties to even (4.3.1);
    restoring division of radix 4: Ercegovac, Lang: Digital arithmetic, 2004, chapter 5.

    Members
    -------
    a, b : In(32)
        binary32, any code; stable from step 0 on.
    step : In(5)
        0, then one more in each cycle; stays when it has reached DIVIDE_STEPS - 1.
    o : Out(32)
        The quotient, while `step` is DIVIDE_STEPS - 1.
    """

    tile_parameters = ()
    latency = 0
    """For streams of vectors whose `step` comes with them."""

    def __init__(self):
        super().__init__({"a": In(32), "b": In(32), "step": In(5), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        a, b = self.a, self.b

        # One operand a cycle through the same normaliser.
        operand = bind(m, "operand", Mux(self.step == 0, a, b))
        normal = bind(m, "operand_normal", operand[EXPONENT].any())
        fraction = bind(m, "operand_fraction", Cat(operand[FRACTION], normal))
        zeros = leading_zeros(m, "zeros", fraction)
        significand = bind(m, "significand", shift_left(m, "normalised", fraction, zeros[:5]))
        exponent = bind(m, "exponent", (operand[EXPONENT] + ~normal - zeros[:5])[:10].as_signed())

        # remainder: 4 times what is left, so that a digit is its integer part by the divisor.
        remainder, quotient = Signal(26, reset_less=True), Signal(_QUOTIENT_BITS + 1)
        divisor, triple = Signal(24, reset_less=True), Signal(26, reset_less=True)
        difference, left = Signal(11, reset_less=True), Signal(range(_DIGITS + 1))
        remaining = bind(m, "difference", difference.as_signed())

        below = bind(m, "below", remainder[:24] < divisor)
        biased = bind(m, "biased", (remaining + BIAS - below)[:11].as_signed())
        subnormal = bind(m, "subnormal", biased <= 0)
        bits = bind(
            m,
            "bits",
            Mux(
                biased < 1 - _QUOTIENT_BITS,
                0,
                Mux(subnormal, biased + _QUOTIENT_BITS - 1, _QUOTIENT_BITS),
            )[:5],
        )
        # An odd number of bits begins with a digit of one bit: 1.
        shift = bind(m, "shift", below + ~bits[0])
        dividend = bind(m, "dividend", (remainder[:24] << shift)[:26])

        minus = [
            bind(m, f"minus{digit}", (remainder - multiple)[:27])
            for digit, multiple in ((1, divisor), (2, divisor << 1), (3, triple))
        ]
        reaches = [~difference[26] for difference in minus]
        rest = bind(
            m,
            "rest",
            Mux(
                reaches[2],
                minus[2][:24],
                Mux(reaches[1], minus[1][:24], Mux(reaches[0], minus[0][:24], remainder[:24])),
            ),
        )
        digit = Cat(reaches[2] | (reaches[0] & ~reaches[1]), reaches[1])

        with m.Switch(self.step):
            with m.Case(0):
                m.d.sync += [remainder.eq(significand), difference.eq(exponent)]
            with m.Case(1):
                m.d.sync += [divisor.eq(significand), difference.eq(remaining - exponent)]
            with m.Case(2):
                m.d.sync += [
                    triple.eq((divisor << 1) + divisor),
                    remainder.eq(dividend),
                    difference.eq(Mux(subnormal, 0, biased)),
                    left.eq((bits + 1) >> 1),
                    quotient.eq(0),
                ]
            with m.Default(), m.If(left != 0):
                m.d.sync += [
                    remainder.eq(rest << 2),
                    quotient.eq(Cat(digit, quotient[:-2])),
                    left.eq(left - 1),
                ]

        # Round: a carry out of the fraction steps the exponent.
        round_up = bind(m, "round_up", quotient[0] & (quotient[1] | remainder.any()))
        rounded = bind(m, "rounded", (Cat(quotient[1:24], remaining[:9]) + round_up)[:32])
        overflow = bind(m, "overflow", rounded[23:] >= EXPONENT_ONES)
        (a_zero, a_infinite, a_nan), (b_zero, b_infinite, b_nan) = (
            _classes(m, name, x) for name, x in (("a", a), ("b", b))
        )
        zero = bind(m, "zero", a_zero | b_infinite)
        m.d.comb += self.o.eq(
            pack_special(
                sign=a[SIGN] ^ b[SIGN],
                exponent=Mux(zero, 0, rounded[EXPONENT]),
                fraction=Mux(zero, C(0, 23), rounded[FRACTION]),
                nan=a_nan | b_nan | (a_zero & b_zero) | (a_infinite & b_infinite),
                infinite=a_infinite | b_zero | (overflow & ~zero),
            )
        )
        return m


def _classes(m, name, x):
    """(zero, infinite, NaN)."""
    some = bind(m, f"{name}_some", x[FRACTION].any())
    ones = bind(m, f"{name}_ones", x[EXPONENT] == EXPONENT_ONES)
    zero = bind(m, f"{name}_zero", ~x[EXPONENT].any() & ~some)
    return zero, bind(m, f"{name}_infinite", ones & ~some), bind(m, f"{name}_nan", ones & some)
