"""XORWOW, the generator of the random words of stochastic rounding: one per lane.

A step of a lane with the words x, y, z, w, v, d:

    t = x ^ (x >> 2);  x, y, z, w = y, z, w, v;  v = v ^ (v << 4) ^ t ^ (t << 1)
    d = d + 362437;    output v + d

all modulo 2^32. Period 2^192 - 2^32. Source: G. Marsaglia, Xorshift RNGs, Journal of Statistical
Software 8 (14), 2003, section 3. A lane steps once per element that it writes with stochastic
rounding, whatever the element's value.

Seeds come from SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): its outputs 3 L, 3 L + 1 and 3 L + 2
are the state of lane L, low word first. They differ, being the images of different numbers
under a bijection, so x, y, z, w, v are never all zero, the one state that xorshift cannot leave.
"""

import numpy as np
from numpy.typing import NDArray

WORDS = 6
"""Words of state of a lane: x, y, z, w, v, d."""

_WEYL = 362437
_GAMMA = np.uint64(0x9E3779B97F4A7C15)


class Xorwow:
    """Generators of `lanes` lanes, seeded with a 64-bit number."""

    def __init__(self, lanes: int, seed: int = 0):
        self._state = np.ascontiguousarray(seeded(lanes, seed).T)

    @property
    def state(self) -> NDArray[np.uint32]:
        """A copy of the state, uint32 [lanes, 6]; may be assigned to."""
        return np.array(self._state.T, order="C")

    @state.setter
    def state(self, words) -> None:
        """Raises `TypeError` unless uint32, `ValueError` for another shape."""
        lanes = self._state.shape[1]
        if getattr(words, "dtype", None) != np.uint32:
            raise TypeError("uint32 state expected")
        if words.shape != (lanes, WORDS):
            raise ValueError(f"state of shape {(lanes, WORDS)} expected, not {words.shape}")
        self._state = np.array(words.T, order="C")

    def step(self, count: int) -> NDArray[np.uint32]:
        """The next `count` words of every lane, uint32 [lanes, count]."""
        lanes = self._state.shape[1]
        # Row n is x after n steps: y, z, w, v are the four rows that follow.
        rows = np.empty((count + 5, lanes), np.uint32)
        rows[:5] = self._state[:5]
        t, shifted = np.empty(lanes, np.uint32), np.empty(lanes, np.uint32)
        one, two, four = np.uint32(1), np.uint32(2), np.uint32(4)
        for x, v, new in zip(rows, rows[4:], rows[5:], strict=False):
            np.right_shift(x, two, out=t)
            np.bitwise_xor(t, x, out=t)
            np.left_shift(t, one, out=shifted)
            np.bitwise_xor(t, shifted, out=t)
            np.left_shift(v, four, out=shifted)
            np.bitwise_xor(v, shifted, out=shifted)
            np.bitwise_xor(t, shifted, out=new)
        added = (np.arange(count + 1, dtype=np.uint64) * np.uint64(_WEYL)).astype(np.uint32)
        weyl = self._state[5] + added[:, None]
        self._state = np.concatenate([rows[count:], weyl[count:]])
        return np.ascontiguousarray((rows[5:] + weyl[1:]).T)


def seeded(lanes: int, seed: int) -> NDArray[np.uint32]:
    """The states, uint32 [lanes, 6], that a 64-bit seed gives."""
    index = np.arange(lanes * WORDS // 2, dtype=np.uint64)
    words = splitmix64(seed, index).reshape(lanes, WORDS // 2)
    halves = np.stack([words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)], axis=-1)
    return halves.reshape(lanes, WORDS).astype(np.uint32)


def splitmix64(seed: int, index: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Outputs number `index` (from 0) of SplitMix64 started with `seed` modulo 2^64."""
    z = np.uint64(seed % (1 << 64)) + (index + np.uint64(1)) * _GAMMA
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
