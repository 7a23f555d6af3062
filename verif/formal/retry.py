"""Retry: ReplayControl, a lossy channel, SequenceCheck, and a lossy way back.

Beside each flit travels its true number, a ghost that is much wider than the number space.  Both
channels keep order, take any time, and may lose any flit.  The proof is by induction, so it holds
for ever, and cheap in the width, so it holds of the production parameters too.
"""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data

from hdl.link.sequence_rx import SequenceCheck
from hdl.link.sequence_tx import ReplayControl
from verif.formal.harness import AnySeq, Harness

FORWARD, BACKWARD = 3, 2
"""Flits in flight each way."""


class AcceptsGap(SequenceCheck):
    """Mutant: takes a flit although flits in front of it are missing."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        ahead = self.sequence - self.expected
        m.d.comb += self.accept.eq(
            self.flit_valid
            & self.payload
            & ~self.waiting
            & self.enable
            & (ahead[: self.sequence_bits] <= 1)
        )
        return m


class Retry(Harness):
    """Mutations: "window" is as large as the number space, "accept_gap", "acknowledge_next"
    acknowledges one flit too many, "pulse_overtaken" counts an overtaken flit as sent again,
    "no_window" sends whenever it likes, "half" has a window of half the number space.
    """

    def __init__(self, sequence_bits, window, replay_flits, **options):
        super().__init__(**options)
        self.bits, self.window, self.replay_flits = sequence_bits, window, replay_flits
        half = 1 << (sequence_bits - 1)
        self.exact = window < half
        """Classes of the receiver are exact only if the window is below half the space."""
        if self.mutation == "half":
            self.window = half

    def _transmitter(self):
        if self.mutation == "window":
            # It knows its numbers with a bit more than the wire has
            return ReplayControl(self.bits + 1, 1 << self.bits, replay_flits=self.replay_flits)
        return ReplayControl(self.bits, self.window, replay_flits=self.replay_flits)

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        bits, window = self.bits, self.window
        wide = bits + 3
        check = AcceptsGap if self.mutation == "accept_gap" else SequenceCheck
        m.submodules.tx = tx = self._transmitter()
        m.submodules.rx = rx = check(bits, repeat_margin=2)
        newest, oldest, wanted = Signal(wide), Signal(wide), Signal(wide)

        # Environment: anything may happen at any time
        shift, back = AnySeq(1), AnySeq(1)
        choice, fate, back_lost = Signal(3), Signal(2), Signal()
        m.d.comb += [
            choice.eq(AnySeq(3)),
            fate.eq(AnySeq(2)),
            back_lost.eq(AnySeq(1)),
            tx.start.eq(AnySeq(1)),
            tx.timer_cycles.eq(AnySeq(16)),
            rx.enable.eq(AnySeq(1)),
            rx.rtt.eq(AnySeq(16)),
        ]
        self.assume(m, tx.timer_cycles > 0)

        # Composer: new, again, REPLAY or no payload.  A flit sent again may have been announced
        # and then overtaken by an acknowledge
        announced, announced_new, announce, compose = Signal(), Signal(), Signal(), Signal()
        announced_number, announced_true = Signal(tx.sequence_bits), Signal(wide)
        position = Signal(wide)
        room, fresh, overtaken = Signal(), Signal(), Signal()
        m.d.comb += [
            compose.eq(shift),
            position.eq(newest - (tx.next - tx.pointer)[: tx.sequence_bits]),
            room.eq(Const(1) if self.mutation == "no_window" else tx.can_send),
            announce.eq(AnySeq(1)),
            fresh.eq(room & ~tx.owing & ~tx.replaying),
            overtaken.eq(announced & ~announced_new & (announced_number != tx.pointer)),
        ]
        entry = data.StructLayout(
            {"valid": 1, "payload": 1, "replay": 1, "sequence": bits, "true": wide}
        )
        new = Signal(entry)
        with m.If(compose):
            with m.If(announced & ~announced_new):
                m.d.comb += [new.sequence.eq(announced_number), new.true.eq(announced_true)]
                m.d.comb += [new.payload.eq(1), tx.resend.eq(~overtaken)]
                if self.mutation == "pulse_overtaken":
                    m.d.comb += tx.resend.eq(1)
            with m.Elif(announced | ((choice == 0) & fresh)):
                m.d.comb += [tx.send.eq(1), new.sequence.eq(tx.next)]
                m.d.comb += [new.true.eq(newest), new.payload.eq(1)]
            with m.Elif((choice == 1) & tx.owing):
                m.d.comb += [tx.owed_sent.eq(1), new.sequence.eq(tx.pointer - 1)]
                m.d.comb += [new.true.eq(position), new.replay.eq(1)]
            with m.Elif((choice == 2) & tx.replaying):
                m.d.comb += [tx.resend.eq(1), new.sequence.eq(tx.pointer)]
                m.d.comb += [new.true.eq(position), new.payload.eq(1)]
            with m.Elif(choice == 3):
                m.d.comb += [new.sequence.eq(tx.pointer - 1), new.true.eq(position)]
            m.d.comb += new.valid.eq(announced | new.payload | new.replay | (choice == 3))
        with m.If(new.valid):
            m.d.sync += announced.eq(0)
        with m.Elif(announce & (tx.replaying | fresh) & ~announced):
            m.d.sync += [announced.eq(1), announced_new.eq(fresh)]
            m.d.sync += [announced_number.eq(tx.pointer), announced_true.eq(position)]
        m.d.sync += newest.eq(newest + tx.send)

        # Way out: the oldest flit is delivered, found corrupt, or never seen
        forward = [Signal(entry, name=f"forward{i}") for i in range(FORWARD)]
        head = forward[-1]
        with m.If(shift):
            m.d.sync += forward[0].eq(new)
            for older, younger in zip(forward[1:], forward, strict=False):
                m.d.sync += older.eq(younger)
        m.d.comb += [
            rx.flit_valid.eq(shift & head.valid & (fate == 0)),
            rx.lost.eq(shift & head.valid & (fate == 1)),
            rx.payload.eq(head.payload),
            rx.is_replay.eq(head.replay),
            rx.sequence.eq(head.sequence),
        ]
        m.d.sync += wanted.eq(wanted + rx.accept)

        # Way back
        answer = data.StructLayout({"valid": 1, "number": bits, "nak": 1, "true": wide})
        backward = [Signal(answer, name=f"backward{i}") for i in range(BACKWARD)]
        last = backward[-1]
        with m.If(back):
            m.d.sync += [
                backward[0].valid.eq(AnySeq(1)),
                backward[0].number.eq(rx.expected + (self.mutation == "acknowledge_next")),
                backward[0].nak.eq(rx.nak),
                backward[0].true.eq(wanted),
            ]
            m.d.comb += rx.nak_taken.eq(AnySeq(1))
            for older, younger in zip(backward[1:], backward, strict=False):
                m.d.sync += older.eq(younger)
        m.d.comb += [
            tx.acknowledge_valid.eq(back & last.valid & ~back_lost),
            tx.acknowledge.eq(tx.base + (last.number - tx.base)[:bits]),
            tx.nak.eq(last.nak),
        ]
        moved = Signal(bits)
        m.d.comb += moved.eq(tx.acknowledge - tx.base)
        with m.If(tx.progress):
            m.d.sync += oldest.eq(oldest + moved)

        # Properties
        flight = Signal(wide)
        m.d.comb += flight.eq(newest - oldest)
        self.prove(m, "order", ~rx.accept | (head.true == wanted))
        self.prove(m, "released", (wanted - oldest)[:wide] <= flight)
        self.prove(m, "window", flight <= window)
        self.prove(m, "window", tx.outstanding == flight)
        self.prove(m, "acknowledge", ~tx.bad_acknowledge)
        offset = Signal.like(tx.pointer)
        m.d.comb += offset.eq(tx.pointer - tx.base)
        self.prove(m, "pointer", offset <= tx.outstanding)
        if self.exact:
            behind = Signal(wide)
            m.d.comb += behind.eq(wanted - head.true)
            older = (behind != 0) & ~behind[-1]
            newer = behind[-1]
            flit = rx.flit_valid & rx.enable
            self.prove(m, "classes", ~rx.bad_sequence)
            self.prove(m, "classes", ~rx.duplicate | (older & head.payload))
            self.prove(m, "classes", ~(flit & head.payload & older) | rx.duplicate)
            self.prove(m, "classes", ~rx.gap | newer)
            self.prove(m, "classes", ~(flit & newer & ~rx.waiting) | rx.gap)
        self._invariants(m, tx, rx, (newest, oldest, wanted), forward, backward)
        with m.If(announced & announced_new):
            self.invariant(m, tx.can_send)
            self.invariant(m, (tx.pointer == tx.next) | tx.owing)
        with m.Elif(announced):
            self.invariant(m, announced_number == announced_true[:bits])
            self.invariant(m, (newest - 1 - announced_true)[:wide] < window)

        # What must be reachable
        missed, missed_true = Signal(), Signal(wide)
        with m.If(shift & head.valid & head.payload & (fate != 0) & (head.true == wanted)):
            m.d.sync += [missed.eq(1), missed_true.eq(wanted)]
        self.reach(m, "order", rx.accept & missed & (head.true == missed_true))
        self.reach(m, "released", tx.replay_started & tx.nak & tx.progress)
        self.reach(m, "window", ~tx.can_send & tx.progress)
        self.reach(m, "acknowledge", tx.progress & rx.duplicate)
        self.reach(m, "pointer", new.valid & overtaken & ~tx.owing)
        if self.exact:
            self.reach(m, "classes", rx.duplicate & (tx.outstanding == window))
        return m

    def _invariants(self, m, tx, rx, true, forward, backward):
        """The state of the parts agrees with the true numbers; flits in flight are near them."""
        bits, window, wide = self.bits, self.window, self.bits + 3
        newest, oldest, wanted = true
        near = 2 * window
        self.invariant(m, tx.next == newest[:bits])
        self.invariant(m, tx.base == oldest[:bits])
        self.invariant(m, rx.expected == wanted[:bits])
        for n, flit in enumerate(forward):
            number = Mux(flit.payload, flit.true, flit.true - 1)[:bits]
            with m.If(flit.valid):
                self.invariant(m, flit.sequence == number)
                # expected - window <= number <= expected + window, and below next
                self.invariant(m, (flit.true + window - wanted)[:wide] <= near)
                self.invariant(m, (newest - flit.true - flit.payload)[:wide] <= near)
                self.invariant(m, ~(flit.payload & flit.replay))
            for older in forward[n + 1 :]:
                # A number in front is not so new that this one could be taken for the next round
                with m.If(flit.valid & older.valid & older.payload):
                    self.invariant(m, (flit.true + window - 1 - older.true)[:wide] <= 3 * window)
        passed = wanted - oldest
        for n, answer in enumerate(backward):
            ahead = (answer.true - oldest)[:wide]
            with m.If(answer.valid):
                self.invariant(m, answer.number == answer.true[:bits])
                self.invariant(m, ahead <= passed[:wide])
            for older in backward[n + 1 :]:
                with m.If(answer.valid & older.valid):
                    self.invariant(m, (older.true - oldest)[:wide] <= ahead)
