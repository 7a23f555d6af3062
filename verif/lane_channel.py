"""Transmit lanes, a channel, receive lanes in Amaranth's simulator."""

import random
from collections import deque

from amaranth.hdl import Module
from amaranth.sim import Simulator

from hdl.link.lane_rx import LaneReceive
from hdl.link.lane_tx import LaneTransmit
from isa.link import LINK_VERSION, SKIP_WORD, FrameType, Width


class Channel:
    """Carries steps from lane to lane: one each cycle that has one.

    delays: cycles, by physical lane of the receiver.  offsets: bits by which the boundary of a lane
    is late at first.  Changeable at any time: `inverted` (mask), `reversed`, `spoil(step number,
    [symbols]) -> [symbols]`, `skip_action(step number) -> copies` of a skip step.
    """

    CYCLES = 2
    """From `tx_data` to `rx_data` without delay."""

    def __init__(self, link, *, delays=None, offsets=None, inverted=0, reversed_=False):
        self.link = link
        self.inverted, self.reversed = inverted, reversed_
        offsets = offsets or [0] * link.lanes
        self.spoil = lambda number, symbols: symbols
        self.skip_action = lambda number: 1
        self.steps = 0
        self._waiting = deque()
        self._skip = sum(SKIP_WORD << 32 * i for i in range(link.symbol_words))
        self.set_delays(delays or [0] * link.lanes)
        # The bits at the receiver's boundary: a symbol more than needed, for slips to eat.
        self._bits = [[0, link.symbol_bits - offset] for offset in offsets]

    def set_delays(self, delays):
        """New delays; what was under way is lost."""
        self.delays = list(delays)
        self._lines = [deque([None] * delay) for delay in delays]

    def stop(self, lane, cycles):
        """A lane delivers nothing for so long, and is late by as much from then on."""
        self._lines[lane].extendleft([None] * cycles)

    @property
    def waiting(self):
        """Steps that repeated skip steps hold up."""
        return len(self._waiting)

    def put(self, data):
        """A step goes in, as `tx_data`."""
        bits = self.link.symbol_bits
        symbols = [data >> bits * i & ((1 << bits) - 1) for i in range(self.link.lanes)]
        active = [symbol for symbol in symbols if symbol]
        copies = 1
        if active and all(symbol == self._skip for symbol in active):
            copies = self.skip_action(self.steps)
        symbols = self.spoil(self.steps, symbols)
        self.steps += 1
        self._waiting.extend([symbols] * copies)

    def slip(self, mask):
        for lane, bits in enumerate(self._bits):
            if mask >> lane & 1:
                bits[0] >>= 1
                bits[1] -= 1

    def get(self):
        """(rx_data, rx_valid) of this cycle."""
        symbols = self._waiting.popleft() if self._waiting else None
        if symbols and self.reversed:
            symbols = symbols[::-1]
        width = self.link.symbol_bits
        data = valid = 0
        for lane, (line, bits) in enumerate(zip(self._lines, self._bits, strict=True)):
            line.append(symbols and symbols[lane])
            symbol = line.popleft()
            if symbol is None:
                continue
            bits[0] |= symbol << bits[1]
            bits[1] += width
            if bits[1] >= width:
                valid |= 1 << lane
                out = bits[0] & ((1 << width) - 1)
                if self.inverted >> lane & 1:
                    out ^= (1 << width) - 1
                data |= out << lane * width
                bits[0] >>= width
                bits[1] -= width
        return data, valid


