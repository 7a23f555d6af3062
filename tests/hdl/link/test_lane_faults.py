# amaranth: UnusedElaboratable=no
"""Receive lanes when something is wrong: training frames in data, START, lanes, PRBS errors."""

import pytest

from isa.link import FRAME, MARKER_WORD, FrameType, LinkConfig, Width, unpack_bits
from verif.lane_channel import Channel, LaneBench


def test_training_seen():
    """Frames of a peer that trains again, once data run; not while training."""
    link = LinkConfig(beat_bytes=64, lanes=8, deskew_depth=16)
    channel = Channel(link, delays=[0, 5, 8, 1, 2, 3, 4, 4], inverted=0x21)
    bench = LaneBench(link, channel)

    async def script(b):
        for width in (Width.FULL, Width.LOW_HALF, Width.QUARTER2):
            await b.restart(width)
            await b.cycle(60)
            b.same(10)
            assert not b.events["training_seen"]
            # Three of eight lanes stuck do not hide it, at full width.
            stuck = 0b111 if width == Width.FULL else 0
            b.set(b.tx, send=1, inject_stuck=stuck)
            await b.until(lambda: b.events["training_seen"], 30)
            b.set(b.tx, inject_stuck=0)
            await b.cycle(8)
            b.set(b.rx, unlock=1)
            await b.cycle()
            b.events["training_seen"].clear()
            b.set(b.rx, unlock=0)
            await b.cycle(100)
            assert not b.events["training_seen"], "there are no data"

    bench.run(script)


class StartSpoiler:
    """`Channel.spoil` that changes one word of START on some lanes; symbols of one word."""

    def __init__(self, lanes, word):
        self.lanes, self.word = lanes, word
        self.place, self.marker, self.hits = None, False, 0

    def __call__(self, number, symbols):
        if self.place is not None:
            self.place += 1
        elif self.marker and symbols[0] & 15 == FrameType.START:
            self.place = 1
        self.marker = symbols[0] == MARKER_WORD
        if self.place != self.word:
            return symbols
        self.hits += 1
        return [s ^ 0x8001 if lane in self.lanes else s for lane, s in enumerate(symbols)]


def test_marker_in_data_is_no_training():
    """One step of markers, or two that are not a frame apart, may be data; five of eight lanes
    decide.
    """
    link = LinkConfig(beat_bytes=32, lanes=8, deskew_depth=16)
    channel = Channel(link, delays=[0, 5, 8, 1, 2, 3, 4, 4])
    bench = LaneBench(link, channel)

    async def script(b):
        await b.restart()
        cases = (((0,), 8, 0), ((0, 7), 8, 0), ((0, 9), 8, 0), ((0, 8), 4, 0), ((0, 8), 5, 1))
        for places, hit, seen in cases:
            first = channel.steps + 3

            def spoil(number, symbols, first=first, places=places, hit=hit):
                if number - first in places:
                    return [MARKER_WORD] * hit + symbols[hit:]
                return symbols

            channel.spoil = spoil
            b.events["training_seen"].clear()
            await b.cycle(40)
            assert len(b.events["training_seen"]) == seen, (places, hit)

    bench.run(script)


