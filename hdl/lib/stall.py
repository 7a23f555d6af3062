"""StallGate: holds a stream back at will, for simulation."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.check import check_stream


class StallGate(wiring.Component):
    """Passes `i` to `o` unless `stall` is high; what has been offered stays offered until it is
    taken.

    Combinational, latency 0.  With `stall` constant 0 it is a wire.
    """

    def __init__(self, shape):
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "stall": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        offered, open_ = Signal(), Signal()
        m.d.comb += [
            open_.eq(offered | ~self.stall),
            self.o.valid.eq(self.i.valid & open_),
            self.i.ready.eq(self.o.ready & open_),
            self.o.p.eq(self.i.p),
        ]
        m.d.sync += offered.eq(self.o.valid & ~self.o.ready)
        check_stream(m, platform, self.i, "gate_i")
        check_stream(m, platform, self.o, "gate_o")
        return m
