"""Training: the states with data, what ends them, and software."""

from amaranth.hdl import Mux, Signal

from hdl.link.ports import REASON_BITS
from hdl.link.training_base import STOP_CYCLES, TrainingBase
from isa.link import Command, LinkState, Reason

ALIGNED = (
    LinkState.ALIGN,
    LinkState.TS1,
    LinkState.TS2,
    LinkState.CREDIT_INIT,
    LinkState.ACTIVE,
)
AFTER_DETECT = (*ALIGNED, LinkState.LOCK)


class TrainingData(TrainingBase):
    """CREDIT_INIT and ACTIVE, and the commands that hold in any state."""

    def _data(self):
        """CREDIT_INIT and ACTIVE: what ends them; returns a Signal that something does."""
        m = self._m
        failure = Signal(REASON_BITS)
        bad_packet, retraining, leaving = Signal(), Signal(), Signal()
        m.d.comb += bad_packet.eq(self.buffer_error == Reason.PACKET_LENGTH)
        with m.If(self.rx_start):
            m.d.sync += self._start_seen.eq(1)
        with m.If(bad_packet):
            m.d.sync += self.reason.eq(Reason.PACKET_LENGTH)
        for condition, reason in (
            (self.nak_limit, Reason.NAK_LIMIT),
            (self.replay_limit, Reason.REPLAY_LIMIT),
            (self.buffer_error.any() & ~bad_packet, self.buffer_error),
            (self.tx_error.any(), self.tx_error),
            (self.rx_error.any(), self.rx_error),
        ):
            with m.If(condition):
                m.d.comb += failure.eq(reason)
        with m.If(failure.any()):
            m.d.comb += self._retry.eq(1)
            m.d.sync += self.reason.eq(failure)
        with m.Elif(self.peer_command == Command.DISABLE):
            m.d.sync += [self._by_peer.eq(1), self.reason.eq(Reason.PEER_DISABLED)]
            self._go(LinkState.DISABLED)
        with m.Elif(retraining & self._stopping):
            # The peer has heard of it.
            self._stopped()
        with m.Elif(retraining):
            m.d.sync += self.reason.eq(Reason.PEER_TRAINING)
            self._go(LinkState.RECOVERY)
        m.d.comb += [
            retraining.eq(self.training_seen | (self.peer_command == Command.RETRAIN)),
            leaving.eq(failure.any() | retraining | (self.peer_command == Command.DISABLE)),
        ]
        return leaving

    def _stop(self):
        """RETRAIN and DISABLE by software: the peer is told by the last flit."""
        m = self._m
        with m.If(~self._stopping & (self.retrain | ~self.enable)):
            m.d.sync += [
                self._stopping.eq(1),
                self._elapsed.eq(0),
                self._idle.eq(0),
                self.stop_command.eq(Mux(self.enable, Command.RETRAIN, Command.DISABLE)),
            ]
        with m.Elif(~self._stopping | ~self.tx_idle):
            m.d.sync += self._idle.eq(0)
        with m.Elif(self._idle != STOP_CYCLES):
            m.d.sync += self._idle.eq(self._idle + 1)
        with m.Elif(~self._retry):
            self._stopped()

    def _stopped(self):
        m = self._m
        m.d.sync += self.reason.eq(Reason.SOFTWARE)
        with m.If(self.stop_command == Command.DISABLE):
            m.d.sync += self._by_peer.eq(0)
            self._go(LinkState.DISABLED)
        with m.Else():
            self._go(LinkState.RECOVERY)

    def _software(self):
        """Commands that hold in any state, after everything else: the last word."""
        m = self._m
        with m.If(self.restart):
            m.d.sync += self.reason.eq(Reason.SOFTWARE)
            self._go(LinkState.RESET)
        with m.Elif(~self.enable & self._is(LinkState.DISABLED)):
            m.d.sync += self._by_peer.eq(0)
        with m.Elif(~self.enable & ~self.up):
            m.d.sync += [self.reason.eq(Reason.SOFTWARE), self._by_peer.eq(0)]
            self._go(LinkState.DISABLED)
        with m.Elif(self.prbs_mode & ~self._is(LinkState.PRBS, LinkState.DISABLED)):
            self._go(LinkState.PRBS)
        with m.Elif(self.loopback_mode & self._is(*AFTER_DETECT)):
            self._go(LinkState.LOOPBACK)
