"""Fetch: the instruction buffer and its prefetch."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from hdl.lib.axi import DATA_BITS, AxiRead
from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from hdl.sequencer.layout import WORD_BITS, bind
from hdl.sequencer.ports import PC_BITS
from isa.geometry import INSTRUCTION_BYTES, WORD_BYTES

BEATS = INSTRUCTION_BYTES // WORD_BYTES


class Fetch(wiring.Component):
    """Instructions round the program counter, read ahead from HBM with one burst each.

    The buffer holds the instructions [base, filled) of the stream, at most `fetch_depth`; it is
    read ahead up to half of that beyond `pc`, so the other half lies behind and a branch back costs
    no fetch.  A `pc` that is neither held nor on its way empties the buffer and fetches from there;
    bursts under way are then received and dropped. At best one instruction in 8 cycles from memory,
    one a cycle from the buffer.

    Members
    -------
    start : In(1)
        Begin a stream; what is on its way for the last one is dropped.
    stop : In(1)
        Ask for nothing more.
    address, length : In
        Byte address (128-byte aligned) and instructions of the stream.
    pc, settled : In
        Instruction that is wanted; `settled` 0: `pc` may still change.
    hit : Out(1), word : Out(1024), bad : Out(1)
        The instruction at `pc` is held; it could not be read (a beat had an error).
    axi : Out(AxiRead)
    """

    def __init__(self, config):
        self.depth = config.fetch_depth
        super().__init__(
            {
                "start": In(1),
                "stop": In(1),
                "address": In(64),
                "length": In(PC_BITS),
                "pc": In(PC_BITS),
                "settled": In(1),
                "hit": Out(1),
                "word": Out(WORD_BITS),
                "bad": Out(1),
                "axi": Out(AxiRead(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot_bits = exact_log2(self.depth)
        base, filled, want = (Signal(PC_BITS, name=n) for n in ("base", "filled", "want"))
        running = Signal()
        # Bursts asked for and not received; the first `stale` of them belong to an emptied buffer.
        # A jump may ask for more while old ones are due, so a limit keeps the counters small.
        limit = self.depth
        due, stale = Signal(range(limit + 1)), Signal(range(limit + 1))

        ram = add_tile(
            m, platform, "ram", LutRam(width=WORD_BITS, depth=self.depth, granularity=DATA_BITS)
        )
        errors = Signal(self.depth)
        pc_slot = self.pc[:slot_bits]
        m.d.comb += [
            ram.r_addr.eq(pc_slot),
            self.word.eq(ram.r_data),
            self.hit.eq((base <= self.pc) & (self.pc < filled)),
            self.bad.eq(errors.bit_select(pc_slot, 1)),
        ]

        # Receive.
        r = self.axi.r
        beat = Signal(range(BEATS))
        failed = Signal()
        burst_end = bind(m, "burst_end", r.valid & r.p.last)
        keep = bind(m, "keep", stale == 0)
        bad_now = bind(m, "bad_now", failed | r.p.resp[1])
        m.d.comb += [
            r.ready.eq(1),
            ram.w_en.eq(Mux(r.valid & keep, Const(1, BEATS) << beat, 0)),
            ram.w_addr.eq(filled[:slot_bits]),
            ram.w_data.eq(Cat([r.p.data] * BEATS)),
        ]
        with m.If(r.valid):
            m.d.sync += [beat.eq(Mux(r.p.last, 0, beat + 1)), failed.eq(~r.p.last & bad_now)]
        with m.If(burst_end & keep):
            m.d.sync += [
                filled.eq(filled + 1),
                errors.bit_select(filled[:slot_bits], 1).eq(bad_now),
            ]

        # Ask.
        ar = self.axi.ar
        ahead = bind(m, "ahead", self.pc + self.depth // 2)
        ask = bind(
            m,
            "ask",
            running
            & ~self.stop
            & (~ar.valid | ar.ready)
            & (want < self.length)
            & (want < ahead)
            & (due != limit),
        )
        lost = bind(
            m,
            "lost",
            running
            & self.settled
            & (self.pc < self.length)
            & ((self.pc < base) | (self.pc > want)),
        )
        empty = bind(m, "empty", self.start | lost)
        m.d.comb += ar.p.len.eq(BEATS - 1)
        with m.If(ar.ready):
            m.d.sync += ar.valid.eq(0)
        with m.If(ask & ~empty):
            m.d.sync += [
                ar.valid.eq(1),
                ar.p.addr.eq(self.address + (want << ceil_log2(INSTRUCTION_BYTES))),
                want.eq(want + 1),
            ]
            # The new one takes the place of the oldest.
            with m.If(want - base == self.depth):
                m.d.sync += base.eq(base + 1)

        due_next = bind(m, "due_next", (due + (ask & ~empty) - burst_end)[: len(due)])
        m.d.sync += due.eq(due_next)
        with m.If(empty):
            target = bind(m, "target", Mux(self.start, 0, self.pc))
            m.d.sync += [
                base.eq(target),
                filled.eq(target),
                want.eq(target),
                stale.eq(due_next),
            ]
        with m.Elif(burst_end & ~keep):
            m.d.sync += stale.eq(stale - 1)
        with m.If(self.start):
            m.d.sync += running.eq(1)
        with m.Elif(self.stop):
            m.d.sync += running.eq(0)
        return m
