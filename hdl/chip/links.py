"""The links of a chip: ports, bridges, and the ways of the masters to them."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.chip.axi_read_arbiter import AxiReadArbiter
from hdl.chip.axi_router import AxiRouter
from hdl.chip.axi_write_arbiter import AxiWriteArbiter
from hdl.lib.axi import AxiRead, AxiWrite
from hdl.lib.localbus import LocalBus
from hdl.lib.tile import add_tile
from hdl.link.bridge import Bridge, bridge_id_bits
from hdl.link.port import LinkPort
from hdl.link.ports import PhyPort, RegisterAccess
from isa.link import VCS

_BRIDGE_OFFSETS = 1
"""Bits 8..9 of the offset of a register of the bridge."""
_ENTROPY_STEP = 0x9E37_79B1


class Links(wiring.Component):
    """`config.links` link ports and bridges, at least one.

    Masters come in with their whole addresses; what is for HBM goes on, the rest goes through the
    bridge of its port.

    Members
    -------
    read0 .., write0 .. : In(AxiRead), In(AxiWrite), without ids
        Of each DMA engine, then of the single accesses, which reach peers only.
    hbm_read0 .., hbm_write0 .. : Out(AxiRead), Out(AxiWrite)
        Of each DMA engine, then of each bridge.
    bus0 .. : Out(LocalBus)
        Of each bridge.
    registers0 .. : In(RegisterAccess), phy0 .. : Out(PhyPort)
        Of each port.
    """

    def __init__(self, config):
        self.config, self.masters = config, config.dma_engines + 1
        outer = config.dma_engines + config.links
        super().__init__(
            {
                **{f"read{i}": In(AxiRead(config)) for i in range(self.masters)},
                **{f"write{i}": In(AxiWrite(config)) for i in range(self.masters)},
                **{f"hbm_read{i}": Out(AxiRead(config)) for i in range(outer)},
                **{f"hbm_write{i}": Out(AxiWrite(config)) for i in range(outer)},
                **{f"bus{p}": Out(LocalBus()) for p in range(config.links)},
                **{f"registers{p}": In(RegisterAccess()) for p in range(config.links)},
                **{f"phy{p}": Out(PhyPort(config.link)) for p in range(config.links)},
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        routers = []
        for i in range(self.masters):
            router = add_tile(m, platform, f"router{i}", AxiRouter(config))
            routers.append(router)
            connect(m, flipped(getattr(self, f"read{i}")), router.read)
            connect(m, flipped(getattr(self, f"write{i}")), router.write)
            if i < config.dma_engines:
                connect(m, router.read0, flipped(getattr(self, f"hbm_read{i}")))
                connect(m, router.write0, flipped(getattr(self, f"hbm_write{i}")))
        # Different from port to port and from cycle to cycle; ports mix it with what they have.
        entropy = Signal(32)
        m.d.sync += entropy.eq(entropy + _ENTROPY_STEP)
        for p in range(config.links):
            self._port(m, platform, p, routers, entropy)
        return m

    def _port(self, m, platform, p, routers, entropy):
        config, ids = self.config, bridge_id_bits(self.config)
        port = add_tile(m, platform, f"port{p}", LinkPort(config.link))
        bridge = add_tile(m, platform, f"bridge{p}", Bridge(config))
        m.submodules[f"read{p}"] = read = AxiReadArbiter(config, self.masters, id_bits=ids)
        m.submodules[f"write{p}"] = write = AxiWriteArbiter(config, self.masters, id_bits=ids)
        for i, router in enumerate(routers):
            connect(m, getattr(router, f"read{1 + p}"), getattr(read, f"master{i}"))
            connect(m, getattr(router, f"write{1 + p}"), getattr(write, f"master{i}"))
        connect(m, read.port, bridge.read)
        connect(m, write.port, bridge.write)
        for vc in range(VCS):
            connect(m, getattr(bridge, f"tx{vc}"), getattr(port, f"tx{vc}"))
        connect(m, port.rx, bridge.rx)
        connect(m, bridge.hbm_read, flipped(getattr(self, f"hbm_read{config.dma_engines + p}")))
        connect(m, bridge.hbm_write, flipped(getattr(self, f"hbm_write{config.dma_engines + p}")))
        connect(m, bridge.bus, flipped(getattr(self, f"bus{p}")))
        connect(m, port.phy, flipped(getattr(self, f"phy{p}")))
        access = getattr(self, f"registers{p}")
        for part in (port, bridge):
            m.d.comb += [
                part.registers.offset.eq(access.offset),
                part.registers.write.eq(access.write),
                part.registers.data.eq(access.data),
            ]
        m.d.comb += [
            access.value.eq(
                Mux(
                    access.offset[8:] == _BRIDGE_OFFSETS,
                    bridge.registers.value,
                    port.registers.value,
                )
            ),
            port.rx_open.eq(bridge.rx_open),
            bridge.lost.eq(port.lost),
            bridge.failed.eq(port.failed),
            port.packet_error.eq(bridge.packet_error),
            port.window_denied.eq(bridge.window_denied),
            port.entropy.eq(entropy ^ p),
        ]
