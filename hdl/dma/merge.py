"""Descriptor fetch and row reads share one AXI read port, in order."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.dma.layout import OUTSTANDING_READS, source_word_layout
from hdl.lib.axi import AxiRead, address_layout
from hdl.lib.fifo import StreamFifo


class ReadMerge(wiring.Component):
    """Sends two sources of bursts to one port; the answers come in order, so a FIFO of origins
    tells whose they are.

    Members: `fetch_ar` (goes first), `data_ar` In streams; `fetch_valid`, `data_valid`, `r` Out,
    the answer of either, which must accept it; `port` Out AxiRead.  One burst a cycle, at most
    OUTSTANDING_READS outstanding.
    """

    def __init__(self, config):
        super().__init__(
            {
                "fetch_ar": In(stream.Signature(address_layout())),
                "data_ar": In(stream.Signature(address_layout())),
                "fetch_valid": Out(1),
                "data_valid": Out(1),
                "r": Out(source_word_layout()),
                "port": Out(AxiRead(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.origins = origins = StreamFifo(1, depth=OUTSTANDING_READS)
        port = self.port
        free, arrived = Signal(), Signal()
        m.d.comb += [
            free.eq((~port.ar.valid | port.ar.ready) & origins.i.ready),
            self.fetch_ar.ready.eq(free),
            self.data_ar.ready.eq(free & ~self.fetch_ar.valid),
            origins.i.valid.eq(free & (self.fetch_ar.valid | self.data_ar.valid)),
            origins.i.p.eq(self.fetch_ar.valid),
            port.r.ready.eq(1),
            arrived.eq(port.r.valid & port.r.ready),
            origins.o.ready.eq(arrived & port.r.p.last),
            self.fetch_valid.eq(arrived & origins.o.p),
            self.data_valid.eq(arrived & ~origins.o.p),
            self.r.data.eq(port.r.p.data),
            self.r.error.eq(port.r.p.resp[1]),
        ]
        with m.If(free):
            m.d.sync += port.ar.p.eq(self.data_ar.p)
            with m.If(self.fetch_ar.valid):
                m.d.sync += port.ar.p.eq(self.fetch_ar.p)
        with m.If(origins.i.valid):
            m.d.sync += port.ar.valid.eq(1)
        with m.Elif(port.ar.ready):
            m.d.sync += port.ar.valid.eq(0)
        return m
