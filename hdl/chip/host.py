"""HostPort: the host's AXI4 slave port as a master of the local bus."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.axi import ADDRESS_BITS, LENGTH_BITS, AxiRead, AxiWrite, Resp
from hdl.lib.localbus import LocalBus
from isa.geometry import WORD_BYTES

HOST_ID_BITS = 4


class HostPort(wiring.Component):
    """One burst at a time, reads and writes in turn, a bus access per beat; an error of any beat
    answers SLVERR (of a write: in its response, the other beats are still written).

    Members: read: In(AxiRead), write: In(AxiWrite), with HOST_ID_BITS ids; bus: Out(LocalBus).
    INCR bursts of whole beats.
    """

    def __init__(self, config):
        super().__init__(
            {
                "read": In(AxiRead(config, HOST_ID_BITS)),
                "write": In(AxiWrite(config, HOST_ID_BITS)),
                "bus": Out(LocalBus()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        address, left = Signal(ADDRESS_BITS), Signal(LENGTH_BITS)
        identity, failed, wrote_last = Signal(HOST_ID_BITS), Signal(), Signal()
        last, data = Signal(), Signal(8 * WORD_BYTES)
        ar, r = self.read.ar, self.read.r
        aw, w, b = self.write.aw, self.write.w, self.write.b
        req, resp = self.bus.req, self.bus.resp
        m.d.comb += [
            req.p.address.eq(address),
            req.p.strb.eq(w.p.strb),
            req.p.data.eq(w.p.data),
            r.p.id.eq(identity),
            r.p.data.eq(data),
            r.p.last.eq(last),
            b.p.id.eq(identity),
        ]

        def accept(channel):
            return [
                identity.eq(channel.p.id),
                address.eq(channel.p.addr & ~(WORD_BYTES - 1)),
                left.eq(channel.p.len),
                failed.eq(0),
            ]

        with m.FSM(name="host"):
            with m.State("ACCEPT"):
                with m.If(ar.valid & (wrote_last | ~aw.valid)):
                    m.d.comb += ar.ready.eq(1)
                    m.d.sync += [*accept(ar), wrote_last.eq(0)]
                    m.next = "READ"
                with m.Elif(aw.valid):
                    m.d.comb += aw.ready.eq(1)
                    m.d.sync += [*accept(aw), wrote_last.eq(1)]
                    m.next = "WRITE"
            with m.State("READ"):
                m.d.comb += req.valid.eq(1)
                with m.If(req.ready):
                    m.next = "AWAIT_READ"
            with m.State("AWAIT_READ"):
                m.d.comb += resp.ready.eq(1)
                with m.If(resp.valid):
                    m.d.sync += [data.eq(resp.p.data), failed.eq(resp.p.error), last.eq(left == 0)]
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += r.valid.eq(1)
                with m.If(failed):
                    m.d.comb += r.p.resp.eq(Resp.SLVERR)
                with m.If(r.ready):
                    m.d.sync += [address.eq(address + WORD_BYTES), left.eq(left - 1)]
                    with m.If(last):
                        m.next = "ACCEPT"
                    with m.Else():
                        m.next = "READ"
            with m.State("WRITE"):
                m.d.comb += [req.valid.eq(w.valid), req.p.write.eq(1), w.ready.eq(req.ready)]
                with m.If(w.valid & req.ready):
                    m.d.sync += last.eq(w.p.last)
                    m.next = "AWAIT_WRITE"
            with m.State("AWAIT_WRITE"):
                m.d.comb += resp.ready.eq(1)
                with m.If(resp.valid):
                    m.d.sync += [failed.eq(failed | resp.p.error), address.eq(address + WORD_BYTES)]
                    with m.If(last):
                        m.next = "CONFIRM"
                    with m.Else():
                        m.next = "WRITE"
            with m.State("CONFIRM"):
                m.d.comb += b.valid.eq(1)
                with m.If(failed):
                    m.d.comb += b.p.resp.eq(Resp.SLVERR)
                with m.If(b.ready):
                    m.next = "ACCEPT"
        return m
