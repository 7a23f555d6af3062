"""The accesses that a later access could still conflict with, as numpy columns."""

import numpy as np

_P0, _P1, _LOW, _HIGH, _COMPONENT, _EPOCH = range(6)
_DEAD = np.array([0, 0, 0, 0, 0, -1])[:, None]


class Ledger:
    """Reads or writes of one memory: footprint, clock component, epoch and origin of each."""

    def __init__(self):
        self._columns = np.zeros((6, 64), np.int64)
        self._footprints = []
        self._origins = []
        self._dead = 0

    def __len__(self):
        return len(self._footprints)

    def add(self, footprint, component, epoch, origin):
        """Appends an access."""
        place = len(self._footprints)
        if place == self._columns.shape[1]:
            self._columns = np.concatenate((self._columns, np.zeros_like(self._columns)), axis=1)
        self._columns[:, place] = (
            footprint.p0,
            footprint.p1,
            footprint.low,
            footprint.high,
            component,
            epoch,
        )
        self._footprints.append(footprint)
        self._origins.append(origin)

    def near(self, footprint):
        """Entries whose box meets that of the footprint."""
        columns = self._columns[:, : len(self._footprints)]
        meets = columns[_P0] < footprint.p1
        meets &= columns[_P1] > footprint.p0
        meets &= columns[_LOW] < footprint.high
        meets &= columns[_HIGH] > footprint.low
        return np.flatnonzero(meets)

    def before(self, entries, clock):
        """Which of the entries happened before `clock`."""
        return self._columns[_EPOCH, entries] <= clock[self._columns[_COMPONENT, entries]]

    def components(self, entries):
        """Clock components of the entries."""
        return self._columns[_COMPONENT, entries]

    def footprint(self, entry):
        """Footprint of an entry."""
        return self._footprints[entry]

    def origin(self, entry):
        """Origin of an entry."""
        return self._origins[entry]

    def drop(self, entries):
        """Forgets entries; the numbers of the others stay until `compact`."""
        self._columns[:, entries] = _DEAD
        self._dead += len(entries)

    def compact(self, least=None):
        """Closes the gaps, often enough to stay small; forgets what happened before `least()`."""
        count = len(self._footprints)
        crowded = count > 1024 and count & (count - 1) == 0
        if self._dead <= 64 + count // 2 and not (crowded and least is not None):
            return
        columns = self._columns[:, :count]
        alive = columns[_EPOCH] >= 0
        if crowded and least is not None:
            alive &= columns[_EPOCH] > least()[columns[_COMPONENT]]
        keep = np.flatnonzero(alive)
        kept = columns[:, keep]
        self._columns = np.zeros((6, max(64, 2 * keep.size)), np.int64)
        self._columns[:, : keep.size] = kept
        self._footprints = [self._footprints[i] for i in keep]
        self._origins = [self._origins[i] for i in keep]
        self._dead = 0
