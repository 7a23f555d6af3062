"""Seal: Framer with a stand-in for the CRC, and beats that are anything at all.

The solver chooses the CRC of every cell, so what is proved holds whatever the CRC computes.  One
flit is followed, whichever, and the CRCs of its cells are put together beside the framer.
"""

from amaranth.hdl import Cat, Module, Mux, Signal

from hdl.link.ports import SLOT_LAYOUT
from isa.link import GRANULE_BYTES, LONG_CELLS, LONG_GRANULES, NO_PACKET, SHORT_GRANULES
from verif.formal.delivery_parts import (
    NUMBER_BITS,
    Cells,
    CutLink,
    Followed,
    FreeCrc,
    ProbedFramer,
    Sum,
    salt_of,
)
from verif.formal.harness import AnySeq, Harness


def keeps_rules(is_long, valid, first):
    """What the slot of a payload flit says of its payload."""
    most = Mux(is_long, LONG_GRANULES, SHORT_GRANULES)
    return (valid != 0) & (valid <= most) & ((first < valid) | (first == NO_PACKET))


class Seal(Harness):
    """Framer.  Free: beats with gaps, slots, CRCs, receiving or not, initialisation, sessions, and
    where the check of the sequence aborts.

    Mutations: "unsealed" ignores the CRC, "last_cell" all of it but that of the last cell,
    "nine_cells" counts one cell too many behind a good flit.
    """

    def __init__(self, beat_bytes, **options):
        super().__init__(**options)
        # Of a beat the framer sees its number and the last granule, where the slot may be
        self.link = CutLink(beat_bytes, NUMBER_BITS // 8 + GRANULE_BYTES)

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        link = self.link
        m.submodules.framer = framer = ProbedFramer(link, FreeCrc(link), self.mutation)
        m.submodules.cells = cells = Cells(link)
        m.submodules.flit = flit = Followed()
        m.submodules.sum = total = Sum()
        crc, slot = framer.beat_crc, Signal(SLOT_LAYOUT)
        count, enable, run, good = Signal(NUMBER_BITS), Signal(), Signal(), Signal()
        m.d.comb += [
            enable.eq(AnySeq(1)),
            framer.clear.eq(AnySeq(1)),
            framer.enable.eq(enable),
            framer.i_valid.eq(AnySeq(1)),
            slot.eq(AnySeq(8 * GRANULE_BYTES)),
            framer.i_data.eq(Cat(count, slot)),
            framer.peer_session.eq(AnySeq(32)),
            framer.peer_epoch.eq(AnySeq(2)),
            framer.abort.eq(good & AnySeq(1)),
            run.eq(enable & ~framer.clear),
            good.eq(framer.good & enable),
        ]
        m.d.sync += count.eq(count + framer.i_valid)
        # The sender is the same while receiving
        was_enabled, sender, was_sender = Signal(), Signal(34), Signal(34)
        m.d.comb += sender.eq(Cat(framer.peer_session, framer.peer_epoch))
        m.d.sync += [was_enabled.eq(enable), was_sender.eq(sender)]
        self.assume(m, ~(enable & was_enabled) | (sender == was_sender))

        slot_1, slot_2, slot_3, right = (
            Signal(SLOT_LAYOUT, name="slot_1"),
            Signal(SLOT_LAYOUT, name="slot_2"),
            Signal(SLOT_LAYOUT, name="slot_3"),
            Signal(),
        )
        m.d.comb += [
            *(part.run.eq(run) for part in (cells, flit)),
            *(part.valid.eq(framer.i_valid) for part in (cells, flit)),
            cells.good.eq(good),
            flit.first.eq(cells.first),
            flit.last.eq(cells.last),
            flit.number.eq(count),
            total.end.eq(flit.end_2 & run & (flit.cells != LONG_CELLS)),
            total.crc.eq(crc.crc),
        ]
        sealed = total.total == salt_of(framer.peer_session)
        m.d.sync += [
            slot_1.eq(slot),
            slot_2.eq(slot_1),
            slot_3.eq(slot_2),
            right.eq(sealed & (slot_2.epoch == framer.peer_epoch)),
        ]

        self.prove(m, "short", ~(good & ~framer.is_long & flit.short_due) | right)
        self.prove(m, "long", ~(good & framer.is_long & flit.long_due) | right)
        for name in ("short", "long"):
            # The CRC is asked for the beats of the cell, all of them and no other
            self.prove(m, name, crc.valid == (framer.i_valid & run))
            self.prove(m, name, ~crc.valid | (crc.en & (crc.first == cells.first)))
            self.prove(m, name, crc.data == framer.i_data)
        # What `Delivery` takes for granted
        said = framer.slot
        self.prove(m, "apart", ~framer.good | cells.verdict)
        self.prove(m, "apart", ~(good & framer.is_long) | (cells.before == LONG_CELLS - 1))
        self.prove(m, "apart", ~framer.good | (said.as_value() == slot_3.as_value()))
        kept = keeps_rules(framer.is_long, said.valid, said.first)
        self.prove(m, "apart", ~(framer.good & said.payload) | kept)
        self._invariants(m, framer, cells, flit, total)

        was_long = Signal()
        with m.If(good):
            m.d.sync += was_long.eq(framer.is_long)
        self.reach(m, "short", good & flit.short_due & was_long & ~framer.is_long)
        self.reach(m, "long", good & flit.long_due & framer.is_long)
        self.reach(m, "apart", good & framer.is_long & said.payload & (said.valid == LONG_GRANULES))
        return m

    def _invariants(self, m, framer, cells, flit, total):
        self.invariant(m, framer.phase == cells.phase)
        self.invariant(m, cells.phase < self.link.cell_beats)
        # Only within a long flit cells have been put together, and no more than have come
        self.invariant(m, framer.cell < LONG_CELLS)
        self.invariant(m, framer.cell <= cells.before + cells.verdict)
        self.invariant(m, cells.before < LONG_CELLS)
        with m.If(framer.cell == 0):
            self.invariant(m, framer.carry == 0)
        with m.If(~framer.long | framer.hunting | framer.good):
            self.invariant(m, framer.cell == 0)
        # The flit followed: from its first cell on it has all cells
        self.invariant(m, flit.cells <= LONG_CELLS)
        with m.If(flit.end_1 | flit.end_2):
            self.invariant(m, flit.following)
        self.invariant(m, ~flit.following | flit.seen)
        self.invariant(m, flit.seen | (flit.cells == 0))
        self.invariant(m, ~flit.end_1 | cells.verdict_1)
        self.invariant(m, ~flit.end_2 | cells.verdict_2)
        with m.If(flit.following & flit.end_2):
            self.invariant(m, flit.end_1 == cells.verdict_1)
        with m.If(flit.following & (flit.cells != 0)):
            self.invariant(m, flit.end_1 == cells.verdict_1)
            self.invariant(m, flit.end_2 == cells.verdict_2)
        # Whoever has the same cells has the same CRC
        with m.If(flit.cells == 0):
            self.invariant(m, total.carry == 0)
        with m.If(flit.following & (flit.cells == framer.cell)):
            self.invariant(m, total.carry == framer.carry)
