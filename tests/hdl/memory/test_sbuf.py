# amaranth: UnusedElaboratable=no
"""Sbuf: random traffic on several ports against a cycle-exact model, rates, fairness."""

import numpy as np
import pytest

from hdl.memory.sbuf import Sbuf
from isa.geometry import preset
from verif.banked_memory_bench import BankedMemoryBench, simulate

CONFIG = preset("tiny")
LAST = CONFIG.sbuf_words - 1


@pytest.mark.parametrize(("load", "deny", "words"), [
    (0.7, 0.0, None),
    (1.0, 0.0, (0, 1, 2, 3)),
    (1.0, 0.5, (0, 4, LAST)),
    (0.4, 0.3, (0, 1, 4, 5, LAST - 1, LAST)),
])
def test_random_traffic(load, deny, words):
    dut = Sbuf(CONFIG, 3, 2, 2)
    bench = BankedMemoryBench(dut, np.random.default_rng(8), load=load, deny=deny, words=words)
    bench.run(300)
    assert min(bench.taken.values()) > 25
    if not deny:
        # Requests may move to another bank's queue only by being served: at most all others first.
        assert bench.longest_wait <= 3 + 2 - 1


@pytest.mark.parametrize(("banks", "partitions"), [(1, 4), (2, 8), (16, 4), (4, 32)])
def test_other_geometries(banks, partitions):
    """One bank, many banks, two groups of partitions; the number of words is no power of two."""
    config = CONFIG.with_(array=partitions, sbuf_banks=banks, sbuf_bytes=3072)
    dut = Sbuf(config, 2, 1, 1)
    bench = BankedMemoryBench(dut, np.random.default_rng(9), load=0.8)
    bench.run(120)
    assert min(bench.taken.values()) > 10


def test_all_ports_stream_from_different_banks():
    """3 readers and 2 writers, one word each every cycle, a bank apart."""
    dut = Sbuf(CONFIG, 3, 2, 1)

    async def bench(ctx):
        channels = [port.req for port in dut.read], list(dut.write)
        for cycle in range(64):
            for side in channels:
                for index, channel in enumerate(side):
                    payload = channel.p.word if side is channels[1] else channel.p
                    ctx.set(payload, cycle + index)
                    ctx.set(channel.valid, 1)
            _, _, *ready = await ctx.tick().sample(*(c.ready for side in channels for c in side))
            assert all(ready), f"cycle {cycle}: {ready}"

    simulate(dut, bench)


def test_conflicts_are_shared_evenly():
    """All readers want one bank: each gets its share."""
    dut = Sbuf(CONFIG, 3, 1, 1)
    served = [0, 0, 0]

    async def bench(ctx):
        for port in dut.read:
            ctx.set(port.req.valid, 1)
        for _ in range(99):
            _, _, *ready = await ctx.tick().sample(*(port.req.ready for port in dut.read))
            assert sum(ready) == 1
            for index, taken in enumerate(ready):
                served[index] += taken

    simulate(dut, bench)
    assert served == [33, 33, 33]


def test_ports_are_required():
    with pytest.raises(ValueError, match="at least one of each"):
        Sbuf(CONFIG, 1, 1, 0)
