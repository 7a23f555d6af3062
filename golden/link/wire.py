"""Two endpoints over delay lines of beats, with faults put in where a function says so."""

from collections import deque

import numpy as np

from golden.link.endpoint import Endpoint
from isa.link import HEADER, VCS, pack_bits


class Pair:
    """ends: two `Endpoint` that send from the first cycle on; delay: cycles of each direction.

    fault(direction, number, beat) -> bytes is called for every beat that is sent (direction 0 from
    ends[0]; number counts beats); its result travels instead.  An end that asks for RECOVERY gets
    it: `retrain`, counted in `recoveries`.
    """

    def __init__(self, link, delay=8, fault=None, seed=0, **arguments):
        self.rng = np.random.default_rng(seed)
        sessions = [int(x) for x in self.rng.integers(1, 1 << 32, 2)]
        self.ends = [Endpoint(link, s, rtt=2 * delay, **arguments) for s in sessions]
        self.delay, self.fault = delay, fault
        self.lines = self._silence()
        self.numbers, self.cycles, self.recoveries = [0, 0], 0, 0
        self._reasons = 0
        self.sent = [[[] for _ in range(VCS)] for _ in range(2)]
        self.ends[0].meet(sessions[1], 0)
        self.ends[1].meet(sessions[0], 0)
        self.start()

    def start(self):
        """Both ends start to send and to receive."""
        for end in self.ends:
            end.tx.start()
            end.rx.start()

    def retrain(self):
        """What is under way is lost; all state is kept."""
        for end in self.ends:
            end.tx.flush()
            end.rx.stop()
        self.lines = self._silence()
        self.recoveries += 1
        self.start()

    def _silence(self) -> list[deque[bytes | None]]:
        return [deque([None] * self.delay) for _ in range(2)]

    def send(self, side, vc, granules, address=0, poison=False):
        """A packet with random data, remembered in `sent`."""
        header = pack_bits(HEADER, {"kind": 1, "granules": granules, "address": address})
        packet = header.to_bytes(16, "little") + self.rng.bytes(16 * (granules - 1))
        self.sent[side][vc].append(packet)
        self.ends[side].send(vc, packet, poison)

    def step(self):
        """One cycle of both ends."""
        arriving = [self.lines[1].popleft(), self.lines[0].popleft()]
        for side, end in enumerate(self.ends):
            beat = end.cycle(arriving[side])
            if beat is not None and self.fault:
                beat = self.fault(side, self.numbers[side], beat)
            self.numbers[side] += 1
            self.lines[side].append(beat)
        self.cycles += 1
        reasons = sum(len(end.reasons) for end in self.ends)
        if reasons > self._reasons:
            self._reasons = reasons
            self.retrain()

    def run(self, cycles):
        """So many cycles."""
        for _ in range(cycles):
            self.step()

    def settle(self, most):
        """Until nothing is under way any more.  TimeoutError after `most` cycles."""
        for _ in range(most):
            self.step()
            if all(end.quiet for end in self.ends):
                self.run(4 * self.delay + 64)
                if all(end.quiet for end in self.ends):
                    return
        raise TimeoutError(f"still busy after {most} cycles")

    def check(self):
        """All packets came, once, in the order of their VC, unchanged; all credit is back."""
        for side, end in enumerate(self.ends):
            other = self.ends[1 - side]
            for vc in range(VCS):
                got = [packet.data for packet in other.received[vc]]
                assert got == self.sent[side][vc], f"VC {vc} from side {side} differs"
                counter, back = end.tx.credits[vc], other.buffers.returns[vc]
                assert counter.sent == back.left, f"VC {vc}: granules lost or doubled"
                assert counter.limit == back.limit, f"VC {vc}: credit lost"
