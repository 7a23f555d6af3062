"""Credit: CreditCounter, a channel for limits that loses and delays them, CreditReturn.

Granules in flight are not lost: the retry layer sends them again.  Ghost counters say where every
granule of the receive buffer is.
"""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.credit_rx import CreditReturn
from hdl.link.credit_tx import UNIT_SHIFT, CreditCounter
from isa.link import LONG_GRANULES
from verif.formal.harness import AnySeq, Harness


class IncrementCounter(wiring.Component):
    """Mutant of CreditCounter: an update is what has become free since the one before."""

    def __init__(self, unit_bits):
        granules = range(LONG_GRANULES + 1)
        super().__init__(
            {
                "update_valid": In(1),
                "update": In(unit_bits),
                "since": In(unit_bits),
                "take_valid": In(1),
                "take": In(granules),
                "available": Out(unit_bits + UNIT_SHIFT),
                "known": Out(1),
                "bad_credit": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        grant = (self.since << UNIT_SHIFT) * self.update_valid
        m.d.sync += self.available.eq(self.available + grant - self.take * self.take_valid)
        m.d.sync += self.known.eq(self.known | self.update_valid)
        return m


class BelievingCounter(CreditCounter):
    """Mutant: takes any limit, old ones too."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.known & self.update_valid):
            granules = (self.update - self.limit)[: self.unit_bits] << UNIT_SHIFT
            taken = self.take * self.take_valid
            m.d.sync += [
                self.limit.eq(self.update),
                self.available.eq(self.available + granules - taken),
            ]
        return m


class Credit(Harness):
    """Mutations: "increments" instead of absolute limits, "early" returns granules when they
    arrive, "eager" sends without credit, "ancient" delivers limits older than half the space,
    "believes" any limit.
    """

    def __init__(self, units, unit_bits, **options):
        super().__init__(**options)
        self.units, self.unit_bits = units, unit_bits

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        bits = self.unit_bits
        wide = bits + UNIT_SHIFT + 2
        half = 1 << (bits - 1)
        depth = self.units << UNIT_SHIFT
        mutants = {"increments": IncrementCounter, "believes": BelievingCounter}
        design = mutants.get(self.mutation or "", CreditCounter)
        m.submodules.tx = tx = design(bits)
        m.submodules.rx = rx = CreditReturn(self.units, bits)

        # Where the granules are, from what has been sent, has arrived, and has been freed in all
        sent, arrived, freed = Signal(wide), Signal(wide), Signal(wide)
        flight, used, unannounced = Signal(wide), Signal(wide), Signal(wide)
        arriving, leaving = Signal(6), Signal(6)
        taken = Signal(6)
        m.d.comb += [
            tx.take_valid.eq(AnySeq(1)),
            tx.take.eq(AnySeq(6)),
            taken.eq(tx.take * tx.take_valid),
            arriving.eq(AnySeq(6)),
            leaving.eq(AnySeq(6)),
            rx.freed.eq(arriving if self.mutation == "early" else leaving),
        ]
        self.assume(m, tx.take <= LONG_GRANULES)
        self.assume(m, (arriving <= flight) & (arriving <= LONG_GRANULES))
        self.assume(m, (leaving <= used) & (leaving <= LONG_GRANULES))
        if self.mutation != "eager":
            self.assume(m, taken <= tx.available)
        m.d.sync += [
            sent.eq(sent + taken),
            arrived.eq(arrived + arriving),
            freed.eq(freed + rx.freed),
        ]
        # They leave the buffer when they are freed, but for the mutant
        left = freed
        if self.mutation == "early":
            left = Signal(wide)
            m.d.sync += left.eq(left + leaving)
        m.d.comb += [flight.eq(sent - arrived), used.eq(arrived - left)]

        # Limits: any one that was current, up to half the space ago, or the newest, or none.
        # `behind`: units by which the one delivered is older than the newest; the transmitter
        # knows one that is `known_behind` older
        whole = wide - UNIT_SHIFT
        newest, known, delivered = Signal(whole), Signal(whole), Signal(whole)
        behind, known_behind = Signal(whole), Signal(whole)
        m.d.comb += [
            newest.eq((freed + depth)[UNIT_SHIFT:]),
            behind.eq(AnySeq(whole)),
            delivered.eq(newest - behind),
            known_behind.eq(newest - known),
            tx.update_valid.eq(AnySeq(1)),
            tx.update.eq(delivered[:bits]),
            unannounced.eq(freed + depth - (known << UNIT_SHIFT)),
        ]
        old = behind > known_behind
        if self.mutation == "ancient":
            self.assume(m, behind - known_behind <= half + 1)
        else:
            self.assume(m, ~old | (behind - known_behind <= half))
        self.assume(m, tx.known | ~tx.update_valid | (behind == 0))
        applied = Signal()
        m.d.comb += applied.eq(tx.update_valid & (~tx.known | ~old))
        with m.If(applied):
            m.d.sync += known.eq(delivered)
        if self.mutation == "increments":
            last = Signal(bits)
            with m.If(tx.update_valid | AnySeq(1)):
                m.d.sync += last.eq(rx.limit)
            m.d.comb += tx.since.eq(rx.limit - last)

        # No part is negative, so that the sum does not wrap
        total = Signal(wide)
        m.d.comb += total.eq(tx.available + flight + used + unannounced)
        for part in (flight, used, tx.available):
            self.invariant(m, part <= depth)
        self.invariant(m, ~tx.known | (unannounced <= depth))
        self.prove(m, "conserved", ~tx.known | (total == depth))
        self.prove(m, "overflow", used + flight <= depth)
        self.prove(m, "negative", tx.available <= depth)
        self.prove(m, "accepted", ~tx.bad_credit)
        # An update never takes credit away
        was_available, was_taken = Signal(wide), Signal(6)
        m.d.sync += [was_available.eq(tx.available), was_taken.eq(taken)]
        self.prove(m, "monotone", tx.available + was_taken >= was_available)
        if self.mutation != "increments":
            with m.If(tx.known):
                self.invariant(m, tx.limit == known[:bits])
                self.invariant(m, tx.available == ((known << UNIT_SHIFT) - sent)[:wide])
                self.invariant(m, tx.advertised == self.units)
        self.invariant(m, rx.total == (freed + depth)[: bits + UNIT_SHIFT])
        with m.If(~tx.known):
            self.invariant(m, (sent == 0) & (arrived == 0) & (left == 0) & (freed == 0))
            self.invariant(m, known == 0)
            self.invariant(m, (tx.available == 0) & (was_taken == 0) & (was_available == 0))

        self.reach(m, "conserved", tx.known & (used != 0) & (flight != 0))
        self.reach(m, "overflow", used + flight == depth)
        self.reach(m, "negative", (tx.available == depth) & (freed != 0))
        self.reach(m, "accepted", tx.known & applied & (behind < known_behind))
        self.reach(m, "monotone", tx.update_valid & tx.known & old)
        return m
