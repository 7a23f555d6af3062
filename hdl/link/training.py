"""Training: the state machine of a link, from silence to ACTIVE and back."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.agreement import Agreement
from hdl.link.ports import FRAME_LAYOUT, REASON_BITS
from hdl.link.round_trip import RoundTrip
from hdl.link.session import Session
from hdl.link.width_choice import WidthChoice
from isa.link import (
    ATTEMPTS,
    LINK_VERSION,
    RESTART_CYCLES,
    Command,
    FrameType,
    LinkState,
    Reason,
    Width,
)

ELAPSED_BITS = 24
RECOVERY_FRAMES = 16
"""DETECT frames that RECOVERY sends at least: the peer's lanes lock on them."""
TS2_FRAMES = 8
START_CYCLES = 16
"""From `tx_enable` to the START frame: the transmitter has its first beats ready by then."""
STOP_CYCLES = 32
"""From an idle transmitter to the end of data: what the lanes hold has been sent."""

_BOUNDED = (
    LinkState.DETECT,
    LinkState.LOCK,
    LinkState.ALIGN,
    LinkState.TS1,
    LinkState.TS2,
    LinkState.CREDIT_INIT,
    LinkState.RECOVERY,
)
"""States that TRAINING_TIMEOUT bounds.  RESET and DEGRADE last a cycle."""
_ALIGNED = (
    LinkState.ALIGN,
    LinkState.TS1,
    LinkState.TS2,
    LinkState.CREDIT_INIT,
    LinkState.ACTIVE,
)
_AFTER_DETECT = (*_ALIGNED, LinkState.LOCK)
_FRAMES = (*_AFTER_DETECT, LinkState.DETECT, LinkState.RECOVERY, LinkState.DEGRADE)
"""States with training frames on the lanes as long as the lanes are not `started`."""
_LOST = (LinkState.FAILED, LinkState.DISABLED, LinkState.LOOPBACK, LinkState.PRBS)
"""States that lose the link's state."""
_FINAL = (Reason.CAPABILITY, Reason.LANE_ORDER)
"""Reasons of a failure that trying again does not mend."""


def _inputs(link):
    return (
        (1, "enable loopback_mode prbs_mode auto_restart retrain restart"),
        (ELAPSED_BITS, "timeout"),
        (2, "min_width"),
        (32, "entropy"),
        (link.lanes, "locked"),
        (1, "reversed aligned overflow order_bad frame_valid rx_start training_seen"),
        (FRAME_LAYOUT, "frame"),
        (1, "started frame_sent tx_idle credits_known replay_limit tx_progress"),
        (1, "nak_limit rx_progress"),
        (REASON_BITS, "tx_error rx_error buffer_error packet_error"),
        (3, "peer_command"),
    )


_OUTPUTS = (
    (1, "unlock align start loopback prbs tx_enable flush rx_enable"),
    (2, "send"),
    (3, "rx_width tx_width stop_command"),
    (FRAME_LAYOUT, "tx_frame"),
    (16, "timer_cycles rtt"),
    (1, "rtt_valid clear lost up failed fresh"),
    (4, "state peer_version"),
    (32, "session peer_session"),
    (2, "epoch peer_epoch"),
    (8, "peer_capability"),
    (REASON_BITS, "reason"),
    (1, "recoveries width_changes initialisations protocol_errors"),
    (1, "training_cycles active_cycles"),
)


