"""Transmitter of a link: packets in, flits out, with replay and credit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import one_hot_index
from hdl.lib.check import check
from hdl.link.composer import COMMAND_BITS, Composer, Kind
from hdl.link.crc import BeatCrc
from hdl.link.credit_tx import CreditCounter
from hdl.link.credit_updates import CreditUpdates
from hdl.link.ports import (
    REASON_BITS,
    SLOT_LAYOUT,
    VC_BITS,
    Acknowledge,
    CreditUpdate,
    Limits,
    Reverse,
    packet_beat,
)
from hdl.link.replay_buffer import ReplayBuffer
from hdl.link.sequence_tx import TIMER_BITS, ReplayControl
from hdl.link.transmit_queues import TransmitQueues
from isa.link import (
    CRC_BITS,
    GRANULE_BYTES,
    NO_PACKET,
    VCS,
    FlitType,
    Reason,
)

GRANULE_BITS = 8 * GRANULE_BYTES
EVENTS = (
    "tx_short", "tx_long", "tx_data", "nak_sent", "nak_received", "replays", "replayed_flits",
    "timer_replays", "poison_sent", "credit_stall", "replay_full",
)  # fmt: skip


class Transmitter(wiring.Component):
    """Composes flits from the packets of eight virtual channels (docs/link.md, Transmitter).

    Members
    -------
    clear : In, pulse: full initialisation.  Packets in the queues are lost; one that is cut
        is taken to its end and thrown away.
    tx0 .. tx7 : In, streams of `packet_beat`.
    o : Out, stream of beats: whole flits back to back while sending.
    enable : In: rising: sending starts, with REPLAY flits; falling: it stops behind the flit in
        work and a long one that was announced.
    stop_command : In(3): Command of a CONTROL flit that is sent last (0: none).  Held while
        stopping.
    idle : Out: stopped, and the pipeline is empty.
    flush : In, pulse: everything in the pipeline is dropped, `o.valid` falls; the next beat is the
        first one of a flit.  The rest of a flit in work goes only to the replay buffer; this
        takes up to `long_beats` cycles, `idle` tells the end.
    acknowledge, credit, reverse, limits : see `hdl.link.ports`.
    session, epoch : In: of this end.
    timer_cycles : In: of the replay timer.
    weights : In(32): of the arbiter, 4 bits a VC.
    credits_known : Out: limits of all VCs have come.
    replay_limit, progress : Out, pulses of ReplayControl.
    error : Out: Reason for one cycle, else 0.
    tx_short, tx_long : Out, pulse: such a flit has been composed.
    tx_data, sent_vc, sent_granules : Out, pulse: a new payload flit starts, with so many granules.
    nak_sent, nak_received, replays, replayed_flits, timer_replays, poison_sent : Out, pulses.
    credit_stall, replay_full : Out: a VC has data, and has no credit; it has credit, and there is
        no window or replay room for a short flit.  Only while sending.
    replay_level : Out: beats held.

    A beat taken from `tx` in cycle 0 is offered on `o` in cycle 4 at the soonest, and one beat is
    made in every cycle in which one is taken.
    """

    def __init__(self, link):
        self.link = link
        super().__init__(
            {
                "clear": In(1),
                **{f"tx{vc}": In(stream.Signature(packet_beat(link))) for vc in range(VCS)},
                "o": Out(stream.Signature(8 * link.beat_bytes)),
                "enable": In(1),
                "stop_command": In(COMMAND_BITS),
                "idle": Out(1),
                "flush": In(1),
                "acknowledge": In(Acknowledge()),
                "credit": In(CreditUpdate()),
                "reverse": In(Reverse()),
                "limits": In(Limits()),
                "session": In(32),
                "epoch": In(2),
                "timer_cycles": In(TIMER_BITS),
                "weights": In(32),
                "credits_known": Out(1),
                "replay_limit": Out(1),
                "progress": Out(1),
                "error": Out(REASON_BITS),
                **{name: Out(1) for name in EVENTS},
                "sent_vc": Out(VC_BITS),
                "sent_granules": Out(6),
                "replay_level": Out(range(link.replay_bytes // link.beat_bytes + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        link = self.link
        m.submodules.queues = queues = TransmitQueues(link)
        m.submodules.composer = composer = Composer(link)
        m.submodules.control = control = ReplayControl()
        m.submodules.replay = replay = ReplayBuffer(link)
        m.submodules.updates = updates = CreditUpdates()
        counters = []
        for vc in range(VCS):
            m.submodules[f"credit{vc}"] = counter = CreditCounter()
            counters.append(counter)
        for part in (queues, composer, control, replay, updates, *counters):
            m.d.comb += part.clear.eq(self.clear)
        for vc in range(VCS):
            wiring.connect(m, wiring.flipped(getattr(self, f"tx{vc}")), getattr(queues, f"tx{vc}"))
        wiring.connect(m, wiring.flipped(self.limits), updates.limits)

        self._connect_control(m, composer, control, replay)
        self._connect_credit(m, composer, counters, queues)
        payload = self._payload(m, composer, queues, replay)
        slot = self._slot(m, composer, queues, replay, updates)
        self._pipeline(m, platform, composer, payload, slot)

        blocked, ready = Signal(VCS), Signal(VCS)
        for vc, counter in enumerate(counters):
            waits = getattr(queues, f"level{vc}") != 0
            m.d.comb += [
                blocked[vc].eq(waits & (counter.available == 0)),
                ready[vc].eq(waits & (counter.available != 0)),
            ]
        m.d.comb += [
            self.credit_stall.eq(~composer.stopped & (blocked != 0)),
            self.replay_full.eq(
                ~composer.stopped & (ready != 0) & ~(control.can_send & replay.room_short)
            ),
        ]
        with m.If(control.bad_acknowledge):
            m.d.comb += self.error.eq(Reason.BAD_ACKNOWLEDGE)
        with m.Elif(Cat(counter.bad_credit for counter in counters).any()):
            m.d.comb += self.error.eq(Reason.BAD_CREDIT)
        return m

    def _connect_control(self, m, composer, control, replay):
        """Sequence numbers and replay."""
        m.d.comb += [
            composer.enable.eq(self.enable),
            composer.stop_command.eq(self.stop_command),
            composer.flush.eq(self.flush),
            composer.weights.eq(self.weights),
            control.start.eq(composer.start),
            control.acknowledge_valid.eq(self.acknowledge.valid),
            control.acknowledge.eq(self.acknowledge.acknowledge),
            control.nak.eq(self.acknowledge.nak),
            control.timer_cycles.eq(self.timer_cycles),
            control.send.eq(composer.send),
            control.owed_sent.eq(composer.owed_sent),
            control.resend.eq(composer.resend),
            replay.base.eq(control.base),
            replay.next.eq(control.next),
            replay.pointer.eq(control.pointer),
            replay.hold.eq(composer.hold),
            composer.at.eq(replay.at),
            composer.at_long.eq(replay.info.long),
            *(
                getattr(composer, name).eq(getattr(control, name))
                for name in (
                    "next", "outstanding", "can_send", "owing", "replaying", "pointer",
                    "replay_started",
                )
            ),
            *(
                getattr(composer, name).eq(getattr(replay, name))
                for name in ("ready", "next_long", "room_short", "room_long")
            ),
            self.replay_limit.eq(control.replay_limit),
            self.progress.eq(control.progress),
            self.replays.eq(control.replay_started),
            self.timer_replays.eq(control.timer_fired),
            self.nak_received.eq(self.acknowledge.valid & self.acknowledge.nak),
            self.replayed_flits.eq(composer.first_beat & composer.compose
                                   & (composer.kind == Kind.RESEND)),
            self.tx_data.eq(composer.send),
            self.sent_vc.eq(composer.vc),
            self.sent_granules.eq(composer.valid),
            self.replay_level.eq(replay.level),
        ]  # fmt: skip

    def _connect_credit(self, m, composer, counters, queues):
        for vc, counter in enumerate(counters):
            is_a = Signal(name=f"update_a{vc}")
            m.d.comb += [
                is_a.eq(self.credit.a_vc == vc),
                counter.update_valid.eq(self.credit.valid & (is_a | (self.credit.b_vc == vc))),
                counter.update.eq(Mux(is_a, self.credit.a, self.credit.b)),
                counter.take_valid.eq(composer.send & (composer.vc == vc)),
                counter.take.eq(composer.valid),
                getattr(composer, f"available{vc}").eq(counter.available),
                getattr(composer, f"level{vc}").eq(getattr(queues, f"level{vc}")),
            ]
        m.d.comb += self.credits_known.eq(Cat(counter.known for counter in counters).all())

    def _payload(self, m, composer, queues, replay):
        """The beat without its slot; new payload is copied into the replay buffer."""
        link = self.link
        fresh, payload = Signal(8 * link.beat_bytes), Signal(8 * link.beat_bytes)
        new = Signal()
        m.d.comb += [
            new.eq(composer.kind == Kind.DATA),
            queues.vc.eq(composer.vc),
            queues.count.eq(Mux(composer.compose, composer.granules, 0)),
        ]
        for i in range(link.beat_granules):
            m.d.comb += fresh.word_select(i, GRANULE_BITS).eq(
                Mux(composer.granules > i, queues.data.word_select(i, GRANULE_BITS), 0)
            )
        m.d.comb += [
            payload.eq(Mux(composer.kind == Kind.RESEND, replay.r_data, fresh)),
            replay.take.eq(composer.compose & (composer.kind == Kind.RESEND)),
            replay.take_end.eq(composer.last_beat),
            replay.w_beat.eq(composer.compose & new),
            replay.w_data.eq(fresh),
            replay.w_start.eq(composer.send),
            replay.w_long.eq(composer.long),
            replay.w_end.eq(composer.last_beat & new),
            replay.w_sequence.eq(composer.sequence),
        ]
        return payload

    def _slot(self, m, composer, queues, replay, updates):
        """The control slot, complete at the last beat, its CRC zero."""
        granules = self.link.beat_granules
        # Where the first packet of the flit begins, and whether a granule is bad
        begins, found, held_found = Signal(granules), Signal(), Signal()
        first, held_first = Signal(6, init=NO_PACKET), Signal(6)
        bad, held_bad = Signal(), Signal()
        position = Cat(Const(0, granules.bit_length() - 1), composer.beat)
        used = Cat(composer.granules > i for i in range(granules))
        m.d.comb += [
            begins.eq(queues.begins & used),
            bad.eq((~composer.first_beat & held_bad) | ((queues.poison & used) != 0)),
            found.eq(~composer.first_beat & held_found | (begins != 0)),
        ]
        with m.If(~composer.first_beat & held_found):
            m.d.comb += first.eq(held_first)
        with m.Elif(begins != 0):
            m.d.comb += first.eq(
                position + one_hot_index(begins & (~begins + 1)[:granules], granules)
            )
        with m.If(composer.compose):
            m.d.sync += [held_found.eq(found), held_first.eq(first), held_bad.eq(bad)]

        slot = Signal(SLOT_LAYOUT)
        new, again = Signal(), Signal()
        m.d.comb += [
            new.eq(composer.kind == Kind.DATA),
            again.eq(composer.kind == Kind.RESEND),
            slot.sequence.eq(composer.sequence),
            slot.acknowledge.eq(self.reverse.expected),
            slot.nak.eq(self.reverse.nak),
            slot.replayed.eq(again),
            slot.payload.eq(new | again),
            slot.first.eq(NO_PACKET),
            slot.credit_a_vc.eq(updates.a_vc),
            slot.credit_a.eq(updates.a),
            slot.credit_b_vc.eq(updates.b_vc),
            slot.credit_b.eq(updates.b),
            slot.next_format.eq(composer.next_format),
            slot.epoch.eq(self.epoch),
            slot.command.eq(composer.command),
            slot.congestion.eq(self.limits.congestion),
            replay.w_info.long.eq(composer.long),
            replay.w_info.poison.eq(bad),
            replay.w_info.vc.eq(composer.vc),
            replay.w_info.first.eq(first),
            replay.w_info.valid.eq(composer.valid),
        ]
        kept = Signal(replay.w_info.shape())
        m.d.comb += kept.eq(Mux(again, replay.info, replay.w_info))
        with m.If(new | again):
            m.d.comb += [
                slot.type.eq(FlitType.DATA),
                slot.poison.eq(kept.poison),
                slot.vc.eq(kept.vc),
                slot.first.eq(kept.first),
                slot.valid.eq(kept.valid),
            ]
        with m.Elif(composer.kind == Kind.REPLAY):
            m.d.comb += slot.type.eq(FlitType.REPLAY)
        with m.Else():
            m.d.comb += slot.type.eq(FlitType.CONTROL)

        goes_out = Signal()
        m.d.comb += [
            goes_out.eq(composer.last_beat & ~composer.drop),
            updates.start.eq(composer.start),
            updates.taken.eq(goes_out),
            self.reverse.nak_taken.eq(goes_out & self.reverse.nak),
            self.nak_sent.eq(goes_out & self.reverse.nak),
            self.tx_short.eq(goes_out & ~composer.long),
            self.tx_long.eq(goes_out & composer.long),
            self.poison_sent.eq(composer.last_beat & new & bad),
        ]
        return slot

    def _pipeline(self, m, platform, composer, payload, slot):
        """Composed beat, two stages of CRC, and the field put into the last beat of a flit."""
        link = self.link
        bits = 8 * link.beat_bytes
        move = Signal()
        m.submodules.crc = crc = BeatCrc(link)
        valid = Signal(3)
        last = Signal(3)
        first = Signal(reset_less=True)
        beats = [Signal(bits, name=f"beat{i}", reset_less=True) for i in range(3)]
        m.d.comb += [
            move.eq(~valid[2] | self.o.ready),
            composer.move.eq(move),
            crc.en.eq(move),
            crc.valid.eq(valid[0]),
            crc.first.eq(first),
            crc.data.eq(beats[0]),
        ]
        with m.If(move):
            m.d.sync += [
                valid.eq(Cat(composer.compose & ~composer.drop, valid)),
                last.eq(Cat(composer.last_beat, last)),
                first.eq(composer.first_beat),
                beats[0][: bits - GRANULE_BITS].eq(payload),
                beats[0][bits - GRANULE_BITS :].eq(
                    Mux(composer.last_beat, slot.as_value(), payload[bits - GRANULE_BITS :])
                ),
                beats[1].eq(beats[0]),
                beats[2].eq(beats[1]),
            ]
        with m.If(self.flush | self.clear):
            m.d.sync += valid.eq(0)
        salt = Cat(self.session, self.session[: CRC_BITS - len(self.session)])
        m.d.comb += [
            self.o.valid.eq(valid[2]),
            self.o.payload.eq(
                Cat(
                    beats[2][: bits - CRC_BITS],
                    Mux(last[2], crc.crc ^ salt, beats[2][bits - CRC_BITS :]),
                )
            ),
            self.idle.eq(composer.stopped & (valid == 0)),
        ]
        # `flush` and `clear` are the only reasons for an offered beat to change
        held, kept = Signal(), Signal(bits)
        m.d.sync += [
            held.eq(self.o.valid & ~self.o.ready & ~self.flush & ~self.clear),
            kept.eq(self.o.payload),
        ]
        stable = ~held | (self.o.valid & (self.o.payload == kept))
        check(m, platform, stable, "stream o: valid or payload changed before it was taken")
