"""Copies of the payload flits that are not acknowledged yet."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.ram import BlockRam, LutRam
from hdl.lib.tile import add_tile
from hdl.link.ports import VC_BITS
from isa.link import CELL_BYTES, SEQUENCE_BITS, WINDOW

GRANULE_BITS = 6


class FlitInfo(data.Struct):
    """What is kept of the slot of a payload flit, besides its number."""

    long: 1
    poison: 1
    vc: VC_BITS
    first: GRANULE_BITS
    valid: GRANULE_BITS


class ReplayBuffer(wiring.Component):
    """Ring of beats in BlockRam and, for each flit, its first beat and its `FlitInfo`.

    Writing: a flit takes its room with its first beat; flits follow each other without gaps.
    Acknowledging: everything before `base` is free, one or two cycles later.
    Reading: the buffer stands at a flit, `at`, with its first beat in `r_data`, and steps to the
    next one by itself, without a gap.  When `at` is not `pointer` (a replay starts, or an
    acknowledge has passed flits still to be replayed) it seeks: the flit is ready two cycles later.

    Members
    -------
    clear : In, pulse: empty.
    base, next, pointer : In(10): of ReplayControl.
    w_beat, w_data : In: a beat of a new payload flit.
    w_start, w_long : In: it is the first one, of flit `next`, long or short.  Needs room for it.
    w_end, w_sequence, w_info : In: it is the last one, of that flit.
    hold : In: the flit `at` is announced or being read: no seeking.
    take, take_end : In: the beat in `r_data` is used, it is the last one of its flit.
    r_data : Out: beat to be sent again.
    at, info : Out: the flit whose beats are read.
    ready : Out: `at` is `pointer`, in front of `next`, and its first beat is in `r_data`.
    soon : Out: the same, at the latest in the next cycle.
    next_long : Out: the flit behind `at` is long.
    level : Out: beats held.
    room_short : Out: room for a short flit.
    room_long : Out: room for a long flit behind what starts in this cycle.
    """

    def __init__(self, link):
        self.link = link
        self.width = 8 * link.beat_bytes
        self.beats = link.replay_bytes // link.beat_bytes
        # Every flit holds at least a cell, so this many numbers are enough to tell flits apart
        self.flits = min(1 << ceil_log2(WINDOW), link.replay_bytes // CELL_BYTES)
        super().__init__(
            {
                "clear": In(1),
                "base": In(SEQUENCE_BITS),
                "next": In(SEQUENCE_BITS),
                "pointer": In(SEQUENCE_BITS),
                "w_beat": In(1),
                "w_data": In(self.width),
                "w_start": In(1),
                "w_long": In(1),
                "w_end": In(1),
                "w_sequence": In(SEQUENCE_BITS),
                "w_info": In(FlitInfo),
                "hold": In(1),
                "take": In(1),
                "take_end": In(1),
                "r_data": Out(self.width),
                "at": Out(SEQUENCE_BITS),
                "info": Out(FlitInfo),
                "ready": Out(1),
                "soon": Out(1),
                "next_long": Out(1),
                "level": Out(range(self.beats + 1)),
                "room_short": Out(1),
                "room_long": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        link = self.link
        place_bits = ceil_log2(self.beats) + 1  # one more bit: a full ring is not an empty one
        ram = add_tile(m, platform, "ram", BlockRam(width=self.width, depth=self.beats))
        starts = add_tile(m, platform, "starts", LutRam(width=place_bits, depth=self.flits))
        infos = add_tile(
            m, platform, "infos", LutRam(width=len(self.info.as_value()), depth=self.flits)
        )
        longs = add_tile(m, platform, "longs", LutRam(width=1, depth=self.flits))

        # Writing
        head, w_place, w_next = Signal(place_bits), Signal(place_bits), Signal(place_bits)
        beats, starting = Signal(range(link.long_beats + 1)), Signal(range(link.long_beats + 1))
        m.d.comb += [
            beats.eq(Mux(self.w_long, link.long_beats, link.cell_beats)),
            starting.eq(Mux(self.w_start, beats, 0)),
            w_place.eq(Mux(self.w_start, head, w_next)),
            ram.w_en.eq(self.w_beat),
            ram.w_addr.eq(w_place),
            ram.w_data.eq(self.w_data),
            starts.w_en.eq(self.w_start),
            starts.w_addr.eq(self.next),
            starts.w_data.eq(head),
            infos.w_en.eq(self.w_end),
            infos.w_addr.eq(self.w_sequence),
            infos.w_data.eq(self.w_info),
            longs.w_en.eq(self.w_end),
            longs.w_addr.eq(self.w_sequence),
            longs.w_data.eq(self.w_info.long),
        ]
        m.d.sync += head.eq(head + starting)
        with m.If(self.w_beat):
            m.d.sync += w_next.eq(w_place + 1)

        # Reading.  `place` is the beat that is fetched next: the one behind `r_data` once fetched
        at_valid, fetched, aligned, exists = Signal(), Signal(), Signal(), Signal()
        seek, fetch = Signal(), Signal()
        place, behind = Signal(place_bits), Signal(SEQUENCE_BITS)
        m.d.comb += [
            aligned.eq(self.at == self.pointer),
            exists.eq(self.pointer != self.next),
            seek.eq(exists & ~(at_valid & aligned) & ~self.hold),
            fetch.eq(self.take | (at_valid & ~fetched & ~seek)),
            behind.eq(self.at + 1),
            starts.r_addr.eq(Mux(seek, self.pointer, self.base)),
            ram.r_en.eq(fetch),
            ram.r_addr.eq(place),
            infos.r_addr.eq(self.at),
            longs.r_addr.eq(behind),
            self.r_data.eq(ram.r_data),
            self.info.eq(FlitInfo(infos.r_data)),
            self.next_long.eq(longs.r_data),
            self.soon.eq(at_valid & aligned & exists),
            self.ready.eq(self.soon & fetched),
        ]
        with m.If(fetch):
            m.d.sync += [place.eq(place + 1), fetched.eq(1)]
        with m.If(self.take & self.take_end):
            m.d.sync += self.at.eq(behind)
        with m.If(seek):
            m.d.sync += [
                self.at.eq(self.pointer),
                at_valid.eq(1),
                fetched.eq(0),
                place.eq(starts.r_data),
            ]
        with m.Elif(~exists & ~self.hold):
            # What stands in `starts` for this number is of an older flit
            m.d.sync += at_valid.eq(0)

        # Room.  The table is read for seeking first; the level may be late, never too low
        tail, now = Signal(place_bits), Signal(place_bits)
        m.d.comb += [
            now.eq(head - tail),
            self.level.eq(now),
            self.room_short.eq(now <= self.beats - link.cell_beats),
            self.room_long.eq(Cat(now, 0) + starting <= self.beats - link.long_beats),
        ]
        with m.If(self.base == self.next):
            m.d.sync += tail.eq(head)
        with m.Elif(~seek):
            m.d.sync += tail.eq(starts.r_data)
        return ResetInserter(self.clear)(m)