def test_start_spoiled_on_some_lanes():
    """One good START in the group is enough, be its lane the first or the last to come; none is
    not.
    """
    link = LinkConfig(beat_bytes=16, lanes=4, deskew_depth=32)
    channel = Channel(link, delays=[24, 0, 7, 16])
    bench = LaneBench(link, channel)

    async def script(b):
        for width, word in ((Width.FULL, 7), (Width.FULL, 1), (Width.HIGH_HALF, 4)):
            group = width.lanes(4)
            for good in (group[0], group[1], None):
                channel.spoil = StartSpoiler([i for i in range(4) if i != good], word)
                b.set(b.tx, send=1)
                b.set(b.rx, unlock=1)
                await b.cycle()
                b.set(b.rx, unlock=0)
                await b.train(width)
                b.beats.clear()
                b.got.clear()
                b.events["start"].clear()
                b.set(b.tx, send=2)
                await b.cycle(60)
                assert channel.spoil.hits == 1
                if good is None:
                    assert not b.events["start"] and not b.got and b.levels["aligned"]
                else:
                    assert len(b.events["start"]) == 1
                    b.same(20 // width.divisor)

    bench.run(script)


@pytest.mark.parametrize(("reversed_", "dead"), [(False, 0b00000110), (True, 0b01100000)])
def test_stuck_lane_never_locks(reversed_, dead):
    """And the group without it works."""
    link = LinkConfig(beat_bytes=32, lanes=8, deskew_depth=16)
    channel = Channel(link, delays=[0, 1, 2, 3, 4, 5, 6, 7], reversed_=reversed_)
    bench = LaneBench(link, channel)

    async def script(b):
        # Sender's lanes 1 and 2 are stuck at zeros and ones.
        b.set(b.tx, inject_stuck=1 << 1 | 1 << 18)
        await b.restart(Width.HIGH_HALF, 0xFF & ~dead)
        await b.cycle(100)
        assert b.levels["locked"] & dead == 0
        assert b.levels["reversed"] == reversed_ and not b.levels["order_bad"]
        b.same(40)

    bench.run(script)


def test_order_bad():
    """Lanes crossed otherwise than by reversal."""
    link = LinkConfig(beat_bytes=32, lanes=4, deskew_depth=16)
    channel = Channel(link)
    bench = LaneBench(link, channel)

    async def script(b):
        for order, bad in (("0123", 0), ("1023", 1), ("3210", 0), ("3120", 1)):
            channel.spoil = lambda number, symbols, order=order: [symbols[int(i)] for i in order]
            b.set(b.rx, unlock=1)
            await b.cycle()
            b.set(b.rx, unlock=0)
            await b.train()
            assert b.levels["order_bad"] == bad, order

    bench.run(script)


@pytest.mark.parametrize(
    ("beat_bytes", "lanes", "reversed_"), [(32, 8, True), (32, 4, False), (64, 4, False)]
)
def test_frames_received(beat_bytes, lanes, reversed_):
    """Content of the lowest lane of the group, or of the lowest locked one before alignment."""
    link = LinkConfig(beat_bytes=beat_bytes, lanes=lanes, deskew_depth=16)
    delays = [i % 5 for i in range(lanes)]
    bench = LaneBench(link, Channel(link, delays=delays, reversed_=reversed_))
    bench.frame |= {"capability": 0x2B, "want": 5, "epoch": 2, "seen": 1, "echo": 0xBEEF}

    async def script(b):
        await b.train(Width.QUARTER2)
        b.frames.clear()
        await b.cycle(40)
        aligned = list(b.frames)
        b.set(b.tx, inject_stuck=1)
        b.set(b.rx, align=0)
        dead = 1 << (lanes - 1 if reversed_ else 0)
        await b.until(lambda: b.levels["locked"] == (1 << lanes) - 1 - dead)
        b.frames.clear()
        await b.cycle(40)
        lowest = lanes - 1 if reversed_ else 1
        for frames, lane in ((aligned, lanes // 2), (b.frames, lowest)):
            assert len(frames) >= 40 // 8 * link.symbol_words - 1
            stamps = []
            for _, bits in frames:
                frame = unpack_bits(FRAME, bits)
                stamps.append(frame.pop("stamp"))
                wanted = {**b.frame, "type": FrameType.TS1, "lane": lane, "fresh": 0, "spare": 0}
                assert frame == wanted
            steps = {new - old for old, new in zip(stamps[:-1], stamps[1:], strict=True)}
            assert steps == {8 // link.symbol_words}, "every frame, once"

    bench.run(script)


def test_prbs_errors_are_counted():
    """On the lane they happen on; polarity and boundary do not matter; locks are left alone."""
    link = LinkConfig(beat_bytes=32, lanes=4, deskew_depth=16)
    channel = Channel(link, delays=[0, 3, 1, 2], offsets=[0, 7, 33, 1], inverted=0b0010)
    bench = LaneBench(link, channel)

    async def script(b):
        await b.cycle(3)
        b.set(b.tx, send=3)
        await b.cycle(12)
        b.set(b.rx, prbs=1)
        await b.cycle(100)
        assert b.errors == [0] * 4
        assert b.slips == [0] * 4
        hits = {10: 2, 20: 0, 30: 2, 40: 3}
        first = channel.steps

        def spoil(number, symbols):
            lane = hits.get(number - first)
            return [s ^ (i == lane) << 5 for i, s in enumerate(symbols)]

        channel.spoil = spoil
        await b.cycle(60)
        # Bit 5 of the sender's symbol is bit (69 - offset) mod 64 of a received one: 5, 36, 4. The
        # bits 28 and 31 later fall into another symbol on lane 2.
        assert b.errors == [1, 0, 2 * 2, 1]
        b.set(b.tx, inject_stuck=1 << 1)
        await b.cycle(10)
        b.errors[:] = [0] * 4
        await b.cycle(20)
        assert b.errors == [0, 20, 0, 0]
        b.set(b.rx, prbs=0)
        await b.cycle(2)
        b.errors[:] = [0] * 4
        await b.cycle(50)
        assert b.errors == [0] * 4

    bench.run(script)


def test_a_lane_that_stops_is_an_overflow():
    link = LinkConfig(beat_bytes=16, lanes=4, deskew_depth=16)
    channel = Channel(link, delays=[0, 1, 2, 3])
    bench = LaneBench(link, channel)

    async def script(b):
        await b.restart()
        await b.cycle(30)
        channel.stop(2, 40)
        await b.until(lambda: b.levels["overflow"], 30)
        await b.cycle(30)
        assert b.levels["overflow"] and not b.levels["aligned"]
        assert b.got == b.beats[: len(b.got)], "nothing wrong came out"
        channel.set_delays([0, 1, 2, 3])
        await b.restart(Width.HIGH_HALF)
        # A lane outside of the group does not matter.
        channel.stop(1, 40)
        await b.cycle(60)
        b.same(20)
        assert not b.levels["overflow"]

    bench.run(script)
