"""AxiReadArbiter: the read halves of several masters onto one AXI4 port."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.axi import AxiRead, address_layout
from hdl.lib.merge import StreamMerge


class AxiReadArbiter(wiring.Component):
    """Requests round robin with the master's index as id; data go where their id says, in whatever
    order ids come.

    Members: master0, master1, ...: In(AxiRead), without ids; port: Out(AxiRead) with `id_bits`.
    Latency 0 both ways.
    """

    def __init__(self, config, masters, *, id_bits=None):
        self.config, self.masters = config, masters
        self.id_bits = ceil_log2(masters) if id_bits is None else id_bits
        if masters > 1 << self.id_bits:
            raise ValueError(f"{masters} AXI masters need more than {self.id_bits} id bits")
        super().__init__(
            {
                **{f"master{i}": In(AxiRead(config)) for i in range(masters)},
                "port": Out(AxiRead(config, self.id_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        masters = [getattr(self, f"master{i}") for i in range(self.masters)]
        m.submodules.merge = merge = StreamMerge(address_layout(), self.masters)
        ar, r = self.port.ar, self.port.r
        for i, master in enumerate(masters):
            wiring.connect(m, wiring.flipped(master.ar), getattr(merge, f"i{i}"))
        m.d.comb += [
            ar.valid.eq(merge.o.valid),
            merge.o.ready.eq(ar.ready),
            ar.p.id.eq(merge.index),
            ar.p.addr.eq(merge.o.p.addr),
            ar.p.len.eq(merge.o.p.len),
        ]
        for master in masters:
            m.d.comb += [
                master.r.p.data.eq(r.p.data),
                master.r.p.resp.eq(r.p.resp),
                master.r.p.last.eq(r.p.last),
            ]
        with m.Switch(r.p.id):
            for i, master in enumerate(masters):
                with m.Case(i):
                    m.d.comb += [master.r.valid.eq(r.valid), r.ready.eq(master.r.ready)]
        return m
