"""One ALU of a lane: all fast operators, or pass, with a fixed latency."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32_add import Fp32Add
from hdl.arith.fp32_compare import CompareOp, Fp32Compare
from hdl.arith.fp32_mul import Fp32Mul
from hdl.arith.integer import IntegerOp, IntegerUnit


class Other(enum.Enum, shape=2):
    """What goes past adder, multiplier and integer unit."""

    A = 0
    B = 1
    COMPARE = 2
    SLOW = 3


class Select(enum.Enum, shape=2):
    """Which unit's result leaves."""

    OTHER = 0
    ADD = 1
    MULTIPLY = 2
    INTEGER = 3


class AluEntry(data.Struct):
    """Control that goes in with the operands. The signs are changed for the adder only."""

    negate_a: 1
    negate_b: 1
    other: Other
    compare: CompareOp
    integer: IntegerOp


class AluOperation(data.Struct):
    """A whole operation: `entry` goes with the operands, `select` with the result."""

    entry: AluEntry
    select: Select


class Alu(wiring.Component):
    """o = a op b, one a cycle, `stages` cycles later; never stalls.

    Results are those of `golden.arith.operators`: NaN canonical, products flushed. What passes
    (`Other.A`, `Other.B`, `Other.SLOW`) keeps its bits.

    Parameters
    ----------
    stages : int
    slow : bool
        Adds the input `slow`; else `Other.SLOW` is like `Other.A`.

    Members
    -------
    a, b : In(32)
        FP32 bits, or words for `Select.INTEGER`.
    slow : In(32), only with `slow`
        Result of the slow unit for a and b.
    entry : In(AluEntry)
    select : In(Select)
        Belongs to the operands of `stages` cycles ago.
    o : Out(32)
    """

    def __init__(self, *, stages, slow=False):
        if not 1 <= stages <= 6:
            raise ValueError(f"an ALU has 1 to 6 stages, not {stages}")
        self.stages = self.latency = stages
        self._slow = slow
        super().__init__({
            "a": In(32), "b": In(32), "entry": In(AluEntry), "select": In(Select), "o": Out(32),
            **({"slow": In(32)} if slow else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.add = add = Fp32Add(stages=self.stages)
        m.submodules.multiply = multiply = Fp32Mul(stages=self.stages)
        m.submodules.compare = compare = Fp32Compare()
        m.submodules.integer = integer = IntegerUnit(stages=self.stages)
        m.d.comb += [
            # b - a = -a + b bit for bit: the adder commutes and has one NaN.
            add.a.eq(self.a ^ (self.entry.negate_a << 31)),
            add.b.eq(self.b ^ (self.entry.negate_b << 31)),
            multiply.a.eq(self.a), multiply.b.eq(self.b),
            compare.a.eq(self.a), compare.b.eq(self.b), compare.op.eq(self.entry.compare),
            integer.a.eq(self.a), integer.b.eq(self.b), integer.op.eq(self.entry.integer),
        ]
        other = Signal(32)
        with m.Switch(self.entry.other):
            with m.Case(Other.COMPARE):
                m.d.comb += other.eq(compare.o)
            with m.Case(Other.B):
                m.d.comb += other.eq(self.b)
            if self._slow:
                with m.Case(Other.SLOW):
                    m.d.comb += other.eq(self.slow)
            with m.Default():
                m.d.comb += other.eq(self.a)
        for stage in range(self.stages):
            register = Signal(32, name=f"other{stage}", reset_less=True)
            m.d.sync += register.eq(other)
            other = register
        select = self.select.as_value()
        m.d.comb += self.o.eq(Mux(
            select[1],
            Mux(select[0], integer.o, multiply.o),
            Mux(select[0], add.o, other),
        ))
        return m
