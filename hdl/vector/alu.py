"""One ALU of a lane: add, subtract, multiply, maximum, minimum or pass, with a fixed latency."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32_add import Fp32Add
from hdl.arith.fp32_minmax import Fp32MinMax, MinMaxOp
from hdl.arith.fp32_mul import Fp32Mul
from isa.fields import AluOp


class Other(enum.Enum, shape=2):
    """What goes past adder and multiplier."""

    A = 0
    B = 1
    MINMAX = 2


class Select(enum.Enum, shape=2):
    """Which unit's result leaves."""

    OTHER = 0
    ADD = 1
    MULTIPLY = 2


class AluEntry(data.Struct):
    """Control that goes in with the operands. The signs are changed for the adder only."""

    negate_a: 1
    negate_b: 1
    minimum: 1
    other: Other


class AluOperation(data.Struct):
    """A whole operation: `entry` goes with the operands, `select` with the result."""

    entry: AluEntry
    select: Select


class Alu(wiring.Component):
    """o = a op b, one a cycle, `stages` cycles later; never stalls.

    Results are those of `golden.arith.float32`: NaN canonical, products flushed. What passes
    (`Other.A`, `Other.B`) keeps its bits.

    Members
    -------
    a, b : In(32)
        FP32 bits.
    entry : In(AluEntry)
    select : In(Select)
        Belongs to the operands of `stages` cycles ago.
    o : Out(32)
    """

    def __init__(self, *, stages):
        if not 1 <= stages <= 6:
            raise ValueError(f"an ALU has 1 to 6 stages, not {stages}")
        self.stages = self.latency = stages
        super().__init__({
            "a": In(32), "b": In(32), "entry": In(AluEntry), "select": In(Select), "o": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.add = add = Fp32Add(stages=self.stages)
        m.submodules.multiply = multiply = Fp32Mul(stages=self.stages)
        m.submodules.minmax = minmax = Fp32MinMax()
        m.d.comb += [
            # b - a = -a + b bit for bit: the adder commutes and has one NaN.
            add.a.eq(self.a ^ (self.entry.negate_a << 31)),
            add.b.eq(self.b ^ (self.entry.negate_b << 31)),
            multiply.a.eq(self.a), multiply.b.eq(self.b),
            minmax.a.eq(self.a), minmax.b.eq(self.b), minmax.op.eq(MinMaxOp(self.entry.minimum)),
        ]
        other = Signal(32)
        m.d.comb += other.eq(Mux(self.entry.other == Other.MINMAX, minmax.o,
                                 Mux(self.entry.other == Other.B, self.b, self.a)))
        for stage in range(self.stages):
            register = Signal(32, name=f"other{stage}", reset_less=True)
            m.d.sync += register.eq(other)
            other = register
        m.d.comb += self.o.eq(Mux(self.select == Select.ADD, add.o,
                                  Mux(self.select == Select.MULTIPLY, multiply.o, other)))
        return m


def decode_operation(m, operation, code, reverse):
    """Drives the AluOperation `operation`: a op b, or b op a when `reverse`; `code` is an AluOp."""
    entry = operation.entry
    m.d.comb += [entry.eq(0), operation.select.eq(Select.OTHER)]
    with m.Switch(code):
        with m.Case(AluOp.ADD):
            m.d.comb += operation.select.eq(Select.ADD)
        with m.Case(AluOp.SUBTRACT):
            m.d.comb += [operation.select.eq(Select.ADD),
                         entry.negate_a.eq(reverse), entry.negate_b.eq(~reverse)]
        with m.Case(AluOp.MULTIPLY):
            m.d.comb += operation.select.eq(Select.MULTIPLY)
        with m.Case(AluOp.MAX):
            m.d.comb += entry.other.eq(Other.MINMAX)
        with m.Case(AluOp.MIN):
            m.d.comb += [entry.other.eq(Other.MINMAX), entry.minimum.eq(1)]