class Training(wiring.Component):
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

    def __init__(self, link, *, restart_cycles=RESTART_CYCLES):
        self.link, self.restart_cycles = link, restart_cycles
        super().__init__(
            {
                name: flow(shape)
                for flow, table in ((In, _inputs(link)), (Out, _OUTPUTS))
                for shape, names in table
                for name in names.split()
            }
        )

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
        m.d.comb += expired.eq((elapsed >= self.timeout) & (self._is(*_BOUNDED) | self._stopping))
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
            lost_state.eq(self._is(*_LOST)),
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

    def _declare(self):
        self._elapsed = Signal(ELAPSED_BITS)
        self._frames = Signal(6)
        """Ends of frames since the state was entered."""
        self._attempts = Signal(range(ATTEMPTS))
        self._level = Signal(2)
        self._initialise, self._peer_lost, self._in_data = Signal(), Signal(), Signal()
        self._retry, self._stopping, self._by_peer = Signal(), Signal(), Signal()
        self._final = Signal()
        """FAILED is not left by itself."""
        self._start_seen, self._restart_agreement = Signal(), Signal()
        self._differs, self._peer_knows = Signal(), Signal()
        self._idle = Signal(range(STOP_CYCLES + 1))
        self._last_width = Signal(3)
        self._agreed_fresh = Signal()
        """`fresh` as both ends have told it in TS2; the frames in front of START still say so."""

    def _is(self, *states):
        return Cat(self.state == state for state in states).any()

    def _go(self, state):
        self._m.d.sync += [
            self.state.eq(state),
            self._elapsed.eq(0),
            self._frames.eq(0),
            self._stopping.eq(0),
            self._differs.eq(0),
            self._peer_knows.eq(0),
        ]

    def _try_again(self, reason):
        self._m.d.comb += self._retry.eq(1)
        self._m.d.sync += self.reason.eq(reason)

    def _fail(self, reason):
        self._m.d.sync += [self.reason.eq(reason), self._final.eq(reason in _FINAL)]
        self._go(LinkState.FAILED)

    def _timeouts(self):
        m = self._m
        with m.Switch(self.state):
            with m.Case(LinkState.DETECT):
                self._fail(Reason.NO_PEER)
            with m.Case(LinkState.LOCK):
                with m.If(self._choice.valid):
                    m.d.sync += [
                        self.rx_width.eq(self._choice.width),
                        self.reason.eq(Reason.LANE_LOST),
                    ]
                    self._go(LinkState.ALIGN)
                with m.Else():
                    self._try_again(Reason.NO_LOCK)
            with m.Case(LinkState.ALIGN):
                self._try_again(Reason.DESKEW)
            with m.Case(LinkState.TS1):
                with m.If(self._differs):
                    self._fail(Reason.CAPABILITY)
                with m.Else():
                    self._try_again(Reason.TRAINING_TIMEOUT)
            with m.Case(LinkState.ACTIVE):
                self._stopped()
            with m.Default():
                self._try_again(Reason.TRAINING_TIMEOUT)

    def _branches(self):
        m = self._m
        with m.Switch(self.state):
            with m.Case(LinkState.RESET):
                m.d.sync += [
                    self._attempts.eq(0),
                    self._level.eq(0),
                    self._final.eq(0),
                    self.rx_width.eq(Width.FULL),
                    self.tx_width.eq(Width.FULL),
                    self._last_width.eq(Width.FULL),
                ]
                self._go(LinkState.DETECT)
            with m.Case(LinkState.DETECT), m.If(self.locked.any()):
                self._go(LinkState.LOCK)
            with m.Case(LinkState.LOCK), m.If(self.locked.all() & self._choice.valid):
                m.d.sync += self.rx_width.eq(self._choice.width)
                self._go(LinkState.ALIGN)
            with m.Case(LinkState.ALIGN):
                with m.If(self.overflow):
                    self._try_again(Reason.DESKEW)
                with m.Elif(self.aligned):
                    self._go(LinkState.TS1)
            with m.Case(LinkState.TS1):
                self._ts1()
            with m.Case(LinkState.TS2):
                self._ts2()
            with m.Case(LinkState.CREDIT_INIT):
                leaving = self._data()
                with m.If(self._start_seen & self.started & self.credits_known & ~leaving):
                    self._active()
            with m.Case(LinkState.ACTIVE):
                self._data()
                self._stop()
            # The first of these ends may be that of an older frame.
            with m.Case(LinkState.RECOVERY), m.If(self._frames > RECOVERY_FRAMES):
                self._go(LinkState.LOCK)
            with m.Case(LinkState.DEGRADE):
                with m.If(self._level < self.min_width):
                    m.d.sync += self._level.eq(self._level + 1)
                    self._go(LinkState.RECOVERY)
                with m.Else():
                    self._fail(Reason.RECOVERY_LIMIT)
            with m.Case(LinkState.LOOPBACK), m.If(~self.loopback_mode):
                self._go(LinkState.RESET)
            with m.Case(LinkState.PRBS), m.If(~self.prbs_mode):
                self._go(LinkState.RESET)
            with m.Case(LinkState.DISABLED), m.If(self._enabled()):
                self._go(LinkState.RESET)
            with m.Case(LinkState.FAILED), m.If(self._rested() & ~self._final):
                self._go(LinkState.RESET)

    def _rested(self):
        # Silence is at most half as long as DETECT: else two ends could miss each other for ever
        half = self.timeout >> 1
        silent = (self._elapsed >= self.restart_cycles) | (self._elapsed >= half)
        return self.auto_restart & silent

    def _enabled(self):
        """DISABLED ends: at once by software, after a while if the peer asked for it."""
        return self.enable & (~self._by_peer | self._rested())

    def _ts1(self):
        m, peer = self._m, self._agreement.peer
        with m.If(self._differs):
            # The peer must have taken our frames too before we fall silent, to fail with the same
            # reason: `seen` says so, in both directions.
            with m.If(self.frame_valid & self.frame.seen & ~self._peer_knows):
                m.d.sync += [self._peer_knows.eq(1), self._frames.eq(0)]
            with m.If(self._peer_knows & (self._frames > TS2_FRAMES)):
                self._fail(Reason.CAPABILITY)
        with m.Elif(self._agreement.agreed):
            with m.If(self._agreement.differs):
                m.d.sync += self._differs.eq(1)
            with m.Elif(self.order_bad):
                self._fail(Reason.LANE_ORDER)
            with m.Elif(~self.fresh & (peer.fresh | (peer.session != self.peer_session))):
                m.d.comb += [self._peer_lost.eq(1), self._restart_agreement.eq(1)]
                m.d.sync += self.reason.eq(Reason.PEER_RESET)
                self._go(LinkState.TS1)
            with m.Elif(peer.fresh == self.fresh):
                m.d.sync += [
                    self.peer_session.eq(peer.session),
                    self.peer_epoch.eq(peer.epoch),
                    self.tx_width.eq(peer.want),
                    self._start_seen.eq(0),
                ]
                self._go(LinkState.TS2)

    def _ts2(self):
        m, peer = self._m, self._agreement.peer
        changed = Signal()
        m.d.comb += changed.eq(
            (peer.session != self.peer_session)
            | (peer.epoch != self.peer_epoch)
            | (peer.fresh != self.fresh)
            | (peer.want != self.tx_width)
        )
        with m.If(self.rx_start):
            m.d.sync += self._start_seen.eq(1)
        with m.If(
            self.rx_start | (self._agreement.confirmed & ~changed & (self._frames > TS2_FRAMES))
        ):
            self._go(LinkState.CREDIT_INIT)
        with m.Elif(changed):
            self._go(LinkState.TS1)

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

    def _active(self):
        m = self._m
        m.d.sync += self._last_width.eq(self.rx_width)
        m.d.comb += self.width_changes.eq(self.rx_width != self._last_width)
        self._go(LinkState.ACTIVE)

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
        with m.Elif(self.loopback_mode & self._is(*_AFTER_DETECT)):
            self._go(LinkState.LOOPBACK)

    def _lanes(self, was_data):
        m, in_data = self._m, self._in_data
        flush_owed = Signal()
        with m.If(was_data & ~in_data):
            m.d.sync += flush_owed.eq(1)
        with m.Elif(self.flush):
            m.d.sync += flush_owed.eq(0)
        m.d.comb += [
            self.flush.eq(flush_owed & ~self.started),
            self.align.eq(self._is(*_ALIGNED)),
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
        with m.Elif(self._is(*_FRAMES) | self.loopback):
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
