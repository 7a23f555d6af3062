"""Bridge: the transaction layer of a link port."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.lib.axi import AxiRead, AxiWrite
from hdl.lib.localbus import LocalBus
from hdl.link.egress import Egress
from hdl.link.ingress import Ingress
from hdl.link.packet import SESSION_BITS, PacketDemux
from hdl.link.ports import REASON_BITS, RegisterAccess, packet_beat, received_beat
from hdl.link.windows import BridgeRegisters
from isa.link import LINK_WINDOWS, VC_POSTED, VC_REQUEST, VC_RESPONSE, VCS


def bridge_id_bits(config):
    """Bits of the AXI ids in front of a bridge: DMA engines, and the single accesses."""
    return ceil_log2(config.dma_engines + 1)


class Bridge(wiring.Component):
    """AXI requests to packets and packets to accesses, in both directions.  See docs/link.md,
    `hdl.link.egress_write`, `egress_read`, `ingress_write` and `ingress_read`.

    Nothing waits for ever: a request is answered by its completion, when the session is lost, or
    at once while `failed` is high.

    Members
    -------
    read, write : In(AxiRead), In(AxiWrite) with `bridge_id_bits(config)`
        Requests, whose addresses are below 2^45.
    tx0 .. tx7 : Out streams of `packet_beat`, rx : In stream of `received_beat`, rx_open : Out(8)
        Of the `LinkPort`.  In the cycle of `lost` it takes what is offered on `tx` and throws it
        away; the rest of a packet that is cut off so follows, and is thrown away too.  What is on
        `rx` in that cycle is dropped.
    lost : In pulse, failed : In
        `failed` rises with `lost`, if it does.
    hbm_read, hbm_write : Out(AxiRead), Out(AxiWrite), without ids
    bus : Out(LocalBus)
        To the core window.
    registers : In(RegisterAccess)
        All accesses to the block of the link (CONTROL.CLEAR counts); offsets that are not of the
        bridge read 0.
    packet_error : Out(5)
        Reason for a cycle: a bad packet.
    window_denied : Out, pulse
    """

    def __init__(self, config):
        self.config = config
        link, ids = config.link, bridge_id_bits(config)
        self.tile_parameters = (config.hbm_bytes, config.dma_engines, link.beat_bytes, link.lanes)
        super().__init__(
            {
                "read": In(AxiRead(config, ids)),
                "write": In(AxiWrite(config, ids)),
                **{f"tx{vc}": Out(stream.Signature(packet_beat(link))) for vc in range(VCS)},
                "rx": In(stream.Signature(received_beat(link))),
                "rx_open": Out(VCS),
                "lost": In(1),
                "failed": In(1),
                "hbm_read": Out(AxiRead(config)),
                "hbm_write": Out(AxiWrite(config)),
                "bus": Out(LocalBus()),
                "registers": In(RegisterAccess()),
                "packet_error": Out(REASON_BITS),
                "window_denied": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.demux = demux = PacketDemux(self.config.link)
        m.submodules.egress = egress = Egress(self.config, id_bits=bridge_id_bits(self.config))
        m.submodules.ingress = ingress = Ingress(self.config)
        m.submodules.registers = registers = BridgeRegisters()
        session, was_failed, broken = Signal(SESSION_BITS), Signal(), Signal()
        m.d.comb += broken.eq(self.lost | (self.failed & ~was_failed))
        m.d.sync += [was_failed.eq(self.failed), session.eq(session + broken)]

        connect(m, flipped(self.rx), demux.rx)
        connect(m, demux.posted, ingress.posted)
        connect(m, demux.request, ingress.request)
        connect(m, demux.response, egress.response)
        connect(m, egress.posted, flipped(getattr(self, f"tx{VC_POSTED}")))
        connect(m, egress.request, flipped(getattr(self, f"tx{VC_REQUEST}")))
        connect(m, ingress.response, flipped(getattr(self, f"tx{VC_RESPONSE}")))
        connect(m, flipped(self.write), egress.write)
        connect(m, flipped(self.read), egress.read)
        connect(m, ingress.hbm_write, flipped(self.hbm_write))
        connect(m, ingress.hbm_read, flipped(self.hbm_read))
        connect(m, ingress.bus, flipped(self.bus))
        connect(m, flipped(self.registers), registers.access)
        for i in range(LINK_WINDOWS):
            m.d.comb += getattr(ingress, f"window{i}").eq(getattr(registers, f"window{i}"))
        m.d.comb += [
            self.rx_open.eq(demux.rx_open),
            demux.flush.eq(broken),
            egress.flush.eq(broken),
            egress.lost.eq(self.lost),
            egress.failed.eq(self.failed),
            egress.session.eq(session),
            ingress.flush.eq(broken),
            registers.outstanding.eq(egress.outstanding),
            registers.write_denied.eq(ingress.write_denied),
            registers.read_denied.eq(ingress.read_denied),
            registers.bus_error.eq(ingress.bus_error),
            registers.write_address.eq(ingress.write_address),
            registers.read_address.eq(ingress.read_address),
            registers.reason.eq(self.packet_error),
            self.packet_error.eq(
                Mux(
                    demux.error != 0,
                    demux.error,
                    Mux(egress.error != 0, egress.error, ingress.error),
                )
            ),
            self.window_denied.eq(ingress.write_denied | ingress.read_denied),
        ]
        return m
