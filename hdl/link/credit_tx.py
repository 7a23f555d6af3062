"""Credit of one virtual channel at the transmitter."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.link import CREDIT_BITS, LONG_GRANULES, UNIT_GRANULES

UNIT_SHIFT = UNIT_GRANULES.bit_length() - 1


class CreditCounter(wiring.Component):
    """Granules that may be sent, from absolute limits in units modulo 2 ** `unit_bits`.

    The first update after `clear` sets the limit and what the receiver has in all; it must be less
    than half the number space.  Repeated, old and lost updates do no harm.  `available` moves at
    the clock edge behind `update_valid` and `take_valid`.

    Members
    -------
    clear : In, pulse: as after reset.
    update_valid, update : In: a limit from a good flit.
    take_valid, take : In: so many granules (0..39, at most `available`) are sent.
    available : Out: granules that may be sent, 0 until `known`.
    known : Out: a limit has come.
    limit, advertised : Out: newest limit and the first one, in units; 0 until `known`.
    bad_credit : Out, pulse in the cycle of `update_valid`: the limit is beyond what was
        advertised; it has no effect.
    """

    def __init__(self, unit_bits=CREDIT_BITS):
        if unit_bits < 2:
            raise ValueError(f"credit of {unit_bits} bits, must be at least 2")
        self.unit_bits = unit_bits
        super().__init__(
            {
                "clear": In(1),
                "update_valid": In(1),
                "update": In(unit_bits),
                "take_valid": In(1),
                "take": In(range(LONG_GRANULES + 1)),
                "available": Out(unit_bits + UNIT_SHIFT),
                "known": Out(1),
                "limit": Out(unit_bits),
                "advertised": Out(unit_bits),
                "bad_credit": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.unit_bits
        distance = Signal(bits)
        newer, first, good = Signal(), Signal(), Signal()
        # available = 4 limit - sent, so that 4 update - sent = 4 distance + available
        offered = Signal(bits + UNIT_SHIFT + 1)
        taken = Signal.like(self.take)
        m.d.comb += [
            distance.eq(self.update - self.limit),
            newer.eq(~distance[-1]),
            offered.eq(self.available + Cat(Const(0, UNIT_SHIFT), distance)),
            first.eq(self.update_valid & ~self.known),
            good.eq(newer & (offered <= Cat(Const(0, UNIT_SHIFT), self.advertised))),
            self.bad_credit.eq(self.update_valid & self.known & newer & ~good),
            taken.eq(Mux(self.take_valid, self.take, 0)),
        ]
        with m.If(first):
            m.d.sync += [
                self.known.eq(1),
                self.advertised.eq(self.update),
                self.limit.eq(self.update),
                self.available.eq(Cat(Const(0, UNIT_SHIFT), self.update)),
            ]
        with m.Elif(self.update_valid & good):
            m.d.sync += [self.limit.eq(self.update), self.available.eq(offered - taken)]
        with m.Else():
            m.d.sync += self.available.eq(self.available - taken)
        with m.If(self.clear):
            m.d.sync += [
                self.known.eq(0),
                self.advertised.eq(0),
                self.limit.eq(0),
                self.available.eq(0),
            ]
        return m
