"""BF16 to the decoded operand of the tensor array."""

from amaranth.hdl import Cat, Const, Module
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import BIAS, EXPONENT_ONES
from hdl.arith.operand import SIGNIFICAND_BITS, Operand
from hdl.arith.pipeline import PipelinedUnit, bind
from hdl.arith.shift import leading_zeros, shift_left


class Bf16Decode(PipelinedUnit):
    """o = the operand with the value of i, exactly; subnormals are normalised.

    One result a cycle, latency `stages`.

    Members
    -------
    i : In(16)
        BF16; any code.
    en : In(1), only with `enable`
    o : Out(Operand)
    """

    def __init__(self, *, stages=0, enable=False):
        super().__init__({"i": In(16), "o": Out(Operand)}, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        fraction = self.i[:7]
        exponent = self.i[7:15]
        normal = bind(m, "normal", exponent.any())
        some = bind(m, "some", fraction.any())
        high = bind(m, "high", exponent == EXPONENT_ONES)
        significand = bind(m, "significand", Cat(fraction, normal))
        zeros = leading_zeros(m, "zeros", significand)
        biased = Cat(exponent[0] | ~normal, exponent[1:])
        s = self.cut(
            m,
            "output",
            sign=self.i[15],
            exponent=biased - zeros - BIAS,
            significand=shift_left(m, "normalise", significand, zeros[:3]),
            nan=high & some,
            inf=high & ~some,
            zero=zeros[-1],
        )
        below = Const(0, SIGNIFICAND_BITS - 8)
        m.d.comb += [
            self.o.sign.eq(s.sign),
            self.o.exponent.eq(s.exponent[: len(self.o.exponent)]),
            self.o.significand.eq(Cat(below, s.significand)),
            self.o.nan.eq(s.nan),
            self.o.inf.eq(s.inf),
            self.o.zero.eq(s.zero),
        ]
        return m
