"""A sequencer with semaphores, and models of everything round it, in Amaranth's simulator."""

import random
from collections import deque
from dataclasses import dataclass, field

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.sim import Simulator

from hdl.lib.issue import Issue
from hdl.sequencer.ports import DmaTrigger, SemaphoreUpdate
from hdl.sequencer.semaphores import Semaphores
from hdl.sequencer.sequencer import Sequencer
from isa.address_map import Cause, State
from isa.encoding import encode_int
from isa.fields import Space
from isa.geometry import INSTRUCTION_BYTES, REGISTERS

_PERIOD = 1e-6


def instruction(name, **fields):
    """The instruction word; `__` in a keyword stands for the dot of a field path."""
    return encode_int(name, {path.replace("__", "."): value for path, value in fields.items()})


def operand(
    slot, *, space=Space.SBUF, dtype=1, partition=0, partitions=1, offset=0, dims=((1, 1),), regs=0
):
    """Fields of an access pattern; dims: (step, count), innermost first."""
    dims = [*dims, *[(0, 1)] * (4 - len(dims))]
    found = {
        "space": space,
        "dtype": dtype,
        "partition": partition,
        "partition_count": partitions,
        "offset": offset,
        "regs": regs,
    }
    for i, (step, count) in enumerate(dims):
        found |= {f"step{i}": step, f"count{i}": count}
    return {f"{slot}__{name}": int(value) for name, value in found.items()}


@dataclass
class World:
    """How the models behave: latencies in cycles as (least, most), stalls as probabilities."""

    seed: int = 0
    fetch_latency: tuple = (1, 1)
    fetch_stall: float = 0.0
    fetch_errors: frozenset = frozenset()
    read_latency: tuple = (2, 2)
    complete_latency: tuple = (2, 2)
    engine_stall: float = 0.0
    bus_latency: tuple = (1, 1)
    bus_errors: frozenset = frozenset()
    bus_memory: dict = field(default_factory=dict)
    trigger_stall: float = 0.0
    update_stall: float = 0.0
    poke: tuple = ()
    """(cycle, semaphore, kind, value) of updates from outside."""


@dataclass
class Result:
    """What a run left behind; times in cycles since start."""

    state: State
    cause: Cause
    pc: int
    retired: int
    wait_semaphore: int
    wait_value: int
    notify_value: int
    notify_count: int
    cycles: int
    gpr: list
    semaphores: dict
    issues: list
    updates: list
    triggers: list
    bus: list
    fetches: list
    events: list
    states: set
    halted: int | None
    """When the state was HALTED first."""


