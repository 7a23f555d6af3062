"""Assembly: payload waits here for the verdict on its flit.

Every beat is written into a ring as it arrives, whatever it may be.  A flit that is accepted leaves
a note of where it lies and is read out; of all others nothing needs to be taken back: the ring just
runs over them.  A flit is read in no more cycles than it had beats, so reading is never behind by
more than one long flit, which bounds the depth of the ring.
"""

from amaranth.hdl import Const, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.check import check
from hdl.lib.ram import BlockRam, LutRam
from hdl.lib.tile import add_tile
from hdl.link.framer import VERDICT_CYCLES
from hdl.link.ports import VC_BITS, Deliver
from isa.link import LONG_GRANULES, NO_PACKET

NOTES = 16
"""Accepted flits that wait to be read: at most ten short ones behind the start of a long one."""


def ring_beats(link):
    """Depth of the ring: a long flit, a cell and the cycles of the verdict, as a power of two."""
    return 1 << ceil_log2(link.long_beats + link.cell_beats + VERDICT_CYCLES)


class Assembly(wiring.Component):
    """Holds beats until their flit is accepted, then delivers its payload.

    Members
    -------
    clear : In, pulse: as after reset, what is not delivered is dropped.
    i_valid, i_data : In: beats from the lanes.
    commit : In, pulse, VERDICT_CYCLES behind the last beat of a flit: deliver its payload.
    is_long, vc, first, valid, poison : In, with `commit`: format and fields of its slot.
    deliver : Out(Deliver): from the cycle behind `commit` on, or behind the flits in front of it.

    One beat a cycle in and out.
    """

    def __init__(self, link):
        self.link = link
        super().__init__(
            {
                "clear": In(1),
                "i_valid": In(1),
                "i_data": In(8 * link.beat_bytes),
                "commit": In(1),
                "is_long": In(1),
                "vc": In(VC_BITS),
                "first": In(range(NO_PACKET + 1)),
                "valid": In(range(LONG_GRANULES + 1)),
                "poison": In(1),
                "deliver": Out(Deliver(link)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        link, deliver = self.link, self.deliver
        granules = link.beat_granules
        depth = ring_beats(link)
        bits = ceil_log2(depth)
        ram = add_tile(m, platform, "ring", BlockRam(width=8 * link.beat_bytes, depth=depth))
        here = Signal(bits)
        m.d.sync += here.eq(here + self.i_valid)
        m.d.comb += [
            ram.w_en.eq(self.i_valid),
            ram.w_addr.eq(here),
            ram.w_data.eq(self.i_data),
        ]
        ago = here
        for stage in range(1, VERDICT_CYCLES + 1):
            before, ago = ago, Signal(bits, name=f"here_{stage}")
            m.d.sync += ago.eq(before)

        # What is left of a flit: where, and how much
        note = data.StructLayout(
            {
                "address": bits,
                "vc": VC_BITS,
                "first": range(NO_PACKET + 1),
                "valid": range(LONG_GRANULES + 1),
                "poison": 1,
                "start": 1,
            }
        )
        arrived, rest, current, after = (
            Signal(note, name=name) for name in ("arrived", "rest", "current", "after")
        )
        busy, reading, more, here_first = Signal(), Signal(), Signal(), Signal()
        beats = Mux(self.is_long, Const(link.long_beats, bits), Const(link.cell_beats, bits))
        m.d.comb += [
            arrived.address.eq(ago - beats + 1),
            arrived.vc.eq(self.vc),
            arrived.first.eq(self.first),
            arrived.valid.eq(self.valid),
            arrived.poison.eq(self.poison),
            arrived.start.eq(1),
        ]
        waiting, head = self._queue(m, platform, note, arrived, busy)
        m.d.comb += [
            reading.eq(busy | waiting | self.commit),
            current.eq(Mux(busy, rest, Mux(waiting, head, arrived))),
            more.eq(current.valid > granules),
            here_first.eq(current.first < granules),
            ram.r_en.eq(reading),
            ram.r_addr.eq(current.address),
            after.eq(current),
            after.address.eq(current.address + 1),
            after.valid.eq(current.valid - granules),
            after.start.eq(0),
        ]
        # Behind its beat `first` wraps, to a number that no beat of this flit has
        with m.If(current.first == NO_PACKET):
            m.d.comb += after.first.eq(NO_PACKET)
        with m.Else():
            m.d.comb += after.first.eq(current.first - granules)
        m.d.sync += [rest.eq(after), busy.eq(reading & more)]
        m.d.sync += [
            deliver.valid.eq(reading),
            deliver.vc.eq(current.vc),
            deliver.granules.eq(Mux(more, granules, current.valid)),
            deliver.start.eq(current.start),
            deliver.first_valid.eq(here_first),
            deliver.first.eq(current.first),
            deliver.poison.eq(current.poison),
        ]
        m.d.comb += deliver.data.eq(ram.r_data)
        return ResetInserter(self.clear)(m)

    def _queue(self, m, platform, note, arrived, busy):
        """Notes that found the reader busy: (there is one, the first)."""
        bits = ceil_log2(NOTES)
        width = len(arrived.as_value())
        ram = add_tile(m, platform, "notes", LutRam(width=width, depth=NOTES))
        put, take, head = Signal(bits), Signal(bits), Signal(note)
        level = Signal(range(NOTES + 1))
        waiting, push, pop = Signal(), Signal(), Signal()
        m.d.comb += [
            waiting.eq(level != 0),
            push.eq(self.commit & (busy | waiting)),
            pop.eq(waiting & ~busy),
            ram.w_en.eq(push),
            ram.w_addr.eq(put),
            ram.w_data.eq(arrived),
            ram.r_addr.eq(take),
            head.eq(ram.r_data),
        ]
        m.d.sync += [
            put.eq(put + push),
            take.eq(take + pop),
            level.eq(level + push - pop),
        ]
        check(m, platform, ~(push & (level == NOTES)), "assembly: notes overflow")
        return waiting, head
