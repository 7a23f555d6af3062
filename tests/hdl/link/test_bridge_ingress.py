"""What a bridge lets in: windows at each edge; packets that are not what they should be."""

import random

import pytest

from isa.address_map import SEMAPHORE_OFFSET
from isa.geometry import preset
from isa.link import LINK_WINDOWS, PacketKind, PacketStatus, Reason
from sim.models.bridge_bench import CORE, OKAY, SLVERR, BridgeBench, header

TINY = preset("tiny").with_(links=1)
WRITE_DENIED, READ_DENIED, BUS_ERROR = 1 << 16, 1 << 17, 1 << 18
FULL = (1 << 128) - 1


def strobes(first, end):
    return sum(1 << i for i in range(first, end))


async def denied_address(ctx, side):
    low = await side.register(ctx, "DENIED_LO")
    return low | await side.register(ctx, "DENIED_HI") << 32


@pytest.mark.parametrize("window, core", [(0, 0), (1, 1), (2, 1), (3, 0)])
def test_window_edges(window, core):
    """The first and the last byte of a window are inside, their neighbours are not; rights of
    writes and reads are apart; a window of HBM says nothing of the core window.
    """
    bench = BridgeBench(TINY, seed=window + 4 * core)
    a, b = bench.a, bench.b
    space = CORE if core else 0
    first, last = 0x1000, 0x2FFF
    cases = [  # address of a byte, inside
        (first, True),
        (first - 1, False),
        (last, True),
        (last + 1, False),
        (0, False),
        (1 << 26, False),
        (first + (1 << 32), False),
        (first + (1 << 43), False),
    ]

    async def one(ctx, address, *, write):
        """(answer, BRIDGE_STATUS, DENIED) of an access to one byte."""
        word = address // 16 * 16
        if write:
            a.writer.add(0, word, [(FULL, 1 << address % 16)])
        else:
            a.reader.add(0, word, 1)
        await bench.settle(ctx, more=60)
        status = await b.register(ctx, "BRIDGE_STATUS")
        at = await denied_address(ctx, b)
        await b.clear(ctx)
        return (a.writer.answers[-1] if write else a.reader.results[-1])[1], status, at

    async def script(ctx):
        for writes, reads in ((1, 1), (1, 0), (0, 1), (0, 0)):
            await b.window(ctx, window, space + first, space + last, writes=writes, reads=reads,
                           core=core)  # fmt: skip
            for address, inside in cases if writes and reads else cases[:1]:
                before = bytes(b.memory.data), bytes(b.core.data)
                got = await one(ctx, space + address, write=True)
                after = bytes(b.memory.data), bytes(b.core.data)
                if inside and writes:
                    assert got == (OKAY, 0, 0)
                    assert after[core][address] == 0xFF and after[1 - core] == before[1 - core]
                else:
                    assert got == (OKAY, WRITE_DENIED, space + address), f"{address:#x}"
                    assert after == before
                resp, status, at = await one(ctx, space + address, write=False)
                word = address // 16 * 16
                if inside and reads:
                    assert (resp, status, at) == (OKAY, 0, 0)
                    data = after[core][word : word + 16]
                    assert a.reader.results[-1][2] == [int.from_bytes(data, "little")]
                else:
                    assert (resp, status, at) == (SLVERR, READ_DENIED, space + word)
            other = first + (0 if core else CORE)
            assert (await one(ctx, other, write=True))[1:] == (WRITE_DENIED, other)
            assert (await one(ctx, other, write=False))[0] == SLVERR

    bench.run(script)
    assert not b.errors
    outside = sum(not inside for _, inside in cases)
    assert b.denied == 2 * outside + 1 + 1 + 2 + 2 * 4


def test_windows_are_shut_at_first():
    """Default deny; the first denied address stays until CLEAR, the write's before the read's."""
    bench = BridgeBench(TINY, seed=9)
    a, b = bench.a, bench.b

    async def script(ctx):
        for window in range(LINK_WINDOWS):
            assert await b.register(ctx, "WINDOW_MODE", window=window) == 0
        a.writer.add(0, 0, [(FULL, 1)])
        await bench.settle(ctx)
        a.writer.add(0, 0x123450, [(FULL, 4)])
        a.writer.add(0, CORE + SEMAPHORE_OFFSET, [(1, 0xF)])
        a.reader.add(0, 0x40, 2)
        await bench.settle(ctx)
        assert await b.register(ctx, "BRIDGE_STATUS") == WRITE_DENIED | READ_DENIED
        assert await denied_address(ctx, b) == 0
        await b.clear(ctx)
        a.writer.add(0, CORE + SEMAPHORE_OFFSET, [(1, 0xF)])
        await bench.settle(ctx)
        a.writer.add(0, 0, [(FULL, 1)])
        await bench.settle(ctx)
        assert await b.register(ctx, "BRIDGE_STATUS") == WRITE_DENIED
        assert await denied_address(ctx, b) == CORE + SEMAPHORE_OFFSET
        await b.window(ctx, 3, 0x12345000, 0xFEDCBA98000, reads=0, core=1)
        assert await b.register(ctx, "WINDOW_BASE", window=3) == 0x12345
        assert await b.register(ctx, "WINDOW_LIMIT", window=3) == 0xFEDCBA98
        assert await b.register(ctx, "WINDOW_MODE", window=3) == 0x11

    before = bytes(bench.b.memory.data), bytes(bench.b.core.data)
    bench.run(script)
    assert (bytes(b.memory.data), bytes(b.core.data)) == before
    assert not b.core.writes and a.reader.results[0][1] == SLVERR and b.denied == 6


