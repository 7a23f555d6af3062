# amaranth: UnusedElaboratable=no
"""Retirement: reports in order, never before what they report."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hdl.vector.retire import Retire

COUNT = 150
DEPTH = 4
LIMIT = 5000


@pytest.mark.parametrize("readers", [1, 2])
def test_reports_follow_readers_and_writer(readers):
    dut = Retire(readers=readers, depth=DEPTH)
    rng = np.random.default_rng(readers)
    need = rng.integers(0, 4, (COUNT, readers))
    totals = np.cumsum(need, axis=0)

    async def bench(ctx):
        started = written = reads = completes = 0
        fetched = np.zeros(readers, int)
        for _ in range(LIMIT):
            if completes == COUNT:
                break
            start = started < COUNT and started - completes < DEPTH and rng.random() < 0.4
            ctx.set(dut.start, start)
            ctx.set(dut.need, [int(n) for n in need[min(started, COUNT - 1)]])
            asked = totals[started - 1] if started else np.zeros(readers, int)
            fetch = (fetched < asked) & (rng.random(readers) < 0.5)
            # The writer can end what has been read, and memsets, which nobody reads.
            readable = int((fetched >= totals).all(axis=1).sum())
            write = written < min(started, readable) and rng.random() < 0.5
            ctx.set(dut.fetched, int(sum(int(f) << i for i, f in enumerate(fetch))))
            ctx.set(dut.written, bool(write))
            read_done, complete = ctx.get(dut.read_done), ctx.get(dut.complete)
            if read_done:
                assert reads < started and (fetched >= totals[reads]).all()
            if complete:
                assert completes < reads and completes < written
            await ctx.tick()
            reads += read_done
            completes += complete
            started += start
            fetched += fetch
            written += write
        assert completes == reads == COUNT
        assert (fetched == totals[-1]).all()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


def test_reports_come_at_once():
    """read_done 1 cycle after the last word, complete 1 cycle after the last write."""
    dut = Retire(readers=1)

    async def bench(ctx):
        async def cycle(**inputs):
            for name in ("start", "fetched", "written"):
                ctx.set(getattr(dut, name), inputs.get(name, 0))
            found = ctx.get(dut.read_done), ctx.get(dut.complete)
            await ctx.tick()
            return found

        ctx.set(dut.need, [2])
        assert await cycle(start=1) == (0, 0)
        assert await cycle(fetched=1) == (0, 0)
        assert await cycle() == (0, 0)
        assert await cycle(fetched=1) == (0, 0)
        assert await cycle() == (1, 0)
        assert await cycle(written=1) == (0, 0)
        assert await cycle() == (0, 1)
        assert await cycle() == (0, 0)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
