# amaranth: UnusedElaboratable=no
"""StreamFifo: order, both limits, full rate, no combinational path between its sides."""

import random
from collections import deque

import pytest
from amaranth.sim import Simulator

from hdl.lib.fifo import StreamFifo
from hdl.lib.issue import ColumnOperand


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("depth", [2, 4, 16])
@pytest.mark.parametrize(("put", "take"), [(1.0, 1.0), (0.9, 0.4), (0.4, 0.9), (0.5, 0.5)])
def test_random(depth, put, take):
    """Against a queue, every cycle; the limits are met with pushes and pops at the same time."""
    dut, rng = StreamFifo(24, depth=depth), random.Random(depth)
    seen = set()

    async def bench(ctx):
        queue, number, offering = deque(), 0, False
        for cycle in range(400):
            offering = offering or rng.random() < put
            ready = rng.random() < take
            ctx.set(dut.i.valid, offering)
            ctx.set(dut.i.p, number)
            ctx.set(dut.o.ready, ready)
            _, _, i_ready, o_valid, o, level = await ctx.tick().sample(
                dut.i.ready, dut.o.valid, dut.o.p, dut.level)
            assert level == len(queue), f"cycle {cycle}"
            assert i_ready == (len(queue) < depth), f"cycle {cycle}: {len(queue)} held"
            assert o_valid == (len(queue) > 0), f"cycle {cycle}: {len(queue)} held"
            assert not o_valid or o == queue[0], f"cycle {cycle}"
            seen.add((len(queue), bool(offering), ready))
            if o_valid and ready:
                queue.popleft()
            if offering and i_ready:
                queue.append(number)
                number = (number + 0x10001) & 0xFFFFFF
                offering = False

    simulate(dut, bench)
    if put < take:
        assert (0, True, True) in seen
    if put > take:
        assert (depth, True, True) in seen


def test_streams_at_full_rate():
    """Level 1 is enough for one payload a cycle."""
    dut = StreamFifo(8, depth=2)
    got = []

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.o.ready, 1)
        for cycle in range(50):
            ctx.set(dut.i.p, cycle)
            _, _, ready, valid, value = await ctx.tick().sample(dut.i.ready, dut.o.valid, dut.o.p)
            assert ready
            if valid:
                got.append(value)

    simulate(dut, bench)
    assert got == list(range(49))


def test_carries_structures():
    dut = StreamFifo(ColumnOperand, depth=4)

    async def bench(ctx):
        ctx.set(dut.i.p, {"space": 2, "dtype": 1, "partition": 12, "offset": 0xABCDE})
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        assert ctx.get(dut.o.p.offset) == 0xABCDE
        assert ctx.get(dut.o.p.partition) == 12
        assert ctx.get(dut.o.p.space) == 2

    simulate(dut, bench)


@pytest.mark.parametrize("depth", [0, 1, 3, 6])
def test_depth_is_checked(depth):
    with pytest.raises(ValueError, match="power of two"):
        StreamFifo(8, depth=depth)