def write(address, data, **changes):
    """Granules of a WRITE of whole words, with a header that may say something else."""
    fields = {"kind": PacketKind.WRITE, "granules": 1 + len(data), "bytes": 16 * len(data)}
    return [header(**{**fields, "address": address, **changes}), *data]


BAD = {
    "unknown kind": (0, [header(kind=9, granules=1)], Reason.BAD_TYPE),
    "kind 0": (0, [0], Reason.BAD_TYPE),
    "kind 15 with data": (0, [header(kind=15, granules=3, bytes=32), 1, 2], Reason.BAD_TYPE),
    "read among the posted": (0, [header(kind=3, granules=1, bytes=16)], Reason.BAD_TYPE),
    "completion among the posted": (0, [header(kind=4, granules=1)], Reason.BAD_TYPE),
    "write among requests": (4, write(0x40, [5]), Reason.BAD_TYPE),
    "write among completions": (2, write(0x40, [5]), Reason.BAD_TYPE),
    "no bytes": (0, write(0x40, [5], bytes=0), Reason.PACKET_LENGTH),
    "no bytes, no data": (0, write(0x40, []), Reason.PACKET_LENGTH),
    "less data than bytes": (0, write(0x40, [5], bytes=17), Reason.PACKET_LENGTH),
    "more data than bytes": (0, write(0x40, [5, 6], bytes=16), Reason.PACKET_LENGTH),
    "header says more": (0, write(0x40, [5], granules=3), Reason.PACKET_LENGTH),
    "header says less": (0, write(0x40, [5, 6], granules=2), Reason.PACKET_LENGTH),
    "both say less": (0, write(0x40, [5, 6, 7], granules=2, bytes=16), Reason.PACKET_LENGTH),
    "both say more": (0, write(0x40, [5, 6], granules=4, bytes=48), Reason.PACKET_LENGTH),
    "too long": (0, write(0x40, list(range(65)), bytes=1040), Reason.PACKET_LENGTH),
    "crosses a page": (0, write(0x1FF8, [5, 6], bytes=16), Reason.PACKET_LENGTH),
    "crosses by a byte": (0, write(0x1FFF, [5, 6], bytes=2), Reason.PACKET_LENGTH),
    "1024 bytes in 65 words": (0, write(0x48, list(range(65)), granules=66, bytes=1024),
                               Reason.PACKET_LENGTH),
    "semaphore with data": (0, [header(kind=2, granules=2), 5], Reason.PACKET_LENGTH),
    "semaphore with bytes": (0, [header(kind=2, granules=1, bytes=4)], Reason.PACKET_LENGTH),
    "semaphore not aligned": (0, [header(kind=2, granules=1, address=CORE + 2)],
                              Reason.PACKET_LENGTH),
    "other vc": (1, write(0x40, [5]), Reason.BAD_TYPE),
    "management vc": (6, write(0x40, [5]), Reason.BAD_TYPE),
}  # fmt: skip


@pytest.mark.parametrize("beat", [16, 64])
def test_bad_packets(beat):
    """Each bad packet has its reason and no other effect; the packet behind it is performed."""
    config = TINY.with_(link_beat_bytes=64, link_lanes=8) if beat == 64 else TINY
    bench = BridgeBench(config, seed=11, stall=0.2)
    b, wire = bench.b, bench.there
    image, core = bytearray(b.memory.data), bytes(b.core.data)

    async def script(ctx):
        await b.open(ctx)
        for number, (name, (vc, granules, reason)) in enumerate(BAD.items()):
            wire.inject(vc, granules)
            good = random.Random(number).getrandbits(128)
            wire.inject(0, write(0x8000 + 16 * number, [good]))
            image[0x8000 + 16 * number : 0x8010 + 16 * number] = good.to_bytes(16, "little")
            bench.a.reader.add(0, 0x100, 4)
            await bench.settle(ctx, more=120)
            assert b.errors == [reason], name
            assert b.memory.data == image, name
            assert await b.register(ctx, "BRIDGE_STATUS") == reason << 8, name
            await b.clear(ctx)
            b.errors.clear()
        assert bench.a.reader.results[-1][1] == OKAY
        # The first reason stays.
        wire.inject(0, BAD["unknown kind"][1])
        wire.inject(0, BAD["no bytes"][1])
        await bench.settle(ctx)
        assert await b.register(ctx, "BRIDGE_STATUS") == Reason.BAD_TYPE << 8

    bench.run(script)
    assert bytes(b.core.data) == core
    assert not bench.a.errors


