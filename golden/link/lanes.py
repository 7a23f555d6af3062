"""Lanes: beats to the symbols of each lane and back, scrambler, skip steps.

A symbol is an integer of `symbol_bits`, bit 0 first on the line.  A step is a list of one symbol
for each logical lane.
"""

from functools import lru_cache

import numpy as np

from isa.link import SCRAMBLER_TAPS, SKIP_WORD, WORD_BITS, Width, lane_seed

_BITS, _TAP = SCRAMBLER_TAPS
_STATE = (1 << _BITS) - 1
PERIOD = _STATE
"""Bits after which the scrambler repeats."""


class Scrambler:
    """Additive scrambler.  The next 23 output bits are the state from its highest bit down; behind
    them output n is output n - 23 XOR output n - 18.
    """

    _CHUNK = _TAP

    def __init__(self, seed):
        self._ahead = int(f"{seed:0{_BITS}b}"[::-1], 2)
        self._pool, self._bits = 0, 0

    def take(self, bits):
        """Integer of the next `bits` output bits, first one in bit 0."""
        while self._bits < bits:
            chunk = self._ahead & ((1 << self._CHUNK) - 1)
            self._pool |= chunk << self._bits
            self._bits += self._CHUNK
            new = (self._ahead ^ self._ahead >> _BITS - _TAP) & ((1 << self._CHUNK) - 1)
            self._ahead = self._ahead >> self._CHUNK | new << _BITS - self._CHUNK
        result = self._pool & ((1 << bits) - 1)
        self._pool >>= bits
        self._bits -= bits
        return result


def scrambler_bits(seed, count):
    """uint8[count]: the output bits behind `seed`, in bulk (output n = n - 23 * 2^k XOR n - 18 *
    2^k for every k, which doubles the known part each time).
    """
    bits = np.zeros(max(count, _BITS), dtype=np.uint8)
    bits[:_BITS] = [seed >> _BITS - 1 - i & 1 for i in range(_BITS)]
    known, scale = _BITS, 1
    while known < count:
        while _BITS * scale * 2 <= known:
            scale *= 2
        size = min(_TAP * scale, count - known)
        at = known + np.arange(size)
        bits[at] = bits[at - _BITS * scale] ^ bits[at - _TAP * scale]
        known += size
    return bits[:count]


@lru_cache
def skip_symbol(link):
    """The symbol of an active lane in a skip step."""
    return sum(SKIP_WORD << WORD_BITS * word for word in range(link.symbol_words))


class LaneTransmit:
    """Beats behind the START frame to steps.  `width`: Width in use."""

    def __init__(self, link, width=Width.FULL):
        self.link, self.width = link, Width(width)
        self.active = self.width.lanes(link.lanes)
        self._scramblers = [Scrambler(lane_seed(lane)) for lane in self.active]
        self._since_skip = 0

    def beat(self, beat):
        """[steps] of a beat (bytes), without skip steps."""
        link, lanes = self.link, len(self.active)
        words = np.frombuffer(beat, dtype="<u4").reshape(-1, lanes)
        steps = []
        for low in range(0, len(words), link.symbol_words):
            step = [0] * link.lanes
            for position, lane in enumerate(self.active):
                own = words[low : low + link.symbol_words, position]
                symbol = int.from_bytes(own.tobytes(), "little")
                step[lane] = symbol ^ self._scramblers[position].take(link.symbol_bits)
            steps.append(step)
        return steps

    def skip(self):
        """A skip step."""
        step = [0] * self.link.lanes
        for lane in self.active:
            step[lane] = skip_symbol(self.link)
        return step

    def beat_and_skips(self, beat):
        """[steps] of a beat with a skip step behind every `skip_cycles` steps of data."""
        steps = []
        for step in self.beat(beat):
            steps.append(step)
            self._since_skip += 1
            if self._since_skip == self.link.skip_cycles:
                self._since_skip = 0
                steps.append(self.skip())
        return steps


class LaneReceive:
    """Steps behind the START frame to beats."""

    def __init__(self, link, width=Width.FULL):
        self.link, self.width = link, Width(width)
        self.active = self.width.lanes(link.lanes)
        self._scramblers = [Scrambler(lane_seed(lane)) for lane in self.active]
        self._gathered = []
        self.skips = 0

    def step(self, step):
        """The beat (bytes) that a step in logical lane order completes, or None."""
        link = self.link
        if 2 * sum(step[lane] == skip_symbol(link) for lane in self.active) > len(self.active):
            self.skips += 1
            return None
        size = link.symbol_bits // 8
        symbols = [
            (step[lane] ^ scrambler.take(link.symbol_bits)).to_bytes(size, "little")
            for lane, scrambler in zip(self.active, self._scramblers, strict=True)
        ]
        words = np.frombuffer(b"".join(symbols), dtype="<u4").reshape(-1, link.symbol_words)
        self._gathered.append(words.T.tobytes())
        if len(self._gathered) < self.width.divisor:
            return None
        beat, self._gathered = b"".join(self._gathered), []
        return beat
