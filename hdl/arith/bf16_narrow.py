"""FP32 to BF16: round to nearest even."""

from amaranth.hdl import C, Module, Mux
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import EXPONENT, EXPONENT_ONES, FRACTION
from hdl.arith.pipeline import PipelinedUnit, bind

_NAN_BITS = 0x7FC0


class Bf16Narrow(PipelinedUnit):
    """o = the BF16 nearest to i, ties to even. One result a cycle, latency `stages`.

    Gradual underflow, overflow to infinity, canonical NaN: equals `golden.arith.bfloat16.narrow`.

    Members
    -------
    i : In(32)
        binary32; any code.
    en : In(1), only with `enable`
    o : Out(16)
    """

    def __init__(self, *, stages=0, enable=False):
        super().__init__({"i": In(32), "o": Out(16)}, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        nan = bind(m, "nan", (self.i[EXPONENT] == EXPONENT_ONES) & self.i[FRACTION].any())
        round_up = bind(m, "round_up", self.i[15] & (self.i[:15].any() | self.i[16]))
        # A carry out of the fraction is right at binade boundaries and into infinity; infinity
        # itself does not round.
        rounded = bind(m, "rounded", (self.i[16:] + round_up)[:16])
        o = Mux(nan, C(_NAN_BITS, 16), rounded)
        m.d.comb += self.o.eq(self.cut(m, "output", o=o).o)
        return m
