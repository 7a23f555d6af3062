# amaranth: UnusedElaboratable=no
"""LaneTransmit: every step against striping and scrambling written down bit by bit."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.lane_tx import LaneTransmit
from isa.link import (
    FRAME,
    MARKER_WORD,
    SKIP_WORD,
    FrameType,
    LinkConfig,
    Width,
    lane_seed,
    pack_bits,
    unpack_bits,
)

SIZES = [(16, 4), (32, 4), (32, 8), (64, 4), (64, 8), (64, 16)]
CONTENT = {"version": 1, "capability": 0x5A, "want": 3, "fresh": 1, "session": 0xC001D00D}


class Lanes:
    """Model of a lane group in data."""

    def __init__(self, link, width):
        self.link, self.group = link, list(width.lanes(link.lanes))
        self.width = width
        self.states = {lane: lane_seed(lane) for lane in self.group}

    def _scramble(self, lane, symbol):
        s, out = self.states[lane], 0
        for bit in range(self.link.symbol_bits):
            out |= ((symbol >> bit ^ s >> 22) & 1) << bit
            s = (s << 1 | (s >> 22 ^ s >> 17) & 1) & 0x7FFFFF
        self.states[lane] = s
        return out

    def beat(self, beat):
        """Steps of a beat, each as `tx_data`."""
        link, active = self.link, len(self.group)
        queues = {lane: [] for lane in self.group}
        for i in range(link.beat_bytes // 4):
            queues[self.group[i % active]].append(beat >> 32 * i & 0xFFFFFFFF)
        steps = []
        for _ in range(self.width.divisor):
            step = 0
            for lane, queue in queues.items():
                symbol = sum(queue.pop(0) << 32 * j for j in range(link.symbol_words))
                step |= self._scramble(lane, symbol) << lane * link.symbol_bits
            steps.append(step)
        return steps

    def skip(self):
        symbol = sum(SKIP_WORD << 32 * j for j in range(self.link.symbol_words))
        return sum(symbol << lane * self.link.symbol_bits for lane in self.group)


class Bench:
    """Drives LaneTransmit; `sent`: (tx_data, tx_enable) of each step taken."""

    def __init__(self, link, seed=0, ready=1.0, offer=1.0):
        self.dut, self.link, self.rng = LaneTransmit(link), link, random.Random(seed)
        self.ready, self.offer = ready, offer
        self.sent, self.beats, self.stamps = [], [], []
        self.number = 0
        self.pulses = {"frame_sent": 0, "skips": 0}
        self.offered = False

    def run(self, script):
        async def bench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.frame, {**CONTENT, "type": FrameType.TS1})
            await script()

        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        simulator.run()

    def set(self, **values):
        for name, value in values.items():
            self.ctx.set(getattr(self.dut, name), value)

    async def cycle(self, count=1):
        dut, ctx, rng = self.dut, self.ctx, self.rng
        for _ in range(count):
            ctx.set(dut.tx_ready, rng.random() < self.ready)
            ctx.set(dut.frame.stamp, self.number & 0xFFFF)
            if not self.offered:
                self.offered = rng.random() < self.offer
                ctx.set(dut.i.valid, self.offered)
                ctx.set(dut.i.p, rng.getrandbits(8 * self.link.beat_bytes))
            _, _, ready, data, enable, taken, beat, frame, skip = await ctx.tick().sample(
                dut.tx_ready, dut.tx_data, dut.tx_enable, dut.i.ready, dut.i.p,
                dut.frame_sent, dut.skips)  # fmt: skip
            if ready:
                self.sent.append((data, enable))
            if taken:
                assert ready, "a beat was taken while the PHY was not ready"
            if taken and self.offered:
                self.beats.append(beat)
                self.offered = False
            self.pulses["frame_sent"] += frame
            self.pulses["skips"] += skip
            self.number += 1


def parse_frame(link, steps):
    """{lane: contents} of the steps of a frame; AssertionError if it is none."""
    contents = {}
    for lane in range(link.lanes):
        bits = 0
        for i, (step, enable) in enumerate(steps):
            assert enable == (1 << link.lanes) - 1
            symbol = step >> lane * link.symbol_bits & ((1 << link.symbol_bits) - 1)
            bits |= symbol << i * link.symbol_bits
        assert bits & 0xFFFFFFFF == MARKER_WORD
        assert bits >> 128 == ~bits & ((1 << 128) - 1), "complements"
        contents[lane] = unpack_bits(FRAME, bits >> 32 & ((1 << 96) - 1))
    return contents


def frames_then_data(link, sent):
    """Frames until START; the steps behind it."""
    steps, frames = 8 // link.symbol_words, []
    at = next(i for i, (_, enable) in enumerate(sent) if enable)
    while True:
        frames.append(parse_frame(link, sent[at : at + steps]))
        at += steps
        if frames[-1][0]["type"] == FrameType.START:
            return frames, [data for data, _ in sent[at:]]


@pytest.mark.parametrize(("beat_bytes", "lanes"), SIZES)
def test_steps(beat_bytes, lanes):
    """Frames with every lane's number, one START, then exactly the beats and skips, with stalls;
    in all widths one behind the other.
    """
    link = LinkConfig(beat_bytes=beat_bytes, lanes=lanes, skip_cycles=64)
    bench = Bench(link, seed=beat_bytes + lanes, ready=0.85)

    async def script():
        for width in Width:
            bench.set(send=0)
            while bench.ctx.get(bench.dut.tx_enable):
                await bench.cycle()
            bench.sent.clear()
            bench.beats.clear()
            bench.pulses["frame_sent"] = 0
            bench.set(send=1, width=width)
            await bench.cycle(30)
            bench.set(start=1)
            while not bench.ctx.get(bench.dut.started):
                await bench.cycle()
            bench.set(send=2, start=0)
            await bench.cycle(100)
            check_steps(bench, width)

    bench.run(script)


def check_steps(bench, width):
    link = bench.link
    frames, data = frames_then_data(link, bench.sent)
    for number, frame in enumerate(frames):
        kind = FrameType.START if number == len(frames) - 1 else FrameType.TS1
        stamp = frame[0]["stamp"]
        for lane in range(link.lanes):
            wanted = {**CONTENT, "type": kind, "lane": lane, "stamp": stamp}
            assert pack_bits(FRAME, frame[lane]) == pack_bits(FRAME, wanted)
    stamps = [frame[0]["stamp"] for frame in frames]
    assert stamps == sorted(set(stamps)), "sampled at each frame's start"
    assert bench.pulses["frame_sent"] == len(frames)

    model, wanted = Lanes(link, width), []
    plain = 0
    for beat in bench.beats:
        for step in model.beat(beat):
            if plain == link.skip_cycles:
                wanted.append(model.skip())
                plain = 0
            wanted.append(step)
            plain += 1
    assert len(wanted) >= 70 and model.skip() in wanted
    short = min(len(wanted), len(data))
    assert len(data) - short <= width.divisor
    for number in range(short):
        assert data[number] == wanted[number], f"{width!r}: step {number}"


@pytest.mark.parametrize("width", [Width.FULL, Width.HIGH_HALF, Width.QUARTER3])
def test_fills_with_skips(width):
    """Without a beat at the start of one a skip step goes out; never inside a beat."""
    link = LinkConfig(beat_bytes=64, lanes=8)
    bench = Bench(link, seed=3, ready=0.9, offer=0.3)

    async def script():
        bench.set(send=2, width=width)
        await bench.cycle(300)

    bench.run(script)
    _, data = frames_then_data(link, bench.sent)
    model = Lanes(link, width)
    steps = iter(data)
    skips = 0
    for beat in bench.beats:
        wanted = model.beat(beat)
        step = next(steps, None)
        while step == model.skip():
            skips += 1
            step = next(steps, None)
        for part in wanted:
            assert step in (part, None)
            if part is not wanted[-1]:
                step = next(steps, None)
    assert len(bench.beats) > 30 and skips > 30
    assert bench.pulses["skips"] >= skips


def test_back_to_frames_and_silence():
    """Data end with `send`; frames follow at once, from a marker on; the next START begins anew."""
    link = LinkConfig(beat_bytes=32, lanes=4)
    bench = Bench(link, seed=4)

    async def script():
        for _ in range(2):
            bench.set(send=1, start=1)
            await bench.cycle(30)
            assert bench.ctx.get(bench.dut.started)
            bench.set(start=0)
            await bench.cycle(2)
            assert not bench.ctx.get(bench.dut.started)
            await bench.cycle(8)
        await bench.cycle(1)
        bench.set(send=0)
        await bench.cycle(2)
        bench.sent.clear()
        await bench.cycle(5)
        assert bench.sent == [(0, 0)] * 5, "silent"
        bench.set(send=2)
        await bench.cycle(20)
        assert bench.ctx.get(bench.dut.started)
        bench.set(clear=1, send=0)
        await bench.cycle(1)
        assert not bench.ctx.get(bench.dut.started)
        assert bench.ctx.get(bench.dut.tx_enable) == 0

    bench.run(script)


def test_second_start_scrambles_from_the_seed():
    link = LinkConfig(beat_bytes=16, lanes=4)
    bench = Bench(link, seed=5)

    async def script():
        for _ in range(2):
            bench.set(send=1)
            await bench.cycle(19)
            bench.beats.clear()
            bench.set(send=2)
            while not bench.ctx.get(bench.dut.started):
                await bench.cycle()
            # The last step of START is on the lanes now.
            bench.sent.clear()
            await bench.cycle(41)
            model = Lanes(link, Width.FULL)
            wanted = [step for beat in bench.beats for step in model.beat(beat)]
            got = [data for data, _ in bench.sent][1:]
            assert len(got) == 40 and got == wanted[:40]

    bench.run(script)


def test_beat_is_on_the_lanes_one_cycle_later():
    link = LinkConfig(beat_bytes=64, lanes=8)
    bench = Bench(link, seed=6)

    async def script():
        bench.set(send=2)
        while not bench.ctx.get(bench.dut.started):
            await bench.cycle()
        model = Lanes(link, Width.FULL)
        for _ in range(20):
            await bench.cycle()
            (step,) = model.beat(bench.beats[-1])
            assert bench.ctx.get(bench.dut.tx_data) == step

    bench.run(script)


def test_loopback():
    """What the same lane received goes out, whatever `send` says."""
    link = LinkConfig(beat_bytes=32, lanes=8)
    bench = Bench(link, seed=7, ready=0.7)

    async def script():
        bench.set(loopback=1)
        for number in range(60):
            value = bench.rng.getrandbits(256)
            bench.set(loopback_data=value, send=number % 3)
            before = bench.ctx.get(bench.dut.tx_data)
            await bench.cycle()
            taken = bench.ctx.get(bench.dut.tx_ready)
            assert bench.ctx.get(bench.dut.tx_data) == (value if taken else before)

    bench.run(script)


def test_prbs():
    """Each lane sends PRBS-31, inverted as in ITU-T O.150, not all the same."""
    link = LinkConfig(beat_bytes=32, lanes=4)
    bench = Bench(link, seed=8, ready=0.8)

    async def script():
        await bench.cycle(3)
        bench.sent.clear()
        bench.set(send=3)
        await bench.cycle(60)

    bench.run(script)
    lines = []
    for lane in range(4):
        bits = 0
        for i, (data, enable) in enumerate(bench.sent[1:]):
            assert enable == 15
            bits |= (data >> 64 * lane & (1 << 64) - 1) << 64 * i
        count = 64 * (len(bench.sent) - 1)
        plain = ~bits & ((1 << count) - 1)
        assert (plain >> 31 ^ plain >> 3 ^ plain) & ((1 << count - 31) - 1) == 0
        assert plain
        lines.append(bits)
    assert len(set(lines)) == 4
