# amaranth: UnusedElaboratable=no
"""Beats through transmit lanes, a channel with its faults, receive lanes: bit for bit."""

import random

import pytest

from isa.link import SKIP_WORD, LinkConfig, Width
from verif.lane_channel import Channel, LaneBench

SIZES = [
    (16, 4),
    (32, 8),
    (64, 4),
    (64, 8),
    pytest.param(32, 4, marks=pytest.mark.nightly),
    pytest.param(64, 16, marks=pytest.mark.nightly),
]
"""Every pair that can be built."""


@pytest.mark.parametrize(("beat_bytes", "lanes"), SIZES)
def test_every_width(beat_bytes, lanes):
    """Random delays, inverted and reversed lanes, stalls on both sides, a skip step every 64."""
    link = LinkConfig(beat_bytes=beat_bytes, lanes=lanes, deskew_depth=16, skip_cycles=64)
    rng = random.Random(beat_bytes + lanes)
    channel = Channel(
        link,
        delays=[rng.randrange(9) for _ in range(lanes)],
        inverted=rng.getrandbits(lanes),
        reversed_=lanes != 8,
    )
    bench = LaneBench(link, channel, seed=1)

    async def script(b):
        for width in Width:
            b.ready = b.offer = 1.0
            await b.restart(width)
            assert b.levels["reversed"] == (lanes != 8) and not b.levels["order_bad"]
            assert b.levels["inverted"] == channel.inverted
            b.ready = b.offer = 0.9
            await b.cycle(100)
            b.same(60 // width.divisor)
        assert len(b.events["skips_received"]) >= 4
        assert not any(b.errors)
        assert not b.events["training_seen"]

    bench.run(script)


@pytest.mark.smoke
def test_latency():
    """A beat taken in cycle n is on the lanes in n + 1; symbols of cycle n are a beat in n + 2."""
    link = LinkConfig(beat_bytes=64, lanes=8, deskew_depth=16)
    bench = LaneBench(link)

    async def script(b):
        await b.restart()
        b.taken_at.clear()
        b.got_at.clear()
        # Start after what is under way.
        await b.cycle(10)
        b.taken_at, b.got_at = [], []
        under_way = len(b.beats) - len(b.got)
        await b.cycle(40)
        assert len(b.taken_at) == len(b.got_at) == 40, "a beat each cycle"
        for taken, got in zip(b.taken_at, b.got_at[under_way:], strict=False):
            assert got == taken + 1 + Channel.CYCLES + 2

    bench.run(script)


@pytest.mark.parametrize(("beat_bytes", "lanes"), [(16, 4), (32, 4), (64, 4)])
def test_slips_to_the_boundary(beat_bytes, lanes):
    """Every lane finds its own symbol boundary, by as many slips as it takes."""
    link = LinkConfig(beat_bytes=beat_bytes, lanes=lanes, deskew_depth=32)
    bits = link.symbol_bits
    # A slip costs 96 words: not all the way round, and one lane is right at once.
    offsets = [bits - 1, bits - 3, 0, bits - 2]
    channel = Channel(link, delays=[3, 0, 8, 5], offsets=offsets, inverted=0b0110)
    bench = LaneBench(link, channel)

    async def script(b):
        await b.restart()
        await b.cycle(60)
        b.same(50)
        assert b.slips == [1, 3, 0, 2]

    bench.run(script)


@pytest.mark.parametrize(
    ("beat_bytes", "lanes"), [(16, 4), pytest.param(64, 4, marks=pytest.mark.nightly)]
)
def test_skew(beat_bytes, lanes):
    """Up to deskew_depth - 8 symbols beats arrive.  Beyond overflow is told, also where the stamp
    mark of one lane meets the next mark of another.
    """
    link = LinkConfig(beat_bytes=beat_bytes, lanes=lanes, deskew_depth=16)
    limit, interval = 16 - 8, 4 * 16
    bench = LaneBench(link)

    async def script(b):
        for skew in (0, limit - 1, limit):
            for late in (0b0001, 0b1101):
                delays = [skew if late >> i & 1 else 0 for i in range(lanes)]
                delays[1] = min(delays[1] + 3, skew)
                b.channel.set_delays(delays)
                await b.restart()
                await b.cycle(30)
                b.same(15)
                assert not b.levels["overflow"]
        beyond = (limit + 1, 15, 16, interval // 2, interval - 5, interval, interval + 9)
        for skew in beyond:
            b.channel.set_delays([0, 0, skew, 0])
            b.set(b.tx, send=1)
            b.set(b.rx, align=0, unlock=1)
            await b.cycle()
            b.set(b.rx, unlock=0)
            await b.cycle(skew + 1)
            await b.until(lambda: b.levels["locked"] == 15)
            b.set(b.rx, align=1)
            await b.cycle(2)
            await b.until(lambda: b.levels["overflow"] or b.levels["aligned"], 1000)
            assert b.levels["overflow"] and not b.levels["aligned"], skew
            b.set(b.rx, align=0)
            await b.cycle(2)
            assert not b.levels["overflow"]

    bench.run(script)


def test_frame_lost_at_the_mark_is_no_overflow():
    """A lane whose marked frame is corrupted aligns by the next mark."""
    link = LinkConfig(beat_bytes=16, lanes=4, deskew_depth=32)
    channel = Channel(link, delays=[0, 4, 8, 2])
    bench = LaneBench(link, channel)

    async def script(b):
        b.set(b.tx, send=1)
        await b.until(lambda: b.levels.get("locked") == 15)
        b.set(b.rx, align=1)
        # Stamps change bit 7 every 128 cycles: spoil lane 1 around the first change.
        channel.spoil = lambda number, symbols: (
            [symbols[0], symbols[1] ^ 1, *symbols[2:]] if 115 < number < 150 else symbols
        )
        await b.until(lambda: b.levels["aligned"] or b.levels["overflow"])
        assert b.levels["aligned"] and b.cycle_number > 256
        b.beats.clear()
        await b.data()
        await b.cycle(50)
        b.same(40)

    bench.run(script)


def test_phy_drops_and_repeats_skip_steps():
    """Clock compensation: no beat is lost or doubled."""
    link = LinkConfig(beat_bytes=32, lanes=8, deskew_depth=16, skip_cycles=64)
    channel = Channel(link, delays=[1, 5, 3, 0, 8, 2, 2, 1])
    rng = random.Random(5)
    copies = []

    def action(number):
        copies.append(0 if channel.waiting > 4 else rng.choice([0, 1, 2, 3]))
        return copies[-1]

    channel.skip_action = action
    bench = LaneBench(link, channel)

    async def script(b):
        for width in (Width.FULL, Width.HIGH_HALF, Width.QUARTER1):
            b.offer = 0.9
            await b.restart(width)
            copies.clear()
            b.events["skips_received"].clear()
            await b.cycle(250)
            b.same(150 // width.divisor)
            assert {0, 3} <= set(copies), "dropped, and repeated"
            assert abs(sum(copies) - len(b.events["skips_received"])) <= 16

    bench.run(script)


def test_errors_in_a_skip_step():
    """With most lanes intact it is still taken out; else all that follows is another beat."""
    link = LinkConfig(beat_bytes=32, lanes=8, deskew_depth=16, skip_cycles=64)
    channel = Channel(link)
    bench = LaneBench(link, channel)
    skip = [SKIP_WORD] * 8

    async def script(b):
        for hit in (3, 4):
            spoiled = []

            def spoil(number, symbols, hit=hit, spoiled=spoiled):
                if symbols == skip:
                    spoiled.append(number)
                    return [s ^ (1 << 9 if lane < hit else 0) for lane, s in enumerate(symbols)]
                return symbols

            channel.spoil = spoil
            await b.restart()
            await b.cycle(150)
            assert len(spoiled) >= 2
            if hit < 4:
                b.same(100)
            else:
                assert b.got[:60] == b.beats[:60] and b.got[70:100] != b.beats[70:100]

    bench.run(script)


def test_unlock_and_lock_again():
    """Polarity stays known or is found again; a new alignment after other delays."""
    link = LinkConfig(beat_bytes=32, lanes=4, deskew_depth=16)
    channel = Channel(link, delays=[0, 2, 4, 6], inverted=0b0101)
    bench = LaneBench(link, channel)

    async def script(b):
        for inverted, order in ((0b0101, False), (0b0101, True), (0b1010, True), (0, False)):
            channel.inverted, channel.reversed = inverted, order
            await b.restart()
            assert b.levels["inverted"] == inverted and b.levels["reversed"] == order
            await b.cycle(50)
            b.same(30)
            channel.set_delays(channel.delays[1:] + channel.delays[:1])

    bench.run(script)


def test_loses_lock_when_the_peer_falls_silent():
    link = LinkConfig(beat_bytes=32, lanes=4, deskew_depth=16)
    bench = LaneBench(link)

    async def script(b):
        b.set(b.tx, send=1)
        await b.until(lambda: b.levels.get("locked") == 15)
        b.set(b.tx, send=0)
        await b.until(lambda: b.levels["locked"] == 0, 80)
        assert b.errors == [4] * 4
        b.set(b.tx, send=1)
        await b.until(lambda: b.levels["locked"] == 15, 4000)
        # Dropped by hand while frames come: locked again within six frames.
        b.set(b.rx, unlock=1)
        await b.cycle()
        b.set(b.rx, unlock=0)
        await b.cycle()
        assert b.levels["locked"] == 0
        await b.until(lambda: b.levels["locked"] == 15, 6 * 4 + 8)

    bench.run(script)
