"""Updates: keeps the semaphore updates of work in flight, and fires them in order."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.lib.check import check
from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from hdl.sequencer.layout import bind
from hdl.sequencer.ports import SemaphoreUpdate
from isa.fields import Update

IN_FLIGHT = 8
"""Instructions of one sequencer that may be issued and not complete."""

ENTRY = data.StructLayout({"update": SemaphoreUpdate, "at_read": 1, "instant": 1})
"""An instruction in flight.  instant: it has no engine work; it is read and complete when those
before it are.
"""


class Updates(wiring.Component):
    """FIFO of instructions in flight with two readers: those whose inputs have been read, those
    complete.

    Members
    -------
    put : In stream of ENTRY
        In issue order.
    read_done, complete : In(1)
        Pulses of the engine, for entries that are not instant.
    control : In stream of SemaphoreUpdate
        Update of a control instruction; served after those that are due.
    update : Out stream of SemaphoreUpdate
    retire : Out(1)
        One pulse per entry, in order, when it is complete (and its update is on the way).
    empty : Out(1)
        Nothing is in flight; updates may still wait to be taken.
    quiet : Out(1)
        Empty, and every update has been taken.
    unseen : Out(1)
        The update of a control instruction is on its way: a semaphore that is read now may not
        have it.
    """

    def __init__(self):
        super().__init__(
            {
                "put": In(stream.Signature(ENTRY)),
                "read_done": In(1),
                "complete": In(1),
                "control": In(stream.Signature(SemaphoreUpdate)),
                "update": Out(stream.Signature(SemaphoreUpdate)),
                "retire": Out(1),
                "empty": Out(1),
                "quiet": Out(1),
                "unseen": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = exact_log2(IN_FLIGHT)
        put, read, done = (Signal(bits + 1, name=n) for n in ("put_at", "read_at", "done_at"))
        taken = bind(m, "taken", self.put.valid & self.put.ready)
        heads = {}
        for name, pointer in (("reading", read), ("completing", done)):
            ram = add_tile(m, platform, name, LutRam(width=ENTRY.size, depth=IN_FLIGHT))
            m.d.comb += [
                ram.w_en.eq(taken),
                ram.w_addr.eq(put[:bits]),
                ram.w_data.eq(self.put.p),
                ram.r_addr.eq(pointer[:bits]),
            ]
            heads[name] = data.View(ENTRY, ram.r_data)
        m.d.comb += [
            self.put.ready.eq((put - done)[: bits + 1] != IN_FLIGHT),
            self.empty.eq(put == done),
            self.quiet.eq(self.empty & ~self.update.valid),
        ]

        free = bind(m, "free", ~self.update.valid | self.update.ready)
        pulses = {"reading": self.read_done, "completing": self.complete}
        present = {"reading": read != put, "completing": done != read}
        at_read = {"reading": 1, "completing": 0}
        ready, fire = {}, {}
        waiting = {}
        for name, head in heads.items():
            # Pulses not yet matched with an entry.
            waiting[name] = Signal(range(IN_FLIGHT + 1), name=f"{name}_pulses")
            ready[name] = bind(
                m, f"{name}_ready", present[name] & (head.instant | (waiting[name] != 0))
            )
            fire[name] = bind(
                m,
                f"{name}_fire",
                ready[name] & (head.at_read == at_read[name]) & (head.update.kind != Update.NONE),
            )
        # The older entry first.
        passes = {
            "completing": bind(
                m, "completing_pass", ready["completing"] & (~fire["completing"] | free)
            ),
            "reading": bind(
                m,
                "reading_pass",
                ready["reading"] & (~fire["reading"] | (free & ~fire["completing"])),
            ),
        }
        for name, head in heads.items():
            used = bind(m, f"{name}_used", passes[name] & ~head.instant)
            with m.If(pulses[name] & ~used):
                m.d.sync += waiting[name].eq(waiting[name] + 1)
            with m.If(~pulses[name] & used):
                m.d.sync += waiting[name].eq(waiting[name] - 1)
        m.d.sync += [
            put.eq(put + taken),
            read.eq(read + passes["reading"]),
            done.eq(done + passes["completing"]),
        ]

        idle = bind(m, "idle", ~fire["completing"] & ~fire["reading"])
        m.d.comb += [self.control.ready.eq(free & idle), self.retire.eq(passes["completing"])]
        with m.If(free):
            m.d.sync += [
                self.update.valid.eq(~idle | self.control.valid),
                self.update.p.eq(
                    Mux(
                        fire["completing"],
                        heads["completing"].update.as_value(),
                        Mux(
                            fire["reading"],
                            heads["reading"].update.as_value(),
                            self.control.p.as_value(),
                        ),
                    )
                ),
            ]

        # A read sees an update from the second cycle after it was taken.
        own, arriving = Signal(), Signal()
        with m.If(free):
            m.d.sync += own.eq(idle & self.control.valid)
        m.d.sync += arriving.eq(own & self.update.valid & self.update.ready)
        m.d.comb += self.unseen.eq(own & self.update.valid | arriving)
        for name, pulse in pulses.items():
            check(m, platform, ~(pulse & self.empty), f"updates: {name} without an instruction")
        return m
