"""What is known to have happened before what: vector clocks over the agents of a chip.

A sequencer has two components: R, reads of its instructions that are done, and W, instructions that
are complete. A DMA engine has one, its descriptors. Epochs count the instructions (descriptors)
of an agent in a run, from 1. An access has happened before an agent's next step when the agent's
clock has reached the epoch in the component of the access.

Hardware that this mirrors: an engine gives the results of sequential execution, so a sequencer's
own accesses are always ordered; an update at read releases the reads only, an update at completion
both; fenced control instructions run when everything before them is complete. Descriptors are
ordered after their trigger, and an update of a descriptor says that everything up to it on that
engine is done; otherwise descriptors are concurrent, with each other too.
"""

from collections import deque

import numpy as np

from golden.semaphore_log import SemaphoreLog
from isa.address_map import SEQUENCERS

ALWAYS = np.iinfo(np.int64).max
_COUNT = len(SEQUENCERS)


def reads_of(sequencer):
    """Clock component of the reads of a sequencer's instructions."""
    return 2 * sequencer


def writes_of(sequencer):
    """Clock component of the writes of a sequencer's instructions."""
    return 2 * sequencer + 1


class HappensBefore:
    """Clocks of one run. The last component belongs to instruction fetch and is never reached."""

    def __init__(self, dma_engines):
        self.size = 2 * _COUNT + dma_engines + 1
        self.fetch = self.size - 1
        self.epoch = [0] * _COUNT
        self._known = np.zeros((_COUNT, self.size), np.int64)
        self._running = set()
        self._logs = {}
        self._queued = [deque() for _ in range(dma_engines)]
        self._released = np.zeros((dma_engines, self.size), np.int64)
        self._descriptors = [0] * dma_engines

    def start(self, sequencer):
        """A sequencer takes part in the run."""
        self._running.add(int(sequencer))

    def stop(self, sequencer):
        """A sequencer will access nothing any more."""
        self._running.discard(int(sequencer))

    def step(self, sequencer):
        """The sequencer takes its next instruction."""
        self.epoch[sequencer] += 1

    def fence(self, sequencer):
        """All instructions before the current one are complete."""
        self._complete(sequencer, self.epoch[sequencer] - 1)

    def executed(self, sequencer):
        """The current, fenced instruction is complete too, before the next one begins."""
        self._complete(sequencer, self.epoch[sequencer])

    def _complete(self, sequencer, epoch):
        self._known[sequencer, 2 * sequencer : 2 * sequencer + 2] = epoch

    def clock(self, sequencer):
        """What has happened before the current instruction's accesses, by its own engine too."""
        clock = self._known[sequencer].copy()
        clock[2 * sequencer : 2 * sequencer + 2] = ALWAYS
        return clock

    def acquire(self, sequencer, semaphore, value):
        """The current instruction has waited for semaphore >= value."""
        log = self._logs.get(semaphore)
        if log is not None:
            known = self._known[sequencer]
            acquired = log.guaranteed(value, known, ("control", sequencer))
            np.maximum(known, acquired, out=known)

    def release(self, sequencer, semaphore, kind, value, *, at_read, at_once):
        """The current instruction updates a semaphore.

        at_once: a control instruction whose update does not wait for earlier instructions.
        """
        epoch = self.epoch[sequencer]
        clock = self._known[sequencer].copy()
        if at_once:
            agent, component = ("control", sequencer), None
        elif at_read:
            agent, component = ("read", sequencer), reads_of(sequencer)
            clock[component] = epoch
        else:
            agent, component = ("complete", sequencer), writes_of(sequencer)
            clock[reads_of(sequencer) : component + 1] = epoch
        self._log(semaphore).add(agent, component, epoch, kind, value, clock)

    def trigger(self, sequencer, engine, count):
        """The current, fenced instruction queues `count` descriptors."""
        clock = self._known[sequencer].copy()
        self._queued[engine].append([clock, count])

    def descriptor(self, engine):
        """(component, epoch, clock) of the accesses of the engine's next descriptor."""
        self._descriptors[engine] += 1
        head = self._queued[engine][0]
        clock = head[0]
        head[1] -= 1
        if head[1] == 0:
            self._queued[engine].popleft()
        component = 2 * _COUNT + engine
        released = self._released[engine]
        np.maximum(released, clock, out=released)
        released[component] = self._descriptors[engine]
        return component, self._descriptors[engine], clock

    def release_descriptor(self, engine, semaphore, kind, value):
        """The update of the descriptor that `descriptor` returned last."""
        component = 2 * _COUNT + engine
        clock = self._released[engine].copy()
        self._log(semaphore).add(
            ("dma", engine), component, self._descriptors[engine], kind, value, clock
        )

    def least(self):
        """Clock that every future access has reached."""
        clocks = [self.clock(sequencer) for sequencer in self._running]
        clocks += [clock for queue in self._queued for clock, _ in queue]
        if not clocks:
            return np.full(self.size, ALWAYS)
        return np.minimum.reduce(clocks)

    def _log(self, semaphore):
        if semaphore not in self._logs:
            self._logs[semaphore] = SemaphoreLog(self.size)
        return self._logs[semaphore]
