"""Delivery: Assembly, any beats, and any verdicts of which `Seal` proves that a Framer gives them.

Beats carry their number in place of payload, which the design only stores: what comes out says
where it came from.  One flit is followed, whichever.
"""

from amaranth.hdl import Const, Module, Mux, Signal

from hdl.link.assembly import Assembly
from hdl.link.framer import VERDICT_CYCLES
from isa.link import LONG_CELLS, LONG_GRANULES
from verif.formal.delivery_parts import NUMBER_BITS, Cells, CutLink, Followed, MutantAssembly
from verif.formal.harness import AnySeq, Harness
from verif.formal.seal import keeps_rules


class Delivery(Harness):
    """Free: beats with gaps, receiving or not, initialisation, verdicts and slots.  A good verdict
    falls on the end of a cell, of a long flit ten cells or more behind the good verdict before.
    steady: beats come without gaps, receiving throughout, no initialisation.

    Mutations: "early" commits in the cycle before the verdict, whatever it will be, "slips" by a
    beat behind a flit without a good verdict, "restarts" a flit with each of its beats.
    """

    def __init__(self, beat_bytes, *, steady=False, **options):
        super().__init__(**options)
        self.link, self.steady = CutLink(beat_bytes, NUMBER_BITS // 8), steady

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        faulty = self.mutation in ("early", "slips", "restarts")
        assembly = MutantAssembly(self.link, self.mutation) if faulty else Assembly(self.link)
        m.submodules.assembly = assembly
        m.submodules.cells = cells = Cells(self.link)
        m.submodules.flit = flit = Followed()
        count, enable, run, good = Signal(NUMBER_BITS), Signal(), Signal(), Signal()
        m.d.comb += [
            enable.eq(Const(1) if self.steady else AnySeq(1)),
            run.eq(enable & ~assembly.clear),
            assembly.clear.eq(Const(0) if self.steady else AnySeq(1)),
            assembly.i_valid.eq(Const(1) if self.steady else AnySeq(1)),
            assembly.i_data.eq(count),
            good.eq(cells.verdict & enable & AnySeq(1)),
            assembly.commit.eq(good & AnySeq(1)),
            assembly.is_long.eq(AnySeq(1)),
            assembly.vc.eq(AnySeq(len(assembly.vc))),
            assembly.first.eq(AnySeq(len(assembly.first))),
            assembly.valid.eq(AnySeq(len(assembly.valid))),
            assembly.poison.eq(AnySeq(1)),
            *(part.run.eq(run) for part in (cells, flit)),
            *(part.valid.eq(assembly.i_valid) for part in (cells, flit)),
            cells.good.eq(good),
            flit.first.eq(cells.first),
            flit.last.eq(cells.last),
            flit.number.eq(count),
        ]
        m.d.sync += count.eq(count + assembly.i_valid)
        self.assume(m, ~(good & assembly.is_long) | (cells.before == LONG_CELLS - 1))
        self.assume(m, keeps_rules(assembly.is_long, assembly.valid, assembly.first))
        if self.mutation == "early":
            m.d.comb += assembly.commit.eq(cells.verdict_2 & enable)
        if self.mutation == "slips":
            m.d.sync += assembly.slip.eq(assembly.slip | (cells.verdict & ~good))
        self._delivered(m, assembly, flit)
        return m

    def _delivered(self, m, assembly, flit):
        """Nothing of the flit followed comes out before it may, and then all of it, as it came."""
        link, deliver, number = self.link, assembly.deliver, assembly.deliver.data
        entitled, due = Signal(), Signal()
        said = {
            name: Signal.like(getattr(assembly, name), name=f"said_{name}")
            for name in ("is_long", "vc", "first", "valid", "poison")
        }
        m.d.comb += due.eq(Mux(assembly.is_long, flit.long_due, flit.short_due))
        with m.If(assembly.commit & due):
            m.d.sync += entitled.eq(1)
            m.d.sync += [value.eq(getattr(assembly, name)) for name, value in said.items()]
        begins, mine, within, done, more = Signal(), Signal(), Signal(), Signal(), Signal()
        beat, left = Signal(range(link.long_beats + 1)), Signal(range(LONG_GRANULES + 1))
        m.d.comb += [
            begins.eq(deliver.valid & deliver.start & flit.seen & (number == flit.at)),
            mine.eq(begins | (deliver.valid & ~deliver.start & within)),
            left.eq(said["valid"] - beat * link.beat_granules),
            more.eq(left > link.beat_granules),
        ]
        with m.If(mine):
            m.d.sync += [beat.eq(Mux(more, beat + 1, 0)), within.eq(more), done.eq(1)]
        # Initialisation drops what has not been delivered
        dropped = Signal()
        with m.If(assembly.clear):
            m.d.sync += [within.eq(0), beat.eq(0), dropped.eq(dropped | flit.seen)]

        self.prove(m, "verdict", ~mine | entitled)

        # As it came: from its first beat on, in order, with what its slot said
        offset = Signal(8)
        m.d.comb += offset.eq(said["first"] - beat * link.beat_granules)
        with m.If(mine & entitled):
            self.prove(m, "stored", number == (flit.at + beat)[:NUMBER_BITS])
            self.prove(m, "stored", deliver.granules == Mux(more, link.beat_granules, left))
            self.prove(m, "stored", deliver.vc == said["vc"])
            self.prove(m, "stored", deliver.poison == said["poison"])
            self.prove(m, "stored", deliver.first_valid == (offset < link.beat_granules))
            with m.If(deliver.first_valid):
                self.prove(m, "stored", deliver.first == offset)
        # Every beat is of a flit that began: it begins one, or goes on behind the beat before
        was_valid, was_number = Signal(), Signal(NUMBER_BITS)
        m.d.sync += [was_valid.eq(deliver.valid), was_number.eq(number)]
        with m.If(deliver.valid & ~deliver.start):
            self.prove(m, "stored", was_valid & (number == (was_number + 1)[:NUMBER_BITS]))

        # Once, whole, and soon: at most what is left of a long flit and the short ones since wait
        wait = Signal(range(2 * link.long_beats + 1))
        with m.If(entitled & ~done & ~dropped & (wait != 2 * link.long_beats)):
            m.d.sync += wait.eq(wait + 1)
        self.prove(m, "once", ~begins | ~done)
        self.prove(m, "once", ~within | (deliver.valid & ~deliver.start))
        self.prove(m, "once", wait <= link.long_beats)

        age = Signal(range(VERDICT_CYCLES + 2))
        with m.If(flit.end_1 & (age == 0)):
            m.d.sync += age.eq(1)
        with m.Elif((age != 0) & (age <= VERDICT_CYCLES)):
            m.d.sync += age.eq(age + 1)
        # Cycles behind the last beat of its first cell
        self.prove(m, "verdict", ~mine | (age >= VERDICT_CYCLES))
        self.reach(m, "verdict", begins & ~said["is_long"] & (age == VERDICT_CYCLES))
        over = mine & ~more & said["is_long"] & (beat == link.long_beats - 1)
        self.reach(m, "stored", over if link.cell_beats == 1 else mine & beat.any())
        self.reach(m, "once", begins & (wait == 2))
