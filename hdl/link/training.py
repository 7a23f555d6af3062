"""Training: the state machine of a link, from silence to ACTIVE and back.

Its interface is in `training_base`, the states in `training_states`, those with data in
`training_data`.
"""

from amaranth.hdl import Cat, Module, Mux, Signal

from hdl.link.agreement import Agreement
from hdl.link.round_trip import RoundTrip
from hdl.link.session import Session
from hdl.link.training_base import ELAPSED_BITS
from hdl.link.training_data import AFTER_DETECT, ALIGNED
from hdl.link.training_states import TrainingStates
from hdl.link.width_choice import WidthChoice
from isa.link import ATTEMPTS, LINK_VERSION, FrameType, LinkState

__all__ = ("ELAPSED_BITS", "Training")

START_CYCLES = 16
"""From `tx_enable` to the START frame: the transmitter has its first beats ready by then."""
BOUNDED = (
    LinkState.DETECT,
    LinkState.LOCK,
    LinkState.ALIGN,
    LinkState.TS1,
    LinkState.TS2,
    LinkState.CREDIT_INIT,
    LinkState.RECOVERY,
)
"""States that TRAINING_TIMEOUT bounds.  RESET and DEGRADE last a cycle."""
WITH_FRAMES = (*AFTER_DETECT, LinkState.DETECT, LinkState.RECOVERY, LinkState.DEGRADE)
"""States with training frames on the lanes as long as the lanes are not `started`."""
LOST = (LinkState.FAILED, LinkState.DISABLED, LinkState.LOOPBACK, LinkState.PRBS)
"""States that lose the link's state."""


