"""Training: the states one by one, from RESET to CREDIT_INIT, and where each leads."""

from amaranth.hdl import Signal

from hdl.link.training_data import TrainingData
from isa.link import LinkState, Reason, Width

RECOVERY_FRAMES = 16
"""DETECT frames that RECOVERY sends at least: the peer's lanes lock on them."""
TS2_FRAMES = 8


class TrainingStates(TrainingData):
    """Transitions by time and by events."""

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

    def _active(self):
        m = self._m
        m.d.sync += self._last_width.eq(self.rx_width)
        m.d.comb += self.width_changes.eq(self.rx_width != self._last_width)
        self._go(LinkState.ACTIVE)
