"""What is known to have happened before what: vector clocks over the agents of joined chips.

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

Writes through a link are posted: complete for their sender when they are queued, performed at the
peer later, in the order in which they were queued. So each component of a chip has a second one for
each of its ports: what has been performed at the peer. A posted write or update is ordered behind
the posted writes that its sender knows to be complete; whoever acquires the update knows that they
have been performed. Reads through a link may overtake posted writes.
"""

from bisect import bisect_right
from collections import deque

import numpy as np

from golden.semaphore_log import SemaphoreLog
from isa.address_map import SEQUENCERS

ALWAYS = np.iinfo(np.int64).max
_COUNT = len(SEQUENCERS)


class HappensBefore:
    """Clocks of one run. shapes: (DMA engines, ports in use) of each chip.

    chips: a ChipOrder for each. The last component belongs to instruction fetch and is never
    reached.
    """

    def __init__(self, shapes):
        sizes = [(2 + engines) * _COUNT * (1 + ports) for engines, ports in shapes]
        self.size = sum(sizes) + 1
        self.fetch = self.size - 1
        self.chips = [
            ChipOrder(self, index, sum(sizes[:index]), engines)
            for index, (engines, _) in enumerate(shapes)
        ]

    def least(self):
        """Clock that every future access has reached."""
        clocks = [clock for chip in self.chips for clock in chip.clocks()]
        if not clocks:
            return np.full(self.size, ALWAYS)
        return np.minimum.reduce(clocks)


class ChipOrder:
    """The agents of one chip: their clocks, its semaphores, the queues of its DMA engines."""

    def __init__(self, joint, chip, base, dma_engines):
        self.fetch = joint.fetch
        self.least = joint.least
        self.epoch = [0] * _COUNT
        self._chip = chip
        self._base = base
        self._span = (2 + dma_engines) * _COUNT
        self._size = joint.size
        self._known = np.zeros((_COUNT, joint.size), np.int64)
        self._running = set()
        self._logs = {}
        self._queues = [_Queue() for _ in range(dma_engines)]

    def reads_of(self, sequencer):
        """Clock component of the reads of a sequencer's instructions."""
        return self._base + 2 * sequencer

    def writes_of(self, sequencer):
        """Clock component of the writes of a sequencer's instructions."""
        return self._base + 2 * sequencer + 1

    def posted_of(self, component, port):
        """Component of what `component` has done at the peer of a port."""
        return component + self._span * (1 + port)

    def posted(self, clock, port):
        """Clock of a write or update that is posted to a port, from the clock of its sender."""
        clock = clock.copy()
        far = self.posted_of(self._base, port)
        performed = clock[far : far + self._span]
        np.maximum(performed, clock[self._base : self._base + self._span], out=performed)
        return clock

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
        reads = self.reads_of(sequencer)
        self._known[sequencer, reads : reads + 2] = epoch

    def clock(self, sequencer):
        """What has happened before the current instruction's accesses, by its own engine too."""
        clock = self._known[sequencer].copy()
        reads = self.reads_of(sequencer)
        clock[reads : reads + 2] = ALWAYS
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
            agent, component = ("read", sequencer), self.reads_of(sequencer)
            clock[component] = epoch
        else:
            agent, component = ("complete", sequencer), self.writes_of(sequencer)
            clock[self.reads_of(sequencer) : component + 1] = epoch
        self._log(semaphore).add(agent, component, epoch, kind, value, clock)

    def trigger(self, sequencer, engine, count):
        """The current, fenced instruction queues `count` descriptors."""
        clock = self._known[sequencer].copy()
        self._queues[engine].append(int(sequencer), self.epoch[sequencer], clock, count)

    def descriptor(self, engine):
        """(component, epoch, clock) of the accesses of the engine's next descriptor."""
        sequencer, epoch, clock = self._queues[engine].pop()
        return self._descriptors_of(engine, sequencer), epoch, clock

    def release_descriptor(self, engine, semaphore, kind, value):
        """The update of the descriptor that `descriptor` returned last."""
        queue = self._queues[engine]
        sequencer, epoch, clock = queue.last
        clock = clock.copy()
        component = self._descriptors_of(engine, sequencer)
        for other in range(_COUNT):
            earlier = queue.before(other, clock[self.writes_of(other)])
            clock[self._descriptors_of(engine, other)] = max(
                earlier, clock[self._descriptors_of(engine, other)]
            )
        clock[component] = epoch
        agent = ("dma", engine, sequencer)
        self._log(semaphore).add(agent, component, epoch, kind, value, clock)

    def release_posted(self, sequencer, port, peer, semaphore, kind, value):
        """The current, fenced instruction writes a semaphore of the peer (its ChipOrder)."""
        epoch, reads = self.epoch[sequencer], self.reads_of(sequencer)
        clock = self._known[sequencer].copy()
        clock[reads : reads + 2] = epoch
        component = self.posted_of(self.writes_of(sequencer), port)
        peer.receive(
            (self._chip, "store", sequencer),
            component,
            epoch,
            semaphore,
            kind,
            value,
            self.posted(clock, port),
        )

    def release_posted_row(self, engine, port, peer, semaphore, kind, value):
        """A row of the descriptor that `descriptor` returned last writes a semaphore of the peer:
        behind the descriptors before it; of the other rows of its own nothing is said.
        """
        sequencer, epoch, clock = self._queues[engine].last
        component = self.posted_of(self._descriptors_of(engine, sequencer), port)
        clock = self.posted(clock, port)
        clock[component] = max(clock[component], epoch - 1)
        agent = (self._chip, "row", engine, sequencer)
        peer.receive(agent, component, epoch, semaphore, kind, value, clock)

    def receive(self, agent, component, epoch, semaphore, kind, value, clock):
        """An update that came through a link."""
        self._log(semaphore).add(agent, component, epoch, kind, value, clock)

    def clocks(self):
        """Clocks that the next accesses of running sequencers and waiting descriptors have."""
        found = [self.clock(sequencer) for sequencer in self._running]
        return found + [clock for queue in self._queues for clock in queue.clocks()]

    def _log(self, semaphore):
        if semaphore not in self._logs:
            self._logs[semaphore] = SemaphoreLog(self._size)
        return self._logs[semaphore]

    def _descriptors_of(self, engine, sequencer):
        return self._base + (2 + engine) * _COUNT + sequencer


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
