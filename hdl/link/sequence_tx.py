"""Sequence numbers, acknowledgement and replay at the transmitter, apart from any data."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.link import ATTEMPTS, REPLAY_FLITS, SEQUENCE_BITS, WINDOW

TIMER_BITS = 16


class ReplayControl(wiring.Component):
    """Which payload flit is sent next, which are outstanding, and when to send them again.

    All numbers are modulo 2 ** `sequence_bits`; at most `window` flits are outstanding.  Inputs
    act at the next clock edge; pulses are combinational, in the cycle of their cause.

    Members
    -------
    clear : In, pulse: as after reset.
    start : In, pulse: sending starts; a replay is asked for, failed replays are forgotten.
    send : In: the first beat of a new payload flit, number `next`, is composed now.  Needs
        `can_send`, and not `replaying`.
    owed_sent : In: a REPLAY flit is composed now.  Needs `owing`.
    resend : In: payload flit `pointer` is composed again now.  A flit that was announced, and that
        an acknowledge has overtaken (`pointer` has moved on), is sent without `resend`.
    acknowledge_valid, acknowledge, nak : In: from a good flit; the peer expects `acknowledge` next.
    timer_cycles : In: cycles without progress after which a replay starts, at least 1.
    next : Out: number of the next new payload flit.
    base : Out: oldest number not acknowledged.
    outstanding : Out: next - base.
    can_send : Out: the window has room.
    owing : Out: REPLAY flits are owed.
    replaying : Out: no REPLAY flit is owed, and flits in front of `next` are to be sent again.
    pointer : Out: number at this position of the stream, minus 1 the `sequence` of a flit without
        payload: `base` until the first REPLAY flit of a replay has been composed, `next` when no
        replay is on.  Depends on registers only.
    progress : Out, pulse: something new has been acknowledged.
    replay_started, timer_fired : Out, pulse: a replay was asked for; it was by the timer.
    bad_acknowledge : Out, pulse: of a flit never sent; it has no effect, its `nak` neither.
    replay_limit : Out, pulse: the `attempts`-th replay by NAK or timer without progress.  Replays
        with nothing outstanding (the peer has lost a flit without payload) do not count.

    ValueError for a window that is not below the number space.
    """

    def __init__(
        self,
        sequence_bits=SEQUENCE_BITS,
        window=WINDOW,
        attempts=ATTEMPTS,
        replay_flits=REPLAY_FLITS,
    ):
        if not 1 <= window < 1 << sequence_bits:
            raise ValueError(f"window {window} must be in 1..{(1 << sequence_bits) - 1}")
        if attempts < 2 or replay_flits < 1:
            raise ValueError(f"{attempts} attempts, {replay_flits} REPLAY flits: at least 2, 1")
        self.sequence_bits, self.window = sequence_bits, window
        self.attempts, self.replay_flits = attempts, replay_flits
        super().__init__(
            {
                "clear": In(1),
                "start": In(1),
                "send": In(1),
                "owed_sent": In(1),
                "resend": In(1),
                "acknowledge_valid": In(1),
                "acknowledge": In(sequence_bits),
                "nak": In(1),
                "timer_cycles": In(TIMER_BITS),
                "next": Out(sequence_bits),
                "base": Out(sequence_bits),
                "outstanding": Out(sequence_bits),
                "can_send": Out(1),
                "owing": Out(1),
                "replaying": Out(1),
                "pointer": Out(sequence_bits),
                "progress": Out(1),
                "replay_started": Out(1),
                "timer_fired": Out(1),
                "bad_acknowledge": Out(1),
                "replay_limit": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.sequence_bits
        half = 1 << (bits - 1)

        # Acknowledge: from base to next new or repeated, half the space behind old, else impossible
        distance = Signal(bits)
        known, good_nak = Signal(), Signal()
        m.d.comb += [
            self.outstanding.eq(self.next - self.base),
            self.can_send.eq(self.outstanding < self.window),
            distance.eq(self.acknowledge - self.base),
            known.eq(distance <= self.outstanding),
            self.progress.eq(self.acknowledge_valid & known & (distance != 0)),
            self.bad_acknowledge.eq(self.acknowledge_valid & ~known & (distance <= half)),
            good_nak.eq(self.acknowledge_valid & ~self.bad_acknowledge & self.nak),
        ]

        # When a replay starts
        owed = Signal(range(self.replay_flits + 1))
        timer = Signal(TIMER_BITS)
        failed = Signal(range(self.attempts))
        due, asked, counts, limit = Signal(), Signal(), Signal(), Signal()
        all_acknowledged = Signal()
        m.d.comb += [
            self.owing.eq(owed != 0),
            due.eq((self.outstanding != 0) & (timer >= self.timer_cycles)),
            self.timer_fired.eq(due & ~self.owing & ~self.progress & ~good_nak & ~self.start),
            # A NAK is absorbed while REPLAY flits are owed: they answer it
            asked.eq((good_nak & ~self.owing) | self.timer_fired),
            self.replay_started.eq(asked | self.start),
            all_acknowledged.eq(
                Mux(self.progress, self.acknowledge == self.next, self.outstanding == 0)
            ),
            counts.eq(asked & ~self.start & ~all_acknowledged),
            limit.eq(~self.progress & (failed == self.attempts - 1)),
            self.replay_limit.eq(counts & limit),
        ]
        with m.If(self.replay_started):
            m.d.sync += owed.eq(self.replay_flits)
        with m.Elif(self.owed_sent):
            m.d.sync += owed.eq(owed - 1)
        # While REPLAY flits are owed nothing has gone out that could be answered
        with m.If(self.replay_started | self.progress | self.owing | (self.outstanding == 0) | due):
            m.d.sync += timer.eq(0)
        with m.Else():
            m.d.sync += timer.eq(timer + 1)
        with m.If(self.start | self.replay_limit):
            m.d.sync += failed.eq(0)
        with m.Elif(self.progress):
            m.d.sync += failed.eq(counts)
        with m.Elif(counts):
            m.d.sync += failed.eq(failed + 1)

        # Numbers.  `position` is behind base by no more than what is outstanding
        position, moved = Signal(bits), Signal(bits)
        offset = Signal(bits)
        m.d.comb += [
            self.pointer.eq(Mux(owed == self.replay_flits, self.base, position)),
            self.replaying.eq(~self.owing & (position != self.next)),
            moved.eq(self.pointer + (self.send | self.resend)),
            offset.eq(moved - self.base),
        ]
        m.d.sync += [self.next.eq(self.next + self.send), position.eq(moved)]
        with m.If(self.progress):
            m.d.sync += self.base.eq(self.acknowledge)
            with m.If(offset < distance):
                m.d.sync += position.eq(self.acknowledge)

        with m.If(self.clear):
            m.d.sync += [
                owed.eq(0),
                timer.eq(0),
                failed.eq(0),
                self.next.eq(0),
                self.base.eq(0),
                position.eq(0),
            ]
        return m