class Training(TrainingStates):
    """State machine of docs/link.md, "Training".

    Every state with a bound is left when it has lasted `timeout` cycles, whatever else goes on:
    that test comes before any other.

    Parameters
    ----------
    link : LinkConfig
    restart_cycles : int
        Silence in FAILED, and in DISABLED by the peer, before `auto_restart` begins anew; half of
        `timeout` if that is less.

    Members
    -------
    control: `enable`, `loopback_mode`, `prbs_mode`, `auto_restart` : In, levels; `retrain`,
        `restart` : In, pulses; `timeout` : In(24); `min_width` : In(2); `entropy` : In(32).
    receive lanes: `locked` In(lanes), `reversed`, `aligned`, `overflow`, `order_bad`,
        `frame_valid`, `frame`, `rx_start`, `training_seen` : In; `unlock` Out, pulse; `align`, Out;
        `rx_width` Out(3), logical lanes of the peer that are received.
    transmit lanes: `started`, `frame_sent` : In; `send` Out(2), `tx_frame`, `start`, `tx_width`,
        `loopback`, `prbs` : Out.
    transmitter: `tx_idle`, `credits_known`, `replay_limit`, `tx_progress`, `tx_error` : In;
        `tx_enable`, `stop_command`, `flush` : Out; `timer_cycles` : Out(16).
    receiver: `nak_limit`, `rx_progress`, `rx_error`, `peer_command` : In; `rx_enable`,
        `peer_session`, `peer_epoch`, `rtt` : Out.  `buffer_error`, of the VC buffers: In(5), all
        reasons but PACKET_LENGTH end in RECOVERY.  `packet_error`, of the transaction layer: In(5),
        only reported.
    clear, lost : Out(1)
        Pulse: all state of the link is lost, everything behind it starts anew.  Equal.
    up, failed : Out(1)
        ACTIVE; nothing comes of a request (FAILED, DISABLED, LOOPBACK, PRBS), from the cycle of
        `lost` on.
    status: `state` Out(4), `fresh`, `session`, `epoch`, `peer_version`, `peer_capability`,
        `rtt_valid` : Out.
    reason : Out(5)
        Reason for one cycle, or 0.
    events: `recoveries`, `width_changes`, `initialisations`, `protocol_errors`, `training_cycles`,
        `active_cycles` : Out.
    """

    def elaborate(self, platform):
        m = Module()
        m.submodules.session = session = Session()
        m.submodules.round_trip = round_trip = RoundTrip()
        m.submodules.agreement = agreement = Agreement(self.link)
        m.submodules.choice = choice = WidthChoice(self.link)
        self._m, self._agreement, self._choice = m, agreement, choice
        self._declare()
        elapsed = self._elapsed
        in_data, was_data = self._in_data, Signal()

        m.d.comb += [
            session.entropy.eq(self.entropy),
            session.renew.eq(self._initialise),
            self.session.eq(session.session),
            self.epoch.eq(session.epoch),
            round_trip.clear.eq(self.clear),
            round_trip.frame_valid.eq(self.frame_valid),
            round_trip.frame.eq(self.frame),
            round_trip.measure.eq(self._is(LinkState.TS1, LinkState.TS2)),
            self.rtt.eq(round_trip.rtt),
            self.rtt_valid.eq(round_trip.rtt_valid),
            self.timer_cycles.eq(round_trip.timer_cycles),
            agreement.frame_valid.eq(self.frame_valid),
            agreement.frame.eq(self.frame),
            agreement.restart.eq(self._restart_agreement | ~self._is(LinkState.TS1, LinkState.TS2)),
            choice.locked.eq(self.locked),
            choice.reversed.eq(self.reversed),
            choice.level.eq(self._level),
            choice.least.eq(self.min_width),
            choice.turn.eq(self._attempts),
            in_data.eq(self._is(LinkState.CREDIT_INIT, LinkState.ACTIVE)),
        ]
        m.d.sync += [was_data.eq(in_data), self.reason.eq(self.packet_error)]
        with m.If(~elapsed.all()):
            m.d.sync += elapsed.eq(elapsed + 1)
        with m.If(self.frame_sent & ~self._frames.all()):
            m.d.sync += self._frames.eq(self._frames + 1)
        with m.If(self.frame_valid):
            m.d.sync += [
                self.peer_version.eq(self.frame.version),
                self.peer_capability.eq(self.frame.capability),
            ]
        with m.If(self.up & (self.tx_progress | self.rx_progress)):
            m.d.sync += self._attempts.eq(0)

        expired = Signal()
        m.d.comb += expired.eq((elapsed >= self.timeout) & (self._is(*BOUNDED) | self._stopping))
        with m.If(expired):
            self._timeouts()
        with m.Else():
            self._branches()
        with m.If(self._retry):
            with m.If(self._attempts == ATTEMPTS - 1):
                m.d.sync += self._attempts.eq(0)
                self._go(LinkState.DEGRADE)
            with m.Else():
                m.d.sync += self._attempts.eq(self._attempts + 1)
                self._go(LinkState.RECOVERY)
        self._software()

        first, lost_state = Signal(), Signal()
        m.d.comb += [
            first.eq(elapsed == 0),
            lost_state.eq(self._is(*LOST)),
            self._initialise.eq(self._is(LinkState.RESET) | self._peer_lost),
            self.unlock.eq((self._is(LinkState.RESET, LinkState.RECOVERY)) & first),
            self.recoveries.eq(self._is(LinkState.RECOVERY) & first),
        ]
        m.d.sync += [
            self.lost.eq(self._initialise | (lost_state & first)),
            self.failed.eq(lost_state),
            self.initialisations.eq(self._initialise),
        ]
        # The peer may be ACTIVE from here on and send: its state and ours belong together, also
        # when the rest of the way up fails.
        with m.If(self._is(LinkState.CREDIT_INIT)):
            m.d.sync += self.fresh.eq(0)
        with m.Elif(self._is(LinkState.TS2)):
            m.d.sync += self._agreed_fresh.eq(self.fresh)
        with m.If(self._initialise):
            m.d.sync += self.fresh.eq(1)
        m.d.comb += [
            self.clear.eq(self.lost),
            self.up.eq(self._is(LinkState.ACTIVE)),
            self.active_cycles.eq(self.up),
            self.protocol_errors.eq(
                Cat(
                    error.any() & in_data
                    for error in (self.buffer_error, self.tx_error, self.rx_error)
                ).any()
                | self.packet_error.any()
            ),
            self.training_cycles.eq(~self.up & ~lost_state),
        ]
        self._lanes(was_data)
        self._frame(round_trip)
        return m

    def _lanes(self, was_data):
        m, in_data = self._m, self._in_data
        flush_owed = Signal()
        with m.If(was_data & ~in_data):
            m.d.sync += flush_owed.eq(1)
        with m.Elif(self.flush):
            m.d.sync += flush_owed.eq(0)
        m.d.comb += [
            self.flush.eq(flush_owed & ~self.started),
            self.align.eq(self._is(*ALIGNED)),
            self.loopback.eq(self._is(LinkState.LOOPBACK)),
            self.prbs.eq(self._is(LinkState.PRBS)),
            self.tx_enable.eq(in_data & ~self._stopping),
            self.rx_enable.eq(self._start_seen & (in_data | self._is(LinkState.TS2))),
            self.start.eq(in_data & ~self.started & (self._elapsed >= START_CYCLES)),
        ]
        with m.If(self.prbs):
            m.d.comb += self.send.eq(3)
        with m.Elif(in_data & self.started):
            m.d.comb += self.send.eq(2)
        with m.Elif(self._is(*WITH_FRAMES) | self.loopback):
            m.d.comb += self.send.eq(1)

    def _frame(self, round_trip):
        m, frame = self._m, self.tx_frame
        kinds = {
            LinkState.LOCK: FrameType.LOCK,
            LinkState.ALIGN: FrameType.ALIGN,
            LinkState.TS1: FrameType.TS1,
            LinkState.TS2: FrameType.TS2,
            LinkState.CREDIT_INIT: FrameType.TS2,
            LinkState.LOOPBACK: FrameType.LOOPBACK,
        }
        m.d.comb += [
            frame.type.eq(FrameType.DETECT),
            frame.version.eq(LINK_VERSION),
            frame.capability.eq(self.link.capability),
            frame.want.eq(self.rx_width),
            frame.epoch.eq(self.epoch),
            frame.fresh.eq(Mux(self._in_data, self._agreed_fresh, self.fresh)),
            frame.seen.eq(
                self._is(LinkState.TS2, LinkState.CREDIT_INIT)
                | (self._is(LinkState.TS1) & (self._agreement.agreed | self._differs))
            ),
            frame.session.eq(self.session),
            frame.stamp.eq(round_trip.stamp),
            frame.echo.eq(round_trip.echo),
        ]
        with m.Switch(self.state):
            for state, kind in kinds.items():
                with m.Case(state):
                    m.d.comb += frame.type.eq(kind)
