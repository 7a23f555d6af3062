"""Places instructions and descriptors so that semaphores order everything that has to be ordered.

Instructions are placed one after the other as if the chip ran them in that order. Before one is
placed, every earlier instruction or descriptor of another agent that touches the same bytes (one of
the two writing) must be known to be done: a wait is added on a semaphore that the other agent has
posted since, and where there is no such post, one is appended to that agent's stream.

Agents: ("R", s) the reads and ("W", s) the completions of sequencer s, ("D", s, e) the descriptors
of DMA engine e that s triggers. Each agent posts on a semaphore of its own, whose value only rises.
"""

from dataclasses import dataclass, replace

from isa.address_map import SEQUENCERS
from isa.encoding import Descriptor
from isa.fields import Update
from isa.geometry import SEMAPHORES
from isa.values import Address
from verif.programs.registers import Registers


@dataclass
class Post:
    """The agent's semaphore reached `value` (it was `previous`) after its step `epoch`."""

    epoch: int
    previous: int
    value: int
    knowledge: dict


class Placer(Registers):
    """Writes into a ProgramBuilder. rng: `random.Random`."""

    def __init__(self, builder, rng):
        super().__init__(builder, rng)
        self.config = builder.config
        self._free = rng.sample(range(SEMAPHORES), SEMAPHORES)
        self._semaphore = {}
        self._totals = {}
        self._posts = {}
        self._epoch = {}
        self._known = {s: {} for s in SEQUENCERS}
        self._released = {}
        self._history = []

    def semaphore(self):
        """A semaphore that nobody uses yet."""
        return self._free.pop()

    def order(self, sequencer, reads, writes):
        """Emits what is needed before `sequencer` (or a descriptor that it triggers) touches these.

        Returns the wait that the next instruction of the sequencer has to carry, or None.
        """
        while True:
            missing = self._missing(sequencer, reads, writes)
            if not missing:
                return None
            agent, epoch = self.rng.choice(sorted(missing.items()))
            wait = self._wait(sequencer, agent, epoch)
            if not self._missing(sequencer, reads, writes) and self.rng.random() < 0.8:
                return wait
            self.stream(sequencer).emit(self.rng.choice(("sem_wait", "nop")), wait=wait)
            self._step(sequencer)

    def _missing(self, sequencer, reads, writes):
        """{agent: epoch} that the sequencer must know to be done and does not."""
        known, needed = self._known[sequencer], {}
        for agent, epoch, box, is_write in self._history:
            if agent[0] != "D" and agent[1] == sequencer:
                continue
            if known.get(agent, 0) >= epoch or needed.get(agent, 0) >= epoch:
                continue
            if any(box.meets(b) for b in writes) or (is_write and any(box.meets(b) for b in reads)):
                needed[agent] = epoch
        return needed

    def _wait(self, sequencer, agent, epoch):
        """A wait after which `agent` has done its step `epoch`; makes the agent post if needed."""
        posts = [p for p in self._posts.get(agent, []) if p.epoch >= epoch]
        if not posts:
            self._make_post(agent)
            posts = self._posts[agent][-1:]
        post = posts[0] if self.rng.random() < 0.7 else self.rng.choice(posts)
        known = self._known[sequencer]
        for other, other_epoch in post.knowledge.items():
            known[other] = max(known.get(other, 0), other_epoch)
        value = self.rng.choice((post.value, self.rng.randint(post.previous + 1, post.value)))
        if self.rng.random() < 0.15:
            value = self.held_value(sequencer, value)
        return self._semaphore[agent], value

    def _make_post(self, agent):
        kind, index = agent[:2]
        if kind == "D":
            self._trigger(index, agent[2], [None])
            return
        name = "nop" if kind == "R" else self.rng.choice(("nop", "sem_update", "notify"))
        extra = {"imm": self.rng.getrandbits(32)} if name == "notify" else {}
        self._step(index)
        update = self.post(agent, self._epoch[index], self._knowledge(agent))
        self.stream(index).emit(name, update=update, at_read=kind == "R", **extra)

    def _step(self, sequencer):
        self._epoch[sequencer] = self._epoch.get(sequencer, 0) + 1
        return self._epoch[sequencer]

    def _knowledge(self, agent):
        kind, sequencer = agent
        found = dict(self._known[sequencer])
        for own in ("R", "W") if kind == "W" else ("R",):
            found[own, sequencer] = self._epoch[sequencer]
        return found

    def post(self, agent, epoch, knowledge, times=1):
        """Counts an update of the agent's semaphore, `times` in a row, and returns it."""
        rng = self.rng
        if agent not in self._semaphore:
            self._semaphore[agent] = self.semaphore()
        total = self._totals.get(agent, 0)
        amount = rng.choice((1, 1, rng.randint(2, 9)))
        reached = total + amount * times
        self._totals[agent] = reached
        before = total + amount * (times - 1)
        self._posts.setdefault(agent, []).append(Post(epoch, before, reached, knowledge))
        if amount == 1 and rng.random() < 0.7:
            return self._semaphore[agent], "increment"
        if times == 1 and rng.random() < 0.3:
            return self._semaphore[agent], "set", reached
        return self._semaphore[agent], "add", amount

    def place(self, sequencer, spec):
        """Emits an instruction after whatever it depends on."""
        arguments = self.substitute(sequencer, spec.arguments)
        wait = self.order(sequencer, spec.reads, spec.writes)
        self.emit(sequencer, spec, arguments, wait=wait)
        self.release(sequencer)

    def emit(self, sequencer, spec, arguments, *, wait=None, times=1, update=None, kinds="WR"):
        """Emits an instruction that is ordered already, perhaps with an update.

        times: how often it runs, 0 when it may be skipped. update: given, or chosen when None.
        kinds: agents of the sequencer that may post. Returns the one that does, or "".
        """
        epoch = self._step(sequencer)
        at_read = False
        posted = ""
        if update is None and times and kinds and self.rng.random() < 0.4:
            posted = self.rng.choice(kinds)
            agent = (posted, sequencer)
            update = self.post(agent, epoch, self._knowledge(agent), times)
            at_read = agent[0] == "R"
            if len(update) == 3 and times == 1 and self.rng.random() < 0.2:
                update = (*update[:2], self.held_value(sequencer, update[2]))
        elif update is not None:
            *update, at_read = update
            update = tuple(update)
        self.stream(sequencer).emit(
            spec.name, wait=wait, update=update, at_read=at_read, **arguments
        )
        self.record(sequencer, spec, epoch)
        return posted

    def record(self, sequencer, spec, epoch=None):
        """Remembers the accesses of an instruction."""
        epoch = self._epoch[sequencer] if epoch is None else epoch
        self._history += [(("R", sequencer), epoch, box, False) for box in spec.reads]
        self._history += [(("W", sequencer), epoch, box, True) for box in spec.writes]

    def copy(self, sequencer, engine, copies):
        """One dma_trigger for `Copy`s that do not clash with each other."""
        reads = [box for c in copies for box in c.reads]
        writes = [box for c in copies for box in c.writes]
        wait = self.order(sequencer, reads, writes)
        self._trigger(sequencer, engine, copies, wait)
        self.release(sequencer)

    def _trigger(self, sequencer, engine, copies, wait=None):
        """Triggers descriptors; None stands for one without work, which only posts."""
        agent = ("D", sequencer, engine)
        self._step(sequencer)
        knowledge = {**self._known[sequencer], **self._knowledge(("W", sequencer))}
        released = self._released.setdefault(agent, {})
        for other, epoch in knowledge.items():
            released[other] = max(released.get(other, 0), epoch)
        found = []
        for copy in copies:
            epoch = self._epoch[agent] = self._epoch.get(agent, 0) + 1
            released[agent] = epoch
            descriptor = self._no_work() if copy is None else copy.descriptor
            if copy is None or self.rng.random() < 0.5:
                descriptor = self._with_update(descriptor, self.post(agent, epoch, dict(released)))
            if copy is not None:
                self._history += [(agent, epoch, box, False) for box in copy.reads]
                self._history += [(agent, epoch, box, True) for box in copy.writes]
            found.append(descriptor)
        block = self.builder.descriptors(found)
        self.emit_trigger(sequencer, engine, block.address, len(found), wait)

    def emit_trigger(self, sequencer, engine, address, count, wait):
        """dma_trigger with address and count from registers now and then."""
        arguments = self.substitute(sequencer, {"address": Address(address)})
        how = {"imm": count}
        if self.rng.random() < 0.2:
            how = {"rb": self.held_value(sequencer, count)}
        self.stream(sequencer).dma_trigger(dma_engine=engine, wait=wait, **arguments, **how)

    def _no_work(self):
        rng = self.rng
        counts = [rng.choice((0, 1, 3)) for _ in range(3)]
        row_bytes = 0 if all(counts) else rng.choice((0, 5, 1 << 20))
        return Descriptor(
            src_address=rng.getrandbits(64),
            dst_address=rng.getrandbits(64),
            row_bytes=row_bytes,
            count=tuple(counts),
        )

    @staticmethod
    def _with_update(descriptor, update):
        return replace(
            descriptor,
            update_kind=Update[update[1].upper()],
            update_semaphore=update[0],
            update_value=update[2] if len(update) == 3 else 0,
        )

    def repeated_descriptor(self, sequencer, engine, copy, update, times):
        """Places a descriptor that the sequencer is going to trigger `times` times, each time
        ordered by somebody else; returns its address. update: (semaphore, kind[, value]).
        """
        agent = ("D", sequencer, engine)
        epoch = self._epoch[agent] = self._epoch.get(agent, 0) + times
        released = self._released.setdefault(agent, {})
        for other, known in self._known[sequencer].items():
            released[other] = max(released.get(other, 0), known)
        released[agent] = epoch
        self._history += [(agent, epoch, box, False) for box in copy.reads]
        self._history += [(agent, epoch, box, True) for box in copy.writes]
        return self.builder.descriptors([self._with_update(copy.descriptor, update)]).address
