"""Which lanes to receive on."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.link import Width


class WidthChoice(wiring.Component):
    """The widest allowed group of logical lanes that are all locked.  Combinational.

    Members
    -------
    locked : In(lanes)
        By physical lane.
    reversed : In(1)
        Logical lane i is physical lane lanes - 1 - i.
    level, least : In(2)
        Divisors 2^level .. 2^least are allowed: 0 full, 1 half, 2 quarter.
    turn : In(2)
        Among equally wide groups the search begins with group `turn`: if one half does not work
        although its lanes lock, the next attempt takes the other.
    valid, width : Out
        A group was found; its `Width`.
    """

    def __init__(self, link):
        self.link = link
        super().__init__(
            {
                "locked": In(link.lanes),
                "reversed": In(1),
                "level": In(2),
                "least": In(2),
                "turn": In(2),
                "valid": Out(1),
                "width": Out(3),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = self.link.lanes
        logical, good = Signal(lanes), Signal(len(Width))
        half, quarters, turned = Signal(), Signal(4), Signal(4)
        quarter = Signal(2)
        m.d.comb += [
            logical.eq(Mux(self.reversed, Cat(reversed(list(self.locked))), self.locked)),
            good.eq(Cat(Cat(logical[i] for i in w.lanes(lanes)).all() for w in Width)),
            half.eq(Mux(self.turn[0], good[Width.HIGH_HALF], ~good[Width.LOW_HALF])),
            quarters.eq(good[Width.QUARTER0 :]),
        ]
        with m.Switch(self.turn):
            for turn in range(4):
                with m.Case(turn):
                    m.d.comb += turned.eq(quarters.rotate_right(turn))
        for offset in reversed(range(4)):
            with m.If(turned[offset]):
                m.d.comb += quarter.eq(self.turn + offset)
        with m.If((self.level == 0) & good[Width.FULL]):
            m.d.comb += [self.valid.eq(1), self.width.eq(Width.FULL)]
        with m.Elif((self.level <= 1) & (self.least >= 1) & good[1:3].any()):
            m.d.comb += [
                self.valid.eq(1),
                self.width.eq(Mux(half, Width.HIGH_HALF, Width.LOW_HALF)),
            ]
        with m.Elif((self.least >= 2) & quarters.any()):
            m.d.comb += [self.valid.eq(1), self.width.eq(Width.QUARTER0 + quarter)]
        return m
