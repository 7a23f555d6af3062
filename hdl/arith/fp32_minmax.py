"""FP32 maximum, minimum and rectifier."""

from amaranth.hdl import C, Cat, Module, Mux
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import EXPONENT, EXPONENT_ONES, FRACTION, MAGNITUDE, NAN_BITS, SIGN
from hdl.arith.pipeline import PipelinedUnit, bind


class MinMaxOp(enum.Enum, shape=1):
    MAXIMUM = 0
    MINIMUM = 1


class Fp32MinMax(PipelinedUnit):
    """o = the larger or smaller of a and b, -0 below +0; NaN if either is NaN.

    One result a cycle, latency `stages` (combinational by default). Equals
    `golden.arith.float32.maximum` and `minimum` bit for bit.

    Members
    -------
    a, b : In(32)
        binary32 operands; any code.
    op : In(MinMaxOp)
    en : In(1), only with `enable`
    o : Out(32)
    """

    def __init__(self, *, stages=0, enable=False):
        members = {"a": In(32), "b": In(32), "op": In(MinMaxOp), "o": Out(32)}
        super().__init__(members, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        # Of equal operands either will do.
        a_smaller = bind(m, "a_smaller", self.a[MAGNITUDE] < self.b[MAGNITUDE])
        negative = bind(m, "negative", self.a[SIGN])
        differ = bind(m, "differ", self.a[SIGN] ^ self.b[SIGN])
        below = bind(m, "below", Mux(differ, negative, a_smaller ^ negative))
        take_b = bind(m, "take_b", below ^ (self.op == MinMaxOp.MINIMUM))
        nan = bind(m, "nan", _is_nan(self.a) | _is_nan(self.b))
        o = Mux(nan, C(NAN_BITS, 32), Mux(take_b, self.b, self.a))
        m.d.comb += self.o.eq(self.cut(m, "output", o=o).o)
        return m


class Fp32Relu(PipelinedUnit):
    """o = max(i, +0): NaN stays NaN (canonical), -0 becomes +0. Latency `stages`.

    Members
    -------
    i : In(32)
        binary32; any code.
    en : In(1), only with `enable`
    o : Out(32)
    """

    def __init__(self, *, stages=0, enable=False):
        super().__init__({"i": In(32), "o": Out(32)}, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        nan = bind(m, "nan", _is_nan(self.i))
        kept = self.i[MAGNITUDE] & (~self.i[SIGN]).replicate(31)
        o = Mux(nan, C(NAN_BITS, 32), Cat(kept, C(0, 1)))
        m.d.comb += self.o.eq(self.cut(m, "output", o=o).o)
        return m


def _is_nan(x):
    return (x[EXPONENT] == EXPONENT_ONES) & x[FRACTION].any()
