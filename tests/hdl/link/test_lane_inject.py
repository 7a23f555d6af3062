# amaranth: UnusedElaboratable=no
"""Injected errors: how many, how long, where; dropped steps; stuck lanes."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.inject import Inject
from isa.link import LinkConfig

LINK = LinkConfig(beat_bytes=32, lanes=4)
BITS = 256


def simulate(script):
    dut = Inject(LINK)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await script(ctx, dut)

    simulator.add_testbench(bench)
    simulator.run()


async def errors(ctx, dut, steps, rng, stall=0.2):
    """What each step was changed by."""
    result = []
    while len(result) < steps:
        value, step = rng.getrandbits(BITS), rng.random() >= stall
        ctx.set(dut.i, value)
        ctx.set(dut.step, step)
        if step:
            result.append(ctx.get(dut.o) ^ value)
        await ctx.tick()
    return result


@pytest.mark.parametrize(("burst", "length"), [(0, 1), (1, 1), (2, 2), (40, 40), (63, 63)])
def test_bursts(burst, length):
    """At half the rate half the steps; any place; cut at the end of the step."""

    async def script(ctx, dut):
        rng = random.Random(burst)
        assert not any(await errors(ctx, dut, 50, rng)), "none at rate 0"
        ctx.set(dut.rate, 1 << 31)
        ctx.set(dut.burst, burst)
        await errors(ctx, dut, 2, rng)
        seen = await errors(ctx, dut, 500, rng)
        hits = [change for change in seen if change]
        # Binomial: mean 250, deviation 11.
        assert 195 < len(hits) < 305
        places = [(change & -change).bit_length() - 1 for change in hits]
        for change, place in zip(hits, places, strict=True):
            assert change >> place == (1 << min(length, BITS - place)) - 1
        # Eight equal parts of the step: mean 31, deviation 5.
        for part in range(8):
            assert 8 < sum(place // 32 == part for place in places) < 62
        assert len({place % 32 for place in places}) > 24
        ctx.set(dut.rate, 0)
        await errors(ctx, dut, 2, rng)
        assert not any(await errors(ctx, dut, 50, rng))

    simulate(script)


def test_rate_is_a_fraction():
    async def script(ctx, dut):
        rng = random.Random(2)
        ctx.set(dut.rate, (1 << 32) // 50)
        hits = sum(change != 0 for change in await errors(ctx, dut, 3000, rng, stall=0.0))
        # Mean 60, deviation 8.
        assert 25 < hits < 95
        ctx.set(dut.rate, (1 << 32) - 1)
        await errors(ctx, dut, 2, rng)
        assert all(await errors(ctx, dut, 100, rng))

    simulate(script)


def test_drop():
    """So many steps that are taken, however long they stand; a new count replaces the old one."""

    async def script(ctx, dut):
        rng = random.Random(3)
        ctx.set(dut.i, (1 << BITS) - 1)
        for count, first in ((1, None), (7, None), (5, 3), (0, 2)):
            if first is not None:
                ctx.set(dut.drop, 1)
                ctx.set(dut.drop_count, 100)
                await ctx.tick()
                ctx.set(dut.drop, 0)
                ctx.set(dut.step, 1)
                for _ in range(first):
                    assert ctx.get(dut.o) == 0
                    await ctx.tick()
            ctx.set(dut.step, 0)
            ctx.set(dut.drop, 1)
            ctx.set(dut.drop_count, count)
            await ctx.tick()
            ctx.set(dut.drop, 0)
            dropped = 0
            for _ in range(40):
                step = rng.random() < 0.5
                ctx.set(dut.step, step)
                assert ctx.get(dut.o) in (0, (1 << BITS) - 1)
                if step and not ctx.get(dut.o):
                    dropped += 1
                await ctx.tick()
            assert dropped == count
        ctx.set(dut.drop, 1)
        ctx.set(dut.drop_count, 9)
        await ctx.tick()
        ctx.set(dut.drop, 0)
        ctx.set(dut.clear, 1)
        await ctx.tick()
        assert ctx.get(dut.o), "clear ends it"

    simulate(script)


def test_stuck():
    """Bit i zeros, bit 16 + i ones, on lane i alone; ones win."""

    async def script(ctx, dut):
        rng = random.Random(4)
        ctx.set(dut.step, 1)
        for _ in range(100):
            value, zeros, ones = rng.getrandbits(BITS), rng.getrandbits(4), rng.getrandbits(4)
            ctx.set(dut.i, value)
            ctx.set(dut.stuck, zeros | ones << 16)
            got = ctx.get(dut.o)
            for lane in range(4):
                symbol = value >> 64 * lane & (1 << 64) - 1
                if ones >> lane & 1:
                    symbol = (1 << 64) - 1
                elif zeros >> lane & 1:
                    symbol = 0
                assert got >> 64 * lane & (1 << 64) - 1 == symbol
            await ctx.tick()

    simulate(script)
