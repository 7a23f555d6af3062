"""Round-robin choice among requesters."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.select import or_tree


class RoundRobin(wiring.Component):
    """Grants one of `count` requests, combinationally.

    The granted one becomes last in line when `advance` is high, so a requester that keeps asking
    is granted after at most `count` - 1 others.

    Members: `request` (bit per requester), `grant` (one-hot or 0), `advance`.
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
            self.grant.eq(pick & (~pick + 1)[: self.count]),
        ]
        with m.If(self.advance & (self.grant != 0)):
            m.d.sync += above.eq(~(self.grant | (self.grant - 1))[: self.count])
        return m


def one_hot_mux(select, values):
    """OR of the values whose bit of `select` is set: of a one-hot `select`, that value, else 0.

    All values have one width.
    """
    values = list(values)
    # A multiplexer and not a mask: simulators then do not build the mask.
    zero = Const(0, len(values[0]))
    return or_tree(Mux(bit, value, zero) for bit, value in zip(select, values, strict=True))


def one_hot_index(select, count):
    """Position of the one set bit of `select` (of `count` bits), 0 when none is set."""
    if count == 1:
        return Const(0, 1)
    return Cat(
        Cat(select[i] for i in range(count) if i >> bit & 1).any()
        for bit in range((count - 1).bit_length())
    )
