"""Order of flits: which one is composed, which format is announced."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.arbiter import one_hot_index, one_hot_mux
from hdl.link.ports import VC_BITS
from hdl.link.weighted_arbiter import WEIGHT_BITS, WeightedArbiter
from isa.link import (
    CREDIT_BITS,
    LONG_GRANULES,
    REPLAY_FLITS,
    SEQUENCE_BITS,
    SHORT_GRANULES,
    UNIT_GRANULES,
    VCS,
    WINDOW,
)

AVAILABLE_BITS = CREDIT_BITS + ceil_log2(UNIT_GRANULES)
COMMAND_BITS = 3


class Kind(enum.Enum, shape=2):
    """What a flit is to its composer."""

    CONTROL = 0
    REPLAY = 1
    DATA = 2
    """New payload, from a queue."""
    RESEND = 3
    """Payload sent before, from the replay buffer."""


class Composer(wiring.Component):
    """Decides at the first beat of a flit what it is, and at its last one what follows.

    Holds no data: `compose` is high in each cycle in which a beat is made, and the other outputs
    say which.  All outputs are combinational from the state at the beginning of the cycle.

    Members
    -------
    clear : In, pulse: as after reset.
    nak : In: a NAK is owed; it goes out in a short flit.
    move : In: the pipeline takes a beat.
    enable, stop_command, flush : In: as in Transmitter.
    weights : In(32).
    level0.., available0.. : In: granules in the queue, and credit, of each VC.
    next, outstanding, can_send, owing, replaying, pointer, replay_started : In: of ReplayControl.
    at, at_long, ready, soon, next_long, room_short, room_long : In: of ReplayBuffer.
    start : Out, pulse: sending starts.
    stopped : Out: nothing is composed, and no flit is in work.
    drop : Out: the beat does not enter the pipeline: the rest of a flit cut off by `flush`, made
        for the replay buffer only.
    compose : Out: a beat is made.
    kind, long, vc, valid, sequence, command : Out: of its flit.
    first_beat, last_beat, beat : Out: its position in the flit.
    granules : Out: granules of the queue `vc` that it takes, with or without `compose`.
    next_format : Out(1), with `last_beat`: the format announced.
    send, owed_sent, resend, hold : Out: to ReplayControl and ReplayBuffer.
    """

    def __init__(self, link):
        self.link = link
        level = range(link.queue_granules + 1)
        super().__init__(
            {
                "clear": In(1),
                "nak": In(1),
                "move": In(1),
                "enable": In(1),
                "stop_command": In(COMMAND_BITS),
                "flush": In(1),
                "weights": In(VCS * WEIGHT_BITS),
                **{f"level{vc}": In(level) for vc in range(VCS)},
                **{f"available{vc}": In(AVAILABLE_BITS) for vc in range(VCS)},
                "next": In(SEQUENCE_BITS),
                "outstanding": In(SEQUENCE_BITS),
                "can_send": In(1),
                "owing": In(1),
                "replaying": In(1),
                "pointer": In(SEQUENCE_BITS),
                "replay_started": In(1),
                "at": In(SEQUENCE_BITS),
                "at_long": In(1),
                "ready": In(1),
                "soon": In(1),
                "next_long": In(1),
                "room_short": In(1),
                "room_long": In(1),
                "start": Out(1),
                "stopped": Out(1),
                "drop": Out(1),
                "compose": Out(1),
                "kind": Out(Kind),
                "long": Out(1),
                "vc": Out(VC_BITS),
                "valid": Out(range(LONG_GRANULES + 1)),
                "sequence": Out(SEQUENCE_BITS),
                "command": Out(COMMAND_BITS),
                "first_beat": Out(1),
                "last_beat": Out(1),
                "beat": Out(range(link.long_beats)),
                "granules": Out(range(link.beat_granules + 1)),
                "next_format": Out(1),
                "send": Out(1),
                "owed_sent": Out(1),
                "resend": Out(1),
                "hold": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        link = self.link
        levels = [getattr(self, f"level{vc}") for vc in range(VCS)]
        credits = [getattr(self, f"available{vc}") for vc in range(VCS)]
        m.submodules.arbiter = arbiter = WeightedArbiter()
        m.d.comb += arbiter.weights.eq(self.weights)

        # A LONG flit that has been announced: of a queue, or the flit `at` of the replay buffer
        announced, announced_resend = Signal(), Signal()
        announced_vc = Signal(VC_BITS)

        # Start and stop
        sending, drain, was_enabled, command_sent = Signal(), Signal(), Signal(), Signal()
        command_due, halt = Signal(), Signal()
        m.d.comb += [
            self.start.eq(self.enable & ~was_enabled),
            command_due.eq(~self.enable & (self.stop_command != 0) & ~command_sent),
            self.first_beat.eq(self.beat == 0),
            halt.eq(self.first_beat & ~self.enable & ~announced & ~command_due),
            self.compose.eq(~self.flush & (drain | (sending & ~halt & self.move))),
            self.drop.eq(drain),
            self.stopped.eq(~sending & ~drain),
        ]
        m.d.sync += was_enabled.eq(self.enable)
        with m.If(self.enable):
            m.d.sync += sending.eq(1)
        with m.Elif(self.flush | (halt & ~drain)):
            m.d.sync += sending.eq(0)
        with m.If(self.flush):
            m.d.sync += drain.eq(~self.first_beat)
        with m.Elif(self.last_beat):
            m.d.sync += drain.eq(0)

        # VCs that a short flit may be of; with how many granules
        start_vc = Signal(VC_BITS)
        may_start, short_set, short_count = Signal(), Signal(VCS), []
        m.d.comb += may_start.eq(self.can_send & self.room_short)
        for vc, (level, credit) in enumerate(zip(levels, credits, strict=True)):
            queued, allowed = (Signal(2, name=f"{name}{vc}") for name in ("queued", "allowed"))
            count = Signal(2, name=f"short_count{vc}")
            m.d.comb += [
                queued.eq(Mux(level >= SHORT_GRANULES, SHORT_GRANULES, level)),
                allowed.eq(Mux(credit >= SHORT_GRANULES, SHORT_GRANULES, credit)),
                count.eq(Mux(queued < allowed, queued, allowed)),
                short_set[vc].eq(may_start & (count != 0)),
            ]
            short_count.append(count)
        m.d.comb += [
            arbiter.start_set.eq(short_set),
            start_vc.eq(one_hot_index(arbiter.start_pick, VCS)),
        ]

        # The flit that starts
        kind, held_kind = Signal(Kind), Signal(Kind)
        picked = Signal()
        long, vc, valid = Signal(), Signal(VC_BITS), Signal.like(self.valid)
        command = Signal(COMMAND_BITS)
        m.d.comb += [long.eq(announced), vc.eq(start_vc)]
        with m.If(announced):
            m.d.comb += [
                kind.eq(Mux(announced_resend, Kind.RESEND, Kind.DATA)),
                vc.eq(announced_vc),
                valid.eq(LONG_GRANULES),
            ]
        with m.Elif(~self.enable):
            m.d.comb += [kind.eq(Kind.CONTROL), command.eq(self.stop_command)]
        with m.Elif(self.owing):
            m.d.comb += kind.eq(Kind.REPLAY)
        with m.Elif(self.replaying):
            # Without a copy at hand, or before a long one can be announced: a CONTROL flit
            m.d.comb += kind.eq(Mux(self.ready & ~self.at_long, Kind.RESEND, Kind.CONTROL))
        with m.Elif(short_set != 0):
            m.d.comb += [
                kind.eq(Kind.DATA),
                picked.eq(1),
                valid.eq(one_hot_mux(arbiter.start_pick, short_count)),
            ]

        # The flit in work
        owed = Signal(range(REPLAY_FLITS + 1))
        held_long, held_vc = Signal(), Signal(VC_BITS)
        held_valid, held_sequence = Signal.like(valid), Signal(SEQUENCE_BITS)
        held_command = Signal(COMMAND_BITS)
        left, rest = Signal.like(valid), Signal.like(valid)
        starts = Signal()
        m.d.comb += [
            self.kind.eq(Mux(self.first_beat, kind, held_kind)),
            self.long.eq(Mux(self.first_beat, long, held_long)),
            self.vc.eq(Mux(self.first_beat, vc, held_vc)),
            self.valid.eq(Mux(self.first_beat, valid, held_valid)),
            self.command.eq(Mux(self.first_beat, command, held_command)),
            rest.eq(Mux(self.first_beat, valid, left)),
            self.last_beat.eq(
                self.compose
                & (self.beat == Mux(self.long, link.long_beats - 1, link.cell_beats - 1))
            ),
            starts.eq(self.compose & self.first_beat),
            self.send.eq(starts & (kind == Kind.DATA)),
            self.owed_sent.eq(starts & (kind == Kind.REPLAY)),
            # An announced flit that an acknowledge has passed goes out, but is not the pointer's
            self.resend.eq(starts & (kind == Kind.RESEND) & (self.at == self.pointer)),
            arbiter.start.eq(starts & picked),
        ]
        # Number of the payload flit that comes next here.  `pointer` is already that of the replay
        # when one is asked for, but a flit with a command may still come before it.
        position, followed = Signal(SEQUENCE_BITS), Signal(SEQUENCE_BITS)
        asked = Signal()
        m.d.comb += [
            asked.eq((owed == REPLAY_FLITS) & (self.kind != Kind.REPLAY)),
            position.eq(Mux(asked, followed, self.pointer)),
        ]
        m.d.sync += followed.eq(position + (self.send | self.resend))
        with m.If(self.kind == Kind.DATA):
            m.d.comb += [
                self.granules.eq(Mux(rest > link.beat_granules, link.beat_granules, rest)),
                self.sequence.eq(Mux(self.first_beat, self.next, held_sequence)),
            ]
        with m.Elif(self.kind == Kind.RESEND):
            m.d.comb += self.sequence.eq(self.at)
        with m.Else():
            m.d.comb += self.sequence.eq(Mux(self.first_beat, position - 1, held_sequence))
        with m.If(self.compose):
            m.d.sync += [
                held_kind.eq(self.kind),
                held_long.eq(self.long),
                held_vc.eq(self.vc),
                held_valid.eq(self.valid),
                held_sequence.eq(self.sequence),
                held_command.eq(self.command),
                left.eq(rest - self.granules),
                self.beat.eq(Mux(self.last_beat, 0, self.beat + 1)),
            ]
        with m.If(self.start):
            m.d.sync += command_sent.eq(0)
        with m.Elif(starts & (command != 0)):
            m.d.sync += command_sent.eq(1)

        # The format announced: as things are behind this beat
        owed_behind = Signal.like(owed)
        pointer_behind, at_behind = Signal(SEQUENCE_BITS), Signal(SEQUENCE_BITS)
        replay_behind, copy_long, copy_next = Signal(), Signal(), Signal()
        may_announce, may_follow = Signal(), Signal()
        for vc, (level, credit) in enumerate(zip(levels, credits, strict=True)):
            of_vc = Signal(name=f"of_vc{vc}")
            level_behind = Signal.like(level, name=f"level_behind{vc}")
            credit_behind = Signal.like(credit, name=f"credit_behind{vc}")
            m.d.comb += [
                of_vc.eq((self.kind == Kind.DATA) & (self.vc == vc)),
                level_behind.eq(level - Mux(of_vc, self.granules, 0)),
                credit_behind.eq(credit - Mux(of_vc & self.first_beat, self.valid, 0)),
                arbiter.announce_set[vc].eq(
                    may_follow & (level_behind >= LONG_GRANULES) & (credit_behind >= LONG_GRANULES)
                ),
            ]
        m.d.comb += [
            owed_behind.eq(owed - self.owed_sent),
            may_follow.eq((Cat(self.outstanding, 0) + self.send < WINDOW) & self.room_long),
            # A NAK goes out in a short flit, and so do the REPLAY flits of a replay that begins now
            may_announce.eq(
                self.last_beat
                & ~drain
                & self.enable
                & (owed_behind == 0)
                & ~self.replay_started
                & ~(self.nak & self.long)
            ),
            pointer_behind.eq(self.pointer + self.resend),
            at_behind.eq(self.at + 1),
            replay_behind.eq(pointer_behind != self.next),
            copy_next.eq(at_behind == pointer_behind),
            copy_long.eq(
                Mux(
                    self.kind == Kind.RESEND,
                    copy_next & self.next_long,
                    self.soon & self.at_long,
                )
            ),
            arbiter.announce.eq(may_announce & ~replay_behind),
            self.next_format.eq(
                may_announce & Mux(replay_behind, copy_long, arbiter.announce_pick != 0)
            ),
            self.hold.eq(
                (self.kind == Kind.RESEND) & (self.compose | announced | ~self.first_beat)
            ),
        ]
        with m.If(self.replay_started):
            m.d.sync += owed.eq(REPLAY_FLITS)
        with m.Elif(self.owed_sent):
            m.d.sync += owed.eq(owed_behind)
        with m.If(self.flush | starts):
            m.d.sync += announced.eq(0)
        with m.If(self.next_format):
            m.d.sync += [
                announced.eq(1),
                announced_resend.eq(replay_behind),
                announced_vc.eq(one_hot_index(arbiter.announce_pick, VCS)),
            ]
        return ResetInserter(self.clear)(m)
