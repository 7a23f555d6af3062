"""States of the XORWOW generators of random words from one integer.

Seeds come from SplitMix64 (Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators,
OOPSLA 2014): its outputs 3 L, 3 L + 1 and 3 L + 2 are the six words x, y, z, w, v, d of lane L, low
word first.  They differ, being the images of different numbers under a bijection, so x, y, z, w, v
are never all zero, the one state that xorshift cannot leave.

Partition p of the vector engine is lane p, partition p of the scalar engine lane 128 + p: one seed
serves a chip, whatever its size.  `ProgramBuilder.seed_generators` makes the instructions.
"""

import operator

import numpy as np
from numpy.typing import NDArray

from isa.address_map import Sequencer
from isa.check_operands import STATE_WORDS

FIRST_LANE = {Sequencer.VECTOR: 0, Sequencer.SCALAR: 128}
"""Lane of partition 0 of each engine that has generators; a chip has at most 128 partitions."""

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def seeded(lanes: int, seed: int, first: int = 0) -> NDArray[np.uint32]:
    """The states, uint32 [lanes, 6], that a seed modulo 2^64 gives the lanes from `first` on."""
    draws = STATE_WORDS // 2
    index = np.arange(first * draws, (first + lanes) * draws, dtype=np.uint64)
    words = splitmix64(seed, index).reshape(lanes, draws)
    halves = np.stack([words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)], axis=-1)
    return halves.reshape(lanes, STATE_WORDS).astype(np.uint32)


def splitmix64(seed: int, index: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Outputs number `index` (from 0) of SplitMix64 started with `seed` modulo 2^64."""
    z = np.uint64(operator.index(seed) % (1 << 64)) + (index + np.uint64(1)) * _GAMMA
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
