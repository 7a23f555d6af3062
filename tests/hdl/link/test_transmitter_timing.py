# amaranth: UnusedElaboratable=no
"""Transmitter: latency, no gaps, NAK to replay, weights, start, stop, flush, clear."""

import pytest

from isa.link import LONG_GRANULES, REPLAY_FLITS, VCS, Command, FlitType, Format
from verif.transmitter_bench import TransmitterBench, link_of

CONTROL, DATA, REPLAY = FlitType.CONTROL, FlitType.DATA, FlitType.REPLAY


async def steps(ctx, bench, count):
    for _ in range(count):
        await bench.step(ctx)


def data_flits(flits):
    return [slot for slot in flits if slot["type"] == DATA]


@pytest.mark.smoke
@pytest.mark.parametrize("beat_bytes", [16, 32, 64])
def test_latency(beat_bytes):
    """A packet of one granule, taken in the cycle before a flit boundary: 4 cycles later on `o`."""
    bench = TransmitterBench(link_of(beat_bytes), 1)
    latencies = []

    async def run(ctx):
        await bench.grant_all(ctx)
        bench.enable = 1
        await steps(ctx, bench, 40)
        for gap in range(8):
            await steps(ctx, bench, 20 + gap)
            bench.sources[2].packet(1)
            for _ in range(20):
                await bench.step(ctx)
                if bench.out["taken"]:
                    taken = bench.cycle
                    granule = int.from_bytes(bench.out["taken"][2][0][0], "little")
                if bench.out["valid"] and bench.out["beat"] & (1 << 128) - 1 == granule:
                    latencies.append(bench.cycle - taken)

    bench.simulate(run)
    assert len(latencies) == 8
    assert set(latencies) == set(range(4, 4 + bench.link.cell_beats))


@pytest.mark.parametrize("beat_bytes", [16, 32, 64])
def test_no_gaps(beat_bytes):
    """Data at the full rate goes in long flits only, and `o` is valid in every cycle; so it is in
    replays, where no other flit comes between; a NAK is answered soon.
    """
    link = link_of(beat_bytes, replay_bytes=16384)
    bench = TransmitterBench(link, 2)

    async def run(ctx):
        await bench.grant_all(ctx)
        bench.enable = 1
        await steps(ctx, bench, 6)
        bench.sources[1].packet(7, cut=False)
        base = 0
        for cycle in range(14 * link.long_beats):
            if len(bench.sources[1].beats) < 2:
                bench.sources[1].packet(64, cut=False)
            await bench.step(ctx)
            assert bench.out["valid"] == 1, f"cycle {cycle}"
        data = data_flits(bench.flits)
        long = [slot["format"] == Format.LONG for slot in data]
        assert all(long[long.index(True) :]) and sum(long) >= 8
        first = bench.flits.index(data[long.index(True)])
        assert data_flits(bench.flits[first:]) == bench.flits[first:]

        # NAK: the flit in work, the one announced, the REPLAY flits; then all, back to back
        for _ in range(2):
            base = data[5]["sequence"]
            bench.acknowledge = (base, 1)
            bench.sources[1].beats.clear()
            before, asked = len(bench.flits), bench.cycle
            for _ in range(4 * link.long_beats):
                await bench.step(ctx)
                assert bench.out["valid"] == 1
                if bench.out["slot"] and bench.out["slot"]["replayed"]:
                    break
            assert len(bench.flits) > before and bench.flits[-1]["replayed"]
            length = link.long_beats if bench.flits[-1]["format"] else link.cell_beats
            begun = bench.cycle - length - 1
            assert begun - asked <= 2 * link.long_beats + REPLAY_FLITS * link.cell_beats + 6
            await steps(ctx, bench, 12 * link.long_beats)
            behind = bench.flits[before:]
            start = next(i for i, slot in enumerate(behind) if slot["type"] == REPLAY)
            replay = start + REPLAY_FLITS
            assert [s["type"] for s in behind[start:replay]] == [REPLAY] * REPLAY_FLITS
            copies = [slot for slot in behind if slot["replayed"]]
            assert len(copies) >= 4
            # A REPLAY flit of one beat is over before the copy is found: up to two CONTROL flits
            while beat_bytes == 64 and behind[replay]["type"] == CONTROL:
                replay += 1
            assert replay <= start + REPLAY_FLITS + 2
            assert behind[replay : replay + len(copies)] == copies
            numbers = [slot["sequence"] for slot in copies]
            assert numbers == list(range(base, base + len(copies)))
            await steps(ctx, bench, 12 * link.long_beats)

    bench.simulate(run)


