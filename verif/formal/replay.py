"""ReplayControl and SequenceCheck each by itself, with neighbours that do as they please."""

from amaranth.hdl import Module, Mux, Signal

from hdl.link.sequence_rx import SequenceCheck
from hdl.link.sequence_tx import ReplayControl
from verif.formal.harness import AnyConst, AnySeq, Harness


class IgnoresBad(ReplayControl):
    """Mutant: an impossible acknowledge moves `base`."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.bad_acknowledge):
            m.d.sync += self.base.eq(self.acknowledge)
        return m


class Buffer(Harness):
    """ReplayControl, any acknowledges, and one entry of the replay buffer, whichever it is.

    Mutations: "no_window" sends without room, "moves" on a bad acknowledge.
    """

    def __init__(self, sequence_bits, window, replay_flits, **options):
        super().__init__(**options)
        self.bits, self.window, self.replay_flits = sequence_bits, window, replay_flits

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        bits = self.bits
        control = IgnoresBad if self.mutation == "moves" else ReplayControl
        m.submodules.tx = tx = control(bits, self.window, 2, self.replay_flits)
        for member in (tx.start, tx.send, tx.owed_sent, tx.resend, tx.acknowledge_valid, tx.nak):
            m.d.comb += member.eq(AnySeq(1))
        m.d.comb += [tx.acknowledge.eq(AnySeq(bits)), tx.timer_cycles.eq(AnySeq(16))]
        if self.mutation != "no_window":
            self.assume(m, ~tx.send | tx.can_send)
        self.assume(m, ~(tx.send & (tx.resend | tx.replaying)))
        self.assume(m, ~tx.owed_sent | tx.owing)
        self.assume(m, ~tx.resend | tx.replaying)
        self.assume(m, ~((tx.send | tx.resend) & tx.owed_sent))

        # The entry holds a flit from the time it is sent until an acknowledge covers it
        entry, held, age = Signal(bits), Signal(), Signal(bits)
        covered = Signal()
        moved = Signal(bits)
        m.d.comb += [
            entry.eq(AnyConst(bits)),
            age.eq(entry - tx.base),
            moved.eq(tx.acknowledge - tx.base),
            covered.eq(tx.progress & (age < moved)),
        ]
        with m.If(tx.send & (tx.next == entry)):
            m.d.sync += held.eq(1)
        with m.Elif(covered):
            m.d.sync += held.eq(0)
        self.prove(m, "overwritten", ~(held & tx.send & (tx.next == entry)))
        self.invariant(m, tx.outstanding <= self.window)
        self.invariant(m, held == (age < tx.outstanding))
        self.prove(m, "resent", ~(tx.resend & (tx.pointer == entry)) | held)
        offset = Signal(bits)
        m.d.comb += offset.eq(tx.pointer - tx.base)
        self.invariant(m, offset <= tx.outstanding)

        # A bad acknowledge changes nothing
        was_bad, was_base = Signal(), Signal(bits)
        m.d.sync += [was_bad.eq(tx.bad_acknowledge), was_base.eq(tx.base)]
        self.prove(m, "bad", ~was_bad | (tx.base == was_base))
        self.reach(m, "overwritten", held & covered & ~tx.can_send)
        self.reach(m, "resent", tx.resend & (tx.pointer == entry) & tx.progress)
        self.reach(m, "bad", was_bad & tx.nak)
        return m


class Limit(Harness):
    """ReplayControl and the count of replays that bring nothing while something is outstanding.

    Mutation: "limit_late" allows one replay more.
    """

    def __init__(self, attempts, **options):
        super().__init__(**options)
        self.attempts = attempts

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        attempts = self.attempts + (self.mutation == "limit_late")
        m.submodules.tx = tx = ReplayControl(2, 3, attempts, 1)
        for member in (tx.start, tx.send, tx.owed_sent, tx.acknowledge_valid, tx.nak):
            m.d.comb += member.eq(AnySeq(1))
        m.d.comb += [tx.acknowledge.eq(AnySeq(2)), tx.timer_cycles.eq(2)]
        self.assume(m, ~tx.send | (tx.can_send & ~tx.replaying & ~tx.owing))
        self.assume(m, ~tx.owed_sent | tx.owing)
        fruitless, counts, left = Signal(range(self.attempts + 2)), Signal(), Signal(2)
        m.d.comb += [
            left.eq(tx.next - Mux(tx.progress, tx.acknowledge, tx.base)),
            counts.eq(tx.replay_started & ~tx.start & (left != 0)),
        ]
        with m.If(tx.start | tx.replay_limit):
            m.d.sync += fruitless.eq(0)
        with m.Elif(tx.progress):
            m.d.sync += fruitless.eq(counts)
        with m.Elif(counts):
            m.d.sync += fruitless.eq(fruitless + 1)
        due = counts & ~tx.progress & (fruitless == self.attempts - 1)
        self.prove(m, "limit", tx.replay_limit == due)
        self.reach(m, "limit", tx.replay_limit)
        return m


class AcceptsWaiting(SequenceCheck):
    """Mutant: takes the expected number although it waits for a REPLAY flit."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.accept.eq(
            self.flit_valid & self.enable & self.payload & (self.sequence == self.expected)
        )
        return m


