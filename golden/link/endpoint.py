"""A port without lanes and training: transmitter, receiver, VC buffers, timers; cycle by cycle."""

from collections import deque

from golden.link.receiver import Receiver
from golden.link.transmitter import Transmitter
from golden.link.unpack import VcBuffers
from isa.link import VCS, Command, Reason


def replay_cycles(rtt):
    """Time of the replay timer."""
    return min(max(3 * rtt + 500, 256), 65535)


def nak_cycles(rtt):
    """Time to the repeat of a NAK."""
    return 2 * rtt + 64


class Endpoint:
    """send(vc, packet): packets go in.  received[vc]: packets that came out.  reasons: every Reason
    so far, in order.  open: VCs whose consumer takes beats.  receiving: beats come, the NAK's time
    runs.  cycle() is one clock.
    """

    def __init__(self, link, session=0, epoch=0, rtt=0, **arguments):
        self.link = link
        self.session, self.epoch, self.rtt = session, epoch, rtt
        self.tx = Transmitter(link, **arguments)
        self.rx = Receiver(link)
        self.buffers = VcBuffers(link)
        self.offered = [deque() for _ in range(VCS)]
        self.received = [[] for _ in range(VCS)]
        self.open = set(range(VCS))
        self.reasons, self.commands, self.verdicts = [], [], []
        self.receiving = True
        self._replay_age = self._nak_age = 0
        self._seen = (None, None)
        self._turn = self._out = 0

    def meet(self, session, epoch):
        """Session and epoch of the peer, from its training frames."""
        self.rx.session, self.rx.epoch = session, epoch

    def send(self, vc, packet, poison=False):
        """A packet (bytes of whole granules, header first) waits for its VC's queue."""
        size = self.link.beat_bytes
        for low in range(0, len(packet), size):
            piece = packet[low : low + size]
            self.offered[vc].append((piece, low + size >= len(packet), poison))

    def cycle(self, arriving=None, takes=True):
        """One clock: the beat for the lanes if they take one (bytes or None), then everything that
        arrives: a beat from the lanes, packets, timers.
        """
        beat = self.compose() if takes else None
        self.arrive(arriving)
        return beat

    def arrive(self, arriving):
        """The second half of a clock."""
        if arriving is not None:
            for received in self.rx.beat(arriving):
                self._apply(received)
        self._fill()
        self._drain()
        self._time()

    @property
    def quiet(self):
        """Nothing waits anywhere in this endpoint."""
        held = (*self.offered, *self.tx.queues, *self.buffers.buffers)
        return not any(held) and not self.tx.outstanding and not self.rx.restless

    def compose(self):
        """The first half of a clock: the beat for the lanes or None."""
        beat, taken = self.tx.beat(
            self.rx.expected,
            self.rx.nak,
            self.buffers.limits,
            self.buffers.congestion,
            self.session,
            self.epoch,
        )
        if taken:
            self.rx.nak_taken()
        return beat

    def _apply(self, received):
        self.verdicts.append(received.verdict)
        self._note(received.reason)
        if received.payload:
            self._note(self.buffers.deliver(received.payload))
        if received.acknowledge:
            self._note(self.tx.acknowledge(*received.acknowledge))
            self._note(self.tx.credit(*received.credit))
        if received.command != Command.NONE:
            self.commands.append(received.command)

    def _note(self, reason):
        if reason != Reason.NONE:
            self.reasons.append(reason)

    def _fill(self):
        """One beat a cycle into the queues, round robin among VCs with room for a whole beat."""
        for step in range(VCS):
            vc = (self._turn + step) % VCS
            if self.offered[vc] and self.tx.room(vc) >= self.link.beat_granules:
                self.tx.push(vc, *self.offered[vc].popleft())
                self._turn = vc + 1
                return

    def _drain(self):
        """One beat a cycle out of the buffers of the open VCs."""
        for step in range(VCS):
            vc = (self._out + step) % VCS
            if vc in self.open and self.buffers.buffers[vc]:
                packets, reason = self.buffers.take(vc, self.link.beat_granules)
                self.received[vc] += packets
                self._note(reason)
                self._out = vc + 1
                return

    def _time(self):
        replay, nak = self.tx.timer_restarts, self.rx.nak_timer
        running = self.tx.sending and self.tx.outstanding > 0 and replay == self._seen[0]
        self._replay_age = self._replay_age + 1 if running else 0
        restless = self.receiving and self.rx.restless and nak == self._seen[1]
        self._nak_age = self._nak_age + 1 if restless else 0
        self._seen = (replay, nak)
        if self._replay_age >= replay_cycles(self.rtt):
            self._note(self.tx.timer())
            self._replay_age = 0
        if self._nak_age >= nak_cycles(self.rtt):
            self._note(self.rx.repeat())
            self._nak_age = 0
