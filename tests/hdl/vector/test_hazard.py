# amaranth: UnusedElaboratable=no
"""The hazard tracker against a list of extents."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hdl.lib.hazard import Extent, HazardTracker

CYCLES = 600


def overlaps(a, b):
    return a["space"] and a["space"] == b["space"] and a["low"] < b["high"] and b["low"] < a["high"]


def extent(rng):
    low = int(rng.integers(0, 12))
    return {"space": int(rng.integers(0, 3)), "low": low, "high": low + int(rng.integers(1, 6))}


@pytest.mark.parametrize("depth", [2, 4])
def test_tracks_what_is_in_flight(depth):
    dut = HazardTracker(depth=depth, sources=3)
    rng = np.random.default_rng(depth)
    seen = {"hit": 0, "miss": 0, "full": 0, "empty": 0}

    async def bench(ctx):
        flying = []
        for _ in range(CYCLES):
            sources = [extent(rng) for _ in range(3)]
            for port, source in zip(dut.source, sources, strict=True):
                ctx.set(port, Extent.const(source))
            push = len(flying) < depth and rng.random() < 0.5
            pop = bool(flying) and rng.random() < 0.4
            added = extent(rng)
            ctx.set(dut.destination, Extent.const(added))
            ctx.set(dut.push, push)
            ctx.set(dut.pop, pop)
            hit = any(overlaps(s, d) for s in sources for d in flying)
            assert ctx.get(dut.hit) == hit
            assert ctx.get(dut.full) == (len(flying) == depth)
            assert ctx.get(dut.empty) == (not flying)
            seen["hit" if hit else "miss"] += 1
            seen["full"] += len(flying) == depth
            seen["empty"] += not flying
            await ctx.tick()
            flying = flying[pop:] + [added] * push

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert min(seen.values()) > 10


def test_adjacent_extents_are_apart():
    dut = HazardTracker(depth=2, sources=1)

    async def bench(ctx):
        ctx.set(dut.destination, Extent.const({"space": 1, "low": 16, "high": 20}))
        ctx.set(dut.push, 1)
        await ctx.tick()
        ctx.set(dut.push, 0)
        for low, high, hit in (
            (0, 16, 0),
            (0, 17, 1),
            (19, 20, 1),
            (20, 24, 0),
            (17, 18, 1),
            (0, 99, 1),
        ):
            ctx.set(dut.source[0], Extent.const({"space": 1, "low": low, "high": high}))
            assert ctx.get(dut.hit) == hit, (low, high)
            ctx.set(dut.source[0], Extent.const({"space": 2, "low": low, "high": high}))
            assert ctx.get(dut.hit) == 0

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("arguments", [{"depth": 3}, {"depth": 1}, {"sources": 0}])
def test_impossible_sizes_are_refused(arguments):
    with pytest.raises(ValueError, match="hazard tracker"):
        HazardTracker(**arguments)
