"""Ingress windows and the other registers of a bridge."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.link.packet import ADDRESS_BITS, PAGE_BITS, READS
from hdl.link.ports import REASON_BITS, RegisterAccess
from isa.address_map import CORE_BASE
from isa.link import LINK_REGISTERS, LINK_WINDOWS, Control

_OFFSETS = {register.name: register.offset for register in LINK_REGISTERS}
_WINDOW_BYTES = 16
_CORE_BIT = CORE_BASE.bit_length() - 1
_PAGES = 32
assert PAGE_BITS + _PAGES == _CORE_BIT


class Window(data.Struct):
    """Pages base..limit of HBM, or of the core window, whose writes, reads are allowed."""

    base: _PAGES
    limit: _PAGES
    writes: 1
    reads: 1
    core: 1


class WindowCheck(wiring.Component):
    """Combinational: may the packet be performed?

    A packet stays in one page (see `hdl.link.packet.leaves_page`), and windows are whole pages, so
    its first byte tells for all of them.

    Members: `window0`..`window3`, `address`, `write` In; `allowed` Out.
    """

    def __init__(self):
        super().__init__(
            {
                **{f"window{i}": In(Window) for i in range(LINK_WINDOWS)},
                "address": In(ADDRESS_BITS),
                "write": In(1),
                "allowed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        page = self.address[PAGE_BITS:_CORE_BIT]
        hits = []
        for i in range(LINK_WINDOWS):
            window, hit = getattr(self, f"window{i}"), Signal(name=f"hit{i}")
            m.d.comb += hit.eq(
                (page >= window.base)
                & (page <= window.limit)
                & (self.address[_CORE_BIT:] == window.core)
                & ((self.write & window.writes) | (~self.write & window.reads))
            )
            hits.append(hit)
        m.d.comb += self.allowed.eq(Cat(hits).any())
        return m


class BridgeRegisters(wiring.Component):
    """WINDOW_* and BRIDGE_STATUS, DENIED_* of `isa.link.LINK_REGISTERS`.

    Members
    -------
    access : In(RegisterAccess)
        All accesses to the block of the link: a write of CONTROL.CLEAR forgets what BRIDGE_STATUS
        and DENIED_* hold.  Offsets without a register here read 0.
    window0 .. window3 : Out
    outstanding : In
    write_denied, read_denied, bus_error : In, pulses
    write_address, read_address : In
        Address of the denied packet.
    reason : In(5)
        Of a bad packet, for a cycle, else 0.
    """

    def __init__(self):
        super().__init__(
            {
                "access": In(RegisterAccess()),
                **{f"window{i}": Out(Window) for i in range(LINK_WINDOWS)},
                "outstanding": In(range(READS + 1)),
                "write_denied": In(1),
                "read_denied": In(1),
                "bus_error": In(1),
                "write_address": In(ADDRESS_BITS),
                "read_address": In(ADDRESS_BITS),
                "reason": In(REASON_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        access = self.access
        reason, flags = Signal(REASON_BITS), Signal(3)
        denied, address, clear = Signal(), Signal(ADDRESS_BITS), Signal()
        m.d.comb += clear.eq(
            access.write
            & (access.offset == _OFFSETS["CONTROL"])
            & (access.data & Control.CLEAR).any()
        )
        with m.If(~denied):
            with m.If(self.write_denied):
                m.d.sync += [denied.eq(1), address.eq(self.write_address)]
            with m.Elif(self.read_denied):
                m.d.sync += [denied.eq(1), address.eq(self.read_address)]
        with m.If(reason == 0):
            m.d.sync += reason.eq(self.reason)
        m.d.sync += flags.eq(flags | Cat(self.write_denied, self.read_denied, self.bus_error))
        with m.If(clear):
            m.d.sync += [reason.eq(0), flags.eq(0), denied.eq(0), address.eq(0)]

        with m.Switch(access.offset):
            for i in range(LINK_WINDOWS):
                window, at = getattr(self, f"window{i}"), _WINDOW_BYTES * i
                mode = Cat(window.writes, window.reads, Const(0, 2), window.core)
                for name, target in (
                    ("WINDOW_BASE", window.base),
                    ("WINDOW_LIMIT", window.limit),
                    ("WINDOW_MODE", mode),
                ):
                    with m.Case(_OFFSETS[name] + at):
                        m.d.comb += access.value.eq(target)
                        with m.If(access.write):
                            if target is mode:
                                m.d.sync += [
                                    window.writes.eq(access.data[0]),
                                    window.reads.eq(access.data[1]),
                                    window.core.eq(access.data[4]),
                                ]
                            else:
                                m.d.sync += target.eq(access.data)
            with m.Case(_OFFSETS["BRIDGE_STATUS"]):
                m.d.comb += [
                    access.value[:8].eq(self.outstanding),
                    access.value[8:13].eq(reason),
                    access.value[16:19].eq(flags),
                ]
            with m.Case(_OFFSETS["DENIED_LO"]):
                m.d.comb += access.value.eq(address[:32])
            with m.Case(_OFFSETS["DENIED_HI"]):
                m.d.comb += access.value.eq(address[32:])
        return m
