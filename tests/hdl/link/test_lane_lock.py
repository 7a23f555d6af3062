# amaranth: UnusedElaboratable=no
"""LaneLock: boundary, polarity, lock and its loss, on symbols made from the specification."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.lane_lock import LaneLock
from isa.link import FRAME, MARKER_WORD, SKIP_WORD, FrameType, pack_bits

WORDS = [1, 2, 4]
LANES, POSITION = 8, 2
MASK = (1 << 32) - 1


def frame_words(stamp, lane=POSITION, kind=FrameType.TS1, session=0x12345678, echo=0):
    content = pack_bits(
        FRAME,
        {"type": kind, "lane": lane, "version": 1, "session": session, "stamp": stamp,
         "echo": echo},
    )  # fmt: skip
    words = [MARKER_WORD, *(content >> 32 * i & MASK for i in range(3))]
    return words + [~word & MASK for word in words]


class Bench:
    """feed(words): a symbol a cycle; records what the lane says, by symbol number."""

    def __init__(self, words, script, stamp_bit=8, gaps=0.2):
        self.words, self.gaps = words, gaps
        self.dut = LaneLock(words=words, lanes=LANES, stamp_bit=stamp_bit)
        self.rng = random.Random(words)
        self.number = 0
        self.seen = {name: [] for name in ("good", "start", "cross", "bad", "slip", "marker")}
        self.out = []

        async def bench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.position, POSITION)
            await script(self)

        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        simulator.run()

    def get(self, name):
        return self.ctx.get(getattr(self.dut, name))

    async def pulse(self, name):
        self.ctx.set(getattr(self.dut, name), 1)
        self.ctx.set(self.dut.valid, 0)
        await self.ctx.tick()
        self.ctx.set(getattr(self.dut, name), 0)

    async def feed(self, words):
        dut, ctx = self.dut, self.ctx
        for i in range(0, len(words), self.words):
            symbol = sum(word << 32 * j for j, word in enumerate(words[i : i + self.words]))
            while True:
                valid = self.rng.random() >= self.gaps
                ctx.set(dut.valid, valid)
                ctx.set(dut.symbol, symbol if valid else self.rng.getrandbits(32 * self.words))
                for name, places in self.seen.items():
                    if ctx.get(getattr(dut, name)) and (valid or name == "slip"):
                        places.append(self.number)
                if valid:
                    self.out.append(ctx.get(dut.o))
                await ctx.tick()
                if valid:
                    break
            self.number += 1

    def forget(self):
        for places in self.seen.values():
            places.clear()


def noise(rng, count):
    return [rng.getrandbits(32) for _ in range(count)]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("polarity", [0, MASK])
def test_locks_after_four_good_frames(words, polarity):
    """From any place of a frame, in either polarity."""

    async def script(b):
        for first in range(0, 8, words):
            await b.pulse("clear")
            stream = []
            for number in range(12):
                stream += frame_words(8 * number)
            stream = [word ^ polarity for word in stream[first:]]
            fed = 0
            while not b.get("locked"):
                assert stream, "never locks"
                await b.feed(stream[:words])
                stream, fed = stream[words:], fed + words
            assert (first + fed) % 8 == 0, "at the end of a frame"
            assert fed >= 4 * 8, "four frames"
            # At most a frame is lost to the start, one to the wrong view of it.
            assert fed <= 6 * 8
            assert b.get("inverted") == (polarity != 0)
            assert b.get("normal") and not b.get("mirrored")
            b.forget()
            b.out.clear()
            at = b.number
            await b.feed(stream[: 3 * 8])
            steps = 8 // words
            assert b.seen["good"] == [at + steps * i - 1 for i in (1, 2, 3)]
            marker = [at + steps * i for i in range(3)]
            assert b.seen["marker"] == marker
            assert b.out[0] & MASK == MARKER_WORD

    Bench(words, script)


@pytest.mark.parametrize("words", WORDS)
def test_three_good_frames_do_not_lock(words):
    async def script(b):
        stamp = 0
        for _ in range(4):
            for _ in range(3):
                await b.feed(frame_words(stamp))
                stamp += 8
            bad = frame_words(stamp)
            bad[b.rng.randrange(1, 8)] ^= 1 << b.rng.randrange(32)
            await b.feed(bad)
            assert not b.get("locked")
            # Its beginning is looked for anew.
            for _ in range(2):
                await b.feed(frame_words(stamp))
            await b.pulse("unlock")

    Bench(words, script)


@pytest.mark.parametrize("words", WORDS)
def test_loses_lock_after_four_bad_frames(words):
    async def lock(b):
        for stamp in range(0, 80, 8):
            await b.feed(frame_words(stamp))
        assert b.get("locked")

    async def script(b):
        await lock(b)
        for _ in range(2):
            for word, also in ((0, 4), (b.rng.randrange(8), None), (7, None)):
                bad = frame_words(3)
                for place in (word, also):
                    # With its complement changed as well, the marker is no marker all the same.
                    if place is not None:
                        bad[place] ^= 1 << 9
                await b.feed(bad)
            assert b.get("locked"), "three are not enough"
            await b.feed(frame_words(5))
        assert len(b.seen["bad"]) == 6
        await b.feed(noise(b.rng, 3 * 8))
        assert b.get("locked")
        await b.feed(noise(b.rng, 8))
        assert not b.get("locked")
        assert not b.seen["slip"]
        # And again, with the other polarity.
        for stamp in range(0, 80, 8):
            await b.feed([word ^ MASK for word in frame_words(stamp)])
        assert b.get("locked") and b.get("inverted")
        await b.pulse("unlock")
        assert not b.get("locked") and b.get("inverted"), "unlock keeps the polarity"
        await lock(b)
        assert not b.get("inverted"), "until a marker says otherwise"

    Bench(words, script)


@pytest.mark.parametrize("words", WORDS)
def test_hold(words):
    """While held nothing is lost, nothing slips; frames are still seen."""

    async def script(b):
        for stamp in range(0, 80, 8):
            await b.feed(frame_words(stamp))
        b.ctx.set(b.dut.hold, 1)
        await b.feed(noise(b.rng, 60 * 8))
        assert b.get("locked") and not b.seen["slip"]
        b.forget()
        await b.feed(frame_words(1))
        assert len(b.seen["good"]) == 1
        await b.pulse("unlock")
        await b.feed(sum(map(frame_words, range(20)), []))
        assert not b.get("locked") and not b.seen["slip"]
        b.ctx.set(b.dut.hold, 0)
        await b.feed(sum(map(frame_words, range(6)), []))
        assert b.get("locked")

    Bench(words, script)


@pytest.mark.parametrize("words", WORDS)
def test_slips(words):
    """A slip after 64 words without a good frame, the next one 32 + 64 words later."""

    async def script(b):
        await b.pulse("unlock")
        first = b.number
        await b.feed([0] * 400)
        places = [(place - first) * words for place in b.seen["slip"]]
        assert places == [64, 160, 256, 352]
        # Markers without a frame behind them do not put it off.
        b.forget()
        await b.pulse("unlock")
        first = b.number
        await b.feed(([MARKER_WORD] + [0] * 7) * 50)
        places = [(place - first) * words for place in b.seen["slip"]]
        assert places == [64, 160, 256, 352]
        # Behind a slip 32 words are not looked at.
        b.forget()
        await b.pulse("unlock")
        await b.feed([0] * 64)
        await b.feed(sum(map(frame_words, range(4)), []))
        assert not b.get("locked")
        await b.feed(sum(map(frame_words, range(4)), []))
        assert b.get("locked")

    Bench(words, script, gaps=0.0)


@pytest.mark.parametrize("words", WORDS)
def test_lane_number_start_and_errors_behind_it(words):
    async def script(b):
        for lane in (LANES - 1 - POSITION, POSITION + 1, POSITION, POSITION + 16):
            for stamp in range(4):
                await b.feed(frame_words(stamp, lane=lane))
            if lane == LANES - 1 - POSITION:
                await b.feed(frame_words(8, lane=lane) + frame_words(9, lane=lane))
            assert b.get("mirrored") == (lane == LANES - 1 - POSITION)
            assert b.get("normal") == (lane == POSITION)
        assert not b.seen["start"]
        await b.feed(frame_words(9, kind=FrameType.START))
        assert b.seen["start"] == b.seen["good"][-1:]
        await b.feed(noise(b.rng, 8))
        assert not b.seen["bad"], "behind START are data"

    Bench(words, script)


@pytest.mark.parametrize("words", WORDS)
def test_crossing(words):
    """Exactly the frames behind a change of bit 6, if the frame before is known."""

    async def script(b):
        stamps = list(range(0, 700, 10))
        for stamp in stamps:
            await b.feed(frame_words(stamp))
        steps = 8 // words
        wanted = [
            (i + 1) * steps - 1
            for i, (old, new) in enumerate(zip(stamps[:-1], stamps[1:], strict=True), 1)
            if (old ^ new) >> 6 & 1 and i > 4
        ]
        assert b.seen["cross"] == wanted and len(wanted) > 5
        b.forget()
        bad = frame_words(0)
        bad[4] ^= 1
        await b.feed(frame_words(63) + bad + frame_words(66))
        await b.feed(frame_words(130))
        assert b.seen["cross"] == [b.number - 1], "not behind a frame that was bad"

    Bench(words, script, stamp_bit=6)


@pytest.mark.parametrize("words", WORDS)
def test_skip_flag(words):
    async def script(b):
        b.ctx.set(b.dut.valid, 1)
        good = sum(SKIP_WORD << 32 * i for i in range(words))
        b.ctx.set(b.dut.symbol, good)
        assert b.get("skip")
        for bit in range(0, 32 * words, 7):
            b.ctx.set(b.dut.symbol, good ^ 1 << bit)
            assert not b.get("skip")

    Bench(words, script)
