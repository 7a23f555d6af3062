"""The local bus: every target, every error, all masters at once."""

import random

import pytest

from isa.address_map import (
    CORE_BASE,
    CORE_WINDOW_BYTES,
    PSUM_BASE,
    PSUM_OFFSET,
    PSUM_STRIDE_BYTES,
    REGISTER_BASE,
    SEMAPHORE_BASE,
    SEMAPHORE_VIEW_BYTES,
    SemaphoreView,
    psum_address,
    sbuf_address,
    semaphore_address,
)
from isa.geometry import SEMAPHORES, WORD_BYTES, preset
from sim.models.bus_bench import BusBench, BusMaster

TINY = preset("tiny")
GAPPED = TINY.with_(sbuf_bytes=6 << 10)
LANES = WORD_BYTES // 4
HOST, SEQUENCERS = 0, range(1, 6)


def lanes(word):
    return [word >> 32 * i & 0xFFFFFFFF for i in range(LANES)]


def masked(old, new, strb):
    """`new` where strb is set, else `old`."""
    return sum((new if strb >> i & 1 else old) & 255 << 8 * i for i in range(WORD_BYTES))


def place(bench, config, kind, index):
    """(address, bytearray, offset) of the index-th 16-byte word of a memory."""
    if kind == "hbm":
        return WORD_BYTES * index, bench.hbm.data, WORD_BYTES * index
    memory, size, address = {
        "sbuf": (bench.sbuf, config.sbuf_bytes, sbuf_address),
        "psum": (bench.psum, config.psum_bytes, psum_address),
    }[kind]
    partition, offset = divmod(WORD_BYTES * index, size)
    return address(config, partition, offset), memory.rows[partition], offset


def words_of(config, kind):
    size = {
        "hbm": config.hbm_bytes,
        "sbuf": config.partitions * config.sbuf_bytes,
        "psum": config.partitions * config.psum_bytes,
    }[kind]
    return size // WORD_BYTES


def memory_script(bench, config, master, kind, indices, rng, strobes):
    """Reads and writes of words that nobody else touches, checked one by one."""

    async def script(ctx):
        for index in indices:
            address, data, offset = place(bench, config, kind, index)

            def held(data=data, offset=offset):
                return int.from_bytes(data[offset : offset + WORD_BYTES], "little")

            before = held()
            assert await master.read(ctx, address) == before
            value, strb = rng.getrandbits(128), rng.choice(strobes)
            await master.write(ctx, address, value, strb)
            assert held() == masked(before, value, strb), (
                f"{kind} word {index} right when the answer came"
            )
            assert await master.read(ctx, address) == held()

    return script


@pytest.mark.parametrize("config", [TINY, GAPPED], ids=["tiny", "gapped"])
@pytest.mark.parametrize("index", [HOST, 1, 5])
@pytest.mark.parametrize("kind", ["hbm", "sbuf", "psum"])
def test_memories(kind, index, config):
    """First, last and random words, random strobes, with nothing else disturbed."""
    bench = BusBench(config, seed=index)
    rng = random.Random(index)
    count = words_of(config, kind)
    per_partition = count // config.partitions
    chosen = [0, count - 1, per_partition - 1, per_partition, *rng.sample(range(count), 6)]
    before = bench.snapshot()
    touched = {place(bench, config, kind, i)[0] for i in chosen}
    bench.run(
        memory_script(
            bench,
            config,
            BusMaster(bench, index),
            kind,
            chosen,
            rng,
            [0xFFFF, 0, 0x00F0, 0x8001, 0x0FF0, 0x7FFF],
        )
    )
    for i in range(count):
        address, data, offset = place(bench, config, kind, i)
        if address not in touched:
            old = (
                before[0]
                if kind == "hbm"
                else before[1][
                    (0 if kind == "sbuf" else config.partitions)
                    + WORD_BYTES * i // (config.sbuf_bytes if kind == "sbuf" else config.psum_bytes)
                ]
            )
            assert data[offset : offset + WORD_BYTES] == old[offset : offset + WORD_BYTES]


