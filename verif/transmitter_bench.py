"""Drives a link's Transmitter in Amaranth's simulator and takes its flits apart again."""

import random
from collections import deque

from amaranth.hdl import Cat, Signal, Value
from amaranth.sim import Simulator

from hdl.link.ports import packet_beat
from hdl.link.transmitter import EVENTS, Transmitter
from isa.link import (
    CELL_BYTES,
    GRANULE_BYTES,
    LONG_CELLS,
    SLOT,
    VCS,
    Command,
    FlitType,
    Format,
    LinkConfig,
    unpack_bits,
)

SESSION, EPOCH = 0x89ABCDEF, 2
SALT = 0xEF_89ABCDEF
GRANULE_BITS = 8 * GRANULE_BYTES


def link_of(beat_bytes, **changes):
    """A small link of that beat."""
    parameters = {"lanes": 4, "replay_bytes": 2048, "queue_granules": 128, **changes}
    return LinkConfig(beat_bytes=beat_bytes, **parameters)


def plain_crc(bits, count):
    """CRC-40 of `count` bits, bit 0 first, by the textbook: division by 0xCF1ED7C637."""
    register = (1 << 40) - 1
    for i in range(count):
        out = register >> 39 ^ (bits >> i & 1)
        register = (register << 1 & (1 << 40) - 1) ^ (0xCF1ED7C637 if out else 0)
    return int(f"{register:040b}"[::-1], 2)


class Source:
    """Packets of one VC, cut into beats; a beat is offered until it is taken."""

    def __init__(self, link, rng, vc):
        self.link, self.rng, self.vc = link, rng, vc
        self.layout = packet_beat(link)
        self.beats = deque()
        """[granules, mask of those that end a packet, poison] of what is still to be offered."""
        self.offered = None
        self.sent = []
        """(granule, begins a packet, poison) of all beats that have been taken."""
        self._inside = False

    def packet(self, granules, poison_rate=0.0, cut=True, join=True):
        """Queue one packet of that many granules.  `cut`: in beats of random size, else of full
        ones; `join`: its first beat may hold the end of the packet before.
        """
        left, most = granules, self.link.beat_granules
        while left:
            room = most - len(self.beats[-1][0]) if self.beats else 0
            if left < granules or not join or not room or (cut and self.rng.getrandbits(1)):
                self.beats.append([[], 0, 0])
                room = most
            count = min(left, room)
            if cut:
                count = self.rng.randint(1, count)
            left -= count
            beat = self.beats[-1]
            beat[0] += [self.rng.getrandbits(GRANULE_BITS) for _ in range(count)]
            beat[1] |= int(left == 0) << len(beat[0]) - 1
            beat[2] |= int(self.rng.random() < poison_rate)

    def drive(self, put, port, rate):
        """Offer the next beat, by `put` (signal, value)."""
        if self.offered is None and self.beats and self.rng.random() < rate:
            self.offered = self.beats.popleft()
            data, last, poison = self.offered
            # Bits beyond the granules are to be ignored
            filler = self.rng.getrandbits(8 * self.link.beat_bytes)
            filler = filler >> GRANULE_BITS * len(data) << GRANULE_BITS * len(data)
            value = sum(g << GRANULE_BITS * i for i, g in enumerate(data)) | filler
            last |= self.rng.getrandbits(self.link.beat_granules) >> len(data) << len(data)
            fields = {"data": value, "granules": len(data), "last": last, "poison": poison}
            put(port.payload, self.layout.const(fields).as_value().value)
            put(port.valid, 1)
        elif self.offered is None:
            put(port.valid, 0)

    def taken(self):
        """The offered beat was taken: [(granule as bytes, ends a packet, poison)]."""
        assert self.offered is not None
        data, last, poison = self.offered
        self.offered = None
        for i, granule in enumerate(data):
            self.sent.append((granule, not self._inside, poison))
            self._inside = not last >> i & 1
        return [
            (granule.to_bytes(GRANULE_BYTES, "little"), last >> i & 1, poison)
            for i, granule in enumerate(data)
        ]


class Flits:
    """Gathers beats to flits by the announced formats and checks what holds for every flit."""

    def __init__(self, link):
        self.link, self.next_format = link, Format.SHORT
        self.image, self.beats = 0, 0

    def beat(self, value):
        """The slot (with `format` and `data`, a list of granules) if the flit ends with it."""
        self.image |= value << 8 * self.link.beat_bytes * self.beats
        self.beats += 1
        cells = LONG_CELLS if self.next_format == Format.LONG else 1
        if self.beats * self.link.beat_bytes < cells * CELL_BYTES:
            return None
        bits = 8 * cells * CELL_BYTES
        slot = unpack_bits(SLOT, self.image >> bits - GRANULE_BITS)
        assert slot["crc"] == plain_crc(self.image, bits - 40) ^ SALT, "CRC"
        capacity = bits // GRANULE_BITS - 1
        data = [self.image >> GRANULE_BITS * i & (1 << GRANULE_BITS) - 1 for i in range(capacity)]
        slot["format"], slot["data"] = self.next_format, data
        self._check(slot, capacity)
        self.next_format, self.image, self.beats = Format(slot["next_format"]), 0, 0
        return slot

    @staticmethod
    def _check(slot, capacity):
        assert slot["type"] in set(FlitType) and slot["command"] in set(Command)
        assert slot["reserved"] == 0 and slot["epoch"] == EPOCH
        assert slot["format"] == Format.SHORT or not slot["nak"], "a NAK in a long flit"
        assert not any(slot["data"][slot["valid"] :]), "what is not valid is zero"
        assert slot["credit_a_vc"] != slot["credit_b_vc"]
        if slot["type"] == FlitType.DATA:
            assert slot["payload"] == 1 and 1 <= slot["valid"] <= capacity
            assert slot["format"] == Format.SHORT or slot["valid"] == capacity, "long is full"
            assert slot["first"] == 63 or slot["first"] < slot["valid"]
            assert slot["command"] == 0
        else:
            assert slot["format"] == Format.SHORT
            assert (slot["payload"], slot["valid"], slot["vc"]) == (0, 0, 0)
            assert (slot["first"], slot["replayed"], slot["poison"]) == (63, 0, 0)