class AcceptsTwo(SequenceCheck):
    """Mutant: compares all bits of the number but one."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        same = self.sequence[:-1] == self.expected[:-1]
        m.d.comb += self.accept.eq(
            self.flit_valid & self.enable & self.payload & same & ~self.waiting
        )
        return m


class RepeatsNever(SequenceCheck):
    """Mutant: a NAK that is lost is not repeated."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += [self.nak_repeat.eq(0)]
        return m


class Receiver(Harness):
    """SequenceCheck and any flits.  Mutations "accept_waiting", "accept_two", "no_repeat"."""

    RTT, MARGIN = 1, 2

    def __init__(self, sequence_bits, *, times=False, **options):
        super().__init__(**options)
        self.bits, self.times = sequence_bits, times

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        mutants = {
            "accept_waiting": AcceptsWaiting,
            "accept_two": AcceptsTwo,
            "no_repeat": RepeatsNever,
        }
        design = mutants.get(self.mutation or "", SequenceCheck)
        m.submodules.rx = rx = design(self.bits, repeat_margin=self.MARGIN)
        for member in (rx.enable, rx.flit_valid, rx.payload, rx.is_replay, rx.lost, rx.nak_taken):
            m.d.comb += member.eq(AnySeq(1))
        m.d.comb += [rx.sequence.eq(AnySeq(self.bits)), rx.rtt.eq(self.RTT)]
        self.assume(m, ~(rx.is_replay & rx.payload))
        self.assume(m, ~(rx.lost & rx.flit_valid))

        if self.times:
            self._repeat(m, rx)
        else:
            self._accept(m, rx)
        return m

    def _accept(self, m, rx):
        # In order since the last REPLAY flit: nothing was lost behind it
        resumed = Signal()
        with m.If(~rx.enable | rx.lost):
            m.d.sync += resumed.eq(0)
        with m.Elif(rx.flit_valid & rx.is_replay):
            m.d.sync += resumed.eq(1)
        self.prove(m, "resumed", ~rx.accept | (resumed & rx.enable))
        self.invariant(m, rx.waiting | resumed)
        self.prove(m, "number", ~rx.accept | (rx.sequence == rx.expected))
        good = rx.flit_valid & rx.payload & rx.enable
        self.prove(m, "number", ~rx.accept | good)
        verdicts = rx.accept + rx.duplicate + rx.gap + rx.bad_sequence
        self.prove(m, "number", verdicts <= 1)
        self.reach(m, "resumed", rx.accept & (rx.expected == 1))
        self.reach(m, "number", rx.gap & ~rx.is_replay)

    def _repeat(self, m, rx):
        # Whoever waits asks again
        silence = Signal(4)
        limit = 2 * self.RTT + self.MARGIN + 1
        with m.If(~rx.waiting | ~rx.enable | rx.nak_repeat | rx.gap | (rx.flit_valid)):
            m.d.sync += silence.eq(0)
        with m.Elif(~silence.all()):
            m.d.sync += silence.eq(silence + 1)
        self.prove(m, "repeat", silence < limit)
        self.prove(m, "repeat", ~rx.nak_repeat | rx.waiting)
        self.reach(m, "repeat", rx.nak_limit)
