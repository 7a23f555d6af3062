"""Loops, branches and pipelines between two agents that hand a buffer back and forth."""

from dataclasses import replace

from isa.address_map import SEQUENCERS, Sequencer
from isa.dtypes import DType
from isa.fields import Condition, RegOp
from isa.geometry import LOOP_DEPTH
from isa.pattern import AccessPattern
from verif.programs.spec import Box, Spec

ENGINES = (Sequencer.TENSOR, Sequencer.VECTOR, Sequencer.SCALAR)
_LONGEST = 12


class Flow:
    """Emits control structures through a Placer; bodies come from Datapath and Transfers."""

    def __init__(self, placer, datapath, transfers, areas):
        self._placer = placer
        self._rng = placer.rng
        self._datapath = datapath
        self._transfers = transfers
        self._areas = areas
        self._labels = 0

    def loop(self, sequencer):
        """Instructions of one sequencer in hardware loops (nested, some never run) or by branch."""
        placer, rng, stream = self._placer, self._rng, self._placer.stream(sequencer)
        counts = [rng.randint(1, 3) for _ in range(rng.choice((1, 1, 2, LOOP_DEPTH)))]
        times = 1
        for count in counts:
            times *= count
        if times > _LONGEST:
            counts, times = counts[:1], counts[0]
        specs = self._body(sequencer)
        loads = any(spec.name == "load_stationary" for spec in specs)
        hardware = rng.random() < 0.7
        if hardware and not loads and rng.random() < 0.1:
            counts[rng.randrange(len(counts))] = rng.choice((0, -1, -(1 << 31)))
            times = 0
        bodies = [self._slide(sequencer, spec, times) for spec in specs]
        reads = [box for spec, _, _ in bodies for box in spec.reads]
        writes = [box for spec, _, _ in bodies for box in spec.writes]
        wait = placer.order(sequencer, reads, writes)
        if not hardware:
            counts = [times]
        ends = [
            self._open(sequencer, count, hardware, wait if i == 0 else None)
            for i, count in enumerate(counts)
        ]
        kinds = "WR"  # one instruction of a body posts for an agent: its last pass is the last post
        for spec, arguments, slide in bodies:
            posted = placer.emit(sequencer, spec, arguments, times=times, kinds=kinds)
            kinds = kinds.replace(posted, "") if posted else kinds
            if slide is not None:
                stream.reg_alu(rd=slide[0], ra=slide[0], alu_op=RegOp.ADD, imm=slide[1])
        for end in reversed(ends):
            end()
        placer.release(sequencer)

    def skip(self, sequencer):
        """An instruction behind a branch, taken or not."""
        placer, rng, stream = self._placer, self._rng, self._placer.stream(sequencer)
        spec = self._datapath.single(sequencer) if sequencer in ENGINES else None
        if spec is None:
            spec = self._transfers.access(lambda: placer.register(sequencer))
        arguments = placer.substitute(sequencer, spec.arguments)
        wait = placer.order(sequencer, spec.reads, spec.writes)
        value = rng.choice((rng.getrandbits(32), 0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))
        register = placer.held_value(sequencer, value)
        other = rng.choice((value, rng.getrandbits(32), 0, 0x80000000))
        second = {"imm": other}
        if rng.random() < 0.4:
            second = {"rb": placer.held_value(sequencer, other)}
        label = self._label("skip")
        condition = rng.choice(tuple(Condition))
        stream.branch(cond=condition, ra=register, target=label, wait=wait, **second)
        placer.emit(sequencer, spec, arguments, times=0)
        stream.label(label)
        stream.nop()
        placer.release(sequencer)

    def pipeline(self):
        """A producer and a consumer that pass a buffer through a full and an empty semaphore."""
        for _ in range(40):
            first, second = self._rng.sample(SEQUENCERS, 2)
            made, used = self._side(first), self._side(second)
            apart = not any(a.meets(b) for a in used.writes for b in made.reads + made.writes)
            if apart and any(a.meets(b) for a in made.writes for b in used.reads):
                break
        else:
            return
        placer, rng = self._placer, self._rng
        full, empty, times = placer.semaphore(), placer.semaphore(), rng.randint(2, 4)
        credits = rng.random() < 0.4 and isinstance(made, Spec)
        for sequencer, side in ((first, made), (second, used)):
            wait = placer.order(sequencer, side.reads, side.writes)
            placer.stream(sequencer).nop(wait=wait)
            placer.release(sequencer)
        if credits:
            placer.stream(first).sem_update(update=(empty, "add", 1))
        at_read = isinstance(used, Spec) and rng.random() < 0.7
        self._run(first, made, times, (empty, None if credits else 0), (full, "increment", False))
        self._run(second, used, times, (full, 1), (empty, "increment", at_read))

    def _side(self, sequencer):
        """A Spec for an engine, or a Copy that the sequencer triggers."""
        spec = None
        if sequencer in ENGINES and self._rng.random() < 0.8:
            spec = self._datapath.single(sequencer)
        return spec or self._transfers.copy()

    def _run(self, sequencer, side, times, wait, update):
        """One side of a pipeline. wait: (semaphore, first value, rising; None: take credits)."""
        placer, rng, stream = self._placer, self._rng, self._placer.stream(sequencer)
        semaphore, first = wait
        engine = rng.randrange(placer.config.dma_engines)
        if isinstance(side, Spec):
            arguments = placer.substitute(sequencer, side.arguments)
        else:
            address = placer.repeated_descriptor(sequencer, engine, side, update[:2], times)
        level = 1 if first is None else placer.held_value(sequencer, first)
        end = self._open(sequencer, times, rng.random() < 0.7, None)
        if isinstance(side, Spec):
            placer.emit(
                sequencer, side, arguments, wait=(semaphore, level), times=times, update=update
            )
        else:
            placer.emit_trigger(sequencer, engine, address, 1, (semaphore, level))
        if first is None:
            stream.sem_update(update=(semaphore, "decrement"))
        else:
            stream.reg_alu(rd=level, ra=level, alu_op=RegOp.ADD, imm=1)
        end()
        placer.release(sequencer)

    def _body(self, sequencer):
        placer = self._placer
        if sequencer not in ENGINES:
            found = []
            for _ in range(self._rng.randint(0, 2)):
                found.append(self._transfers.access(lambda: placer.hold(sequencer)))
            return found
        specs = self._datapath.specs(sequencer)
        if sequencer != Sequencer.TENSOR:
            specs += self._datapath.specs(sequencer)
        return specs

    def _slide(self, sequencer, spec, times):
        """(Spec, arguments, (register, bytes) or None): a source may move on in each pass."""
        placer, rng = self._placer, self._rng
        pattern = spec.arguments.get("src0")
        if times < 2 or not isinstance(pattern, AccessPattern) or rng.random() < 0.4:
            return spec, placer.substitute(sequencer, spec.arguments), None
        # A pair of bytes lies like an element of two.
        pairs = spec.arguments.get("double_row")
        lying = pattern.with_(dtype=DType.UINT16) if pairs else pattern
        low, high = lying.bounding_box()
        area = next(
            a for a in self._areas if a.space == pattern.space and a.low <= low and high <= a.high
        )
        size = lying.dtype.itemsize
        step = (area.high - high) // (times - 1) // size * size
        step = min(step, rng.choice((size, 4 * size, step)))
        box = Box(int(pattern.space), *pattern.partitions, low, high + step * (times - 1))
        if step == 0 or any(box.meets(target) for target in spec.writes):
            return spec, placer.substitute(sequencer, spec.arguments), None
        moved = replace(spec, reads=[*spec.reads, box])
        register = placer.held_value(sequencer, pattern.offset)
        arguments = placer.substitute(sequencer, spec.arguments)
        arguments["src0"] = replace(arguments["src0"], offset=register)
        return moved, arguments, (register, step)

    def _open(self, sequencer, count, hardware, wait):
        """Begins a loop and returns the function that ends it."""
        placer, stream = self._placer, self._placer.stream(sequencer)
        if hardware:
            second = {"imm": count}
            if self._rng.random() < 0.4:
                second = {"rb": placer.held_value(sequencer, count)}
            label = self._label("end")
            stream.emit("loop", target=label, wait=wait, **second)
            return lambda: stream.label(label)
        counter = placer.held_value(sequencer, count)
        if wait is not None:
            stream.sem_wait(wait=wait)
        label = stream.label(self._label("again"))

        def end():
            stream.reg_alu(rd=counter, ra=counter, alu_op=RegOp.SUBTRACT, imm=1)
            stream.branch(cond=Condition.NE, ra=counter, imm=0, target=label)

        return end

    def _label(self, name):
        self._labels += 1
        return f"{name}{self._labels}"