class TransmitterBench:
    """One transmitter, its sources and its inputs.

    `step` runs one cycle: inputs are set before it through the methods and attributes below, and
    outputs are left in `out`.  `flits` collects the slots of all flits that leave.
    """

    def __init__(self, link, seed):
        self.link, self.rng = link, random.Random(seed)
        self.dut = Transmitter(link)
        self.sources = [Source(link, self.rng, vc) for vc in range(VCS)]
        self.decoder = Flits(link)
        self.rate = [1.0] * VCS
        self.ready_rate = 1.0
        self.enable = self.stop_command = self.flush = self.clear = 0
        self.expected = self.nak_owed = self.congestion = 0
        self.limits = [256] * VCS
        self.timer_cycles, self.weights = 60000, [1] * VCS
        self.acknowledge = self.credit = None  # (acknowledge, nak), (a_vc, a, b_vc, b)
        self.cycle, self.flits = 0, []
        self.counts = dict.fromkeys(EVENTS, 0)
        self._names = ("idle", "credits_known", "replay_limit", "progress", "error", "sent_vc",
                       "sent_granules", "replay_level", *EVENTS)  # fmt: skip
        self.out, self._inputs, self._changes = {}, {}, []

    def simulate(self, bench):
        """`bench`: coroutine function of (ctx)."""
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        simulator.run()

    def _put(self, signal, value):
        """Set with the next `_apply`, if it is a change: every set of its own costs a settling."""
        signal = Value.cast(signal)
        assert isinstance(signal, Signal)
        if self._inputs.get(id(signal)) != value:
            self._inputs[id(signal)] = value
            self._changes.append((signal, value))

    def _apply(self, ctx):
        word, low = 0, 0
        for signal, value in self._changes:
            word |= value << low
            low += len(signal)
        if low:
            ctx.set(Cat(signal for signal, _ in self._changes), word)
        self._changes = []

    async def step(self, ctx):
        dut, out, put = self.dut, self.out, self._put
        for source in self.sources:
            if source.beats or source.offered is None:
                source.drive(put, getattr(dut, f"tx{source.vc}"), self.rate[source.vc])
        ready = int(self.rng.random() < self.ready_rate)
        put(dut.o.ready, ready)
        for name in ("enable", "stop_command", "flush", "clear", "timer_cycles"):
            put(getattr(dut, name), getattr(self, name))
        put(dut.session, SESSION)
        put(dut.epoch, EPOCH)
        put(dut.weights, sum(w << 4 * vc for vc, w in enumerate(self.weights)))
        put(dut.reverse.expected, self.expected)
        put(dut.reverse.nak, self.nak_owed)
        put(dut.limits.congestion, self.congestion)
        for vc in range(VCS):
            put(getattr(dut.limits, f"limit{vc}"), self.limits[vc])
        put(dut.acknowledge.valid, self.acknowledge is not None)
        if self.acknowledge is not None:
            put(dut.acknowledge.acknowledge, self.acknowledge[0])
            put(dut.acknowledge.nak, self.acknowledge[1])
        put(dut.credit.valid, self.credit is not None)
        if self.credit is not None:
            for name, value in zip(("a_vc", "a", "b_vc", "b"), self.credit, strict=True):
                put(getattr(dut.credit, name), value)
        self._apply(ctx)

        for name in self._names:
            out[name] = ctx.get(getattr(dut, name))
        out["nak_taken"] = ctx.get(dut.reverse.nak_taken)
        out["ready"] = ready
        out["valid"] = ctx.get(dut.o.valid)
        out["beat"] = ctx.get(dut.o.payload) if out["valid"] else None
        taken = ctx.get(Cat(getattr(dut, f"tx{vc}").ready for vc in range(VCS)))
        out["taken"] = {
            vc: self.sources[vc].taken()
            for vc in range(VCS)
            if taken >> vc & 1 and self.sources[vc].offered is not None
        }
        out["slot"] = None
        if out["valid"] and ready:
            out["slot"] = self.decoder.beat(out["beat"])
            if out["slot"]:
                self.flits.append(out["slot"])
        if self.flush or self.clear:
            self.decoder = Flits(self.link)
        for name in EVENTS:
            self.counts[name] += out[name]
        await ctx.tick()
        self.cycle += 1
        self.acknowledge = self.credit = None
        self.flush = self.clear = 0

    async def grant_all(self, ctx, units=1024):
        """First limits of all VCs."""
        for vc in range(0, VCS, 2):
            self.credit = (vc, units, vc + 1, units)
            await self.step(ctx)
