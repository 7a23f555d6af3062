"""CommitFifo: a FIFO whose words become visible together, or not at all."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.check import check_stream
from hdl.lib.ram import BlockRam
from hdl.lib.tile import add_tile


class CommitFifo(wiring.Component):
    """FIFO of `depth` words (a power of two) in block RAM, one word a cycle in and out.

    A word that is put is seen at the output only after `commit`, 2 cycles later at the earliest.

    Members
    -------
    i, o : In, Out streams of `width` bits
    commit : In, pulse
        Everything put so far, this cycle's word included, becomes visible.
    rollback : In, pulse
        Everything put since the last `commit`, this cycle's word included, is forgotten.
    free : Out
        Words of room.
    """

    def __init__(self, width, *, depth):
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"FIFO depth {depth} must be a power of two, at least 2")
        self.width, self.depth = width, depth
        super().__init__(
            {
                "i": In(stream.Signature(width)),
                "commit": In(1),
                "rollback": In(1),
                "o": Out(stream.Signature(width)),
                "free": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = ceil_log2(self.depth)
        ram = add_tile(m, platform, "ram", BlockRam(width=self.width, depth=self.depth))
        # One bit more than an address: equal pointers are empty, a lap apart is full.
        put_at, put_next, committed, read_at = (
            Signal(bits + 1, name=name) for name in ("put_at", "put_next", "committed", "read_at")
        )
        used, put, load = Signal(bits + 1), Signal(), Signal()
        m.d.comb += [
            used.eq(put_at - read_at),
            self.free.eq(self.depth - used),
            self.i.ready.eq(used != self.depth),
            put.eq(self.i.valid & self.i.ready),
            put_next.eq(put_at + put),
            load.eq(~self.o.valid | self.o.ready),
            ram.w_en.eq(put),
            ram.w_addr.eq(put_at[:bits]),
            ram.w_data.eq(self.i.p),
            ram.r_en.eq(load & (committed != read_at)),
            ram.r_addr.eq(read_at[:bits]),
            self.o.p.eq(ram.r_data),
        ]
        m.d.sync += put_at.eq(put_next)
        with m.If(self.rollback):
            m.d.sync += put_at.eq(committed)
        with m.Elif(self.commit):
            m.d.sync += committed.eq(put_next)
        with m.If(load):
            m.d.sync += [self.o.valid.eq(ram.r_en), read_at.eq(read_at + ram.r_en)]
        check_stream(m, platform, self.i, "commit_fifo_i")
        check_stream(m, platform, self.o, "commit_fifo_o")
        return m
