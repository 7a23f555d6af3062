"""What is known to have happened before what: vector clocks over the agents of a chip.

A sequencer has two components: R, reads of its instructions that are done, and W, instructions
that are complete. A DMA engine has one for each sequencer: descriptors that this sequencer
triggered, for only their order in the engine's queue is sure. Epochs count the instructions
(descriptors) of a component in a run, from 1. An access has happened before an agent's next step
when the agent's clock has reached the epoch in the component of the access.

Hardware that this mirrors: an engine gives the results of sequential execution, so a sequencer's
own accesses are always ordered; an update at read releases the reads only, an update at completion
both; fenced control instructions run when everything before them is complete. Descriptors are
ordered after their trigger, and an update of a descriptor says that everything that was queued on
that engine before it is done; otherwise descriptors are concurrent, with each other too.
"""

from bisect import bisect_right
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
        self.size = 2 * _COUNT + dma_engines * _COUNT + 1
        self.fetch = self.size - 1
        self.epoch = [0] * _COUNT
        self._known = np.zeros((_COUNT, self.size), np.int64)
        self._running = set()
        self._logs = {}
        self._queues = [_Queue() for _ in range(dma_engines)]

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
        self._queues[engine].append(int(sequencer), self.epoch[sequencer], clock, count)

    def descriptor(self, engine):
        """(component, epoch, clock) of the accesses of the engine's next descriptor."""
        sequencer, epoch, clock = self._queues[engine].pop()
        return _descriptors_of(engine, sequencer), epoch, clock

    def release_descriptor(self, engine, semaphore, kind, value):
        """The update of the descriptor that `descriptor` returned last."""
        queue = self._queues[engine]
        sequencer, epoch, clock = queue.last
        clock = clock.copy()
        component = _descriptors_of(engine, sequencer)
        for other in range(_COUNT):
            earlier = queue.before(other, clock[writes_of(other)])
            clock[_descriptors_of(engine, other)] = max(
                earlier, clock[_descriptors_of(engine, other)]
            )
        clock[component] = epoch
        agent = ("dma", engine, sequencer)
        self._log(semaphore).add(agent, component, epoch, kind, value, clock)

    def least(self):
        """Clock that every future access has reached."""
        clocks = [self.clock(sequencer) for sequencer in self._running]
        clocks += [clock for queue in self._queues for clock in queue.clocks()]
        if not clocks:
            return np.full(self.size, ALWAYS)
        return np.minimum.reduce(clocks)

    def _log(self, semaphore):
        if semaphore not in self._logs:
            self._logs[semaphore] = SemaphoreLog(self.size)
        return self._logs[semaphore]


def _descriptors_of(engine, sequencer):
    return 2 * _COUNT + engine * _COUNT + sequencer


class _Queue:
    """Triggers of one DMA engine."""

    def __init__(self):
        self._waiting = deque()
        self._triggers = [[] for _ in range(_COUNT)]
        self._counts = [[] for _ in range(_COUNT)]
        self._done = [0] * _COUNT
        self.last = None

    def append(self, sequencer, epoch, clock, count):
        """A trigger at instruction `epoch` of the sequencer."""
        earlier = self._counts[sequencer][-1] if self._counts[sequencer] else 0
        self._triggers[sequencer].append(epoch)
        self._counts[sequencer].append(earlier + count)
        self._waiting.append([sequencer, clock, count])

    def pop(self):
        """(sequencer, number among its descriptors, clock of the trigger) of the next one."""
        head = self._waiting[0]
        head[2] -= 1
        if head[2] == 0:
            self._waiting.popleft()
        sequencer, clock, _ = head
        self._done[sequencer] += 1
        self.last = sequencer, self._done[sequencer], clock
        return self.last

    def before(self, sequencer, epoch):
        """Descriptors that the sequencer's instructions up to `epoch` have queued."""
        place = bisect_right(self._triggers[sequencer], epoch)
        return self._counts[sequencer][place - 1] if place else 0

    def clocks(self):
        """Clocks of the triggers that are waiting."""
        return [clock for _, clock, _ in self._waiting]