class SequencerBench:
    """Runs programs on `Sequencer(config, index)`; one elaboration serves many runs."""

    def __init__(self, config, index):
        self.config = config
        self.dut = Sequencer(config, index)
        self.semaphores = Semaphores(config, 2, reads=2)
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.semaphores = sems = self.semaphores
        self.gate = Signal()  # The semaphores take the sequencer's updates.
        m.d.comb += [
            sems.read0.index.eq(dut.semaphore_index),
            dut.semaphore_value.eq(sems.read0.value),
        ]
        m.d.comb += [
            sems.update0.p.eq(dut.update.p),
            sems.update0.valid.eq(dut.update.valid & self.gate),
            dut.update.ready.eq(sems.update0.ready & self.gate),
        ]
        self.simulator = Simulator(m)
        self.simulator.add_clock(_PERIOD)
        self.simulator.add_testbench(self._environment, background=True)
        self.simulator.add_testbench(self._main)
        self._used = False

    def run(self, program, *, world=None, limit=20000, **options):
        """Result of one program (a list of words)."""
        return self.run_all([(program, options)], world=world, limit=limit)[0]

    def run_all(self, jobs, *, world=None, limit=20000):
        """Results of (program, options) one after the other without a reset in between.

        options: address, watchdog, length, semaphores (those to read back), clear (pulse `clear`
        afterwards; state and cause that it leaves: `cleared`).
        """
        self.jobs, self.world, self.limit = jobs, world or World(), limit
        self.results = []
        if self._used:
            self.simulator.reset()
        self._used = True
        self.simulator.run()
        return self.results

    async def _main(self, ctx):
        control = self.dut.control
        for program, options in self.jobs:
            base = options.get("address", 0)
            self.memory = {base + INSTRUCTION_BYTES * i: w for i, w in enumerate(program)}
            self._clear_logs()
            ctx.set(control.stream_address, base)
            ctx.set(control.length, options.get("length", len(program)))
            ctx.set(control.watchdog, options.get("watchdog", 0))
            if self.results:  # After a reset they are clear.
                await self._clear_semaphores(ctx)
            ctx.set(control.start, 1)
            await ctx.tick()
            self.start_cycle = self.cycle
            ctx.set(control.start, 0)
            states = set()
            for cycle in range(self.limit):
                # START is ignored while busy.
                ctx.set(control.start, cycle == options.get("restart"))
                await ctx.tick()
                states.add(ctx.get(control.state))
                if not ctx.get(control.busy):
                    break
            else:
                raise AssertionError(
                    f"not finished after {self.limit} cycles: pc "
                    f"{ctx.get(control.pc)}, state {ctx.get(control.state)}"
                )
            cycles = self.cycle - self.start_cycle
            # The last update reaches the semaphores' memory.
            await ctx.tick().repeat(3)
            self.results.append(self._result(ctx, options, cycles, states))
            if options.get("clear"):
                ctx.set(control.clear, 1)
                await ctx.tick()
                ctx.set(control.clear, 0)
                self.cleared = State(ctx.get(control.state)), Cause(ctx.get(control.cause))

    async def _clear_semaphores(self, ctx):
        ctx.set(self.semaphores.clear, 1)
        await ctx.tick()
        ctx.set(self.semaphores.clear, 0)
        await ctx.tick().until(~self.semaphores.clearing)

    def _result(self, ctx, options, cycles, states):
        control = self.dut.control
        names = ("pc", "retired", "wait_semaphore", "wait_value", "notify_value", "notify_count")
        values = {name: ctx.get(getattr(control, name)) for name in names}
        gpr, semaphores = [], {}
        for i in range(REGISTERS):
            ctx.set(control.gpr_index, i)
            gpr.append(ctx.get(control.gpr_value))
        for i in options.get("semaphores", range(8)):
            ctx.set(self.semaphores.read1.index, i)
            semaphores[i] = ctx.get(self.semaphores.read1.value)
        return Result(
            state=State(ctx.get(control.state)),
            cause=Cause(ctx.get(control.cause)),
            **values,
            cycles=cycles,
            gpr=gpr,
            semaphores=semaphores,
            issues=self.issues,
            updates=self.updates,
            triggers=self.triggers,
            bus=self.bus_log,
            fetches=self.fetches,
            events=self.events,
            states={State(s) for s in states},
            halted=self.halted,
        )

    def _clear_logs(self):
        self.issues, self.updates, self.triggers = [], [], []
        self.bus_log, self.fetches, self.events = [], [], []
        self.halted = None

    async def _environment(self, ctx):
        self.cycle = 0
        self.start_cycle = 0
        self.memory = {}
        self._clear_logs()
        rng = random.Random(self.world.seed)
        models = [
            _Fetch(self, rng),
            _Engine(self, rng),
            _Bus(self, rng),
            _Trigger(self, rng),
            _Poke(self),
            _Updates(self, rng),
        ]
        signals = [signal for model in models for signal in model.signals]
        for model in models:
            model.begin(ctx)
        async for _, _, *values in ctx.tick().sample(*signals):
            self.cycle += 1
            self.now = self.cycle - self.start_cycle
            values = iter(values)
            for model in models:
                model.step(ctx, *[next(values) for _ in model.signals])


class _Model:
    def __init__(self, bench, rng):
        self.bench, self.world, self.dut, self.rng = bench, bench.world, bench.dut, rng

    def begin(self, ctx):
        """Outputs of the first cycle."""

    def chance(self, probability):
        return self.rng.random() < probability

    def delay(self, bounds):
        return self.rng.randint(*bounds)


class _Fetch(_Model):
    """AXI memory: bursts in order, random latency, gaps, errors."""

    def __init__(self, bench, rng):
        super().__init__(bench, rng)
        port = self.dut.fetch
        self.ar, self.r = port.ar, port.r
        self.signals = [
            self.ar.valid,
            self.ar.ready,
            self.ar.p.addr,
            self.ar.p.len,
            self.r.valid,
            self.r.ready,
        ]
        self.queue = deque()

    def begin(self, ctx):
        ctx.set(self.ar.ready, 1)

    def step(self, ctx, ar_valid, ar_ready, address, length, r_valid, r_ready):
        bench = self.bench
        if ar_valid and ar_ready:
            assert length == 7 and address % INSTRUCTION_BYTES == 0
            bench.fetches.append((bench.now, address))
            word = bench.memory.get(address)
            error = word is None or address in self.world.fetch_errors
            due = bench.cycle + self.delay(self.world.fetch_latency)
            where = self.rng.randrange(8)
            for beat in range(8):
                value = (word or 0) >> 128 * beat & (1 << 128) - 1
                self.queue.append((due, value, 2 if error and beat == where else 0, beat == 7))
        ctx.set(self.ar.ready, not self.chance(self.world.fetch_stall))
        if r_valid and not r_ready:
            return
        if (
            self.queue
            and self.queue[0][0] <= bench.cycle
            and not self.chance(self.world.fetch_stall)
        ):
            _, value, resp, last = self.queue.popleft()
            ctx.set(self.r.valid, 1)
            ctx.set(self.r.p.data, value)
            ctx.set(self.r.p.resp, resp)
            ctx.set(self.r.p.last, last)
        else:
            ctx.set(self.r.valid, 0)


