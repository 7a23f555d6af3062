"""Bridge to bridge: writes, reads, semaphores; every byte where it belongs, in order."""

import random

import pytest

from isa.address_map import SEMAPHORE_OFFSET, SemaphoreView
from isa.geometry import WORD_BYTES, preset
from sim.models.axi_memory import Timing
from sim.models.bridge_bench import CORE, OKAY, SLVERR, BridgeBench

TINY = preset("tiny").with_(links=1)
BEATS = {
    16: TINY,
    64: TINY.with_(link_beat_bytes=64, link_lanes=8),
}
IDS = 3


def burst(rng, address, length):
    """Beats that write `length` bytes from `address` on."""
    first, end = address // WORD_BYTES, address + length
    beats = []
    for word in range(first, -(-end // WORD_BYTES)):
        strb = sum(1 << i for i in range(16) if address <= 16 * word + i < end)
        beats.append((rng.getrandbits(128), strb))
    return first * WORD_BYTES, beats


def apply(data, address, beats):
    for number, (word, strb) in enumerate(beats):
        for i in range(WORD_BYTES):
            if strb >> i & 1:
                data[address + 16 * number + i] = word >> 8 * i & 255


def random_range(rng, size, *, longest=1024):
    """(address, length) in one page, at most 64 words."""
    while True:
        address, length = rng.randrange(size), 1 + rng.randrange(longest)
        if rng.random() < 0.3:
            length = 1 + rng.randrange(40)
        last = address + length - 1
        if last < size and address >> 12 == last >> 12 and last // 16 - address // 16 < 64:
            return address, length


@pytest.mark.parametrize("beat", BEATS)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_random_traffic(beat, stall):
    """Both ways at once, HBM and core window: what is written arrives, what is read is right."""
    config = BEATS[beat]
    bench = BridgeBench(config, seed=beat + int(10 * stall), stall=stall)
    rng = random.Random(f"{beat}{stall}")
    images, cores = {}, {}
    for near, far in ((bench.a, bench.b), (bench.b, bench.a)):
        # Writes go to the first half, reads to the second one.
        image, core = bytearray(far.memory.data), bytearray(far.core.data)
        half, core_half = config.hbm_bytes // 2, len(core) // 2
        for _ in range(25):
            if rng.random() < 0.3:
                where, beats = burst(rng, *random_range(rng, core_half, longest=200))
                apply(core, where, beats)
                near.writer.add(rng.randrange(IDS), CORE + where, beats)
            else:
                where, beats = burst(rng, *random_range(rng, half))
                apply(image, where, beats)
                near.writer.add(rng.randrange(IDS), where, beats)
            if rng.random() < 0.3:
                where, length = random_range(rng, core_half, longest=200)
                where = CORE + core_half + where // 16 * 16
            else:
                where, length = random_range(rng, half)
                where = half + where // 16 * 16
            beats = max(1, length // 16)
            near.reader.add(rng.randrange(IDS), where, beats)
        images[near], cores[near] = image, core
    asked = {side: list(side.reader.bursts) for side in (bench.a, bench.b)}

    async def script(ctx):
        await bench.a.open(ctx)
        await bench.b.open(ctx)
        await bench.settle(ctx, limit=30_000)

    bench.run(script)
    for near, far in ((bench.a, bench.b), (bench.b, bench.a)):
        assert [resp for _, resp in near.writer.answers] == [OKAY] * 25
        assert far.memory.data == images[near]
        assert far.core.data == cores[near]
        for (identity, where, beats), (got_id, resp, words) in zip(
            asked[near], near.reader.results, strict=True
        ):
            source = far.core.data if where >= CORE else far.memory.data
            assert (got_id, resp) == (identity, OKAY)
            at = where % CORE
            expected = [
                int.from_bytes(source[at + 16 * i : at + 16 * i + 16], "little")
                for i in range(beats)
            ]
            assert words == expected, f"read of {where:#x}"
        assert not near.errors and not near.denied
    if stall == 0:
        assert bench.there.packets[0] == bench.back.packets[0] == 25


@pytest.mark.parametrize("beat", BEATS)
def test_every_alignment(beat):
    """First and last byte at every place of a word, one to three words."""
    config = BEATS[beat]
    bench = BridgeBench(config, seed=1)
    rng, image = random.Random(3), bytearray(bench.b.memory.data)
    place = 0
    cases = [(head, end) for head in range(16) for end in range(16)]
    rng.shuffle(cases)
    for head, end in cases:
        length = end - head + 1 + 16 * rng.randrange(head > end, 3)
        where, beats = burst(rng, place + head, length)
        place += 64
        apply(image, where, beats)
        bench.a.writer.add(0, where, beats)

    async def script(ctx):
        await bench.b.open(ctx)
        await bench.settle(ctx)

    bench.run(script)
    assert bench.b.memory.data == image
    assert {resp for _, resp in bench.a.writer.answers} == {OKAY}


STROBES = {
    "hole in a beat": ([0xF00F], SLVERR),
    "hole between beats": ([0x7FFF, 0xFFFF], SLVERR),
    "late start": ([0xFFFF, 0xFFFE], SLVERR),
    "empty beat inside": ([0xFFFF, 0, 0xFFFF], SLVERR),
    "hole at the end": ([0xFFFF, 0xFFFF, 0xA000], SLVERR),
    "nothing": ([0], OKAY),
    "nothing in three": ([0, 0, 0], OKAY),
    "empty beats in front": ([0, 0, 0xFF00], OKAY),
    "empty beats behind": ([0xFFF0, 0x0001, 0, 0], OKAY),
    "empty beats around": ([0, 0x0FF0, 0], OKAY),
    "one byte": ([0x0100], OKAY),
    "two bytes": ([0x8000, 0x0001], OKAY),
    "whole": ([0xFFFF, 0xFFFF], OKAY),
}


@pytest.mark.smoke
def test_strobes():
    """Contiguous bytes are sent, wherever they lie in the burst; others answer an error and have no
    effect."""
    bench = BridgeBench(TINY, seed=2)
    rng, image = random.Random(5), bytearray(bench.b.memory.data)
    expected = []
    for number, (strobes, resp) in enumerate(STROBES.values()):
        beats = [(rng.getrandbits(128), strb) for strb in strobes]
        bench.a.writer.add(number % IDS, 256 * number, beats)
        if resp == OKAY:
            apply(image, 256 * number, beats)
        expected.append(resp)

    async def script(ctx):
        await bench.b.open(ctx)
        await bench.settle(ctx)

    bench.run(script)
    assert [resp for _, resp in bench.a.writer.answers] == expected
    assert bench.b.memory.data == image
    sent = sum(resp == OKAY and any(strobes) for strobes, resp in STROBES.values())
    assert bench.there.packets == [sent, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("beat", BEATS)
def test_semaphore_is_not_seen_before_its_data(beat):
    """Whenever the bus sees a semaphore written, all data sent before are in the memory."""
    config = BEATS[beat]
    bench = BridgeBench(config, seed=7, stall=0.2, timing=Timing(latency=40, jitter=60, stall=0.2))
    bench.b.core = type(bench.b.core)(SEMAPHORE_OFFSET + 0x4000, seed=1, slow=0.2)
    rng = random.Random(9)
    image, states, values, seen = bytearray(bench.b.memory.data), [], [], []
    base = CORE + SEMAPHORE_OFFSET
    for number in range(12):
        for _ in range(rng.randrange(1, 3)):
            where, beats = burst(rng, *random_range(rng, 1 << 14))
            apply(image, where, beats)
            bench.a.writer.add(1, where, beats)
        states.append(bytes(image[: 1 << 14]))
        at = 0x1000 * rng.choice(list(SemaphoreView)) + 4 * rng.randrange(256)
        value = rng.getrandbits(32)
        lane = at % 16 // 4
        word = rng.getrandbits(128) & ~(0xFFFFFFFF << 32 * lane) | value << 32 * lane
        bench.a.writer.add(1, base + at // 16 * 16, [(word, 0xF << 4 * lane)])
        values.append((base + at, value, number))

    def look(request):
        seen.append(request)
        assert bench.b.memory.data[: 1 << 14] == states[len(seen) - 1], "data not visible yet"

    bench.b.core.seen = look

    async def script(ctx):
        await bench.b.open(ctx)
        await bench.settle(ctx, more=2500)

    bench.run(script)
    assert len(seen) == len(values)
    for request, (address, value, _) in zip(seen, values, strict=True):
        lane = address % 16 // 4
        assert (request.address, request.strb) == (address // 16 * 16, 0xF << 4 * lane)
        assert request.data >> 32 * lane & 0xFFFFFFFF == value
    assert [h["kind"] for vc, h in bench.there.sent].count(2) == len(values)


def test_only_whole_words_of_semaphores_are_semaphore_packets():
    """4 aligned bytes of the semaphores are a SEMAPHORE packet; all else is a WRITE."""
    bench = BridgeBench(TINY, seed=3)
    base = CORE + SEMAPHORE_OFFSET
    cases = [
        (base, [(5, 0xFFFF)], (1, base, 16, 0)),
        (base, [(5, 0x0003)], (1, base, 2, 0)),
        (base, [(5, 0x001E)], (1, base + 1, 4, 0)),
        (base, [(5, 0xC000), (5, 0x0003)], (1, base + 14, 4, 0)),
        (base, [(5, 0)], None),
        (base, [(5, 0), (6 << 32, 0x00F0)], (2, base + 20, 0, 6)),
        (base + 0x3FF0, [(5 << 96, 0xF000)], (2, base + 0x3FFC, 0, 5)),
        (base + 0x4000, [(5, 0x000F)], (1, base + 0x4000, 4, 0)),
        (base - 16, [(5, 0xF000)], (1, base - 4, 4, 0)),
        (base - CORE, [(5, 0xF000)], (1, base - CORE + 12, 4, 0)),
    ]
    for address, beats, _ in cases:
        bench.a.writer.add(0, address, beats)

    async def script(ctx):
        await bench.settle(ctx)

    bench.run(script)
    assert [resp for _, resp in bench.a.writer.answers] == [OKAY] * len(cases)
    sent = [(h["kind"], h["address"], h["bytes"], h["value"]) for _, h in bench.there.sent]
    assert sent == [packet for _, _, packet in cases if packet]


def test_reads_with_errors():
    """Memory errors, addresses without memory and bus errors answer SLVERR in all beats; the next
    read is right."""
    bench = BridgeBench(TINY, seed=4, stall=0.1)
    bench.b.memory.faults.append((0x2000, 0x2010))
    bench.b.core.faults.add(0x100)
    cases = [
        (0x1000, 64, OKAY),
        (0x1FE0, 2, OKAY),
        (0x2000, 4, SLVERR),
        (0x2010, 4, OKAY),
        (TINY.hbm_bytes - 16, 1, OKAY),
        (TINY.hbm_bytes, 64, SLVERR),
        (1 << 43, 2, SLVERR),
        (CORE + 0xF0, 1, OKAY),
        (CORE + 0xF0, 3, SLVERR),
        (CORE + 0x110, 3, OKAY),
        (CORE + (1 << 26), 1, SLVERR),
        (0x2FF0, 1, OKAY),
    ]
    for number, (address, beats, _) in enumerate(cases):
        bench.a.reader.add(number % IDS, address, beats)

    async def script(ctx):
        await bench.b.open(ctx)
        await bench.settle(ctx)
        assert await bench.b.register(ctx, "BRIDGE_STATUS") == 0

    bench.run(script)
    for (address, beats, resp), (_, got, words) in zip(cases, bench.a.reader.results, strict=True):
        assert got == resp, f"{address:#x}"
        if resp == OKAY:
            source = bench.b.core.data if address >= CORE else bench.b.memory.data
            at = address % CORE
            assert b"".join(w.to_bytes(16, "little") for w in words) == source[at : at + 16 * beats]


def test_posted_errors_are_latched():
    """The sender does not learn of an error behind a posted write; BRIDGE_STATUS does."""
    bench = BridgeBench(TINY, seed=5)
    bench.b.memory.faults.append((0x2000, 0x2010))
    bench.b.core.faults.add(0x100)
    image = bytearray(bench.b.memory.data)

    async def one(ctx, address, strb=0xFFFF):
        bench.a.writer.add(0, address, [(1, strb)])
        await bench.settle(ctx)
        assert bench.a.writer.answers[-1][1] == OKAY
        status = await bench.b.register(ctx, "BRIDGE_STATUS")
        await bench.b.clear(ctx)
        assert await bench.b.register(ctx, "BRIDGE_STATUS") == 0
        return status

    async def script(ctx):
        await bench.b.open(ctx)
        assert await one(ctx, 0x2000) == 1 << 18
        assert await one(ctx, CORE + 0x100) == 1 << 18
        assert await one(ctx, TINY.hbm_bytes) == 1 << 18
        assert await one(ctx, 0x2010) == 0
        image[0x2010:0x2020] = (1).to_bytes(16, "little")

    bench.run(script)
    assert bench.b.memory.data == image


def test_posted_writes_do_not_hold_up_reads():
    """A memory that does not answer writes stops nothing but writes; the other way too."""
    bench = BridgeBench(TINY, seed=6, timing=Timing(latency=5))
    rng = random.Random(1)
    for number in range(12):
        bench.a.writer.add(0, 1024 * number, [(rng.getrandbits(128), 0xFFFF)] * 64)
    for number in range(8):
        bench.a.reader.add(0, 0x8000 + 1024 * number, 64)

    async def script(ctx):
        await bench.b.open(ctx)
        await bench.until(ctx, lambda: bench.a.reader.done, limit=4000)
        assert not bench.a.writer.done, "the test wants writes that wait"

    async def no_writes(ctx, port):
        ctx.set(port.aw.ready, 0)

    bench.b.memory.serve_write = no_writes
    bench.run(script)
