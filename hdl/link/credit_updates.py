"""Which two credit limits a control slot carries."""

from amaranth.hdl import Const, Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import one_hot_index
from hdl.lib.select import select_value
from hdl.link.ports import LIMIT_BITS, VC_BITS, Limits
from isa.link import VCS


class CreditUpdates(wiring.Component):
    """Two updates for each slot: every VC in turn, and one that has something new to say.

    Members
    -------
    clear : In, pulse: as after reset, nothing has been sent.
    start : In, pulse: sending starts, the turn is VC 0's.
    limits : In: own absolute limits.
    taken : In: a slot is composed with these updates.
    a_vc, a : Out: the VC whose turn it is.
    b_vc, b : Out: the first VC above it, in cyclic order, whose limit has changed since it was last
        sent; if none has, the one above it.
    """

    def __init__(self):
        super().__init__(
            {
                "clear": In(1),
                "start": In(1),
                "limits": In(Limits()),
                "taken": In(1),
                "a_vc": Out(VC_BITS),
                "a": Out(LIMIT_BITS),
                "b_vc": Out(VC_BITS),
                "b": Out(LIMIT_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        limits = [getattr(self.limits, f"limit{vc}") for vc in range(VCS)]
        turn = Signal(VC_BITS)
        changed, others, above, pick = (
            Signal(VCS, name=name) for name in ("changed", "others", "above", "pick")
        )
        lowest = Signal(VCS)
        m.d.comb += [
            others.eq(changed & ~(Const(1, VCS) << turn)),
            above.eq(others & (Const(~1 & (1 << VCS) - 1, VCS) << turn)[:VCS]),
            lowest.eq(Mux(above != 0, above, others)),
            pick.eq(lowest & (~lowest + 1)),
            self.a_vc.eq(turn),
            self.a.eq(select_value(self.a_vc, limits)),
            self.b_vc.eq(Mux(others != 0, one_hot_index(pick, VCS), turn + 1)),
            self.b.eq(select_value(self.b_vc, limits)),
        ]
        for vc, limit in enumerate(limits):
            # No limit is 0 before anything has been received, so 0 means not sent yet
            sent = Signal(LIMIT_BITS, name=f"sent{vc}")
            m.d.comb += changed[vc].eq(limit != sent)
            with m.If(self.taken & ((self.a_vc == vc) | (self.b_vc == vc))):
                m.d.sync += sent.eq(limit)
        with m.If(self.taken):
            m.d.sync += turn.eq(turn + 1)
        with m.If(self.start):
            m.d.sync += turn.eq(0)
        return ResetInserter(self.clear)(m)
