# amaranth: UnusedElaboratable=no
"""GranuleQueue against queues in Python: any counts at any pointer, all queues at once, limits."""

import random
from collections import deque

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from amaranth.sim import Simulator

from hdl.link.granule_queue import GranuleQueue
from verif.icarus import assert_same

SIZES = {1: (8, 2, 4, 2), 2: (4, 16, 8, 4), 4: (16, 8, 32, 8, 16)}


@pytest.mark.smoke
@pytest.mark.parametrize("banks", [1, 2, 4])
@pytest.mark.parametrize("width", [128, 130])
def test_random(banks, width):
    sizes, rng = SIZES[banks], random.Random(banks * width)
    dut = GranuleQueue(sizes, banks, width)
    met = set()

    async def bench(ctx):
        queues, number = [deque() for _ in sizes], 0
        for cycle in range(2500):
            fill = 0.9 if cycle // 200 % 2 else 0.3
            vc, count = rng.randrange(len(sizes)), rng.randint(1, banks)
            vc = vc if cycle % 400 > 200 else cycle // 400 % len(sizes)
            write = rng.random() < fill and len(queues[vc]) + count <= sizes[vc]
            granules = [rng.getrandbits(width) for _ in range(banks)]
            ctx.set(dut.w_en, write)
            ctx.set(dut.w_vc, vc)
            ctx.set(dut.w_granules, count)
            ctx.set(dut.w_data, sum(g << width * i for i, g in enumerate(granules)))
            r_vc = rng.randrange(len(sizes))
            queue = queues[r_vc]
            taken = rng.randint(0, min(banks, len(queue))) if rng.random() < 0.7 else 0
            clear = rng.random() < 0.003
            ctx.set(dut.clear, clear)
            ctx.set(dut.r_vc, r_vc)
            ctx.set(dut.r_count, taken)
            data = ctx.get(dut.r_data)
            for i in range(min(banks, len(queue))):
                assert data >> width * i & (1 << width) - 1 == queue[i], f"cycle {cycle}, {i}"
            for i, held in enumerate(queues):
                assert ctx.get(dut.level(i)) == len(held), f"cycle {cycle}, queue {i}"
                met.add((i, len(held) == 0, len(held) == sizes[i]))
            await ctx.tick()
            if write:
                queues[vc].extend(granules[:count])
                number += count
            for _ in range(taken):
                queue.popleft()
            if clear:
                for held in queues:
                    held.clear()
        assert number > 8 * max(sizes)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    for i in range(len(sizes)):
        assert {(i, True, False), (i, False, True)} <= met


class Around(wiring.Component):
    """The queue below a top, as in a link: its banks are tiles."""

    def __init__(self, queue):
        self.queue = queue
        super().__init__(queue.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = self.queue
        for name, member in self.signature.members.items():
            mine, inner = getattr(self, name), getattr(self.queue, name)
            m.d.comb += mine.eq(inner) if member.flow == Out else inner.eq(mine)
        return m


@pytest.mark.icarus
@pytest.mark.parametrize("banks", [1, 2, 4])
def test_emitted(banks, tmp_path):
    rng, sizes = random.Random(banks), SIZES[banks]
    stimuli = []
    for _ in range(150):
        stimuli.append(
            {
                "clear": int(rng.random() < 0.02),
                "w_en": rng.getrandbits(1),
                "w_vc": rng.randrange(len(sizes)),
                "w_granules": rng.randint(1, banks),
                "w_data": rng.getrandbits(128 * banks),
                "r_vc": rng.randrange(len(sizes)),
                "r_count": rng.randint(0, banks),
            }
        )
    known = assert_same(lambda: Around(GranuleQueue(sizes, banks)), stimuli, tmp_path)
    assert known > 150 * 128 * banks


@pytest.mark.parametrize(
    ("sizes", "banks"), [((8, 6), 1), ((8, 4), 4), ((8,), 1), ((8, 8), 3), ((8, 0), 1)]
)
def test_parameters_are_checked(sizes, banks):
    with pytest.raises(ValueError, match="queue"):
        GranuleQueue(sizes, banks)
