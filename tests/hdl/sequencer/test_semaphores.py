# amaranth: UnusedElaboratable=no
"""Semaphores: no update is lost, every kind, order of reads, overflow, clearing."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.sequencer.semaphores import Semaphores
from isa.fields import Update
from isa.geometry import SEMAPHORES, preset

TINY = preset("tiny")


def simulate(dut, testbench, *others):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for other in others:
        simulator.add_testbench(other, background=True)
    simulator.add_testbench(testbench)
    simulator.run_until(1e-6 * 6000)


async def send(ctx, port, semaphore, kind, value=0):
    ctx.set(port.p, {"semaphore": semaphore, "kind": kind, "value": value})
    ctx.set(port.valid, 1)
    await ctx.tick().until(port.ready)
    ctx.set(port.valid, 0)


def value_of(ctx, dut, semaphore, port=0):
    read = getattr(dut, f"read{port}")
    ctx.set(read.index, semaphore)
    return ctx.get(read.value)


@pytest.mark.parametrize("updaters", [1, 3, 8])
def test_concurrent_updates_are_all_applied(updaters):
    dut = Semaphores(TINY, updaters)
    totals = {}
    finished = []

    def updater(number):
        async def process(ctx):
            rng = random.Random(number)
            port = getattr(dut, f"update{number}")
            for _ in range(60):
                semaphore = rng.choice([0, 1, 2, 255])
                kind = rng.choice([Update.INCREMENT, Update.DECREMENT, Update.ADD, Update.NONE])
                value = rng.randint(-1000, 1000)
                await send(ctx, port, semaphore, kind, value)
                change = {
                    Update.INCREMENT: 1,
                    Update.DECREMENT: -1,
                    Update.ADD: value,
                    Update.NONE: 0,
                }[kind]
                totals[semaphore] = totals.get(semaphore, 0) + change
                if rng.random() < 0.3:
                    await ctx.tick().repeat(rng.randint(1, 5))
            finished.append(number)

        return process

    async def check(ctx):
        await ctx.tick().until(dut.update0.valid)
        while len(finished) < updaters:
            await ctx.tick()
        await ctx.tick().repeat(3)
        for semaphore, total in totals.items():
            for port in range(6):
                assert value_of(ctx, dut, semaphore, port) == total
        assert not ctx.get(dut.overflow)

    simulate(dut, check, *[updater(i) for i in range(updaters)])
    assert sorted(finished) == list(range(updaters))


def test_one_update_a_cycle_round_robin():
    dut = Semaphores(TINY, 4)
    taken = [0] * 4

    async def bench(ctx):
        ports = [getattr(dut, f"update{i}") for i in range(4)]
        for port in ports:
            ctx.set(port.p, {"semaphore": 9, "kind": Update.INCREMENT})
            ctx.set(port.valid, 1)
        for _ in range(100):
            _, _, *ready = await ctx.tick().sample(*[p.ready for p in ports])
            assert sum(ready) == 1
            taken[ready.index(1)] += 1
        for port in ports:
            ctx.set(port.valid, 0)
        await ctx.tick().repeat(2)
        assert value_of(ctx, dut, 9) == 100

    simulate(dut, bench)
    assert taken == [25] * 4


def test_update_is_visible_in_the_second_cycle_and_set_replaces():
    dut = Semaphores(TINY, 1)

    async def bench(ctx):
        await send(ctx, dut.update0, 3, Update.SET, -7)
        assert value_of(ctx, dut, 3) == 0
        await ctx.tick()
        assert value_of(ctx, dut, 3) == -7
        await send(ctx, dut.update0, 3, Update.ADD, 10)
        await send(ctx, dut.update0, 3, Update.SET, 5)
        await send(ctx, dut.update0, 3, Update.INCREMENT)
        await ctx.tick()
        assert value_of(ctx, dut, 3) == 6
        assert value_of(ctx, dut, 2) == 0

    simulate(dut, bench)


@pytest.mark.parametrize(
    ("start", "kind", "value", "result"),
    [
        (0x7FFFFFFF, Update.INCREMENT, 0, -0x80000000),
        (-0x80000000, Update.DECREMENT, 0, 0x7FFFFFFF),
        (0x7FFFFFFF, Update.ADD, 0x7FFFFFFF, -2),
        (-0x80000000, Update.ADD, -0x80000000, 0),
        (-1, Update.ADD, -0x80000000, 0x7FFFFFFF),
    ],
)
def test_overflow_wraps_and_latches_the_first(start, kind, value, result):
    dut = Semaphores(TINY, 1)

    async def bench(ctx):
        await send(ctx, dut.update0, 200, Update.SET, start)
        await ctx.tick().repeat(2)
        assert not ctx.get(dut.overflow)
        await send(ctx, dut.update0, 200, kind, value)
        await ctx.tick().repeat(2)
        assert value_of(ctx, dut, 200) == result
        assert ctx.get(dut.overflow) and ctx.get(dut.overflow_semaphore) == 200
        await send(ctx, dut.update0, 5, Update.SET, 0x7FFFFFFF)
        await send(ctx, dut.update0, 5, Update.INCREMENT)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.overflow_semaphore) == 200
        ctx.set(dut.clear_overflow, 1)
        await ctx.tick()
        ctx.set(dut.clear_overflow, 0)
        await ctx.tick()
        assert not ctx.get(dut.overflow)
        assert value_of(ctx, dut, 5) == -0x80000000

    simulate(dut, bench)


@pytest.mark.parametrize(
    ("start", "kind", "value"),
    [
        (0x7FFFFFFE, Update.INCREMENT, 0),
        (-0x7FFFFFFF, Update.DECREMENT, 0),
        (0x7FFFFFFF, Update.ADD, -0x80000000),
        (-0x80000000, Update.ADD, 0x7FFFFFFF),
        (0x7FFFFFFF, Update.SET, -0x80000000),
    ],
)
def test_the_whole_signed_range_is_no_overflow(start, kind, value):
    dut = Semaphores(TINY, 1)

    async def bench(ctx):
        await send(ctx, dut.update0, 0, Update.SET, start)
        await send(ctx, dut.update0, 0, kind, value)
        await ctx.tick().repeat(2)
        assert not ctx.get(dut.overflow)

    simulate(dut, bench)


def test_clear_takes_256_cycles_and_holds_updates_off():
    dut = Semaphores(TINY, 1)

    async def bench(ctx):
        for semaphore in (0, 1, 254, 255):
            await send(ctx, dut.update0, semaphore, Update.SET, 0x7FFFFFFF)
        await send(ctx, dut.update0, 255, Update.INCREMENT)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.overflow)
        ctx.set(dut.clear, 1)
        ctx.set(dut.update0.p, {"semaphore": 1, "kind": Update.INCREMENT})
        ctx.set(dut.update0.valid, 1)
        *_, ready = await ctx.tick().sample(dut.update0.ready)
        assert not ready
        ctx.set(dut.clear, 0)
        cycles = 0
        while ctx.get(dut.clearing):
            *_, ready = await ctx.tick().sample(dut.update0.ready)
            assert not ready
            cycles += 1
        assert cycles == SEMAPHORES
        await ctx.tick().until(dut.update0.ready)
        ctx.set(dut.update0.valid, 0)
        await ctx.tick().repeat(2)
        assert [value_of(ctx, dut, s) for s in (0, 1, 254, 255)] == [0, 1, 0, 0]
        assert not ctx.get(dut.overflow)

    simulate(dut, bench)


def test_ports_are_checked():
    with pytest.raises(ValueError, match="0 update and 6 read ports"):
        Semaphores(TINY, 0)
