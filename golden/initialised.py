"""Which bytes of the memories somebody has written, ever."""

import numpy as np

from golden.memory import zeros

_SPARSE = 64
"""Boxes with fewer touched bytes than one in this many are handled interval by interval."""


class Initialised:
    """One byte for each byte of each memory; footprints that were found written are remembered."""

    def __init__(self, memories):
        self._written = [zeros(m.rows * m.pitch).reshape(m.rows, m.pitch) for m in memories]
        self._known = set()

    def mark(self, footprint):
        """The bytes of the footprint are written."""
        if footprint.id not in self._known:
            for view, mask in self._regions(footprint):
                if mask is None:
                    view[...] = 1
                else:
                    np.maximum(view, mask, out=view)
            self._known.add(footprint.id)

    def mark_place(self, memory, place, size):
        """Bytes [place, place + size) from the base of the memory are written."""
        self._written[memory.space].reshape(-1)[place : place + size] = 1

    def missing(self, footprint):
        """None when all bytes are written, else (p0, p1, low, high) around some that are not."""
        if footprint.id in self._known:
            return None
        for view, mask in self._regions(footprint):
            good = view if mask is None else view | (1 - mask)
            if not good.all():
                return self._describe(footprint)
        self._known.add(footprint.id)
        return None

    def _regions(self, footprint):
        """Pairs (box of the shadow, uint8 mask of the touched bytes of a row or None for all)."""
        rows = self._written[footprint.space][footprint.p0 : footprint.p1]
        parts = footprint.parts()
        width = footprint.high - footprint.low
        touched = int((parts[:, 1] - parts[:, 0]).sum())
        if len(parts) == 1:
            yield rows[:, footprint.low : footprint.high], None
        elif touched * _SPARSE < width:
            for low, high in parts.tolist():
                yield rows[:, low:high], None
        else:
            edges = np.zeros(width + 1, np.int8)
            edges[parts[:, 0] - footprint.low] = 1
            edges[parts[:, 1] - footprint.low] -= 1
            mask = np.cumsum(edges[:-1], dtype=np.int8).astype(np.uint8)
            yield rows[:, footprint.low : footprint.high], mask

    def _describe(self, footprint):
        rows = self._written[footprint.space][footprint.p0 : footprint.p1]
        for low, high in footprint.parts().tolist():
            bad = rows[:, low:high] == 0
            if bad.any():
                p = np.flatnonzero(bad.any(axis=1))
                column = np.flatnonzero(bad.any(axis=0))
                return (
                    footprint.p0 + int(p[0]),
                    footprint.p0 + int(p[-1]) + 1,
                    low + int(column[0]),
                    low + int(column[-1]) + 1,
                )
        return None
