"""Credit of one virtual channel at the receiver."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.credit_tx import UNIT_SHIFT
from isa.link import CREDIT_BITS, LONG_GRANULES


class CreditReturn(wiring.Component):
    """Absolute limit that is sent to the peer: the buffer and all that has left it, in units.

    A buffer has `units` units, less than half of 2 ** `unit_bits` (ValueError otherwise).

    Members
    -------
    clear : In, pulse: as after reset, the buffer is empty.
    freed : In: granules (0..39) that leave the buffer in this cycle.
    total : Out: granules of the buffer + granules freed before, modulo 4 x 2 ** `unit_bits`.
    limit : Out: floor(total / 4).
    """

    def __init__(self, units, unit_bits=CREDIT_BITS):
        if not 1 <= units < 1 << (unit_bits - 1):
            raise ValueError(f"{units} units must be in 1..{(1 << (unit_bits - 1)) - 1}")
        self.units, self.unit_bits = units, unit_bits
        super().__init__(
            {
                "clear": In(1),
                "freed": In(range(LONG_GRANULES + 1)),
                "total": Out(unit_bits + UNIT_SHIFT, init=units << UNIT_SHIFT),
                "limit": Out(unit_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        capacity = self.units << UNIT_SHIFT
        m.d.comb += self.limit.eq(self.total >> UNIT_SHIFT)
        m.d.sync += self.total.eq(self.total + self.freed)
        with m.If(self.clear):
            m.d.sync += self.total.eq(capacity)
        return m