class _Engine(_Model):
    """Executes in order, several at a time, with random latencies."""

    def __init__(self, bench, rng):
        super().__init__(bench, rng)
        self.port = self.dut.engine
        issue = self.port.issue
        self.signals = [issue.valid, issue.ready, issue.p.as_value()]
        self.reads, self.completes = deque(), deque()
        self.last_read = self.last_complete = 0

    def begin(self, ctx):
        ctx.set(self.port.issue.ready, 1)

    def step(self, ctx, valid, ready, payload):
        bench = self.bench
        if valid and ready:
            bench.issues.append((bench.now, data.Const(Issue.as_shape(), payload)))
            bench.events.append((bench.now, "issue"))
            read = max(self.last_read + 1, bench.cycle + self.delay(self.world.read_latency))
            complete = max(self.last_complete + 1, read + self.delay(self.world.complete_latency))
            self.last_read, self.last_complete = read, complete
            self.reads.append(read)
            self.completes.append(complete)
        ctx.set(self.port.issue.ready, not self.chance(self.world.engine_stall))
        for name, queue in (("read_done", self.reads), ("complete", self.completes)):
            fires = bool(queue) and queue[0] <= bench.cycle
            if fires:
                queue.popleft()
                bench.events.append((bench.now + 1, name))
            ctx.set(getattr(self.port, name), fires)


class _Bus(_Model):
    """Local bus with a memory of 32-bit words."""

    def __init__(self, bench, rng):
        super().__init__(bench, rng)
        self.port = self.dut.bus
        req, resp = self.port.req, self.port.resp
        self.signals = [
            req.valid,
            req.ready,
            req.p.address,
            req.p.write,
            req.p.strb,
            req.p.data,
            resp.valid,
            resp.ready,
        ]
        self.due = None
        self.memory = bench.bus_words = dict(self.world.bus_memory)

    def begin(self, ctx):
        ctx.set(self.port.req.ready, 1)

    def step(self, ctx, valid, ready, address, write, strb, value, resp_valid, resp_ready):
        bench, resp = self.bench, self.port.resp
        if resp_valid and resp_ready:
            ctx.set(resp.valid, 0)
            ctx.set(self.port.req.ready, 1)
        if valid and ready:
            assert address % 16 == 0
            bench.bus_log.append((bench.now, address, write, strb, value))
            words = [self.memory.get(address + 4 * i, 0) for i in range(4)]
            for i in range(4):
                if write and strb >> 4 * i & 15:
                    assert strb >> 4 * i & 15 == 15
                    self.memory[address + 4 * i] = value >> 32 * i & 0xFFFFFFFF
            self.answer = (
                sum(w << 32 * i for i, w in enumerate(words)),
                address in self.world.bus_errors,
            )
            self.due = bench.cycle + self.delay(self.world.bus_latency)
            ctx.set(self.port.req.ready, 0)
        if self.due is not None and self.due <= bench.cycle:
            ctx.set(resp.valid, 1)
            ctx.set(resp.p.data, self.answer[0])
            ctx.set(resp.p.error, self.answer[1])
            self.due = None


class _Trigger(_Model):
    def __init__(self, bench, rng):
        super().__init__(bench, rng)
        self.port = self.dut.trigger
        self.signals = [self.port.valid, self.port.ready, self.port.p.as_value()]

    def begin(self, ctx):
        ctx.set(self.port.ready, 1)

    def step(self, ctx, valid, ready, payload):
        if valid and ready:
            trigger = data.Const(DmaTrigger.as_shape(), payload)
            self.bench.triggers.append(
                (self.bench.now, trigger.engine, trigger.address, trigger.count)
            )
        ctx.set(self.port.ready, not self.chance(self.world.trigger_stall))


class _Poke(_Model):
    """Semaphore updates from outside."""

    def __init__(self, bench):
        super().__init__(bench, None)
        self.port = bench.semaphores.update1
        self.signals = [self.port.ready]
        self.left = deque(self.world.poke)

    def step(self, ctx, ready):
        if self.left and self.left[0][0] <= self.bench.now:
            _, semaphore, kind, value = self.left.popleft()
            ctx.set(self.port.p, {"semaphore": semaphore, "kind": kind, "value": value})
            ctx.set(self.port.valid, 1)
        elif ready:
            ctx.set(self.port.valid, 0)


class _Updates(_Model):
    """Watches the updates of the sequencer, and lets them wait."""

    def __init__(self, bench, rng):
        super().__init__(bench, rng)
        self.port = self.dut.update
        self.signals = [
            self.port.valid,
            self.port.ready,
            self.port.p.as_value(),
            self.dut.control.state,
        ]

    def begin(self, ctx):
        ctx.set(self.bench.gate, 1)

    def step(self, ctx, valid, ready, payload, state):
        bench = self.bench
        if valid and ready:
            update = data.Const(SemaphoreUpdate.as_shape(), payload)
            bench.updates.append((bench.now, update.semaphore, update.kind, update.value))
        if state == State.HALTED and bench.halted is None:
            bench.halted = bench.now
        ctx.set(bench.gate, not self.chance(self.world.update_stall))
