"""The updates of one semaphore and what a wait on it may conclude from them.

A wait for `semaphore >= value` is satisfied by some of the updates; it may only rely on those
without which the value could not have been reached. An update is such a one when the updates that
do not depend on it add up to less than the value. Decrements count only where the waiter knows that
they were applied before it waited: one that is still on its way makes nothing certain.
"""

from bisect import bisect_left

import numpy as np

from isa.fields import Update

_LONGEST = 512


class SemaphoreLog:
    """Updates since START, oldest first, with the clocks that they release.

    A SET that is not ordered after all others begins the log anew.
    """

    def __init__(self, clock_size):
        self._base = 0
        self._base_clock = np.zeros(clock_size, np.int64)
        self._clear()

    def _clear(self):
        self._agents = []
        self._components = []
        self._epochs = []
        self._changes = []
        self._clocks = []
        self._highest = []
        self._last = {}
        self._total = self._base
        self._decremented = False

    def add(self, agent, component, epoch, kind, value, clock):
        """An update by `agent`, whose updates are ordered among themselves.

        A clock that has reached `epoch` in `component` depends on it; component None: none is known
        to.
        """
        amount = value
        if kind == Update.SET:
            amount = value - self._total
            if not self._follows_all(clock):
                self._base, self._base_clock = value, clock
                self._clear()
                return
        elif kind != Update.ADD:
            amount = 1 if kind == Update.INCREMENT else -1
        self._total += amount
        self._highest.append(max(self._highest[-1] if self._highest else self._base, self._total))
        self._agents.append(agent)
        self._components.append(component)
        self._epochs.append(epoch)
        self._changes.append(amount)
        self._clocks.append(clock)
        self._last[agent] = component, epoch
        self._decremented |= amount < 0
        if len(self._agents) > _LONGEST and not self._simple:
            self._collapse(len(self._agents) - _LONGEST // 2)

    def _follows_all(self, clock):
        """Whether an update with that clock comes after all others: then a SET is a sum."""
        return bool((clock >= self._base_clock).all()) and all(
            component is not None and clock[component] >= epoch
            for component, epoch in self._last.values()
        )

    @property
    def _simple(self):
        return len(self._last) <= 1 and not self._decremented

    def guaranteed(self, value, known, itself):
        """Clock that a wait for `value`, which has been reached, acquires.

        known: the waiter's clock before the wait. itself: the agent of the waiter's own control
        updates.
        """
        if not self._agents or (self._base >= value and not self._decremented):
            return self._base_clock
        if self._simple:
            needed = min(bisect_left(self._highest, value), len(self._clocks) - 1)
            return np.maximum(self._base_clock, self._clocks[needed])
        clock = self._base_clock.copy()
        clocks = np.stack(self._clocks)
        changes = np.array(self._changes, np.int64)
        changes[[i for i in np.flatnonzero(changes < 0) if not self._applied(i, known, itself)]] = 0
        for agent in self._last:
            own = [i for i, other in enumerate(self._agents) if other == agent]
            last = self._last_needed(own, clocks, changes, value)
            if last is not None:
                np.maximum(clock, self._clocks[last], out=clock)
        return clock

    def _applied(self, entry, known, itself):
        component = self._components[entry]
        if component is None:
            return self._agents[entry] == itself
        return known[component] >= self._epochs[entry]

    def _last_needed(self, own, clocks, changes, value):
        """The last update of `own` (one agent's) without which `value` is out of reach."""
        low, high = 0, len(own)
        while low < high:
            middle = (low + high) // 2
            if self._reached_without(own[middle:], clocks, changes) < value:
                low = middle + 1
            else:
                high = middle
        return own[low - 1] if low else None

    def _reached_without(self, missing, clocks, changes):
        first = missing[0]
        component = self._components[first]
        happens = np.ones(len(changes), bool)
        if component is not None:
            happens = clocks[:, component] < self._epochs[first]
        happens[missing] = False
        return self._base + int(changes[happens].sum())

    def _collapse(self, count):
        """The oldest updates count as certain from now on, to bound the work."""
        for clock in self._clocks[:count]:
            self._base_clock = np.maximum(self._base_clock, clock)
        self._base += sum(self._changes[:count])
        for column in (
            self._agents,
            self._components,
            self._epochs,
            self._changes,
            self._clocks,
            self._highest,
        ):
            del column[:count]
        self._last = {agent: self._last[agent] for agent in dict.fromkeys(self._agents)}
