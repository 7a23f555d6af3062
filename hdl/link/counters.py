"""Saturating 32-bit statistics with a snapshot."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

COUNTER_BITS = 32


class Statistics(wiring.Component):
    """Counters that stay at 2^32 - 1 once there, read through a copy that software takes of all of
    them at one time.

    Parameters
    ----------
    widths : sequence of int
        Bits of the amount that counter i grows by in a cycle.
    peaks : collection of int
        These counters take the largest amount instead of the sum.
    init : int
        Start value, for tests of the upper limit.

    Members
    -------
    amount0 .. : In(widths[i])
        Counted in the cycle after.
    clear, snapshot : In(1)
        Pulses.  Both at once: the copy has the values before the clearing.
    index : In
    value : Out(32)
        Copy of counter `index`, combinational; 0 for an index without a counter.
    """

    def __init__(self, widths, *, peaks=(), init=0):
        self.widths, self.peaks, self.init = tuple(widths), frozenset(peaks), init
        super().__init__(
            {
                **{f"amount{i}": In(width) for i, width in enumerate(self.widths)},
                "clear": In(1),
                "snapshot": In(1),
                "index": In(ceil_log2(max(2, len(self.widths)))),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for i, width in enumerate(self.widths):
            amount = Signal(width, name=f"taken{i}")
            count = Signal(COUNTER_BITS, name=f"count{i}", init=self.init)
            copy = Signal(COUNTER_BITS, name=f"copy{i}")
            m.d.sync += amount.eq(getattr(self, f"amount{i}"))
            if i in self.peaks:
                with m.If(amount > count):
                    m.d.sync += count.eq(amount)
            else:
                total = Signal(COUNTER_BITS + 1, name=f"total{i}")
                m.d.comb += total.eq(count + amount)
                m.d.sync += count.eq(
                    Mux(total[-1], Cat(1 for _ in range(COUNTER_BITS)), total[:COUNTER_BITS])
                )
            with m.If(self.clear):
                m.d.sync += count.eq(0)
            with m.If(self.snapshot):
                m.d.sync += copy.eq(count)
            with m.If(self.index == i):
                m.d.comb += self.value.eq(copy)
        return m
