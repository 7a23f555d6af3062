"""Round-robin choice among requesters."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class RoundRobin(wiring.Component):
    """Grants one of `count` requests, combinationally; the granted one becomes last in line when `advance` is high.

    Members: `request` (bit per requester), `grant` (one-hot or 0), `advance`.  A requester that keeps asking is granted after
    at most `count` - 1 others.
    """

    def __init__(self, count):
        if count < 1:
            raise ValueError(f"an arbiter needs at least one requester, not {count}")
        self.count = count
        self.tile_parameters = (count,)
        super().__init__({"request": In(count), "grant": Out(count), "advance": In(1)})

    def elaborate(self, platform):
        m = Module()
        # Requesters above the last one granted come first: mask, then lowest set bit.
        above = Signal(self.count, init=0)
        masked, pick = Signal(self.count), Signal(self.count)
        m.d.comb += [
            masked.eq(self.request & above),
            pick.eq(Mux(masked != 0, masked, self.request)),
            self.grant.eq(pick & (~pick + 1)[:self.count]),
        ]
        with m.If(self.advance & (self.grant != 0)):
            m.d.sync += above.eq(~(self.grant | (self.grant - 1))[:self.count])
        return m


def one_hot_mux(select, values):
    """OR of the values whose bit of `select` is set.  All values have one width; `select` is one-hot or zero."""
    width = len(values[0])
    result = Const(0, width)
    for bit, value in zip(select, values, strict=True):
        result = result | (value & bit.replicate(width))
    return result


def one_hot_index(select, count):
    """Position of the one set bit of `select` (of `count` bits), 0 when none is set."""
    bits = max(1, (count - 1).bit_length())
    return Cat(Cat(select[i] for i in range(count) if i >> bit & 1).any() if count > 1 else Const(0, 1) for bit in range(bits))
