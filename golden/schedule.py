"""The order in which the model lets the agents of a chip run.

Any order is right: a program without races gives one result in all of them. The default order
passes waits as late as possible, so that the checker sees every update that could have satisfied a
wait.
"""

import numpy as np

from golden.hazard import Origin
from golden.sequencer import Next

_QUANTUM = 1000
_RUNS = (Next.FREE, Next.READY)


class Runaway(RuntimeError):
    """More instructions than allowed: an endless loop, or `max_instructions` is too small."""


class Budget:
    """Counts instructions; Runaway, with the places where the sequencers are, when there are too
    many.
    """

    def __init__(self, limit, sequencers):
        self._limit = limit
        self._sequencers = sequencers
        self._steps = 0
        self.instructions = 0

    def spend(self):
        """One more instruction."""
        self.instructions += 1
        self.spend_descriptor()

    def spend_descriptor(self):
        """One more descriptor: against the limit too."""
        self._steps += 1
        if self._steps > self._limit:
            places = ", ".join(f"{s.name} at {s.pc}" for s in self._sequencers if s.active)
            raise Runaway(f"more than {self._limit} instructions and descriptors; {places}")


def run(chips, budget, seed=None):
    """Runs the chips, which were started, to the end: in the standard order or a random one.

    Sequencers that wait when nobody can run end with WAIT_TIMEOUT.
    """
    sequencers = [s for chip in chips for s in chip.sequencers if s.active]
    engines = [engine for chip in chips for engine in chip.dma]
    if seed is None:
        run_late(sequencers, engines, _step_dma, budget)
    else:
        run_random(sequencers, engines, _step_dma, budget, seed)
    for sequencer in sequencers:
        if sequencer.active:
            sequencer.time_out()


def _step_dma(engine):
    engine.step(lambda address: Origin(engine.name, address))


def run_late(sequencers, engines, step_dma, budget):
    """Runs until all have stopped or all wait: DMA first, then whoever need not wait, then one
    wait.
    """
    first = 0
    while True:
        busy = _drain(engines, step_dma, budget)
        spinning = False
        for sequencer in sequencers:
            for _ in range(_QUANTUM):
                if sequencer.peek() != Next.FREE:
                    break
                sequencer.step()
                budget.spend()
                busy = True
            else:
                spinning = True
        if busy and not spinning:
            continue
        ready = [s for s in sequencers if s.peek() == Next.READY]
        if ready:
            chosen = min(ready, key=lambda s: (s.rank - first) % len(sequencers))
            first = chosen.rank + 1
            chosen.step()
            budget.spend()
        elif not spinning:
            return


def run_random(sequencers, engines, step_dma, budget, seed):
    """As `run_late`, in a random order."""
    random = np.random.default_rng(seed)
    while True:
        agents = [s for s in sequencers if s.peek() in _RUNS]
        agents += [e for e in engines if e.queue]
        if not agents:
            return
        chosen = agents[random.integers(len(agents))]
        for _ in range(random.geometric(0.3)):
            if chosen in engines:
                if not chosen.queue:
                    break
                step_dma(chosen)
                budget.spend_descriptor()
            else:
                if chosen.peek() not in _RUNS:
                    break
                chosen.step()
                budget.spend()


def _drain(engines, step_dma, budget):
    busy = False
    while any(engine.queue for engine in engines):
        for engine in engines:
            if engine.queue:
                step_dma(engine)
                budget.spend_descriptor()
                busy = True
    return busy
