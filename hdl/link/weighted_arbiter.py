"""Weighted round robin among virtual channels, by flits."""

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import one_hot_mux
from isa.link import VCS

WEIGHT_BITS = 4


class WeightedArbiter(wiring.Component):
    """Picks the VC of a flit that starts and, behind it, of one that is announced.

    The current VC keeps the turn while it asks and has had fewer flits than its weight; then the
    next one that asks, in cyclic order, the current one last.  Weight 0 counts as 1.  Both picks
    are combinational and one-hot (0 if none asks); that for the announcement counts a flit that
    starts in the same cycle.

    Members
    -------
    clear : In, pulse: as after reset, VC 0 is first.
    weights : In(32): 4 bits for each VC.
    start_set, announce_set : In(8): VCs that ask.
    start_pick, announce_pick : Out(8).
    start, announce : In: the pick is taken.
    """

    def __init__(self):
        super().__init__(
            {
                "clear": In(1),
                "weights": In(VCS * WEIGHT_BITS),
                "start_set": In(VCS),
                "start": In(1),
                "start_pick": Out(VCS),
                "announce_set": In(VCS),
                "announce": In(1),
                "announce_pick": Out(VCS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # Whoever is current has had a flit, so a weight of 0 does the same as 1
        weights = [self.weights.word_select(vc, WEIGHT_BITS) for vc in range(VCS)]

        def choose(name, current, count, asking, taken):
            """(pick, current and count behind it)."""
            masked, lowest = Signal(VCS, name=f"{name}_masked"), Signal(VCS, name=f"{name}_lowest")
            limit = Signal(WEIGHT_BITS, name=f"{name}_limit")
            keeps, pick = Signal(name=f"{name}_keeps"), Signal(VCS, name=f"{name}_pick")
            new_current = Signal(VCS, name=f"{name}_new_current")
            new_count = Signal(WEIGHT_BITS, name=f"{name}_new_count")
            m.d.comb += [
                limit.eq(one_hot_mux(current, weights)),
                keeps.eq(((current & asking) != 0) & (count < limit)),
                # Above the current one first, then from VC 0 on: the current one comes last
                masked.eq(asking & ~(current | (current - 1))),
                lowest.eq(Mux(masked != 0, masked, asking)),
                pick.eq(Mux(keeps, current, lowest & (~lowest + 1))),
                new_current.eq(current),
                new_count.eq(count),
            ]
            with m.If(taken & (pick != 0)):
                m.d.comb += new_current.eq(pick)
                with m.If(pick != current):
                    m.d.comb += new_count.eq(1)
                with m.Elif(~count.all()):  # no weight is above 15
                    m.d.comb += new_count.eq(count + 1)
            return pick, new_current, new_count

        current = Signal(VCS, init=1 << VCS - 1)
        count = Signal(WEIGHT_BITS, init=(1 << WEIGHT_BITS) - 1)
        start_pick, *middle = choose("start", current, count, self.start_set, self.start)
        announce_pick, *end = choose("announce", *middle, self.announce_set, self.announce)
        m.d.comb += [self.start_pick.eq(start_pick), self.announce_pick.eq(announce_pick)]
        m.d.sync += [current.eq(end[0]), count.eq(end[1])]
        return ResetInserter(self.clear)(m)
