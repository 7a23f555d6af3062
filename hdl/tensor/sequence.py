"""Order between loads and multiplies, and the in-order reports of both."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.fifo import StreamFifo

IN_FLIGHT = 32
"""Instructions between issue and completion.  Even an array of 128 rows at 6 adder stages, 800
cycles deep, holds no more of them when they come at the rate of the start-up cost."""
SEQUENCE_BITS = 6
"""Width of the running numbers of loads and swaps: they are compared for equality, and never differ
by 2^6 as less than that many instructions are in flight."""


class InOrderReport(wiring.Component):
    """Turns the events of two units, each in its own order, into pulses in the order of issue.

    Members
    -------
    issue : In(stream of the unit, 0 or 1)
        One entry per instruction; room for `IN_FLIGHT`.
    event : In(2)
        Bit u: the oldest instruction of unit u that has not reported yet is done.
    pulse : Out(1)
        The oldest instruction of all is done; at least a cycle after its event, at most one a
        cycle.
    """

    def __init__(self):
        super().__init__(
            {
                "issue": In(stream.Signature(1)),
                "event": In(2),
                "pulse": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.order = order = StreamFifo(1, depth=IN_FLIGHT)
        wiring.connect(m, wiring.flipped(self.issue), order.i)
        ready = Signal(2)
        for unit in range(2):
            # Events can come a cycle before the entry is visible, never before it is put.
            waiting = Signal(range(IN_FLIGHT + 1), name=f"waiting{unit}")
            report = Signal(name=f"report{unit}")
            m.d.comb += [
                ready[unit].eq(waiting != 0),
                report.eq(self.pulse & (order.o.payload == unit)),
            ]
            m.d.sync += waiting.eq(waiting + self.event[unit] - report)
        m.d.comb += [
            self.pulse.eq(order.o.valid & ready.bit_select(order.o.payload, 1)),
            order.o.ready.eq(self.pulse),
        ]
        return m
