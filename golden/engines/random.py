"""Random words of stochastic rounding: one generator for each partition that an engine writes."""

import numpy as np
from numpy.typing import NDArray

from golden.arith.xorwow import WORDS, Xorwow

RESET_STATE = (123456789, 362436069, 521288629, 88675123, 5783321, 6615241)
"""x, y, z, w, v, d of every generator after a reset of the chip: those of Marsaglia's paper."""


class Generators:
    """The generators of one engine. START leaves them as they are."""

    def __init__(self, partitions: int):
        self._state = np.tile(np.array(RESET_STATE, np.uint32), (partitions, 1))

    def draw(self, partition: int, partitions: int, count: int) -> NDArray[np.uint32]:
        """The next `count` words of the generators of [partition, partition + partitions), uint32
        [partitions, count]; those of other partitions stay.
        """
        lanes = Xorwow(partitions)
        lanes.state = self.get(partition, partitions)
        words = lanes.step(count)
        self.set(partition, lanes.state)
        return words

    def get(self, partition: int, partitions: int) -> NDArray[np.uint32]:
        """A copy of their states, uint32 [partitions, 6]."""
        self._check(partition, partitions)
        return self._state[partition : partition + partitions].copy()

    def set(self, partition: int, words: NDArray[np.uint32]) -> None:
        """States of the generators from `partition` on, uint32 [partitions, 6]; else ValueError."""
        if words.dtype != np.uint32 or words.ndim != 2 or words.shape[1] != WORDS:
            raise ValueError(
                f"states of shape (partitions, {WORDS}) in uint32 expected, not {words.shape} in "
                f"{words.dtype}"
            )
        self._check(partition, len(words))
        self._state[partition : partition + len(words)] = words

    def _check(self, partition, partitions):
        if partition < 0 or partition + partitions > len(self._state):
            raise ValueError(
                f"generators {partition}..{partition + partitions - 1}, there are "
                f"0..{len(self._state) - 1}"
            )


def rounding(op, generators: Generators):
    """(sat, random) for `golden.access.store` of an operation's results: one step of each
    generator of dst and element when the operation rounds stochastically, whatever the values.
    """
    random = None
    if op.options.get("stochastic"):
        random = generators.draw(op.dst.partition, op.dst.partitions, op.dst.elements)
    return op.options.get("sat", 0), random
