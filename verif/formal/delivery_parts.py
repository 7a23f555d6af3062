"""What the harnesses of delivery share: link with cut beats, stand-in for the CRC, mutants, and the
flit that is followed.
"""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.assembly import Assembly
from hdl.link.crc import multiply, register_rows, step
from hdl.link.framer import VERDICT_CYCLES, Framer
from isa.link import CELL_BYTES, CRC_BITS, CRC_INIT, GRANULE_BYTES, LONG_CELLS
from verif.formal.harness import AnySeq, inner

NUMBER_BITS = 8


class CutLink:
    """Parameters of a link with beats of `beat_bytes`, of which only `kept_bytes` are there."""

    def __init__(self, beat_bytes, kept_bytes):
        self.beat_granules = beat_bytes // GRANULE_BYTES
        self.cell_beats = CELL_BYTES // beat_bytes
        self.long_beats = LONG_CELLS * self.cell_beats
        self.beat_bytes = kept_bytes


class FreeCrc(wiring.Component):
    """Stand-in for BeatCrc: its ports, its latency, and any value behind any beat."""

    def __init__(self, link):
        super().__init__(
            {
                "en": In(1),
                "valid": In(1),
                "first": In(1),
                "data": In(8 * link.beat_bytes),
                "crc": Out(CRC_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        part_valid = Signal()
        with m.If(self.en):
            m.d.sync += part_valid.eq(self.valid)
            with m.If(part_valid):
                m.d.sync += self.crc.eq(AnySeq(CRC_BITS))
        return m


class ProbedFramer(Framer):
    """Framer that shows the registers that its invariants speak of, and carries the mutations."""

    def __init__(self, link, crc, mutation):
        super().__init__(link, crc=crc)
        self.mutation = mutation
        self.cell, self.carry = Signal(range(LONG_CELLS)), Signal(CRC_BITS)
        self.long = Signal()
        self.phase = Signal(range(max(2, link.cell_beats)))

    def elaborate(self, platform):
        m = super().elaborate(platform)
        for name in ("cell", "carry", "long"):
            m.d.comb += getattr(self, name).eq(inner(m, name))
        if self.link.cell_beats > 1:
            m.d.comb += self.phase.eq(inner(m, "phase"))
        if self.mutation == "unsealed":
            m.d.comb += inner(m, "total").eq(salt_of(self.peer_session))
        if self.mutation == "last_cell":
            m.d.comb += inner(m, "total").eq(self.beat_crc.crc)
        if self.mutation == "nine_cells":
            with m.If(self.good):
                m.d.sync += inner(m, "cell").eq(1)
        return m


class MutantAssembly(Assembly):
    """Assembly with a fault: see `Delivery`; `slip`: the notes point one beat too far."""

    def __init__(self, link, mutation):
        super().__init__(link)
        self.mutation, self.slip = mutation, Signal()

    def elaborate(self, platform):
        wrapped = super().elaborate(platform)
        m = wrapped._elaboratable_  # noqa: SLF001  inside ResetInserter
        if self.mutation in ("early", "slips"):
            ago = inner(m, f"here_{VERDICT_CYCLES - (self.mutation == 'early')}")
            beats = Mux(self.is_long, self.link.long_beats, self.link.cell_beats)
            m.d.comb += inner(m, "arrived")[: len(ago)].eq(ago - beats + 1 + self.slip)
        if self.mutation == "restarts":
            m.d.sync += inner(m, "rest")[-1].eq(1)
        return wrapped


class Cells(Elaboratable):
    """Cells of the beats that arrive, and the times of their verdicts.

    Members (Signals)
    -----------------
    run, valid, good : In: receiving; a beat; a flit has a good verdict.
    first, last : Out: this beat begins, ends a cell.
    verdict_2, verdict : Out: 2, 3 cycles behind the last beat of a cell, receiving since.
    before : Out, with `verdict`: cells since the flit with the last good verdict, at most 9.
    """

    def __init__(self, link):
        self.beats = link.cell_beats
        self.run, self.valid, self.good = Signal(), Signal(), Signal()
        self.first, self.last = Signal(), Signal()
        self.verdict_1, self.verdict_2, self.verdict = Signal(), Signal(), Signal()
        self.phase, self.before = Signal(range(max(2, self.beats))), Signal(range(LONG_CELLS))

    def elaborate(self, platform):
        m = Module()
        phase, before = self.phase, self.before
        m.d.comb += [self.first.eq(phase == 0), self.last.eq(phase == self.beats - 1)]
        with m.If(~self.run | (self.valid & self.last)):
            m.d.sync += phase.eq(0)
        with m.Elif(self.valid):
            m.d.sync += phase.eq(phase + 1)
        m.d.sync += [
            self.verdict_1.eq(self.run & self.valid & self.last),
            self.verdict_2.eq(self.verdict_1 & self.run),
            self.verdict.eq(self.verdict_2 & self.run),
        ]
        with m.If(~self.run | self.good):
            m.d.sync += before.eq(0)
        with m.Elif(self.verdict & (before != LONG_CELLS - 1)):
            m.d.sync += before.eq(before + 1)
        return m


class Followed(Elaboratable):
    """The flit that begins with one beat, whichever the solver takes.

    Members (Signals)
    -----------------
    run, valid, first, last, number : In: receiving; a beat, where it is in its cell, its number.
    seen, at : Out: it has begun, with beat `at`.  One that does not begin with a cell, or not while
        receiving, never ends.
    end_2 : Out: 2 cycles behind the end of its cell `cells`, receiving since.
    short_due, long_due : Out: 3 cycles behind its first, its tenth cell.
    following, end_1, cells : state, for invariants.
    """

    def __init__(self):
        self.run, self.valid, self.first, self.last = Signal(), Signal(), Signal(), Signal()
        self.number, self.at = Signal(NUMBER_BITS), Signal(NUMBER_BITS)
        self.seen, self.following, self.end_1, self.end_2 = Signal(), Signal(), Signal(), Signal()
        self.short_due, self.long_due = Signal(), Signal()
        self.cells = Signal(range(LONG_CELLS + 1))

    def elaborate(self, platform):
        m = Module()
        begins, follows, end = Signal(), Signal(), Signal()
        m.d.comb += [
            begins.eq(self.valid & ~self.seen & AnySeq(1)),
            follows.eq(self.run & (self.following | (begins & self.first))),
            end.eq(self.end_2 & self.run),
        ]
        with m.If(begins):
            m.d.sync += [self.seen.eq(1), self.at.eq(self.number)]
        m.d.sync += [
            self.following.eq(follows),
            self.end_1.eq(follows & self.valid & self.last),
            self.end_2.eq(self.end_1 & self.run),
            self.short_due.eq(end & (self.cells == 0)),
            self.long_due.eq(end & (self.cells == LONG_CELLS - 1)),
        ]
        with m.If(end & (self.cells != LONG_CELLS)):
            m.d.sync += self.cells.eq(self.cells + 1)
        return m


class Sum(Elaboratable):
    """CRC of the flit followed, from those of its cells.

    Members (Signals)
    -----------------
    end, crc : In: a cell of it ended 2 cycles ago, the CRC of the cell.
    total : Out, with `end`: CRC of the flit up to this cell.
    carry : state, for invariants.
    """

    def __init__(self):
        self.end, self.crc = Signal(), Signal(CRC_BITS)
        self.total, self.carry = Signal(CRC_BITS), Signal(CRC_BITS)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.total.eq(self.crc ^ self.carry)
        start = self.total ^ step(CRC_INIT, -CRC_BITS)
        with m.If(self.end):
            m.d.sync += self.carry.eq(multiply(register_rows(8 * CELL_BYTES), start))
        return m


def salt_of(session):
    """`isa.link.crc_salt` of a signal."""
    return Cat(session, session[: CRC_BITS - len(session)])
