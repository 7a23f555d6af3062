"""PeerBus: single accesses of host and sequencers to the peers of the links."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.axi import AxiRead, AxiWrite
from hdl.lib.localbus import BUS_BITS, BusRequest, LocalBus
from hdl.lib.merge import StreamMerge
from isa.address_map import PEER_WINDOW_BITS


class PeerBus(wiring.Component):
    """Stands before the `Bus`: accesses to the window of an existing link port become AXI bursts of
    one beat, all others pass.

    Accesses to peers take turns among themselves and never hold up the `Bus`: two chips that read
    each other's memories would else wait for each other.

    Members
    -------
    master0 .. : In(LocalBus), bus0 .. : Out(LocalBus)
        As of `Bus`, `masters` of them.
    read, write : Out(AxiRead), Out(AxiWrite)
        With the whole address.
    """

    def __init__(self, config, *, masters):
        self.config, self.masters = config, masters
        super().__init__(
            {
                **{f"master{i}": In(LocalBus()) for i in range(masters)},
                **{f"bus{i}": Out(LocalBus()) for i in range(masters)},
                "read": Out(AxiRead(config)),
                "write": Out(AxiWrite(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.merge = merge = StreamMerge(BusRequest, self.masters)
        request, source = Signal(BusRequest), Signal(self.masters)
        result, error, answering = Signal(BUS_BITS), Signal(), Signal()
        taken = Signal()
        for i in range(self.masters):
            master, bus = getattr(self, f"master{i}"), getattr(self, f"bus{i}")
            peer, port = Signal(name=f"peer{i}"), getattr(merge, f"i{i}")
            mine, window = Signal(name=f"mine{i}"), master.req.p.address[PEER_WINDOW_BITS:]
            m.d.comb += [
                peer.eq((window != 0) & (window <= self.config.links)),
                bus.req.p.eq(master.req.p),
                port.p.eq(master.req.p),
                bus.req.valid.eq(master.req.valid & ~peer),
                port.valid.eq(master.req.valid & peer),
                mine.eq(answering & source[i]),
            ]
            with m.If(peer):
                m.d.comb += master.req.ready.eq(port.ready)
            with m.Else():
                m.d.comb += master.req.ready.eq(bus.req.ready)
            # A master has one access under way, so only one of the two answers.
            with m.If(mine):
                m.d.comb += [
                    master.resp.valid.eq(1),
                    master.resp.p.data.eq(result),
                    master.resp.p.error.eq(error),
                ]
                with m.If(master.resp.ready):
                    m.d.comb += taken.eq(1)
            with m.Else():
                m.d.comb += [
                    master.resp.valid.eq(bus.resp.valid),
                    master.resp.p.eq(bus.resp.p),
                    bus.resp.ready.eq(master.resp.ready),
                ]
        self._access(m, merge, request, source, result, error, answering, taken)
        return m

    def _access(self, m, merge, request, source, result, error, answering, taken):
        read, write = self.read, self.write
        m.d.comb += [
            read.ar.p.addr.eq(request.address),
            write.aw.p.addr.eq(request.address),
            write.w.p.data.eq(request.data),
            write.w.p.strb.eq(request.strb),
            write.w.p.last.eq(1),
        ]
        with m.FSM(name="peer_bus"):
            with m.State("ACCEPT"):
                m.d.comb += merge.o.ready.eq(1)
                m.d.sync += [request.eq(merge.o.p), source.eq(merge.source), result.eq(0)]
                with m.If(merge.o.valid & merge.o.p.write):
                    m.next = "WRITE"
                with m.Elif(merge.o.valid):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += read.ar.valid.eq(1)
                with m.If(read.ar.ready):
                    m.next = "AWAIT_READ"
            with m.State("AWAIT_READ"):
                m.d.comb += read.r.ready.eq(1)
                m.d.sync += [result.eq(read.r.p.data), error.eq(read.r.p.resp[1])]
                with m.If(read.r.valid):
                    m.next = "ANSWER"
            with m.State("WRITE"):
                m.d.comb += write.aw.valid.eq(1)
                with m.If(write.aw.ready):
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += write.w.valid.eq(1)
                with m.If(write.w.ready):
                    m.next = "AWAIT_WRITE"
            with m.State("AWAIT_WRITE"):
                m.d.comb += write.b.ready.eq(1)
                m.d.sync += error.eq(write.b.p.resp[1])
                with m.If(write.b.valid):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += answering.eq(1)
                with m.If(taken):
                    m.next = "ACCEPT"
