"""XORWOW, the generator of the random words of stochastic rounding: one per lane.

A step of a lane with the words x, y, z, w, v, d:

    t = x ^ (x >> 2);  x, y, z, w = y, z, w, v;  v = v ^ (v << 4) ^ t ^ (t << 1)
    d = d + 362437;    output v + d

all modulo 2^32. Period 2^192 - 2^32. Source: G. Marsaglia, Xorshift RNGs, Journal of Statistical
Software 8 (14), 2003, section 3. A lane steps once per element that it writes with stochastic
rounding, whatever the element's value.

States from a seed: `isa.seeding`.
"""

import numpy as np
from numpy.typing import NDArray

from isa.seeding import seeded

WORDS = 6
"""Words of state of a lane: x, y, z, w, v, d."""

_WEYL = 362437


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
