"""Tensor engine: load_stationary keeps a [K, M] tile, multiply_moving streams [K, N] through it."""

import numpy as np

from golden.access import load_bits, write_rounds
from golden.arith import matmul


class TensorEngine:
    """Holds the stationary tile as bf16 bits; `stationary` is None until a run's first load."""

    def __init__(self, memories):
        self._memories = memories
        self.stationary = None

    def start(self):
        """START forgets the tile."""
        self.stationary = None

    @property
    def shape(self):
        """(K, M) of the stationary tile, None when there is none."""
        return None if self.stationary is None else self.stationary.shape

    def load_stationary(self, op):
        """Keeps a copy: later writes to the source do not matter."""
        self.stationary = load_bits(self._memories[op.src0.space], op.src0).copy()

    def multiply_moving(self, op):
        """dst = tile or old + tile. Columns that share PSUM words accumulate in order of the
        columns.
        """
        moving = load_bits(self._memories[op.src0.space], op.src0)
        tile = matmul.chain(self.stationary, moving)
        dst = op.dst
        place = dst.view(self._memories[dst.space])
        if not op.options["accumulate"]:
            _write(place, dst, tile)
        elif not dst.repeats:
            old = np.ascontiguousarray(place).view(np.float32).reshape(tile.shape)
            place[...] = matmul.accumulate(old, tile).view(np.uint32).reshape(place.shape)
        else:
            self._accumulate_in_order(place, dst, tile)

    @staticmethod
    def _accumulate_in_order(place, dst, tile):
        for columns in write_rounds(dst.dims):
            index = (slice(None), *np.unravel_index(columns, place.shape[1:]))
            old = np.ascontiguousarray(place[index]).view(np.float32)
            place[index] = matmul.accumulate(old, tile[:, columns]).view(np.uint32)


def _write(place, dst, tile):
    bits = tile.view(np.uint32)
    if not dst.repeats:
        place[...] = bits.reshape(place.shape)
        return
    for columns in write_rounds(dst.dims):
        place[(slice(None), *np.unravel_index(columns, place.shape[1:]))] = bits[:, columns]
