"""Receiver: beats from the lanes to payload, checked, in order and exactly once."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.assembly import Assembly
from hdl.link.framer import Framer
from hdl.link.ports import REASON_BITS, Acknowledge, CreditUpdate, Deliver, Reverse
from hdl.link.sequence_rx import RTT_BITS, SequenceCheck
from isa.link import SLOT, FlitType, Reason

EVENTS = (
    "rx_short",
    "rx_long",
    "rx_data",
    "crc_errors",
    "sequence_gaps",
    "duplicates",
    "nak_repeats",
    "epoch_drops",
    "poison_received",
)
COMMAND_BITS = next(field.width for field in SLOT if field.name == "command")


class Receiver(wiring.Component):
    """Receiving side of a link port, up to the VC buffers.

    Members
    -------
    clear : In, pulse: full initialisation, all state as after reset.
    enable : In: receiving.  While it is low nothing acts, and the receiver stands in HUNT; payload
        that was accepted before is still delivered, and `reverse.expected` is kept.
    i_valid, i_data : In: beats; the first one after `enable` rises is beat 0 of a cell.
    peer_session, peer_epoch : In: of the sender, steady while `enable` is high.
    rtt : In: round trip in cycles.
    acknowledge : Out(Acknowledge), credit : Out(CreditUpdate): from each good flit.
    reverse : Out(Reverse): what the flits of the other direction shall say.
    deliver : Out(Deliver): accepted payload.
    error : Out: Reason of a protocol error for one cycle, else 0; the receiver is in HUNT then.
    nak_limit, progress : Out, pulse: ATTEMPTS repeats of the NAK without an answer; a payload flit
        was accepted.
    peer_command : Out: Command of a good CONTROL flit for one cycle, else 0.
    rx_short, rx_long : Out, pulse: a good flit (all that have an effect).
    rx_data, poison_received : Out, pulse: payload accepted, known to be bad.
    crc_errors, sequence_gaps, duplicates, nak_repeats, epoch_drops : Out, pulse.

    A flit acts 3 cycles behind its last beat; its payload is delivered from the 4th on, behind that
    of the flits before.  One beat a cycle, in any mix of formats, with gaps anywhere.
    """

    def __init__(self, link):
        self.link = link
        super().__init__(
            {
                "clear": In(1),
                "enable": In(1),
                "i_valid": In(1),
                "i_data": In(8 * link.beat_bytes),
                "peer_session": In(32),
                "peer_epoch": In(2),
                "rtt": In(RTT_BITS),
                "acknowledge": Out(Acknowledge()),
                "credit": Out(CreditUpdate()),
                "reverse": Out(Reverse()),
                "deliver": Out(Deliver(link)),
                "error": Out(REASON_BITS),
                "nak_limit": Out(1),
                "progress": Out(1),
                "peer_command": Out(COMMAND_BITS),
                **{name: Out(1) for name in EVENTS},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.framer = framer = Framer(self.link)
        m.submodules.sequence = sequence = SequenceCheck()
        m.submodules.assembly = assembly = Assembly(self.link)
        slot = framer.slot
        for part in (framer, sequence):
            m.d.comb += [part.clear.eq(self.clear), part.enable.eq(self.enable)]
        m.d.comb += [
            framer.i_valid.eq(self.i_valid),
            framer.i_data.eq(self.i_data),
            framer.peer_session.eq(self.peer_session),
            framer.peer_epoch.eq(self.peer_epoch),
            # What follows a flit that makes no sense is not framed any more
            framer.abort.eq(sequence.bad_sequence),
            sequence.flit_valid.eq(framer.good),
            sequence.payload.eq(slot.payload),
            sequence.sequence.eq(slot.sequence),
            sequence.is_replay.eq(slot.type == FlitType.REPLAY),
            sequence.lost.eq(framer.lost),
            sequence.rtt.eq(self.rtt),
            sequence.nak_taken.eq(self.reverse.nak_taken),
            self.reverse.expected.eq(sequence.expected),
            self.reverse.nak.eq(sequence.nak),
            assembly.clear.eq(self.clear),
            assembly.i_valid.eq(self.i_valid),
            assembly.i_data.eq(self.i_data),
            assembly.commit.eq(sequence.accept),
            assembly.is_long.eq(framer.is_long),
            assembly.vc.eq(slot.vc),
            assembly.first.eq(slot.first),
            assembly.valid.eq(slot.valid),
            assembly.poison.eq(slot.poison),
        ]
        wiring.connect(m, assembly.deliver, wiring.flipped(self.deliver))

        acts, is_control, error = Signal(), Signal(), Signal(REASON_BITS)
        m.d.comb += [
            acts.eq(framer.good & self.enable & ~sequence.bad_sequence),
            is_control.eq(slot.type == FlitType.CONTROL),
            self.acknowledge.valid.eq(acts),
            self.acknowledge.acknowledge.eq(slot.acknowledge),
            self.acknowledge.nak.eq(slot.nak),
            self.credit.valid.eq(acts),
            self.credit.a_vc.eq(slot.credit_a_vc),
            self.credit.a.eq(slot.credit_a),
            self.credit.b_vc.eq(slot.credit_b_vc),
            self.credit.b.eq(slot.credit_b),
            self.peer_command.eq(Mux(acts & is_control, slot.command, 0)),
            error.eq(Mux(sequence.bad_sequence, Reason.BAD_SEQUENCE, framer.reason)),
            self.error.eq(Mux(self.enable, error, Reason.NONE)),
            self.nak_limit.eq(sequence.nak_limit),
            self.progress.eq(sequence.progress),
            self.rx_short.eq(acts & ~framer.is_long),
            self.rx_long.eq(acts & framer.is_long),
            self.rx_data.eq(sequence.accept),
            self.poison_received.eq(sequence.accept & slot.poison),
            self.crc_errors.eq(framer.lost & self.enable),
            self.sequence_gaps.eq(sequence.gap),
            self.duplicates.eq(sequence.duplicate),
            self.nak_repeats.eq(sequence.nak_repeat),
            self.epoch_drops.eq(framer.epoch_drop & self.enable),
        ]
        return m