READS = {
    "no bytes": {"bytes": 0},
    "too many bytes": {"bytes": 1025},
    "crosses a page": {"bytes": 32, "address": 0x1FF0},
    "65 words": {"bytes": 1024, "address": 8},
    "more granules": {"bytes": 16, "granules": 2},
}


def test_bad_reads_are_answered():
    """Whoever asks gets an answer, even to what may not be asked."""
    bench = BridgeBench(TINY, seed=12)
    answers = []

    def keep(vc, packet):
        answers.append(packet)
        return packet

    bench.back.edit = keep

    async def script(ctx):
        await bench.b.open(ctx)
        for number, changes in enumerate(READS.values()):
            fields = {"kind": PacketKind.READ, "granules": 1, "tag": 0x73 + number, **changes}
            granules = [header(**fields)] + [0] * (fields["granules"] - 1)
            bench.there.inject(4, granules)
        await bench.settle(ctx)

    bench.run(script)
    assert answers == [
        [
            header(
                kind=PacketKind.COMPLETION,
                granules=1,
                tag=0x73 + number,
                status=PacketStatus.BUS_ERROR,
                address=changes.get("address", 0),
            )
        ]
        for number, changes in enumerate(READS.values())
    ]
    assert bench.b.errors == [Reason.PACKET_LENGTH] * len(READS)
    assert not bench.a.errors, "the tags are of no read of a"


def test_reads_of_any_bytes():
    """Bytes outside the range are zero in a completion."""
    bench = BridgeBench(TINY, seed=13)
    cases = [(5, 1), (5, 11), (5, 12), (0x1F, 2), (CORE + 3, 40), (0xFFF, 1), (0x400, 1024)]
    answers = []
    bench.back.edit = lambda vc, packet: answers.append(packet) or packet

    async def script(ctx):
        await bench.b.open(ctx)
        for address, length in cases:
            bench.there.inject(
                4, [header(kind=PacketKind.READ, granules=1, bytes=length, address=address)]
            )
        await bench.settle(ctx)

    bench.run(script)
    for (address, length), (_, *words) in zip(cases, answers, strict=True):
        source = bench.b.core.data if address >= CORE else bench.b.memory.data
        at = address % CORE
        low, high = at // 16 * 16, -(-(at + length) // 16) * 16
        expected = bytearray(high - low)
        expected[at - low : at - low + length] = source[at : at + length]
        assert b"".join(w.to_bytes(16, "little") for w in words) == expected


def test_poison():
    """What is known to be bad is not written, and does not pass for an answer."""
    bench = BridgeBench(TINY, seed=14)
    a, b = bench.a, bench.b
    before = bytes(b.memory.data)

    async def script(ctx):
        await b.open(ctx)
        bench.there.inject(0, write(0x40, [1, 2]), poison=True)
        await bench.settle(ctx)
        assert await b.register(ctx, "BRIDGE_STATUS") == BUS_ERROR
        bench.there.held = True
        a.reader.add(0, 0, 2)
        await bench.until(ctx, lambda: len(bench.there.queues[4]) == 1)
        bench.back.inject(
            2,
            [header(kind=PacketKind.COMPLETION, granules=3, bytes=32), 1, 2],
            poison=True,
        )
        await bench.until(ctx, lambda: a.reader.done, limit=200)

    bench.run(script)
    assert bytes(b.memory.data) == before
    assert [resp for _, resp, _ in a.reader.results] == [SLVERR]


WRONG_COMPLETIONS = {
    "short": ({"granules": 2, "bytes": 16}, [1]),
    "long": ({"granules": 4, "bytes": 48}, [1, 2, 3]),
    "bytes": ({"granules": 3, "bytes": 31}, [1, 2]),
    "data of an error": ({"granules": 3, "bytes": 32, "status": 1}, [1, 2]),
    "no data": ({"granules": 1, "bytes": 32}, []),
    "cut off": ({"granules": 3, "bytes": 32}, [1]),
    "more than it says": ({"granules": 3, "bytes": 32}, [1, 2, 3]),
}


@pytest.mark.parametrize("name", WRONG_COMPLETIONS)
def test_wrong_completions(name):
    """A completion that is not what was asked for is an error, and the read behind it is right."""
    bench = BridgeBench(TINY, seed=15)
    a = bench.a
    changes, data = WRONG_COMPLETIONS[name]

    async def script(ctx):
        await bench.b.open(ctx)
        bench.there.held = True
        a.reader.add(0, 0, 2)
        await bench.until(ctx, lambda: len(bench.there.queues[4]) == 1)
        bench.back.inject(2, [header(kind=PacketKind.COMPLETION, **changes), *data])
        await bench.until(ctx, lambda: a.reader.done, limit=200)
        bench.there.held = False
        await bench.settle(ctx)
        a.reader.add(1, 0x40, 2)
        await bench.settle(ctx)

    bench.run(script)
    assert [resp for _, resp, _ in a.reader.results] == [SLVERR, OKAY]
    data = bench.b.memory.data[0x40:0x60]
    assert b"".join(w.to_bytes(16, "little") for w in a.reader.results[1][2]) == data
    assert a.errors == [Reason.PACKET_LENGTH]
