# amaranth: UnusedElaboratable=no
"""WeightedArbiter and CreditUpdates against the words of docs/link.md."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.credit_updates import CreditUpdates
from hdl.link.weighted_arbiter import WeightedArbiter
from isa.link import VCS

pytestmark = pytest.mark.smoke


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


class PlainArbiter:
    def __init__(self):
        self.current, self.count = 7, 15

    def pick(self, asking, weights):
        weight = max(1, weights[self.current])
        if asking >> self.current & 1 and self.count < weight:
            return self.current
        for step in range(1, VCS + 1):
            if asking >> (self.current + step) % VCS & 1:
                return (self.current + step) % VCS
        return None

    def take(self, vc):
        self.count = self.count + 1 if vc == self.current else 1
        self.current = vc


def test_arbiter():
    """Both picks, each taken or not, the second one behind the first."""
    dut, rng = WeightedArbiter(), random.Random(1)
    kept = 0

    async def bench(ctx):
        nonlocal kept
        plain, weights, mask = PlainArbiter(), [1] * VCS, 255
        for cycle in range(4000):
            if cycle % 97 == 0:
                weights = [rng.choice([0, 1, 2, 5, 15]) for _ in range(VCS)]
                mask = rng.choice([255, 255, rng.randrange(256), 1 << rng.randrange(VCS)])
            sets = [rng.randrange(256) & mask for _ in range(2)]
            takes = [int(rng.random() < 0.7) for _ in range(2)]
            clear = int(rng.random() < 0.01)
            ctx.set(dut.clear, clear)
            ctx.set(dut.weights, sum(w << 4 * vc for vc, w in enumerate(weights)))
            ctx.set(dut.start_set, sets[0])
            ctx.set(dut.announce_set, sets[1])
            ctx.set(dut.start, takes[0])
            ctx.set(dut.announce, takes[1])
            got = [ctx.get(dut.start_pick), ctx.get(dut.announce_pick)]
            for name, asking, taken, pick in zip(
                ("start", "announce"), sets, takes, got, strict=True
            ):
                expected = plain.pick(asking, weights)
                assert pick == (0 if expected is None else 1 << expected), f"{cycle} {name}"
                if taken and expected is not None:
                    kept += expected == plain.current
                    plain.take(expected)
            await ctx.tick()
            if clear:
                plain = PlainArbiter()

    simulate(dut, bench)
    assert kept > 200


def test_credit_updates():
    """a goes round; b is the next VC with news; what has been sent is no news."""
    dut, rng = CreditUpdates(), random.Random(2)
    news = 0

    async def bench(ctx):
        nonlocal news
        limits, sent, turn = [100 + vc for vc in range(VCS)], [None] * VCS, 0
        for cycle in range(2000):
            if rng.random() < (0.1 if cycle % 300 < 150 else 0.9):
                vc = rng.randrange(VCS)
                limits[vc] = (limits[vc] + 1) % 4096
            taken, start = int(rng.random() < 0.6), int(rng.random() < 0.02)
            clear = int(rng.random() < 0.01)
            for vc in range(VCS):
                ctx.set(getattr(dut.limits, f"limit{vc}"), limits[vc])
            ctx.set(dut.taken, taken)
            ctx.set(dut.start, start)
            ctx.set(dut.clear, clear)
            others = [(turn + step) % VCS for step in range(1, VCS)]
            changed = [vc for vc in others if limits[vc] != sent[vc]]
            b = changed[0] if changed else others[0]
            got = tuple(ctx.get(signal) for signal in (dut.a_vc, dut.a, dut.b_vc, dut.b))
            assert got == (turn, limits[turn], b, limits[b]), f"cycle {cycle}"
            await ctx.tick()
            if taken:
                news += b != others[0]
                sent[turn], sent[b] = limits[turn], limits[b]
                turn = (turn + 1) % VCS
            if start:
                turn = 0
            if clear:
                sent, turn = [None] * VCS, 0

    simulate(dut, bench)
    assert news > 100
