"""Which destinations are in flight, and whether an instruction must wait for one of them."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.issue import EXTENT_BITS


class Extent(data.Struct):
    """Bytes [low, high) of every partition of a space; space NONE (0) touches nothing."""

    space: 2
    low: EXTENT_BITS
    high: EXTENT_BITS


class HazardTracker(wiring.Component):
    """Destinations of the instructions in flight, oldest first out.

    Partitions are ignored: a false overlap costs time, never a result.

    Parameters
    ----------
    depth : int
        Destinations that may be in flight, a power of two.
    sources : int
        Extents compared at once.

    Members
    -------
    source : In(Extent) x `sources`
    hit : Out(1)
        A source shares a byte with a destination in flight. Combinational; without a push it can
        only fall.
    push : In(1), destination : In(Extent)
        Adds a destination; only while not `full`. It is compared from the next cycle on.
    pop : In(1)
        The oldest destination is complete.
    full, empty : Out(1)
    """

    def __init__(self, *, depth=4, sources=4):
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"hazard tracker depth {depth} must be a power of two, at least 2")
        if sources < 1:
            raise ValueError(f"hazard tracker with {sources} sources")
        self.depth, self.sources = depth, sources
        super().__init__(
            {
                "source": In(Extent).array(sources),
                "hit": Out(1),
                "push": In(1),
                "destination": In(Extent),
                "pop": In(1),
                "full": Out(1),
                "empty": Out(1, init=1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = ceil_log2(self.depth)
        newest, oldest = Signal(bits), Signal(bits)
        valid = Signal(self.depth)
        hits = []
        for slot in range(self.depth):
            entry = Signal(Extent, name=f"entry{slot}")
            with m.If(self.push & (newest == slot)):
                m.d.sync += [entry.eq(self.destination), valid[slot].eq(1)]
            with m.Elif(self.pop & (oldest == slot)):
                m.d.sync += valid[slot].eq(0)
            for index in range(self.sources):
                source = self.source[index]
                hit = Signal(name=f"hit{slot}_{index}")
                m.d.comb += hit.eq(
                    valid[slot]
                    & (source.space == entry.space)
                    & (source.space != 0)
                    & (source.low < entry.high)
                    & (entry.low < source.high)
                )
                hits.append(hit)
        m.d.sync += [newest.eq(newest + self.push), oldest.eq(oldest + self.pop)]
        m.d.comb += [
            self.hit.eq(Cat(hits).any()),
            self.full.eq(valid.all()),
            self.empty.eq(~valid.any()),
        ]
        return m
