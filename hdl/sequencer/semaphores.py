"""Semaphores: 256 signed 32-bit counters shared by sequencers, DMA engines and the host."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import RoundRobin, one_hot_mux
from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from hdl.sequencer.layout import bind
from hdl.sequencer.ports import SEMAPHORE_BITS, SemaphoreUpdate
from isa.fields import Update
from isa.geometry import SEMAPHORES


class Semaphores(wiring.Component):
    """One update a cycle, chosen round robin; a read sees it from the second cycle after it was
    taken.

    Values wrap modulo 2^32.  The first update whose result leaves the signed range is latched.

    Parameters
    ----------
    updaters : int
        Update ports.
    reads : int
        Read ports: one per sequencer (0..4) and one for the bus (5) unless told otherwise.

    Members
    -------
    update0, update1, ... : In stream of SemaphoreUpdate
    read0, read1, ... : In `index`, Out `value` (combinational)
    clear : In(1), clearing : Out(1)
        Pulse: all values become 0 and the latched overflow is forgotten, in the next 256 cycles
        with `clearing` high, in which no update is taken.
    clear_overflow : In(1)
        Pulse: forget the latched overflow.
    overflow : Out(1), overflow_semaphore : Out(8)
    """

    def __init__(self, config, updaters, *, reads=6):
        if updaters < 1 or reads < 1:
            raise ValueError(f"semaphores with {updaters} update and {reads} read ports")
        self.updaters, self.reads = updaters, reads
        port = wiring.Signature({"index": In(SEMAPHORE_BITS), "value": Out(signed(32))})
        super().__init__(
            {
                **{f"update{i}": In(stream.Signature(SemaphoreUpdate)) for i in range(updaters)},
                **{f"read{i}": Out(port) for i in range(reads)},
                "clear": In(1),
                "clearing": Out(1),
                "clear_overflow": In(1),
                "overflow": Out(1),
                "overflow_semaphore": Out(SEMAPHORE_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ports = [getattr(self, f"update{i}") for i in range(self.updaters)]
        m.submodules.arbiter = arbiter = RoundRobin(self.updaters)
        open_ = bind(m, "open", ~self.clearing & ~self.clear)
        chosen = Signal(SemaphoreUpdate)
        busy = Signal()
        m.d.comb += arbiter.advance.eq(open_)
        for i, port in enumerate(ports):
            m.d.comb += [
                arbiter.request[i].eq(port.valid),
                port.ready.eq(arbiter.grant[i] & open_),
            ]
        m.d.sync += [
            busy.eq((arbiter.grant != 0) & open_),
            chosen.eq(one_hot_mux(arbiter.grant, [p.p.as_value() for p in ports])),
        ]

        sweep = Signal(SEMAPHORE_BITS)
        with m.If(self.clear):
            m.d.sync += [self.clearing.eq(1), sweep.eq(0)]
        with m.Elif(self.clearing):
            m.d.sync += [sweep.eq(sweep + 1), self.clearing.eq(sweep != SEMAPHORES - 1)]

        old = Signal(signed(32))
        step = Signal(signed(32))
        with m.Switch(chosen.kind):
            with m.Case(Update.INCREMENT):
                m.d.comb += step.eq(1)
            with m.Case(Update.DECREMENT):
                m.d.comb += step.eq(-1)
            with m.Default():
                m.d.comb += step.eq(chosen.value)
        base = bind(m, "base", Mux(chosen.kind == Update.SET, 0, old))
        new = bind(m, "new", base + step)
        write = bind(m, "write", busy & (chosen.kind != Update.NONE))
        enable = bind(m, "enable", self.clearing | write)
        index = bind(m, "index", Mux(self.clearing, sweep, chosen.semaphore))
        value = bind(m, "value", Mux(self.clearing, 0, new[:32]))
        outputs = [(old, chosen.semaphore)]
        outputs += [
            (port.value, port.index)
            for port in (getattr(self, f"read{i}") for i in range(self.reads))
        ]
        for i, (output, at) in enumerate(outputs):
            ram = add_tile(m, platform, f"copy{i}", LutRam(width=32, depth=SEMAPHORES))
            m.d.comb += [
                ram.w_en.eq(enable),
                ram.w_addr.eq(index),
                ram.w_data.eq(value),
                ram.r_addr.eq(at),
                output.eq(ram.r_data),
            ]

        with m.If(write & (new[32] != new[31]) & ~self.overflow):
            m.d.sync += [self.overflow.eq(1), self.overflow_semaphore.eq(chosen.semaphore)]
        with m.If(self.clear | self.clear_overflow):
            m.d.sync += [self.overflow.eq(0), self.overflow_semaphore.eq(0)]
        return m
