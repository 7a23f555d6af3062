"""FP32 to the integers of the chip."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import BIAS, EXPONENT, EXPONENT_ONES, FRACTION, SIGN
from hdl.arith.pipeline import PipelinedUnit, bind
from hdl.arith.shift import shift_right_sticky
from isa.dtypes import DType

_BITS = 32
_AMOUNT_BITS = 6


class FloatToInteger(PipelinedUnit):
    """o = the integer nearest to i, ties to even; the nearest end beyond the range; NaN gives 0.

    One result a cycle, latency `stages`. Equals `golden.arith.convert.to_integer`. Segments: shift
    | round | saturate, with a register behind each of them at 3 stages.

    Formats: binary32 in; signed and unsigned integers of 8, 16 and 32 bits out. Source: IEEE
    754-2019, 5.8 (convertToIntegerTiesToEven); what an invalid operand gives is docs/numerics.md's.

    Parameters
    ----------
    stages, enable : int, bool
        See `PipelinedUnit`.

    Members
    -------
    i : In(32)
        binary32; any code.
    dtype : In(4)
        Code of an integer of `isa.dtypes.DType`; travels with i.
    en : In(1), only with `enable`
    o : Out(32)
        Two's complement, extended to 32 bits.
    """

    PLACEMENT = ((), ("output",), ("shift", "output"), ("shift", "round", "output"))

    def __init__(self, *, stages=0, enable=False):
        members = {"i": In(32), "dtype": In(4, init=DType.INT32), "o": Out(_BITS)}
        super().__init__(members, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        i = self.i
        nan = bind(m, "nan", (i[EXPONENT] == EXPONENT_ONES) & i[FRACTION].any())
        # Bit 0 is the half, so that 1.0 with exponent 32 would stand at the top.
        significand = Cat(Const(0, _BITS + 1 - 24), i[FRACTION], i[EXPONENT].any())
        down = bind(m, "down", (BIAS + _BITS - 1 - i[EXPONENT])[:9])
        above = bind(m, "above", down[-1])
        far = bind(m, "far", down[_AMOUNT_BITS:-1].any())
        amount = bind(m, "amount", down[:_AMOUNT_BITS] | far.replicate(_AMOUNT_BITS))
        halves, below = shift_right_sticky(m, "halves", bind(m, "wide", significand), amount)
        s = self.cut(
            m,
            "shift",
            halves=halves,
            below=below,
            above=above,
            nan=nan,
            sign=i[SIGN],
            dtype=self.dtype,
        )

        up = bind(m, "up", s.halves[0] & (s.below | s.halves[1]))
        s = self.cut(
            m,
            "round",
            count=bind(m, "count", s.halves[1:] + up),
            above=s.above,
            nan=s.nan,
            sign=s.sign,
            dtype=s.dtype,
        )

        limit = Signal(_BITS)
        for dtype in (
            DType.INT8,
            DType.UINT8,
            DType.INT16,
            DType.UINT16,
            DType.INT32,
            DType.UINT32,
        ):
            bits = 8 * dtype.itemsize
            signed = dtype in (DType.INT8, DType.INT16, DType.INT32)
            with m.If(s.dtype == dtype):
                if signed:
                    m.d.comb += limit.eq((1 << (bits - 1)) - 1 + s.sign)
                else:
                    m.d.comb += limit.eq(Mux(s.sign, 0, (1 << bits) - 1))
        beyond = bind(m, "beyond", s.above | (s.count > limit))
        magnitude = bind(m, "magnitude", Mux(beyond, limit, s.count[:_BITS]))
        result = (Mux(s.sign, ~magnitude, magnitude) + s.sign)[:_BITS]
        o = result & (~s.nan).replicate(_BITS)
        m.d.comb += self.o.eq(self.cut(m, "output", o=o).o)
        return m
