"""Stream FIFOs."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.check import check_stream
from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile


class StreamFifo(wiring.Component):
    """FIFO of `depth` (a power of two, at least 2) payloads, the first at its output.

    Members: `i`, `o` streams of `shape`; `level` entries held.  Latency 1 cycle, throughput 1 per
    cycle; no combinational path between the two sides.
    """

    def __init__(self, shape, *, depth):
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"FIFO depth {depth} must be a power of two, at least 2")
        self.shape, self.depth = shape, depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = ceil_log2(self.depth)
        width = len(self.i.p.as_value()) if hasattr(self.i.p, "as_value") else len(self.i.p)
        put, take = Signal(), Signal()
        w_ptr, r_ptr = Signal(bits), Signal(bits)
        ram = add_tile(m, platform, "ram", LutRam(width=width, depth=self.depth))
        m.d.comb += [
            self.i.ready.eq(self.level != self.depth),
            self.o.valid.eq(self.level != 0),
            put.eq(self.i.valid & self.i.ready),
            take.eq(self.o.valid & self.o.ready),
            ram.w_en.eq(put),
            ram.w_addr.eq(w_ptr),
            ram.w_data.eq(self.i.p),
            ram.r_addr.eq(r_ptr),
            self.o.p.eq(ram.r_data),
        ]
        m.d.sync += [
            w_ptr.eq(w_ptr + put),
            r_ptr.eq(r_ptr + take),
            self.level.eq(Mux(put == take, self.level, Mux(put, self.level + 1, self.level - 1))),
        ]
        check_stream(m, platform, self.i, "fifo_i")
        check_stream(m, platform, self.o, "fifo_o")
        return m
