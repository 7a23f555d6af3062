"""One direction of a channel, seeded: delay, skew, bit errors, dropped steps, stuck lanes."""

from collections import deque

import numpy as np


class Channel:
    """Symbols of each lane from one port to the other.

    delay: steps of the fastest lane; skew: additional steps of each lane; error_rate: of a bit;
    burst: length of an error in bits.  inverted: lanes with swapped polarity; reverse: lanes are
    wired in the opposite order; shift: bits by which each lane's symbol boundary is off.
    Attributes may be changed at any time: stuck {lane: 0 or 1}, dropped (steps still to be zeroed),
    plugged.  errors counts what was put in.
    """

    def __init__(self, link, seed=0, delay=4, skew=None, error_rate=0.0, burst=1, inverted=(),
                 reverse=False, shift=None):  # fmt: skip
        self.link, self.rng = link, np.random.default_rng(seed)
        self.error_rate, self.burst = error_rate, burst
        self.inverted, self.reverse = set(inverted), reverse
        self.stuck, self.dropped, self.plugged, self.errors = {}, 0, True, 0
        skew = skew or [0] * link.lanes
        self._lines = [deque([None] * (delay + extra)) for extra in skew]
        self._shift = list(shift or [0] * link.lanes)
        self._before = [0] * link.lanes
        self._ones = (1 << link.symbol_bits) - 1
        self._until = self._gap()

    def slip(self, lane):
        """The receiver shifts the symbol boundary of a lane by one bit."""
        self._shift[lane] = (self._shift[lane] + 1) % self.link.symbol_bits

    def step(self, step):
        """A step goes in (symbol or None = idle for each lane), the step that arrives comes out."""
        out = [self._lane(lane, symbol) for lane, symbol in enumerate(step)]
        self.dropped = max(0, self.dropped - 1)
        if self.error_rate:
            self._spoil(out)
        if not self.plugged:
            return [None] * self.link.lanes
        return out[::-1] if self.reverse else out

    def _lane(self, lane, symbol):
        line = self._lines[lane]
        if symbol is not None:
            if lane in self.stuck:
                symbol = self._ones if self.stuck[lane] else 0
            elif self.dropped:
                symbol = 0
            elif lane in self.inverted:
                symbol ^= self._ones
        line.append(symbol)
        symbol = line.popleft()
        shift = self._shift[lane]
        if not shift or symbol is None:
            self._before[lane] = symbol or 0
            return symbol
        both = self._before[lane] | symbol << self.link.symbol_bits
        self._before[lane] = symbol
        return both >> shift & self._ones

    def _gap(self):
        """Bits to the next error."""
        return int(self.rng.geometric(self.error_rate)) - 1 if self.error_rate else 0

    def _spoil(self, out):
        width = self.link.symbol_bits
        while self._until < width * self.link.lanes:
            lane, bit = divmod(self._until, width)
            symbol = out[lane]
            if symbol is not None:
                mask = 1 | int(self.rng.integers(1 << min(62, self.burst - 1))) << 1
                out[lane] = symbol ^ mask << bit & self._ones
                self.errors += 1
            self._until += 1 + self._gap()
        self._until -= width * self.link.lanes
