"""Framer: beats from the lanes to flits with a verdict.

A cell is 64 bytes, so a short flit is one cell and a long one ten; the CRC is computed for every
cell as if it were a flit of its own.  Which cells belong together is decided behind the CRC: only
there is it known whether the flit before was good, and so whether the format that it announced is
to be believed.  A long flit needs the CRC over all its cells.  The CRC is linear, so the difference
that the cells before make is one more matrix over 40 bits (`carry`).
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.crc import BeatCrc, multiply, register_rows, step
from hdl.link.ports import REASON_BITS, SLOT_LAYOUT
from hdl.link.slot_check import SlotCheck
from isa.link import CELL_BYTES, CRC_BITS, CRC_INIT, GRANULE_BYTES, LONG_CELLS, Reason

VERDICT_CYCLES = 3
"""Cycles from the last beat of a flit on `i_data` to its verdict."""


class Framer(wiring.Component):
    """Gathers beats into flits, checks them, and finds the flit boundaries again after an error.

    Members
    -------
    clear : In, pulse: as after reset.
    enable : In: receiving.  While it is low: HUNT, cell phase 0, and what is under way is dropped.
    i_valid, i_data : In: beats; the first one after `enable` rises is beat 0 of a cell.
    peer_session, peer_epoch : In: of the sender, steady while `enable` is high.
    abort : In, pulse, with a verdict: HUNT has begun behind that flit.
    slot : Out(SLOT_LAYOUT): control slot of the flit with the verdict.
    is_long : Out: its format.
    good : Out, pulse: flit with right CRC, of the right epoch, that keeps the rules of the slot; in
        HUNT only a REPLAY flit.
    lost : Out, pulse: a flit had a wrong CRC; HUNT has begun.
    epoch_drop : Out, pulse: a flit with right CRC is of another epoch.
    reason : Out: Reason for one cycle, else 0: a flit with right CRC and epoch breaks the rules of
        the slot; HUNT has begun.
    hunting : Out: the flit boundaries are not known.

    Verdicts come VERDICT_CYCLES behind the last beat of the flit (in HUNT: of the cell).  One beat
    a cycle, gaps anywhere.

    crc: what computes the CRC, `BeatCrc(link)` by default; proofs give a stand-in with its ports
    and its latency of two cycles.
    """

    def __init__(self, link, *, crc=None):
        self.link, self.beat_crc = link, crc
        super().__init__(
            {
                "clear": In(1),
                "enable": In(1),
                "i_valid": In(1),
                "i_data": In(8 * link.beat_bytes),
                "peer_session": In(32),
                "peer_epoch": In(2),
                "abort": In(1),
                "slot": Out(SLOT_LAYOUT),
                "is_long": Out(1),
                "good": Out(1),
                "lost": Out(1),
                "epoch_drop": Out(1),
                "reason": Out(REASON_BITS),
                "hunting": Out(1, init=1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        crc = BeatCrc(self.link) if self.beat_crc is None else self.beat_crc
        m.submodules.crc = crc
        m.submodules.rules = rules = SlotCheck()
        run = Signal()
        m.d.comb += run.eq(self.enable & ~self.clear)

        # Stage 1: phase of the cells
        first, last = self._phase(m, run)
        taken = Signal()
        m.d.comb += [
            taken.eq(self.i_valid & run),
            crc.en.eq(1),
            crc.valid.eq(taken),
            crc.first.eq(first),
            crc.data.eq(self.i_data),
        ]
        cell_1, slot_1 = Signal(), Signal(SLOT_LAYOUT, reset_less=True)
        m.d.sync += [cell_1.eq(taken & last), slot_1.eq(self.i_data[-8 * GRANULE_BYTES :])]

        # Stage 2: what the slot says, whatever the format may be
        cell_2, slot_2 = Signal(), Signal(SLOT_LAYOUT, reset_less=True)
        short_2 = Signal(REASON_BITS, reset_less=True)
        long_2 = Signal(REASON_BITS, reset_less=True)
        epoch_2 = Signal(reset_less=True)
        m.d.comb += rules.slot.eq(slot_1)
        m.d.sync += [
            cell_2.eq(cell_1 & run),
            slot_2.eq(slot_1),
            short_2.eq(rules.short),
            long_2.eq(rules.long),
            epoch_2.eq(slot_1.epoch == self.peer_epoch),
        ]

        # Stage 3: with the CRC of the cell, the verdict
        long = Signal()
        cell = Signal(range(LONG_CELLS))
        carry = Signal(CRC_BITS)
        salt, total = Signal(CRC_BITS), Signal(CRC_BITS)
        sealed, ends, now, reason = Signal(), Signal(), Signal(), Signal(REASON_BITS)
        good, lost, drop, broken, hunt = Signal(), Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            salt.eq(Cat(self.peer_session, self.peer_session[:8])),
            total.eq(crc.crc ^ carry),
            sealed.eq(total == salt),
            hunt.eq(self.hunting | self.abort),
            ends.eq(hunt | ~long | (cell == LONG_CELLS - 1)),
            now.eq(cell_2 & ends & run),
            reason.eq(Mux(long & ~hunt, long_2, short_2)),
            good.eq(now & sealed & epoch_2 & (reason == Reason.NONE)),
            lost.eq(now & ~hunt & ~sealed),
            drop.eq(now & ~hunt & sealed & ~epoch_2),
            broken.eq(now & ~hunt & sealed & epoch_2 & (reason != Reason.NONE)),
        ]
        with m.If(cell_2):
            with m.If(ends):
                m.d.sync += [cell.eq(0), carry.eq(0), long.eq(slot_2.next_format[0])]
            with m.Else():
                m.d.sync += [
                    cell.eq(cell + 1),
                    carry.eq(
                        multiply(register_rows(8 * CELL_BYTES), total ^ step(CRC_INIT, -CRC_BITS))
                    ),
                ]
        m.d.sync += self.hunting.eq(lost | broken | (hunt & ~good))
        m.d.sync += [
            self.good.eq(good),
            self.lost.eq(lost),
            self.epoch_drop.eq(drop),
            self.reason.eq(Mux(broken, reason, Reason.NONE)),
            self.slot.eq(slot_2),
            self.is_long.eq(long & ~hunt),
        ]
        with m.If(~run):
            m.d.sync += [self.hunting.eq(1), cell.eq(0), carry.eq(0), long.eq(0)]
        return m

    def _phase(self, m, run):
        """Whether the beat on `i_data` is the first, and the last, of its cell."""
        first, last = Signal(), Signal()
        beats = self.link.cell_beats
        if beats == 1:
            m.d.comb += [first.eq(1), last.eq(1)]
            return first, last
        phase = Signal(range(beats))
        m.d.comb += [first.eq(phase == 0), last.eq(phase == beats - 1)]
        with m.If(~run):
            m.d.sync += phase.eq(0)
        with m.Elif(self.i_valid):
            m.d.sync += phase.eq(phase + 1)
        return first, last
