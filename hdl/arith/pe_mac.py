"""The multiplier of a processing element. Its adder is `hdl.arith.fp32_add.Fp32Add`."""

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import BIAS, EXPONENT_ONES, pack_special
from hdl.arith.operand import EXPONENT_BITS, RAW_BITS, SIGNIFICAND_BITS, Operand
from hdl.arith.pipeline import PipelinedUnit, bind


class PeMultiply(PipelinedUnit):
    """o = a * b as binary32, or -0 while `active` is 0. One result a cycle, latency `stages`.

    A product of two 12-bit significands has at most 24 bits and so is never rounded: it is a
    binary32 number, infinity above the largest, or zero of its sign below 2^-126. An unused row
    adds -0 to the partial sum, which leaves every partial sum, +0 and -0 included, as it is.

    Where a holds raw bits and b is `PASS`, o is the 16 bits with zeros above: a binary32 subnormal,
    which an adder keeps.

    Segments: multiply | pack, with a register behind each at 2 stages; further stages stand
    behind the multiplier.

    Formats: `Operand` in, binary32 out. Source: IEEE 754-2019, 5.4.1; the flush is
    docs/numerics.md's.

    Members
    -------
    a, b : In(Operand)
        Decoded operands.
    active : In(1)
        The row is in use; travels with a and b.
    en : In(1), only with `enable`
    o : Out(32)
        The product.
    """

    PLACEMENT = ((), ("multiply",), ("multiply", "output"))
    SURPLUS = "multiply"

    def __init__(self, *, stages=0, enable=False):
        members = {"a": In(Operand), "b": In(Operand), "active": In(1), "o": Out(32)}
        super().__init__(members, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        a, b = self.a, self.b

        zero_times_inf = bind(m, "zero_times_inf", (a.inf & b.zero) | (a.zero & b.inf))
        raw = bind(m, "raw", b.nan & b.inf)
        s = self.cut(
            m,
            "multiply",
            product=a.significand * b.significand,
            exponent=(a.exponent + b.exponent + BIAS)[:EXPONENT_BITS].as_signed(),
            sign=(a.sign ^ b.sign) | ~self.active,
            nan=self.active & ~raw & (a.nan | b.nan | zero_times_inf),
            inf=self.active & ~raw & (a.inf | b.inf),
            # Of raw bits the exponent is not one.
            zero=~self.active | a.zero | b.zero | raw,
            raw=self.active & raw,
        )

        # The product of two significands is in [1, 4); raw bits are at its low end.
        high = bind(m, "high", s.product[23] | s.raw)
        fraction = bind(m, "fraction", Mux(high, s.product[:23], Cat(Const(0, 1), s.product[:22])))
        exponent = bind(m, "exponent", s.exponent + high)
        keep = bind(m, "keep", ~(s.zero | (exponent <= 0)))
        keep_fraction = bind(m, "keep_fraction", keep | s.raw)
        above = bind(
            m, "above", Mux(s.raw, s.exponent[: RAW_BITS - SIGNIFICAND_BITS], 0) << SIGNIFICAND_BITS
        )
        result = pack_special(
            sign=s.sign,
            exponent=Mux(keep, exponent[:8], 0),
            fraction=Mux(keep_fraction, fraction, 0) | above,
            nan=s.nan,
            infinite=s.inf | (keep & (exponent >= EXPONENT_ONES)),
        )
        m.d.comb += self.o.eq(self.cut(m, "output", o=result).o)
        return m
