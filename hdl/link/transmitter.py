"""Transmitter of a link: packets in, flits out, with replay and credit."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.link.composer import COMMAND_BITS, Composer, Kind
from hdl.link.credit_tx import CreditCounter
from hdl.link.flit_pipeline import FlitPipeline
from hdl.link.ports import (
    REASON_BITS,
    VC_BITS,
    Acknowledge,
    CreditUpdate,
    Limits,
    Reverse,
    packet_beat,
)
from hdl.link.replay_buffer import ReplayBuffer
from hdl.link.sequence_tx import TIMER_BITS, ReplayControl
from hdl.link.slot_build import SlotBuild
from hdl.link.transmit_queues import TransmitQueues
from isa.link import GRANULE_BYTES, VCS, Reason

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
        counters = []
        for vc in range(VCS):
            m.submodules[f"credit{vc}"] = counter = CreditCounter()
            counters.append(counter)
        for part in (queues, composer, control, replay, *counters):
            m.d.comb += part.clear.eq(self.clear)
        for vc in range(VCS):
            wiring.connect(m, wiring.flipped(getattr(self, f"tx{vc}")), getattr(queues, f"tx{vc}"))

        self._connect_control(m, composer, control, replay)
        self._connect_credit(m, composer, counters, queues)
        payload = self._payload(m, composer, queues, replay)
        self._flits(m, composer, queues, replay, payload)

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
                for name in ("ready", "soon", "next_long", "room_short", "room_long")
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

    def _flits(self, m, composer, queues, replay, payload):
        """Slots, CRC, and what is counted of flits."""
        link = self.link
        m.submodules.slot = slot = SlotBuild(link)
        m.submodules.pipeline = pipeline = FlitPipeline(link)
        wiring.connect(m, wiring.flipped(self.reverse), slot.reverse)
        wiring.connect(m, wiring.flipped(self.limits), slot.limits)
        wiring.connect(m, wiring.flipped(self.o), pipeline.o)
        goes_out = Signal()
        payload_bits = len(payload) - GRANULE_BITS
        m.d.comb += [
            goes_out.eq(composer.last_beat & ~composer.drop),
            slot.clear.eq(self.clear),
            slot.goes_out.eq(goes_out),
            slot.begins.eq(queues.begins),
            slot.poison.eq(queues.poison),
            slot.copy.eq(replay.info),
            slot.epoch.eq(self.epoch),
            replay.w_info.eq(slot.info),
            *(
                getattr(slot, name).eq(getattr(composer, name))
                for name in (
                    "start", "compose", "kind", "long", "vc", "valid", "sequence", "command",
                    "first_beat", "beat", "granules", "next_format",
                )
            ),
            composer.move.eq(pipeline.move),
            composer.nak.eq(self.reverse.nak),
            pipeline.clear.eq(self.clear),
            pipeline.flush.eq(self.flush),
            pipeline.session.eq(self.session),
            pipeline.valid.eq(composer.compose & ~composer.drop),
            pipeline.first.eq(composer.first_beat),
            pipeline.last.eq(composer.last_beat),
            pipeline.data.eq(
                Cat(
                    payload[:payload_bits],
                    Mux(composer.last_beat, slot.slot.as_value(), payload[payload_bits:]),
                )
            ),
            self.idle.eq(composer.stopped & pipeline.empty),
            self.nak_sent.eq(slot.reverse.nak_taken),
            self.tx_short.eq(goes_out & ~composer.long),
            self.tx_long.eq(goes_out & composer.long),
            self.poison_sent.eq(replay.w_end & slot.info.poison),
        ]  # fmt: skip