class LaneBench:
    """Drives both ends cycle by cycle; what came out is in the attributes.

    beats, got: beats given and received.  events: name -> cycles of pulses.  frames: [(cycle,
    integer)].  ready, offer: probabilities.  before_tick(): called in every cycle when all inputs
    are set.
    """

    PULSES = (
        ("started", "frame_sent", "skips"),
        (
            "start",
            "training_seen",
            "skips_received",
            "frame_valid",
        ),
    )
    LEVELS = ("locked", "inverted", "aligned", "overflow", "order_bad", "reversed")

    def __init__(self, link, channel=None, seed=0):
        self.link, self.rng = link, random.Random(seed)
        self.channel = channel or Channel(link)
        self.tx, self.rx = LaneTransmit(link), LaneReceive(link)
        self.ready = self.offer = 1.0
        self.frame = {"version": LINK_VERSION, "session": self.rng.getrandbits(32)}
        self.cycle_number = 0
        self.beats, self.got, self.frames, self.sent = [], [], [], []
        self.taken_at, self.got_at = [], []
        self.errors = [0] * link.lanes
        self.slips = [0] * link.lanes
        self.events = {name: [] for names in self.PULSES for name in names}
        self.levels = {}
        self.before_tick = lambda: None
        self._offered = False

    def run(self, script):
        """Simulate `await script(bench)`."""
        m = Module()
        m.submodules.tx, m.submodules.rx = self.tx, self.rx
        simulator = Simulator(m)
        simulator.add_clock(1e-6)

        async def testbench(ctx):
            self.ctx = ctx
            ctx.set(self.tx.frame, {**self.frame, "type": FrameType.TS1})
            await script(self)

        simulator.add_testbench(testbench)
        simulator.run()

    def set(self, part, **values):
        for name, value in values.items():
            self.ctx.set(getattr(part, name), value)

    async def cycle(self, cycles=1):
        tx, rx, ctx, rng = self.tx, self.rx, self.ctx, self.rng
        stamp = tx.frame.stamp
        for _ in range(cycles):
            data, valid = self.channel.get()
            ctx.set(rx.rx_data, data)
            ctx.set(rx.rx_valid, valid)
            ctx.set(tx.tx_ready, rng.random() < self.ready)
            ctx.set(stamp, self.cycle_number & 0xFFFF)
            if not self._offered and rng.random() < self.offer:
                self._offered = True
                beat = rng.getrandbits(8 * self.link.beat_bytes)
                ctx.set(tx.i.p, beat)
                ctx.set(tx.i.valid, 1)
            elif not self._offered:
                ctx.set(tx.i.valid, 0)
            names = [getattr(tx, name) for name in self.PULSES[0]]
            names += [getattr(rx, name) for name in (*self.PULSES[1], *self.LEVELS)]
            self.before_tick()
            result = await ctx.tick().sample(
                tx.tx_data,
                tx.tx_ready,
                tx.i.ready,
                tx.i.p,
                rx.o_valid,
                rx.o_data,
                rx.frame,
                rx.lane_error,
                rx.rx_slip,
                *names,
            )
            (_, _, tx_data, ready, taken, beat, o_valid, o_data, frame, error, slip), values = (
                result[:11],
                result[11:],
            )
            values = dict(
                zip((*self.PULSES[0], *self.PULSES[1], *self.LEVELS), values, strict=True)
            )
            for name, cycles_seen in self.events.items():
                if values[name]:
                    cycles_seen.append(self.cycle_number)
            self.levels = {name: values[name] for name in self.LEVELS}
            if ready:
                self.channel.put(tx_data)
                self.sent.append(tx_data)
            if self._offered and taken:
                self.beats.append(beat)
                self.taken_at.append(self.cycle_number)
                self._offered = False
            if o_valid:
                self.got.append(o_data)
                self.got_at.append(self.cycle_number)
            if values["frame_valid"]:
                self.frames.append((self.cycle_number, frame.as_bits()))
            self.channel.slip(slip)
            for lane in range(self.link.lanes):
                self.errors[lane] += error >> lane & 1
                self.slips[lane] += slip >> lane & 1
            self.cycle_number += 1

    async def until(self, condition, most=3000):
        """Cycles until `condition()`; AssertionError after `most`."""
        for _ in range(most):
            if condition():
                return
            await self.cycle()
        raise AssertionError(f"not within {most} cycles: {self.levels}")

    async def train(self, width=Width.FULL, lanes=None, most=3000):
        """Frames until `lanes` (mask; default all) are locked, then aligned."""
        lanes = (1 << self.link.lanes) - 1 if lanes is None else lanes
        self.set(self.tx, send=1, start=0, width=width)
        self.set(self.rx, width=width, align=0)
        await self.cycle()
        await self.until(lambda: self.levels.get("locked", 0) & lanes == lanes, most)
        self.set(self.rx, align=1)
        await self.until(lambda: self.levels["aligned"], most)

    async def data(self, most=400):
        """START, until the receiver has it."""
        before = len(self.events["start"])
        self.set(self.tx, send=2)
        await self.until(lambda: len(self.events["start"]) > before, most)

    async def restart(self, width=Width.FULL, lanes=None):
        """Train from whatever state, then data; `beats` and `got` begin anew."""
        self.set(self.tx, send=1, start=0)
        self.set(self.rx, unlock=1)
        await self.cycle()
        self.set(self.rx, unlock=0)
        await self.train(width, lanes)
        self.beats.clear()
        self.got.clear()
        self.events["start"].clear()
        await self.data()

    def same(self, at_least):
        """What was received is what was sent, but for what is under way."""
        for number, beat in enumerate(self.got):
            assert beat == self.beats[number], f"beat {number}"
        assert len(self.got) >= at_least
        assert len(self.beats) - len(self.got) <= 6 + max(self.channel.delays)
