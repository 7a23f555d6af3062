"""The chip: core, DMA engines, HBM ports, bus, host port, control registers, links."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from hdl.chip.axi_read_arbiter import AxiReadArbiter
from hdl.chip.axi_write_arbiter import AxiWriteArbiter
from hdl.chip.bus import Bus
from hdl.chip.core import Core, stall_bits
from hdl.chip.host import HOST_ID_BITS, HostPort
from hdl.chip.links import Links
from hdl.chip.peer_bus import PeerBus
from hdl.chip.pins import axi_members, connect_link, connect_master, connect_slave, link_members
from hdl.chip.registers import ControlRegisters
from hdl.dma.engine import DmaEngine
from hdl.lib.check import check_stream
from hdl.lib.tile import add_tile
from isa.address_map import SEQUENCERS

HBM_ID_BITS = 4


class Chip(wiring.Component):
    """A complete chip with standard pins.

    Parameters
    ----------
    config : isa.geometry.Config
    stall : bool
        Adds the input `stall` of the core, for simulation.

    Members
    -------
    m_axi_hbm0_* .. : AXI4 masters, 128 bits, towards one memory
    s_axi_host_* : AXI4 slave, 128 bits, into the address map of `isa.address_map`
    link0_* .. : pins of the link ports, see `hdl.link.ports.PhyPort`
    busy, error, irq : Out(1)
        See `hdl.chip.registers.ControlRegisters`.
    """

    def __init__(self, config, *, stall=False):
        self.config, self._stall = config, stall
        members = {}
        for port in range(config.hbm_ports):
            members |= axi_members(f"m_axi_hbm{port}", HBM_ID_BITS, master=True)
        members |= axi_members("s_axi_host", HOST_ID_BITS, master=False)
        for port in range(config.links):
            members |= link_members(f"link{port}", config.link)
        members |= {"busy": Out(1), "error": Out(1), "irq": Out(1)}
        if stall:
            members["stall"] = In(stall_bits(config))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.core = core = Core(config)
        m.submodules.registers = registers = ControlRegisters(config)
        m.submodules.bus = bus = Bus(config)
        m.submodules.host = host = HostPort(config)
        engines = [
            add_tile(m, platform, f"dma{e}", DmaEngine(config)) for e in range(config.dma_engines)
        ]
        if self._stall:
            m.d.comb += core.stall.eq(self.stall)

        ports = [(engine.read, engine.write) for engine in engines]
        single = [host.bus, *(getattr(core, f"bus{s}") for s in range(len(SEQUENCERS)))]
        if config.links:
            ports, single = self._links(m, registers, bus, ports, single)
        self._memory(m, platform, core, bus, ports)
        connect_slave(m, self, "s_axi_host", host.read, host.write)
        connect(m, single[0], bus.master0)
        connect(m, bus.register, registers.port)
        for s in range(len(SEQUENCERS)):
            connect(m, single[1 + s], getattr(bus, f"master{1 + s}"))
            connect(m, getattr(registers, f"sequencer{s}"), getattr(core, f"control{s}"))
        for e, engine in enumerate(engines):
            connect(m, getattr(core, f"trigger{e}"), engine.trigger)
            connect(m, engine.sbuf, getattr(core, f"sbuf_port{e}"))
            connect(m, engine.update, getattr(core, f"update{e}"))
            connect(m, engine.status, getattr(registers, f"dma{e}"))
            m.d.comb += [
                engine.clear.eq(registers.clear),
                engine.clear_error.eq(registers.clear_errors),
            ]
        last = config.dma_engines
        connect(m, bus.sbuf, getattr(core, f"sbuf_port{last}"))
        connect(m, bus.psum, core.psum_port)
        connect(m, bus.update, getattr(core, f"update{last}"))
        m.d.comb += [
            core.semaphore_index.eq(bus.semaphore_index),
            bus.semaphore_value.eq(core.semaphore_value),
            core.clear.eq(registers.clear),
            registers.clearing.eq(core.clearing),
            core.clear_overflow.eq(registers.clear_errors),
            registers.semaphore_overflow.eq(core.overflow),
            registers.semaphore_overflow_index.eq(core.overflow_semaphore),
            registers.column_active.eq(core.column_active),
            registers.load_active.eq(core.load_active),
            self.busy.eq(registers.busy),
            self.error.eq(registers.error),
            self.irq.eq(registers.irq),
        ]
        return m

    def _links(self, m, registers, bus, ports, single):
        """Puts the links between the masters and what they reach in the chip: gives what is left
        for HBM, [(AxiRead, AxiWrite)], that of the bridges behind the others, and for the bus.
        """
        config = self.config
        m.submodules.peer_bus = peer_bus = PeerBus(config, masters=len(single))
        m.submodules.links = links = Links(config)
        for i, master in enumerate(single):
            connect(m, master, getattr(peer_bus, f"master{i}"))
        for i, (read, write) in enumerate([*ports, (peer_bus.read, peer_bus.write)]):
            connect(m, read, getattr(links, f"read{i}"))
            connect(m, write, getattr(links, f"write{i}"))
        for p in range(config.links):
            connect(m, getattr(registers, f"link{p}"), getattr(links, f"registers{p}"))
            connect(m, getattr(links, f"bus{p}"), getattr(bus, f"master{len(single) + p}"))
            connect_link(m, self, f"link{p}", getattr(links, f"phy{p}"))
        behind = [
            (getattr(links, f"hbm_read{i}"), getattr(links, f"hbm_write{i}"))
            for i in range(len(ports) + config.links)
        ]
        return behind, [getattr(peer_bus, f"bus{i}") for i in range(len(single))]

    def _memory(self, m, platform, core, bus, ports):
        """HBM port 0 serves instruction fetch and bus; DMA engines and bridges of links are spread
        over all ports.
        """
        config = self.config
        for port in range(config.hbm_ports):
            own = ports[port :: config.hbm_ports]
            reads, writes = [read for read, _ in own], [write for _, write in own]
            if port == 0:
                reads += [getattr(core, f"fetch{s}") for s in range(len(SEQUENCERS))] + [
                    bus.hbm_read
                ]
                writes.append(bus.hbm_write)
            read = AxiReadArbiter(config, len(reads), id_bits=HBM_ID_BITS)
            write = AxiWriteArbiter(config, len(writes), id_bits=HBM_ID_BITS)
            m.submodules[f"hbm{port}_read"], m.submodules[f"hbm{port}_write"] = read, write
            for i, master in enumerate(reads):
                connect(m, master, getattr(read, f"master{i}"))
            for i, master in enumerate(writes):
                connect(m, master, getattr(write, f"master{i}"))
            connect_master(m, self, f"m_axi_hbm{port}", read.port, write.port)
            for name, channel in (("ar", read.port.ar), ("aw", write.port.aw), ("w", write.port.w)):
                check_stream(m, platform, channel, f"hbm{port}_{name}")