def test_semaphore_views():
    """Each view does its change; every view reads the value; only lanes with all strobes are
    written."""
    bench = BusBench(TINY)
    host = BusMaster(bench, HOST)
    values = [0] * SEMAPHORES
    rng = random.Random(5)

    async def script(ctx):
        for step in range(40):
            view = SemaphoreView(rng.randrange(4))
            first = rng.choice((0, SEMAPHORES - LANES, LANES * rng.randrange(SEMAPHORES // LANES)))
            strb = rng.choice((0xFFFF, 0x000F, 0xF00F, 0x0FF0, 0x7FF7, 0))
            data = [rng.randrange(-1000, 1000) for _ in range(LANES)]
            word = sum((value & 0xFFFFFFFF) << 32 * i for i, value in enumerate(data))
            await host.write(ctx, semaphore_address(first, view), word, strb)
            for lane in range(LANES):
                if strb >> 4 * lane & 15 != 15:
                    continue
                index = first + lane
                old = values[index]
                values[index] = {
                    SemaphoreView.SET: data[lane],
                    SemaphoreView.INCREMENT: old + 1,
                    SemaphoreView.DECREMENT: old - 1,
                    SemaphoreView.ADD: old + data[lane],
                }[view]
            got = await host.read(ctx, semaphore_address(first, SemaphoreView(step % 4)))
            assert lanes(got) == [value & 0xFFFFFFFF for value in values[first : first + LANES]]
        for first in range(0, SEMAPHORES, LANES):
            got = await host.read(ctx, semaphore_address(first))
            assert lanes(got) == [value & 0xFFFFFFFF for value in values[first : first + LANES]]

    bench.run(script)


def test_registers():
    """Lanes go to their own registers; a lane without all strobes writes nothing."""
    bench = BusBench(TINY)
    host = BusMaster(bench, HOST)
    rng = random.Random(6)
    held = {}

    async def script(ctx):
        for offset in (0, 0x10, 0x400, 0x1FF0, *(16 * rng.randrange(0x200) for _ in range(10))):
            for strb in (0xFFFF, 0x00F0, 0xF000, 0x1234, 0):
                word = rng.getrandbits(128)
                await host.write(ctx, REGISTER_BASE + offset, word, strb)
                for lane in range(LANES):
                    if strb >> 4 * lane & 15 == 15:
                        held[offset + 4 * lane] = lanes(word)[lane]
                got = lanes(await host.read(ctx, REGISTER_BASE + offset))
                assert got == [held.get(offset + 4 * lane, 0) for lane in range(LANES)]

    bench.run(script)


UNMAPPED = {
    "hbm end": TINY.hbm_bytes,
    "below core": CORE_BASE - 16,
    "above core": CORE_BASE + CORE_WINDOW_BYTES,
    "alias of core": CORE_BASE + (1 << 45),
    "alias of hbm": 1 << 63,
    "top": (1 << 64) - 16,
    "sbuf gap": sbuf_address(GAPPED, 1, GAPPED.sbuf_bytes - 16) + 16,
    "sbuf end": CORE_BASE + GAPPED.partitions * GAPPED.sbuf_stride_bytes,
    "below psum": PSUM_BASE - 16,
    "psum gap": psum_address(GAPPED, 2, GAPPED.psum_bytes - 16) + 16,
    "psum end": PSUM_BASE + GAPPED.partitions * PSUM_STRIDE_BYTES,
    "psum alias": PSUM_BASE + PSUM_OFFSET // 2,
    "below semaphores": SEMAPHORE_BASE - 16,
    "behind a view": SEMAPHORE_BASE + 4 * SEMAPHORES,
    "semaphore views end": SEMAPHORE_BASE + 4 * SEMAPHORE_VIEW_BYTES,
    "below registers": REGISTER_BASE - 16,
    "behind registers": REGISTER_BASE + 0x2000,
}


@pytest.mark.parametrize("index", [HOST, 3])
def test_unmapped_addresses(index):
    """An error for reads and writes, nothing is disturbed, the next access is fine."""
    bench = BusBench(GAPPED)
    master = BusMaster(bench, index)
    before = bench.snapshot()
    host = BusMaster(bench, HOST) if index else master

    async def script(ctx):
        for name, address in UNMAPPED.items():
            for write in (0, 1):
                _, error = await master.access(ctx, address, write=write, data=(1 << 128) - 1)
                assert error, name
            assert await master.read(ctx, 0) == int.from_bytes(bench.hbm.data[:16], "little")
        for first in range(0, SEMAPHORES, LANES):
            assert await host.read(ctx, semaphore_address(first)) == 0
        for offset in (0, 0x10, 0x400, 0x1FF0):
            assert await host.read(ctx, REGISTER_BASE + offset) == 0

    bench.run(script)
    assert bench.snapshot() == before


def test_sequencers_reach_memories_only():
    """Semaphores and registers are the host's."""
    bench = BusBench(TINY)
    host = BusMaster(bench, HOST)

    async def script(ctx):
        for index in SEQUENCERS:
            master = BusMaster(bench, index)
            for address in (semaphore_address(8, view) for view in SemaphoreView):
                for write in (0, 1):
                    assert await master.access(ctx, address, write=write, data=5) == (0, 1)
            for write in (0, 1):
                assert await master.access(ctx, REGISTER_BASE + 0x10, write=write, data=5) == (0, 1)
        assert await host.read(ctx, semaphore_address(8)) == 0
        assert await host.read(ctx, REGISTER_BASE + 0x10) == 0

    bench.run(script)


def test_hbm_errors_are_passed_on():
    bench = BusBench(TINY)
    bench.hbm.faults.append((32, 48))
    master = BusMaster(bench, 2)

    async def script(ctx):
        for write in (0, 1):
            _, error = await master.access(ctx, 32, write=write)
            assert error
            assert (await master.access(ctx, 48, write=write, strb=0))[1] == 0

    bench.run(script)


@pytest.mark.parametrize("seed, stall", [(0, 0.0), (1, 0.5), (2, 0.2)])
def test_six_masters_at_once(seed, stall):
    """Each on its own words of all memories (the host on semaphores and registers too); every
    answer is checked."""
    bench = BusBench(TINY, seed=seed, stall=stall)
    masters = [BusMaster(bench, i) for i in range(6)]
    scripts = []
    for i, master in enumerate(masters):
        rng = random.Random(100 * seed + i)
        parts = []
        for kind in ("hbm", "sbuf", "psum"):
            indices = [6 * rng.randrange(words_of(TINY, kind) // 6) + i for _ in range(4)]
            parts.append(memory_script(bench, TINY, master, kind, indices, rng, [0xFFFF, 0xF0F1]))

        async def script(ctx, parts=parts, master=master, i=i):
            for number, part in enumerate(parts):
                await part(ctx)
                if i == HOST:
                    await master.write(ctx, semaphore_address(4 * number, SemaphoreView.ADD), 77)
                    assert lanes(await master.read(ctx, semaphore_address(4 * number))) == [
                        77,
                        0,
                        0,
                        0,
                    ]
                    await master.write(ctx, REGISTER_BASE + 16 * number, number + 9)
                    assert await master.read(ctx, REGISTER_BASE + 16 * number) == number + 9

        scripts.append(script)
    bench.run(*scripts)


def test_masters_that_always_ask_take_turns():
    bench = BusBench(TINY)
    order = []

    def asking(index):
        master = BusMaster(bench, index)

        async def script(ctx):
            for _ in range(12):
                await master.read(ctx, 16 * index)
                order.append(index)

        return script

    bench.run(*(asking(i) for i in range(6)))
    for start in range(0, 60, 6):
        assert sorted(order[start : start + 6]) == list(range(6)), order