@pytest.mark.parametrize(
    ("beat_bytes", "lengths"),
    [(16, range(140, 152)), (32, range(134, 170, 2)), (64, range(130, 176, 4))],
)
def test_end_of_a_burst(beat_bytes, lengths):
    """Wherever a flow at the full rate ends: a long flit is announced only if its granules are
    there when the present flit has taken its own.
    """
    link = link_of(beat_bytes, replay_bytes=16384)
    bench, formats = TransmitterBench(link, 8), set()

    async def run(ctx):
        await bench.grant_all(ctx)
        bench.enable = 1
        await steps(ctx, bench, 30)
        for length in lengths:
            begun = len(bench.sources[5].sent)
            bench.flits.clear()
            for size in (60, 60, length - 120):
                bench.sources[5].packet(size, cut=False)
            while bench.sources[5].beats:
                await bench.step(ctx)
            await steps(ctx, bench, 4 * link.long_beats)
            data = data_flits(bench.flits)
            got = [granule for slot in data for granule in slot["data"][: slot["valid"]]]
            assert got == [granule for granule, _, _ in bench.sources[5].sent[begun:]], length
            formats.update((slot["format"], slot["valid"]) for slot in data)
            bench.acknowledge = ((data[-1]["sequence"] + 1) % 1024, 0)

    bench.simulate(run)
    assert {(Format.LONG, 39), (Format.SHORT, 3), (Format.SHORT, 1)} <= formats


def test_weights():
    """From full queues: each VC in turn has as many flits as its weight, 0 counting as 1."""
    link = link_of(64, queue_granules=512, replay_bytes=32768)
    bench = TransmitterBench(link, 3)
    bench.weights = weights = [3, 1, 0, 2, 15, 1, 4, 2]

    async def run(ctx):
        await bench.grant_all(ctx)
        for source in bench.sources:
            for _ in range(13 if source.vc == 4 else 6):
                source.packet(LONG_GRANULES, cut=False)
        await steps(ctx, bench, 560)
        bench.enable = 1
        await steps(ctx, bench, 300)

    bench.simulate(run)
    runs = []
    for slot in data_flits(bench.flits):
        if runs and runs[-1][0] == slot["vc"]:
            runs[-1][1] += 1
        else:
            runs.append([slot["vc"], 1])
    expected = [[vc, max(1, weight)] for vc, weight in enumerate(weights)]
    expected[4][1] = 13  # it runs dry before it has had its fifteen
    assert runs[:8] == expected


@pytest.mark.parametrize("beat_bytes", [16, 64])
@pytest.mark.parametrize("command", [0, Command.RETRAIN, Command.DISABLE])
def test_stop_and_start(beat_bytes, command):
    """The flit in work and a long one that was announced, the command, nothing; then REPLAY."""
    link = link_of(beat_bytes, replay_bytes=16384)
    bench = TransmitterBench(link, 4)

    async def run(ctx):
        await bench.grant_all(ctx)
        for offset in range(0, 3 * link.long_beats, 3 if beat_bytes == 64 else 19):
            bench.enable = 1
            bench.flits.clear()
            await steps(ctx, bench, 8)
            assert bench.out["idle"] == 0
            bench.stop_command = 0
            for _ in range(12 * link.cell_beats + offset):
                if len(bench.sources[1].beats) < 2:
                    bench.sources[1].packet(64, cut=False)
                await bench.step(ctx)
            bench.enable, bench.stop_command = 0, command
            begun = len(bench.flits)
            for _ in range(3 * link.long_beats):
                await bench.step(ctx)
                if bench.out["idle"]:
                    break
            assert bench.out["idle"] == 1
            assert bench.decoder.beats == 0 and bench.decoder.next_format == Format.SHORT
            # Up to two flits are still in the pipeline, one in work, one announced, the command
            assert len(bench.flits) - begun <= 3 + 3 // link.cell_beats + 1
            last = bench.flits[-1]
            assert last["command"] == command
            assert command == 0 or last["type"] == CONTROL
            assert all(slot["command"] == 0 for slot in bench.flits[:-1])
            assert [slot["type"] for slot in bench.flits[:REPLAY_FLITS]] == [REPLAY] * REPLAY_FLITS
            await steps(ctx, bench, 5)
            assert bench.out["valid"] == 0 and bench.out["idle"] == 1
            bench.acknowledge = ((last["sequence"] + 1) % 1024, 0)
            await bench.step(ctx)

    bench.simulate(run)


