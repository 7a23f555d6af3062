# amaranth: UnusedElaboratable=no
"""Scrambler: against the shift register of the specification, bit by bit."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.scrambler import Scrambler, seed_window
from isa.link import lane_seed


def scrambling_bits(seed, count):
    """Output bit = s[22], then s = (s << 1 | s[22] ^ s[17]) & 0x7FFFFF."""
    s, bits = seed, 0
    for i in range(count):
        bits |= (s >> 22 & 1) << i
        s = (s << 1 | (s >> 22 ^ s >> 17) & 1) & 0x7FFFFF
    return bits


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("lane", [0, 5, 15])
def test_bits(width, lane):
    """Stands still without `step`, starts again at `load`."""
    dut, rng = Scrambler(symbol_bits=width), random.Random(width + lane)
    steps = 60
    wanted = scrambling_bits(lane_seed(lane), width * steps)

    async def bench(ctx):
        for _ in range(2):
            ctx.set(dut.load, 1)
            ctx.set(dut.seed, seed_window(lane))
            ctx.set(dut.step, rng.random() < 0.5)
            await ctx.tick()
            ctx.set(dut.load, 0)
            done = 0
            while done < steps:
                assert ctx.get(dut.mask) == wanted >> width * done & ((1 << width) - 1), done
                step = rng.random() < 0.7
                ctx.set(dut.step, step)
                await ctx.tick()
                done += step

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_lanes_differ():
    """No two lanes scramble alike within a beat's time."""
    assert len({scrambling_bits(lane_seed(lane), 64) for lane in range(16)}) == 16
    assert all(seed_window(lane) == scrambling_bits(lane_seed(lane), 23) for lane in range(16))
