# amaranth: UnusedElaboratable=no
"""Psum: random traffic besides accumulation, hazards at the least distance, rates."""

import numpy as np
import pytest

from hdl.memory.psum import Psum
from isa.geometry import PSUM_BANKS, preset
from verif.banked_memory_bench import BankedMemoryBench, simulate
from verif.equality import assert_same
from verif.known_cases import SUMS
from verif.memory_bench import pack, store_word

CONFIG = preset("tiny")
P = CONFIG.partitions
LAST = CONFIG.psum_words - 1
SPECIALS = (0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF,
            0x7F7FFFFF, 0xFF7FFFFF, 0x00000001, 0x80000001, 0x00800000, 0x3F800000, 0xBF800000)


def canonical(values):
    """FP32 values with every NaN as 7FC00000."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32).copy()
    bits[(bits & 0x7FFFFFFF) > 0x7F800000] = 0x7FC00000
    return bits


def random_lanes(rng):
    """P FP32 codes: all codes, specials, and close magnitudes that cancel."""
    lanes = rng.integers(0, 1 << 32, P, dtype=np.uint64).astype(np.uint32)
    near = (rng.integers(0, 2, P) << 31 | rng.integers(0x7E, 0x82, P) << 23
            | rng.integers(0, 1 << 23, P)).astype(np.uint32)
    kind = rng.integers(0, 3, P)
    special = rng.choice(np.array(SPECIALS, dtype=np.uint32), P)
    return np.where(kind == 0, lanes, np.where(kind == 1, near, special))


class AccumulateModel:
    """Random elements at the accumulate port, as close as the contract allows, and what they do."""

    def __init__(self, config, rng, words, rate):
        self.config, self.rng, self.words, self.rate = config, rng, words, rate
        self.last_use = {}
        self.writes, self.done = {}, {}
        self.closest = 1 << 30
        self.count = 0

    def drive(self, ctx, port, cycle):
        """Offer an element in this cycle, or nothing."""
        rng, distance = self.rng, self.config.psum_accumulate_cycles
        word = int(rng.choice(self.words))
        free = cycle - self.last_use.get(word, -distance) >= distance
        self.now = None
        if free and rng.random() < self.rate:
            self.closest = min(self.closest, cycle - self.last_use.get(word, -1 << 30))
            self.last_use[word] = cycle
            self.now = {
                "word": word, "partitions": int(rng.integers(1 << P)),
                "accumulate": int(rng.random() < 0.7), "data": random_lanes(rng),
                "tag": int(rng.integers(4))}
            for name, value in self.now.items():
                ctx.set(getattr(port, name), pack(value, 32) if name == "data" else value)
            self.count += 1
        ctx.set(port.valid, int(self.now is not None))

    def clock(self, cycle, memory, done, done_tag):
        """Call after the reads of the cycle have been noted and before its other writes."""
        stages = self.config.psum_add_stages
        if self.now is not None:
            now = self.now
            at = 4 * now["word"]
            old = np.ascontiguousarray(memory[:, at:at + 4]).view(np.uint32)[:, 0]
            data = now["data"].view(np.float32)
            with np.errstate(all="ignore"):
                total = canonical(old.view(np.float32) + data if now["accumulate"] else data)
            self.writes[cycle + stages + 2] = (
                now["word"], now["partitions"], 0xF, pack(total, 32))
            if now["tag"]:
                self.done[cycle + stages + 3] = now["tag"]
        expected = self.done.pop(cycle, 0)
        assert done == (expected != 0), f"cycle {cycle}: done={done}"
        assert not done or done_tag == expected, f"cycle {cycle}: tag {done_tag}"
        return self.writes.pop(cycle, None)


def run(config, seed, *, cycles=250, load=0.6, deny=0.0, words=None, rate=0.6, own_words=None):
    rng = np.random.default_rng(seed)
    dut = Psum(config, 3, 2, 1)
    # Software keeps other writers away from words being accumulated; they read anywhere.
    traffic = BankedMemoryBench(dut, rng, load=load, deny=deny, words=words)
    model = AccumulateModel(config, rng, own_words, rate)
    kind_words = {"write": [w for w in traffic.words if w not in set(own_words)]}
    original = traffic.request

    def request(kind):
        keep = traffic.words
        if "write" in kind:
            traffic.words = kind_words["write"]
        payload = original(kind)
        traffic.words = keep
        return payload

    traffic.request = request

    async def bench(ctx):
        for cycle in range(cycles):
            traffic.drive(ctx)
            model.drive(ctx, dut.accumulate, cycle)
            signals = traffic.signals()
            _, _, done, tag, *samples = await ctx.tick().sample(
                dut.accumulate.done, dut.accumulate.done_tag, *signals)
            write = model.clock(cycle, traffic.memory, done, tag)
            reading = model.now is not None and model.now["accumulate"]
            traffic.check(
                cycle, samples,
                blocked_reads={traffic.bank(model.now["word"])} if reading else (),
                blocked_writes={traffic.bank(write[0])} if write else ())
            if write:
                store_word(traffic.memory, 4, *write)

    simulate(dut, bench, checks=True)
    return traffic, model


@pytest.mark.parametrize(("stages", "load", "deny"), [
    (1, 0.6, 0.0), (2, 1.0, 0.0), (2, 0.5, 0.4), (6, 0.7, 0.2)])
def test_random_traffic_and_accumulation(stages, load, deny):
    config = CONFIG.with_(psum_add_stages=stages)
    own = (0, 1, 5, config.psum_words // 2, LAST)
    words = (*own, 2, 3, config.psum_words // PSUM_BANKS, LAST - 1)
    traffic, model = run(config, 31, load=load, deny=deny, words=words, own_words=own)
    assert model.closest == config.psum_accumulate_cycles
    assert model.count > 50
    assert min(traffic.taken.values()) > 15


def test_known_sums_onto_a_word():
    """Operands on which the adders of others went wrong: signed zeros, ties, subnormals, overflow.
    Each word is written once and accumulated onto once, from both sides.
    """
    dut = Psum(CONFIG, 1, 1, 1)
    cases = [(a, b, total) for a, b, total in SUMS.values()]
    cases += [(b, a, total) for a, b, total in cases]
    found = []

    async def bench(ctx):
        port, narrow = dut.accumulate, dut.narrow[0]
        for accumulate in (0, 1):
            for word, case in enumerate(cases):
                ctx.set(port.valid, 1)
                ctx.set(port.word, word)
                ctx.set(port.partitions, (1 << P) - 1)
                ctx.set(port.accumulate, accumulate)
                ctx.set(port.data, pack([case[accumulate]] * P, 32))
                await ctx.tick()
        ctx.set(port.valid, 0)
        await ctx.tick().repeat(CONFIG.psum_accumulate_cycles)
        for word in range(len(cases)):
            ctx.set(narrow.read.valid, 1)
            ctx.set(narrow.read.p.partition, word % P)
            ctx.set(narrow.read.p.word, word)
            await ctx.tick().until(narrow.read.ready)
            ctx.set(narrow.read.valid, 0)
            (data,) = await ctx.tick().sample(narrow.data).until(narrow.valid)
            found.append(data)

    simulate(dut, bench, checks=True)
    expected = np.array([total for *_, total in cases], np.uint32)
    a, b, _ = np.array(cases, np.uint32).T
    assert_same(np.array(found, np.uint32), expected, a=a, b=b)


def test_all_words():
    own = list(range(0, CONFIG.psum_words, 2))
    traffic, model = run(CONFIG, 32, own_words=own, rate=1.0)
    assert model.count > 225


@pytest.mark.parametrize("stages", [1, 2, 3, 6])
def test_accumulation_onto_one_word_at_the_least_distance(stages):
    config = CONFIG.with_(psum_add_stages=stages)
    traffic, model = run(config, 33, own_words=(7,), words=(7, 8), rate=1.0, load=0.0)
    assert model.closest == config.psum_accumulate_cycles
    assert model.count >= 250 // config.psum_accumulate_cycles


def test_accumulates_every_cycle_and_others_use_the_other_banks():
    """The accumulate port streams through bank 0; readers and writers of bank 1 do not notice."""
    dut = Psum(CONFIG, 3, 2, 1)
    bank_words = CONFIG.psum_words // PSUM_BANKS

    async def bench(ctx):
        port = dut.accumulate
        ctx.set(port.accumulate, 1)
        ctx.set(port.valid, 1)
        ctx.set(dut.read[0].req.valid, 1)
        ctx.set(dut.read[1].req.valid, 1)
        ctx.set(dut.write[0].valid, 1)
        for cycle in range(64):
            ctx.set(port.word, cycle % bank_words)
            ctx.set(dut.read[0].req.p, bank_words + cycle % bank_words)
            ctx.set(dut.read[1].req.p, 0)
            ctx.set(dut.write[0].p.word, bank_words)
            _, _, other, same, write = await ctx.tick().sample(
                dut.read[0].req.ready, dut.read[1].req.ready, dut.write[0].ready)
            assert (other, same, write) == (1, 0, 1), f"cycle {cycle}"

    simulate(dut, bench)


def accumulate_twice(distance, first, second):
    """Two elements on one word, `distance` cycles apart."""
    dut = Psum(CONFIG, 1, 1, 1)

    async def bench(ctx):
        ctx.set(dut.accumulate.word, 3)
        for cycle in range(distance + 2):
            ctx.set(dut.accumulate.valid, int(cycle in (0, distance)))
            ctx.set(dut.accumulate.accumulate, first if cycle == 0 else second)
            await ctx.tick()

    simulate(dut, bench, checks=True)


def test_the_distance_is_checked():
    least = CONFIG.psum_accumulate_cycles
    accumulate_twice(least, 1, 1)
    accumulate_twice(1, 1, 0)
    for distance in (1, least - 1):
        for first in (0, 1):
            with pytest.raises(AssertionError, match="too close"):
                accumulate_twice(distance, first, 1)


def test_requests_are_checked():
    """A request that changes before it is taken."""
    dut = Psum(CONFIG, 2, 1, 1)

    async def bench(ctx):
        for cycle in range(3):
            for port in dut.read:
                ctx.set(port.req.valid, 1)
                ctx.set(port.req.p, cycle)
            await ctx.tick()

    with pytest.raises(AssertionError, match="stream read1"):
        simulate(dut, bench, checks=True)


def test_other_geometry():
    """Partitions in two groups."""
    config = CONFIG.with_(array=32)
    dut = Psum(config, 1, 1, 1)
    bench = BankedMemoryBench(dut, np.random.default_rng(4), load=0.8)
    bench.run(50)
    assert min(bench.taken.values()) > 10


def test_ports_are_required():
    with pytest.raises(ValueError, match="at least one of each"):
        Psum(CONFIG, 0, 1, 1)
