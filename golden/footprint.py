"""Which bytes an access touches: the same byte intervals in every partition of a range.

Footprints are interned: one object for one set of bytes, so that relations between two of them are
computed once however often a loop repeats the accesses.
"""

import numpy as np

from isa.pattern import byte_intervals


class Footprint:
    """Partitions [p0, p1) and bytes [low, high) of `space`; `intervals` is None when all are
    touched.

    Otherwise `intervals` is int64 [n, 2], sorted, disjoint, maximal. `id` identifies the set of
    bytes.
    """

    __slots__ = ("high", "id", "intervals", "low", "p0", "p1", "space")

    def __init__(self, identity, space, p0, p1, intervals):
        self.id = identity
        self.space = space
        self.p0 = p0
        self.p1 = p1
        self.low = int(intervals[0, 0])
        self.high = int(intervals[-1, 1])
        self.intervals = intervals if len(intervals) > 1 else None

    def parts(self):
        """The intervals, int64 [n, 2], in either case."""
        if self.intervals is None:
            return np.array([[self.low, self.high]], np.int64)
        return self.intervals


class Footprints:
    """Makes and interns footprints, and answers questions about two of them."""

    _LIMIT = 1 << 16

    def __init__(self):
        self._by_bytes = {}
        self._by_source = {}
        self._overlaps = {}
        self._covers = {}
        self._count = 0

    def of_access(self, access):
        """Footprint of an `Access`."""
        found = self._by_source.get(access)
        if found is None:
            p0 = access.partition
            found = self.make(access.space, p0, p0 + access.partitions, access.intervals)
            self._remember(self._by_source, access, found)
        return found

    def of_rows(self, memory, first, row_bytes, counts, strides):
        """Footprints of the rows of a descriptor side, all of which lie in `memory`.

        first: place of the first row from the base of the memory; counts and strides innermost
        first.
        """
        key = (int(memory.space), first, row_bytes, counts, strides)
        found = self._by_source.get(key)
        if found is None:
            dims = tuple(zip(reversed(strides), reversed(counts), strict=True))
            intervals = byte_intervals(first, 1, (*dims, (1, row_bytes)))
            found = self.of_places(memory, intervals)
            self._remember(self._by_source, key, found)
        return found

    def of_places(self, memory, intervals):
        """Footprints of sorted disjoint intervals of places that may reach over partition
        boundaries.
        """
        pitch = memory.pitch
        by_partition = {}
        for low, high in intervals.tolist():
            while low < high:
                partition, offset = divmod(low, pitch)
                size = min(high - low, pitch - offset)
                by_partition.setdefault(partition, []).append((offset, offset + size))
                low += size
        found = []
        for partition, parts in sorted(by_partition.items()):
            if found and found[-1][1] == partition and found[-1][2] == parts:
                found[-1][1] += 1
            else:
                found.append([partition, partition + 1, parts])
        return [
            self.make(memory.space, p0, p1, np.array(parts, np.int64)) for p0, p1, parts in found
        ]

    def make(self, space, p0, p1, intervals):
        """The footprint of those bytes; intervals int64 [n, 2], sorted, disjoint, n > 0."""
        key = (int(space), p0, p1, intervals.tobytes())
        found = self._by_bytes.get(key)
        if found is None:
            self._count += 1
            found = Footprint(self._count, int(space), p0, p1, intervals)
            self._remember(self._by_bytes, key, found)
        return found

    def overlap(self, a, b):
        """(p0, p1, low, high) around the first run of common bytes, or None."""
        if a.space != b.space:
            return None
        p0, p1 = max(a.p0, b.p0), min(a.p1, b.p1)
        low, high = max(a.low, b.low), min(a.high, b.high)
        if p0 >= p1 or low >= high:
            return None
        if a.intervals is None and b.intervals is None:
            return p0, p1, low, high
        key = (a.id, b.id)
        if key not in self._overlaps:
            self._remember(self._overlaps, key, _first_common(a.parts(), b.parts()))
        common = self._overlaps[key]
        return None if common is None else (p0, p1, *common)

    def covers(self, a, b):
        """Whether every byte of b is one of a."""
        if a is b:
            return True
        inside = a.p0 <= b.p0 and b.p1 <= a.p1 and a.low <= b.low and b.high <= a.high
        if a.space != b.space or not inside:
            return False
        if a.intervals is None:
            return True
        key = (a.id, b.id)
        if key not in self._covers:
            self._remember(self._covers, key, _covers(a.parts(), b.parts()))
        return self._covers[key]

    def _remember(self, table, key, value):
        if len(table) >= self._LIMIT:
            table.clear()
        table[key] = value


def _first_common(a, b):
    at = np.searchsorted(b[:, 1], a[:, 0], side="right")
    candidates = np.flatnonzero(at < len(b))
    hits = candidates[b[at[candidates], 0] < a[candidates, 1]]
    if hits.size == 0:
        return None
    mine, theirs = a[hits[0]], b[at[hits[0]]]
    return int(max(mine[0], theirs[0])), int(min(mine[1], theirs[1]))


def _covers(a, b):
    at = np.searchsorted(a[:, 0], b[:, 0], side="right") - 1
    return bool((at >= 0).all() and (a[at, 1] >= b[:, 1]).all())
