"""Arithmetic and comparison of control instructions, on 32-bit registers.  Combinational."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.fields import Condition, RegOp


class RegisterAlu(wiring.Component):
    """`o` = `a` `op` `b` modulo 2^32; `holds` = `a` `cond` `b`.  Codes: `isa.fields` RegOp and
    Condition.
    """

    op: In(4)
    cond: In(3)
    a: In(32)
    b: In(32)
    o: Out(32)
    holds: Out(1)

    def elaborate(self, platform):
        m = Module()
        a, b = self.a, self.b
        results = {
            RegOp.MOVE: b,
            RegOp.ADD: a + b,
            RegOp.SUBTRACT: a - b,
            RegOp.MULTIPLY: a * b,
            RegOp.AND: a & b,
            RegOp.OR: a | b,
            RegOp.XOR: a ^ b,
            RegOp.SHIFT_LEFT: a << b[:5],
            RegOp.SHIFT_RIGHT: a >> b[:5],
        }
        with m.Switch(self.op):
            for op, result in results.items():
                with m.Case(op):
                    m.d.comb += self.o.eq(result)
        conditions = {
            Condition.ALWAYS: 1,
            Condition.EQ: a == b,
            Condition.NE: a != b,
            Condition.LT: a.as_signed() < b.as_signed(),
            Condition.GE: a.as_signed() >= b.as_signed(),
            Condition.LTU: a < b,
            Condition.GEU: a >= b,
        }
        with m.Switch(self.cond):
            for condition, holds in conditions.items():
                with m.Case(condition):
                    m.d.comb += self.holds.eq(holds)
        return m
