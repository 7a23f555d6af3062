"""AxiWriteArbiter: the write halves of several masters onto one AXI4 port."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.axi import AxiWrite, address_layout
from hdl.lib.fifo import StreamFifo
from hdl.lib.merge import StreamMerge

_BURSTS = 8
"""Bursts whose address is out and whose data are not."""


class AxiWriteArbiter(wiring.Component):
    """Addresses round robin with the master's index as id; data follow in the order of the
    addresses; responses go where their id says.

    Members: master0, master1, ...: In(AxiWrite), without ids; port: Out(AxiWrite) with `id_bits`.
    Latency 0 for addresses and responses, 1 from a burst's address to its first datum.
    """

    def __init__(self, config, masters, *, id_bits=None):
        self.config, self.masters = config, masters
        self.id_bits = ceil_log2(masters) if id_bits is None else id_bits
        if masters > 1 << self.id_bits:
            raise ValueError(f"{masters} AXI masters need more than {self.id_bits} id bits")
        super().__init__(
            {
                **{f"master{i}": In(AxiWrite(config)) for i in range(masters)},
                "port": Out(AxiWrite(config, self.id_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        masters = [getattr(self, f"master{i}") for i in range(self.masters)]
        m.submodules.merge = merge = StreamMerge(address_layout(), self.masters)
        m.submodules.order = order = StreamFifo(max(1, ceil_log2(self.masters)), depth=_BURSTS)
        aw, w, b = self.port.aw, self.port.w, self.port.b
        for i, master in enumerate(masters):
            wiring.connect(m, wiring.flipped(master.aw), getattr(merge, f"i{i}"))
        # An address goes out only with its place in the order of data; room there never goes away,
        # so valid holds.
        m.d.comb += [
            aw.valid.eq(merge.o.valid & order.i.ready),
            merge.o.ready.eq(aw.ready & order.i.ready),
            aw.p.id.eq(merge.index),
            aw.p.addr.eq(merge.o.p.addr),
            aw.p.len.eq(merge.o.p.len),
            order.i.valid.eq(merge.o.valid & aw.ready),
            order.i.p.eq(merge.index),
            order.o.ready.eq(w.valid & w.ready & w.p.last),
        ]
        with m.If(order.o.valid), m.Switch(order.o.p):
            for i, master in enumerate(masters):
                with m.Case(i):
                    m.d.comb += [
                        w.valid.eq(master.w.valid),
                        master.w.ready.eq(w.ready),
                        w.p.data.eq(master.w.p.data),
                        w.p.strb.eq(master.w.p.strb),
                        w.p.last.eq(master.w.p.last),
                    ]
        for master in masters:
            m.d.comb += master.b.p.resp.eq(b.p.resp)
        with m.Switch(b.p.id):
            for i, master in enumerate(masters):
                with m.Case(i):
                    m.d.comb += [master.b.valid.eq(b.valid), b.ready.eq(master.b.ready)]
        return m
