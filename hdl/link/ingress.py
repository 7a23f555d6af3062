"""Ingress: packets of the peer to memory and core window, as far as the windows allow."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.lib.axi import AxiRead, AxiWrite
from hdl.lib.localbus import BusRequest, LocalBus
from hdl.lib.merge import StreamMerge
from hdl.link.ingress_read import IngressRead
from hdl.link.ingress_write import IngressWrite
from hdl.link.packet import ADDRESS_BITS, Packer, granule_in_layout
from hdl.link.ports import REASON_BITS, packet_beat
from hdl.link.windows import Window, WindowCheck
from isa.link import LINK_WINDOWS


class Ingress(wiring.Component):
    """`IngressWrite` and `IngressRead` behind the windows, on one bus.

    Members: `posted`, `request` In streams of granules; `response` Out stream of `packet_beat`;
    `hbm_write`, `hbm_read`, `bus` Out; `window0`.. In; `flush` In pulse, with `lost`;
    `write_denied`, `read_denied`, `bus_error` Out pulses, `write_address`, `read_address` Out;
    `error` Out.
    """

    def __init__(self, config):
        self.config = config
        granules = stream.Signature(granule_in_layout())
        super().__init__(
            {
                "posted": In(granules),
                "request": In(granules),
                "response": Out(stream.Signature(packet_beat(config.link))),
                "hbm_write": Out(AxiWrite(config)),
                "hbm_read": Out(AxiRead(config)),
                "bus": Out(LocalBus()),
                **{f"window{i}": In(Window) for i in range(LINK_WINDOWS)},
                "flush": In(1),
                "write_denied": Out(1),
                "read_denied": Out(1),
                "bus_error": Out(1),
                "write_address": Out(ADDRESS_BITS),
                "read_address": Out(ADDRESS_BITS),
                "error": Out(REASON_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.writes = writes = IngressWrite(self.config)
        m.submodules.reads = reads = IngressRead(self.config)
        m.submodules.response_pack = pack = Packer(self.config.link)
        connect(m, flipped(self.posted), writes.i)
        connect(m, flipped(self.request), reads.i)
        connect(m, reads.o, pack.i)
        connect(m, pack.o, flipped(self.response))
        connect(m, writes.hbm, flipped(self.hbm_write))
        connect(m, reads.hbm, flipped(self.hbm_read))
        for name, part, write in (("write", writes, 1), ("read", reads, 0)):
            m.submodules[f"{name}_check"] = check = WindowCheck()
            m.d.comb += [
                *(
                    getattr(check, f"window{i}").eq(getattr(self, f"window{i}"))
                    for i in range(LINK_WINDOWS)
                ),
                check.address.eq(part.address),
                check.write.eq(write),
                part.allowed.eq(check.allowed),
                part.flush.eq(self.flush),
            ]
        m.d.comb += [
            pack.flush.eq(self.flush),
            self.write_denied.eq(writes.denied),
            self.read_denied.eq(reads.denied),
            self.bus_error.eq(writes.bus_error),
            self.write_address.eq(writes.address),
            self.read_address.eq(reads.address),
            self.error.eq(Mux(writes.error != 0, writes.error, reads.error)),
        ]
        self._bus(m, writes.bus, reads.bus)
        return m

    def _bus(self, m, *masters):
        """One access at a time; its answer goes to who asked."""
        m.submodules.bus_merge = merge = StreamMerge(BusRequest, len(masters))
        under_way, source = Signal(), Signal(len(masters))
        m.d.comb += [
            self.bus.req.valid.eq(merge.o.valid & ~under_way),
            self.bus.req.p.eq(merge.o.p),
            merge.o.ready.eq(self.bus.req.ready & ~under_way),
        ]
        with m.If(self.bus.req.valid & self.bus.req.ready):
            m.d.sync += [under_way.eq(1), source.eq(merge.source)]
        with m.If(self.bus.resp.valid & self.bus.resp.ready):
            m.d.sync += under_way.eq(0)
        for i, master in enumerate(masters):
            connect(m, master.req, getattr(merge, f"i{i}"))
            m.d.comb += [
                master.resp.valid.eq(self.bus.resp.valid & source[i]),
                master.resp.p.eq(self.bus.resp.p),
            ]
            with m.If(source[i]):
                m.d.comb += self.bus.resp.ready.eq(master.resp.ready)
