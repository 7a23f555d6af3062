"""Training: interface of the state machine, its registers, and its elementary steps."""

from amaranth.hdl import Cat, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.agreement import Agreement
from hdl.link.ports import FRAME_LAYOUT, REASON_BITS
from hdl.link.width_choice import WidthChoice
from isa.link import ATTEMPTS, RESTART_CYCLES, LinkState, Reason

ELAPSED_BITS = 24
STOP_CYCLES = 32
"""From an idle transmitter to the end of data: what the lanes hold has been sent."""
FINAL = (Reason.CAPABILITY, Reason.LANE_ORDER)
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


class TrainingBase(wiring.Component):
    """Members of `Training`; `_is`, `_go` and the ends of an attempt, which all parts share."""

    _agreement: Agreement
    _choice: WidthChoice

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
        self._m.d.sync += [self.reason.eq(reason), self._final.eq(reason in FINAL)]
        self._go(LinkState.FAILED)