@pytest.mark.parametrize("beat_bytes", [16, 32, 64])
def test_flush(beat_bytes):
    """`o` falls at once; what was cut off comes in the replay, none is lost or comes twice."""
    link = link_of(beat_bytes, replay_bytes=16384)
    bench = TransmitterBench(link, 5)
    accepted, expected = [], 0

    async def run(ctx):
        nonlocal expected
        await bench.grant_all(ctx)
        for offset in range(0, 3 * link.long_beats, 3 if beat_bytes == 64 else 17):
            bench.enable = 1
            bench.flits.clear()
            for _ in range(24 * link.cell_beats + offset):
                if len(bench.sources[1].beats) < 2:
                    bench.sources[1].packet(64, cut=False)
                await bench.step(ctx)
            for slot in data_flits(bench.flits):
                if slot["sequence"] == expected:
                    accepted.extend(slot["data"][: slot["valid"]])
                    expected = (expected + 1) % 1024
            bench.enable, bench.flush = 0, 1
            await bench.step(ctx)
            for _ in range(link.long_beats + 2):
                await bench.step(ctx)
                assert bench.out["valid"] == 0
            assert bench.out["idle"] == 1
            bench.acknowledge = (expected, 0)
            await bench.step(ctx)

    bench.simulate(run)
    sent = [granule for granule, _, _ in bench.sources[1].sent]
    assert len(accepted) > 200 and accepted == sent[: len(accepted)]


def test_clear():
    """Sequence numbers, credit and queues begin anew; the rest of a cut packet is thrown away."""
    bench = TransmitterBench(link_of(64), 6)

    async def run(ctx):
        await bench.grant_all(ctx)
        bench.enable = 1
        bench.rate = [0.3] * VCS
        bench.sources[1].packet(40)
        bench.sources[2].packet(4)
        await steps(ctx, bench, 25)
        assert bench.sources[1].beats and data_flits(bench.flits)
        assert bench.out["credits_known"] == 1
        bench.clear, bench.enable = 1, 0
        await bench.step(ctx)
        await bench.step(ctx)
        assert bench.out["credits_known"] == 0 and bench.out["valid"] == 0
        assert bench.out["idle"] == 1 and bench.out["replay_level"] == 0
        begun = len(bench.flits)
        bench.sources[1].packet(5, join=False)
        while bench.sources[1].beats:
            await bench.step(ctx)
        await bench.grant_all(ctx)
        bench.enable = 1
        await steps(ctx, bench, 40)
        data = data_flits(bench.flits[begun:])
        assert [slot["sequence"] for slot in data] == list(range(len(data)))
        got = [granule for slot in data for granule in slot["data"][: slot["valid"]]]
        assert got == [granule for granule, _, _ in bench.sources[1].sent[-5:]]
        assert data[0]["first"] == 0

    bench.simulate(run)


def test_owed_nak_and_poison():
    """A NAK stands in one slot; poison marks the flit with the granule, its copies too."""
    bench = TransmitterBench(link_of(64), 7)

    async def run(ctx):
        await bench.grant_all(ctx)
        bench.enable = 1
        await steps(ctx, bench, 12)
        bench.nak_owed = 1
        while not bench.out["nak_taken"]:
            await bench.step(ctx)
        bench.nak_owed = 0
        bench.expected = 77
        bench.sources[3].packet(9, poison_rate=0.0, cut=False)
        bench.sources[3].beats[1][2] = 1
        await steps(ctx, bench, 20)
        bench.acknowledge = (0, 1)
        await steps(ctx, bench, 30)

    bench.simulate(run)
    naks = [slot for slot in bench.flits if slot["nak"]]
    assert len(naks) == 1 == bench.counts["nak_sent"]
    data = data_flits(bench.flits)
    sent = bench.sources[3].sent
    for slot in data:
        at = sum(s["valid"] for s in data[: data.index(slot)] if not s["replayed"])
        if not slot["replayed"]:
            assert slot["poison"] == any(p for _, _, p in sent[at : at + slot["valid"]])
        assert slot["acknowledge"] == 77
    fresh = [s["poison"] for s in data if not s["replayed"]]
    assert fresh == [s["poison"] for s in data if s["replayed"]]
    assert 0 < sum(fresh) < len(fresh)
    assert bench.counts["poison_sent"] == sum(fresh)
