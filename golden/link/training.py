"""Training: the state machine, cycle by cycle, from frames, locks and events to frames and states.

LOOPBACK and PRBS are not modelled; DISABLED is.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

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

EQUAL_FRAMES = 4
"""Frames in a row that must agree."""
TS2_FRAMES = 8
RECOVERY_FRAMES = 16
COMPARED = ("version", "capability", "want", "epoch", "fresh", "session")
_FRAMES = {
    LinkState.DETECT: FrameType.DETECT,
    LinkState.RECOVERY: FrameType.DETECT,
    LinkState.DEGRADE: FrameType.DETECT,
    LinkState.LOCK: FrameType.LOCK,
    LinkState.ALIGN: FrameType.ALIGN,
    LinkState.TS1: FrameType.TS1,
    LinkState.TS2: FrameType.TS2,
}
_UNBOUNDED = (LinkState.ACTIVE, LinkState.DISABLED, LinkState.FAILED)
_DATA = (LinkState.CREDIT_INIT, LinkState.ACTIVE)


@dataclass
class Events:
    """What one cycle brings.

    locked: logical lanes of the sender that are locked; frame: content of a good frame; sent: a
    frame has gone out; started: data go out; start: START received; reasons, command, progress,
    credits_known, training_seen: from receiver, transmitter and lanes.  request: state that
    software wants: RESET, DISABLED, or RECOVERY (heard in ACTIVE only).
    """

    locked: set = field(default_factory=set)
    aligned: bool = False
    overflow: bool = False
    order_bad: bool = False
    frame: dict | None = None
    sent: bool = False
    start: bool = False
    reasons: list = field(default_factory=list)
    command: Command = Command.NONE
    progress: bool = False
    credits_known: bool = False
    training_seen: bool = False
    request: LinkState | None = None


class Training:
    """state, session, epoch, fresh: own; peer: frame content that was agreed on, or None.

    receive_width is chosen here and told as `want`; transmit_width is the peer's.  reasons: all so
    far, in order.  Pulses of this cycle: clear (all link state anew), unlock (locks dropped), lost.
    allowed: largest divisor of the width.  counts: by the names of COUNTERS.
    """

    def __init__(self, link, seed=0, auto_restart=True):
        self.link, self.auto_restart = link, auto_restart
        self.rng = np.random.default_rng(seed)
        self.timeout = link.training_timeout_cycles
        self.allowed = 4
        self.epoch = self.session = 0
        self.reasons, self.counts = [], Counter()
        self.attempts, self.divisor = 0, 1
        self.receive_width = self.transmit_width = Width.FULL
        self._agreed_fresh = True
        self.lost = self.clear = self.unlock = False
        self._now = 0
        self._enter(LinkState.RESET)

    # Outputs

    @property
    def sends(self):
        """FrameType that goes out, None for silence or data."""
        return _FRAMES.get(self.state)

    @property
    def is_data(self):
        """Flits go out behind a START frame."""
        return self.state in _DATA

    def content(self, lane=0):
        """{field: number} of a frame that starts in this cycle."""
        echo = 0 if self._stamp is None else self._stamp + self._now - self._stamped
        return {
            "type": FrameType.START if self.is_data else self.sends,
            "lane": lane,
            "version": LINK_VERSION,
            "capability": self.link.capability,
            "want": self.receive_width,
            "epoch": self.epoch,
            "fresh": int(self._agreed_fresh if self.is_data else self.fresh),
            "seen": int(self.state in (LinkState.TS2, *_DATA)),
            "session": self.session,
            "stamp": self._now & 0xFFFF,
            "echo": echo & 0xFFFF,
        }

    # Cycles

    def cycle(self, events):
        """One cycle of the state machine."""
        self.clear = self.unlock = self.lost = False
        self._now += 1
        self._age += 1
        self._sent += events.sent
        self._started = self._started or events.start
        if events.frame:
            self._look_at(events.frame)
        if events.request in (LinkState.RESET, LinkState.DISABLED):
            self._enter(events.request, Reason.SOFTWARE)
        elif self.state not in _UNBOUNDED and self._age > self.timeout:
            self._expire(events)
        else:
            getattr(self, f"_{self.state.name.lower()}")(events)

    # States

    def _enter(self, state, reason=Reason.NONE):
        if reason != Reason.NONE:
            self.reasons.append(reason)
        self.state, self._age, self._sent, self._run = state, 0, 0, 0
        self._key = None
        if state == LinkState.RESET:
            self.attempts, self.divisor = 0, 1
            self._anew()
        if state in (LinkState.RECOVERY, LinkState.DEGRADE):
            self.unlock = True
            self.counts["RECOVERIES"] += state == LinkState.RECOVERY
        if state not in _DATA:
            self._started = False
        if state in (LinkState.FAILED, LinkState.DISABLED):
            self.lost = True
        if state == LinkState.CREDIT_INIT:
            # From here on the peer may be ACTIVE: its state and the own belong together
            self._agreed_fresh, self.fresh = self.fresh, False

    def _anew(self):
        """Full initialisation: all state of the link is lost."""
        self.fresh, self.peer, self._stamp, self._stamped = True, None, None, 0
        self.rtt = 0
        self.session = int(self.rng.integers(1 << 32))
        self.epoch = (self.epoch + 1) % 4
        self.clear = self.lost = True
        self.counts["INITIALISATIONS"] += 1

    def _retry(self, reason):
        self.attempts += 1
        if self.attempts < ATTEMPTS:
            self._enter(LinkState.RECOVERY, reason)
        else:
            self.attempts = 0
            self._enter(LinkState.DEGRADE, reason)

    def _expire(self, events):
        if self.state == LinkState.DETECT:
            self._enter(LinkState.FAILED, Reason.NO_PEER)
        elif self.state == LinkState.LOCK:
            width = self._widest(events.locked)
            if width is None:
                self._retry(Reason.NO_LOCK)
            else:
                self._choose(width, Reason.LANE_LOST)
        elif self.state == LinkState.ALIGN:
            self._retry(Reason.DESKEW)
        else:
            self._retry(Reason.TRAINING_TIMEOUT)

    def _widest(self, locked):
        for width in Width:
            fits = self.divisor <= width.divisor <= self.allowed
            if fits and locked >= set(width.lanes(self.link.lanes)):
                return width
        return None

    def _choose(self, width, reason=Reason.NONE):
        self.counts["WIDTH_CHANGES"] += width != self.receive_width
        self.receive_width = width
        self._enter(LinkState.ALIGN, reason)

    def _reset(self, events):
        self._enter(LinkState.DETECT)

    def _detect(self, events):
        if events.locked:
            self._enter(LinkState.LOCK)

    def _lock(self, events):
        width = self._widest(events.locked)
        if len(events.locked) == self.link.lanes and width is not None:
            self._choose(width)

    def _align(self, events):
        if events.overflow:
            self._retry(Reason.DESKEW)
        elif events.aligned:
            self._enter(LinkState.TS1)

    def _ts1(self, events):
        if self._run < EQUAL_FRAMES or not events.frame:
            return
        frame = events.frame
        if (frame["version"], frame["capability"]) != (LINK_VERSION, self.link.capability):
            self._enter(LinkState.FAILED, Reason.CAPABILITY)
        elif events.order_bad:
            self._enter(LinkState.FAILED, Reason.LANE_ORDER)
        elif frame["fresh"] and not self.fresh:
            self._anew()
            self._enter(LinkState.TS1, Reason.PEER_RESET)
        elif frame["fresh"] or not self.fresh:
            # A peer that keeps its state while the own is new starts anew: its session changes.
            self.peer, self.transmit_width = frame, Width(frame["want"])
            self._enter(LinkState.TS2)

    def _ts2(self, events):
        if self._is_new_peer(events.frame):
            self._enter(LinkState.TS1)
        elif events.start or (self._run >= EQUAL_FRAMES and self._sent >= TS2_FRAMES):
            self._enter(LinkState.CREDIT_INIT)

    def _is_new_peer(self, frame):
        return frame and self.peer and frame["session"] != self.peer["session"]

    def _credit_init(self, events):
        if events.reasons:
            self._retry(events.reasons[0])
        elif self._started and events.credits_known:
            self._enter(LinkState.ACTIVE)

    def _active(self, events):
        """A fault of the own receiver or transmitter counts as an attempt, what software or the
        peer asks for does not.
        """
        if events.progress:
            self.attempts = 0
        if events.reasons:
            self._retry(events.reasons[0])
        elif events.request == LinkState.RECOVERY:
            self._enter(LinkState.RECOVERY, Reason.SOFTWARE)
        elif events.command == Command.DISABLE:
            self._enter(LinkState.DISABLED, Reason.PEER_DISABLED)
        elif events.command == Command.RETRAIN or events.training_seen:
            self._enter(LinkState.RECOVERY, Reason.PEER_TRAINING)

    def _recovery(self, events):
        if self._sent >= RECOVERY_FRAMES:
            self._enter(LinkState.LOCK)

    def _degrade(self, events):
        if self.divisor * 2 > self.allowed:
            self._enter(LinkState.FAILED, Reason.RECOVERY_LIMIT)
        else:
            self.divisor *= 2
            self._enter(LinkState.RECOVERY)

    def _failed(self, events):
        final = self.reasons[-1] in (Reason.CAPABILITY, Reason.LANE_ORDER)
        if self.auto_restart and not final and self._age >= min(RESTART_CYCLES, self.timeout // 2):
            self._enter(LinkState.RESET)

    def _disabled(self, events):
        pass

    def _look_at(self, frame):
        """Every good frame: time stamps, and the run of equal ones."""
        self._stamp, self._stamped = frame["stamp"], self._now
        if self.state in (LinkState.TS1, LinkState.TS2) and frame["seen"]:
            self.rtt = (self._now - frame["echo"]) & 0xFFFF
        wanted = {FrameType.TS2} if self.state == LinkState.TS2 else {FrameType.TS1, FrameType.TS2}
        if frame["type"] not in wanted or (self.state == LinkState.TS2 and not frame["seen"]):
            self._run, self._key = 0, None
            return
        key = tuple(frame[name] for name in COMPARED)
        self._run = self._run + 1 if key == self._key else 1
        self._key = key
