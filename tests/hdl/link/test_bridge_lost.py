"""The session is lost, the link fails: everything is answered, nothing stale is taken for new."""

import random

import pytest

from isa.address_map import SEMAPHORE_OFFSET
from isa.geometry import WORD_BYTES, preset
from isa.link import PacketKind, PacketStatus
from sim.models.axi_memory import Timing
from sim.models.bridge_bench import CORE, OKAY, SLVERR, BridgeBench, header

TINY = preset("tiny").with_(links=1)
BEATS = {16: TINY, 64: TINY.with_(link_beat_bytes=64, link_lanes=8)}


def load(bench, rng, count):
    """Reads and writes of all lengths from both ends; returns nothing: what comes is checked by
    the masters and by `check_reads`.
    """
    for side in (bench.a, bench.b):
        for _ in range(count):
            beats = rng.choice((1, 2, 5, 64, rng.randrange(1, 65)))
            page = 4096 * rng.randrange(0, 32)
            at = page + 16 * rng.randrange(0, 256 - beats + 1)
            kind = rng.randrange(5)
            if kind == 0:
                side.writer.add(rng.randrange(3), CORE + SEMAPHORE_OFFSET, [(7, 0xF)])
            elif kind == 1:
                side.writer.add(
                    rng.randrange(3),
                    CORE + at % 8192 // 16 * 16,
                    [(rng.getrandbits(128), 0xFFFF)] * min(beats, 4),
                )
            elif kind == 2:
                side.writer.add(rng.randrange(3), at, [(rng.getrandbits(128), 0xFFFF)] * beats)
            elif kind == 3:
                side.reader.add(rng.randrange(3), CORE + at % 8192 // 16 * 16, min(beats, 4))
            else:
                side.reader.add(rng.randrange(3), (1 << 19) + at, beats)


def check_reads(bench, asked):
    """A read that is answered OKAY has the right data: nobody writes where it reads."""
    right = 0
    for near, far in ((bench.a, bench.b), (bench.b, bench.a)):
        for (_, where, beats), (_, resp, words) in zip(
            asked[near], near.reader.results, strict=True
        ):
            if resp == OKAY and where < CORE:
                data = far.memory.data[where : where + WORD_BYTES * beats]
                assert b"".join(w.to_bytes(16, "little") for w in words) == data
                right += 1
    return right


@pytest.mark.parametrize("beat", BEATS)
@pytest.mark.parametrize("seed", range(2))
def test_lost_at_any_time(beat, seed):
    """Under load the session is lost again and again; afterwards all requests have been answered,
    and new ones get what they ask for.
    """
    bench = BridgeBench(BEATS[beat], seed=seed, stall=0.2, room=66, timing=Timing(latency=9))
    bench.there.takes_when_lost = bench.back.takes_when_lost = seed == 0
    rng = random.Random(f"{beat}{seed}")
    load(bench, rng, 60)
    asked = {side: list(side.reader.bursts) for side in (bench.a, bench.b)}

    async def script(ctx):
        await bench.a.open(ctx)
        await bench.b.open(ctx)
        for _ in range(20):
            await bench.until(ctx, lambda: True)
            await ctx.tick().repeat(rng.choice((1, 2, 20, 70, 70, 150)))
            await bench.lose(ctx, cycles=rng.choice((0, 0, 1, 2, 40)))
        await bench.settle(ctx)
        # Everything works as at first; a write that may be refused comes before.
        for side in (bench.a, bench.b):
            for identity in range(3):
                side.writer.add(identity, 0x3_0800, [(1, 0xFFFF)])
                side.writer.add(identity, 0x3_0000 + 16 * identity, [(5 + identity, 0xFFFF)] * 2)
                side.reader.add(identity, (1 << 19) + 0x100, 64)
                asked[side].append((identity, (1 << 19) + 0x100, 64))
        await bench.settle(ctx)

    bench.run(script)
    for side in (bench.a, bench.b):
        resps = [resp for _, resp in side.writer.answers]
        assert OKAY in resps[:-6] and SLVERR in resps[:-6]
        assert resps[-5::2] == [OKAY] * 3
        assert [resp for _, resp, _ in side.reader.results[-3:]] == [OKAY] * 3
        assert SLVERR in [resp for _, resp, _ in side.reader.results]
        assert not side.errors, f"bad packets: {side.errors}"
        far = bench.b if side is bench.a else bench.a
        expected = b"".join(n.to_bytes(16, "little") for n in (5, 6, 7, 7))
        assert far.memory.data[0x3_0000:0x3_0040] == expected
    assert check_reads(bench, asked) > 6, "some of those that met a loss were right too"


def test_failed_link_answers_at_once():
    """While the link has failed nothing is sent and everything answers an error; a short time after
    the end of that all is well.
    """
    bench = BridgeBench(TINY, seed=3)
    a = bench.a

    async def script(ctx):
        await bench.b.open(ctx)
        await bench.lose(ctx, cycles=1)
        ctx.set(a.bridge.failed, 1)
        for number in range(10):
            a.writer.add(0, 64 * number, [(3, 0xFFFF)] * 4)
            a.reader.add(0, 64 * number, 4)
        await bench.until(ctx, lambda: a.writer.done and a.reader.done, limit=200)
        ctx.set(a.bridge.failed, 0)
        await ctx.tick().repeat(2)
        a.writer.add(0, 0, [(9, 0xFFFF)])
        a.reader.add(0, 0x100, 4)
        await bench.settle(ctx)

    bench.run(script)
    assert [resp for _, resp in a.writer.answers] == [SLVERR] * 10 + [OKAY]
    assert [resp for _, resp, _ in a.reader.results] == [SLVERR] * 10 + [OKAY]
    assert bench.there.packets == [1, 0, 0, 0, 1, 0, 0, 0]
    assert bench.b.memory.data[:16] == (9).to_bytes(16, "little")


def test_nothing_hangs_on_a_link_that_never_moves():
    """Requests wait for a link that is neither up nor failed once its queue is full; when it fails
    they are answered.
    """
    bench = BridgeBench(TINY, seed=4, room=60)
    a = bench.a
    bench.there.held = bench.back.held = True
    for number in range(30):
        a.writer.add(0, 64 * number, [(3, 0xFFFF)] * 4)
        a.reader.add(1, 64 * number, 4)

    async def script(ctx):
        await bench.until(ctx, lambda: True)
        await ctx.tick().repeat(500)
        count = len(a.writer.answers)
        assert 10 <= count <= 13 and not a.reader.results
        await ctx.tick().repeat(200)
        assert len(a.writer.answers) == count and not a.reader.results
        await bench.lose(ctx, cycles=400)
        assert a.writer.done and a.reader.done
        assert a.writer.answers == [(0, OKAY)] * count + [(0, SLVERR)] * (30 - count)

    bench.run(script)
    assert {resp for _, resp, _ in a.reader.results} == {SLVERR}
    assert len(a.reader.results) == 30


def test_what_waits_when_the_session_is_lost_is_refused():
    """Bursts that had come in before are not sent in the next session, whose first writes would
    else be seen without those before them.
    """
    bench = BridgeBench(TINY, seed=8, room=60)
    a, b = bench.a, bench.b
    bench.there.held = True
    for number in range(30):
        a.writer.add(number % 3, 64 * number, [(number + 1, 0xFFFF)] * 4)
    counts = []

    async def script(ctx):
        await b.open(ctx)
        b.memory.data[: 64 * 30] = bytes(64 * 30)
        await bench.until(ctx, lambda: True)
        await ctx.tick().repeat(500)
        counts.append(len(a.writer.answers))
        await bench.lose(ctx)
        bench.there.held = False
        await bench.settle(ctx)

    bench.run(script)
    resps = [resp for _, resp in a.writer.answers]
    refused = resps.count(SLVERR)
    sent = len(resps) - counts[0] - refused
    assert resps == [OKAY] * counts[0] + [SLVERR] * refused + [OKAY] * sent
    assert 3 <= refused <= 9 and sent > 5, "those held, and one of each id"
    written = [n for n in range(30) if b.memory.data[64 * n : 64 * n + 64] != bytes(64)]
    assert written == list(range(30 - sent, 30))


@pytest.mark.parametrize("semaphore", [False, True])
def test_a_loss_is_never_silent(semaphore):
    """Data were answered and then lost: the next write of that id is refused, and not sent; another
    id has lost nothing and goes on.
    """
    bench = BridgeBench(TINY, seed=5)
    a, b = bench.a, bench.b
    target = CORE + SEMAPHORE_OFFSET if semaphore else 0x100

    async def script(ctx):
        await b.open(ctx)
        bench.there.random.random = lambda: 1.0
        a.writer.add(1, 0, [(3, 0xFFFF)] * 4)
        await bench.until(ctx, lambda: a.writer.done)
        await bench.lose(ctx)
        for identity in (1, 2, 1):
            a.writer.add(identity, target, [(0x11 * identity, 0xF)])
        await bench.settle(ctx)

    bench.run(script)
    assert a.writer.answers == [(1, OKAY), (1, SLVERR), (2, OKAY), (1, OKAY)]
    assert bench.there.packets[0] == 3


def test_old_tags_match_nothing():
    """Completions with the tag of a lost session, or of no read at all, are dropped: the data of
    the read that has the slot now are its own.
    """
    bench = BridgeBench(TINY, seed=6)
    a, caught = bench.a, []

    def keep(vc, packet):
        if vc == 2 and len(caught) < 4:
            caught.append(packet)
        return packet

    bench.back.edit = keep

    async def script(ctx):
        await bench.b.open(ctx)
        for number in range(4):
            a.reader.add(0, 1024 * number, 3)
        await bench.settle(ctx)
        for _ in range(3):
            await bench.lose(ctx)
            await ctx.tick().repeat(20)
            bench.there.held = True
            for number in range(4):
                a.reader.add(0, 0x8000 + 1024 * number, 3)
            await bench.until(ctx, lambda: True)
            await ctx.tick().repeat(50)
            for packet in caught:
                bench.back.inject(2, packet)
            bench.back.inject(2, [header(kind=4, granules=1, tag=0x0C, status=1)])
            await ctx.tick().repeat(60)
            assert len(a.reader.open) == 4, "all four are under way"
            bench.there.held = False
            await bench.settle(ctx)

    bench.run(script)
    for number, (_, resp, words) in enumerate(a.reader.results):
        assert resp == OKAY
        where = (0x8000 if number >= 4 else 0) + 1024 * (number % 4)
        data = bench.b.memory.data[where : where + 48]
        assert b"".join(w.to_bytes(16, "little") for w in words) == data
    assert not a.errors


def test_loss_in_the_middle_of_a_completion():
    """Half of a completion has come when the session is lost: an error, and the rest of it, should
    it still come, is nobody's.
    """
    bench = BridgeBench(TINY, seed=7)
    a = bench.a
    bench.there.closed = True

    async def script(ctx):
        a.reader.add(0, 0, 8)
        await bench.until(ctx, lambda: True)
        await ctx.tick().repeat(20)
        tag = 0x00
        granules = [
            header(kind=PacketKind.COMPLETION, granules=9, tag=tag, status=PacketStatus.OKAY,
                   bytes=128),
            *range(8),
        ]  # fmt: skip
        bench.back.inject(2, granules[:5])
        bench.back.queues[2][-1] = (*bench.back.queues[2][-1][:2], False, False)
        await ctx.tick().repeat(20)
        assert not a.reader.results
        await bench.lose(ctx)
        await bench.until(ctx, lambda: a.reader.done, limit=50)
        bench.there.closed = False
        await bench.b.open(ctx)
        bench.back.inject(2, granules[5:], marks=False)
        a.reader.add(0, 0x400, 8)
        await bench.settle(ctx)

    bench.run(script)
    assert [resp for _, resp, _ in a.reader.results] == [SLVERR, OKAY]
    data = bench.b.memory.data[0x400:0x480]
    assert b"".join(w.to_bytes(16, "little") for w in a.reader.results[1][2]) == data
