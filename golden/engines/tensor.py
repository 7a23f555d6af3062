"""Tensor engine: load_stationary keeps a [K, M] tile, multiply_moving streams [K, N] through it."""

from dataclasses import dataclass

import numpy as np

from golden.access import write_rounds
from golden.arith import matmul
from golden.arith.formats import FORMATS

_FORMATS = {form.name: form for form in FORMATS}


@dataclass(frozen=True)
class Stationary:
    """A tile as it takes part: float32 [K, M], [K, M, 2] with double_row, and with transpose the
    codes, uint8 or uint16 [K, M].
    """

    tile: np.ndarray
    double_row: int
    transpose: int

    @property
    def shape(self):
        """(K, M, double_row, transpose)."""
        return (*self.tile.shape[:2], self.double_row, self.transpose)


class TensorEngine:
    """Holds the stationary tile; `stationary` is None until a run's first load."""

    def __init__(self, memories):
        self._memories = memories
        self.stationary = None

    def start(self):
        """START forgets the tile."""
        self.stationary = None

    @property
    def shape(self):
        """(K, M, double_row, transpose) of the stationary tile, None when there is none."""
        return None if self.stationary is None else self.stationary.shape

    def load_stationary(self, op):
        """Keeps a copy: later writes to the source do not matter."""
        transpose = op.options["transpose"]
        bits = self._codes(op.src0)
        tile = bits if transpose else _operand(bits, op)
        self.stationary = Stationary(tile, op.options["double_row"], transpose)

    def multiply_moving(self, op):
        """dst = tile or old + tile. Columns that share PSUM words accumulate in order of the
        columns.
        """
        assert self.stationary is not None, "the checks refuse a multiply before any load"
        tile = _product(self.stationary, _operand(self._codes(op.src0), op))
        dst = op.dst
        place = dst.view(self._memories[dst.space])
        if not op.options["accumulate"]:
            _write(place, dst, tile)
        elif not dst.repeats:
            old = np.ascontiguousarray(place).view(np.float32).reshape(tile.shape)
            place[...] = matmul.accumulate(old, tile).view(np.uint32).reshape(place.shape)
        else:
            self._accumulate_in_order(place, dst, tile)

    def _codes(self, access):
        """A copy of the codes [K, elements]; of pairs [K, elements, 2]."""
        codes = np.array(access.view(self._memories[access.space]), order="C")
        shape = (access.partitions, access.elements)
        if access.pairs:
            return codes.view(f"u{access.dtype.itemsize}").reshape(*shape, 2)
        return codes.reshape(shape)

    @staticmethod
    def _accumulate_in_order(place, dst, tile):
        for columns in write_rounds(dst.dims):
            index = (slice(None), *np.unravel_index(columns, place.shape[1:]))
            old = np.ascontiguousarray(place[index]).view(np.float32)
            place[index] = matmul.accumulate(old, tile[:, columns]).view(np.uint32)


def _product(stationary, moving):
    if stationary.transpose:
        return matmul.transpose(stationary.tile, moving)
    if stationary.double_row:
        return matmul.chain_double_row(stationary.tile, moving)
    return matmul.chain(stationary.tile, moving)


def _operand(codes, op):
    return matmul.operand(codes, _FORMATS[op.src0.dtype.text], op.options["part"])


def _write(place, dst, tile):
    bits = tile.view(np.uint32)
    if not dst.repeats:
        place[...] = bits.reshape(place.shape)
        return
    for columns in write_rounds(dst.dims):
        place[(slice(None), *np.unravel_index(columns, place.shape[1:]))] = bits[:, columns]
