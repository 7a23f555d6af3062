# amaranth: UnusedElaboratable=no
"""VcBuffers against the golden model: packets, credit, one VC against the others."""

import random
from collections import deque

import pytest
from amaranth.sim import Simulator

from golden.link.unpack import Granule, Packet, Unpacker
from hdl.link.vc_buffers import VcBuffers
from isa.link import (
    GRANULE_BYTES,
    HEADER,
    LONG_GRANULES,
    MAX_PACKET_GRANULES,
    SHORT_GRANULES,
    VCS,
    LinkConfig,
    Reason,
    pack_bits,
    unpack_bits,
)
from verif.icarus import assert_same

BEATS = [16, 32, 64]
UNITS = (32, 64, 32, 128, 32, 32, 64, 32)


def link_of(beat_bytes, units=UNITS):
    return LinkConfig(beat_bytes=beat_bytes, lanes=4, vc_units=units)


def split(data, count, *masks):
    """[(bytes, bit of each mask)] of the `count` granules of a beat; masks are 0 beyond them."""
    assert not any(mask >> count for mask in masks), "a mark beyond the granules"
    body = data.to_bytes(max(64, GRANULE_BYTES * count), "little")
    return [
        (body[GRANULE_BYTES * i :][:GRANULE_BYTES], *(mask >> i & 1 for mask in masks))
        for i in range(count)
    ]


class Source:
    """Granules of one VC: (bytes, named in `first`, end), by packets of random length.

    faults: share of packets that lie: a header that says too much, too little or nothing possible,
    and beginnings that are named in the wrong place or not at all.
    """

    def __init__(self, rng, faults=0.0, lengths=(1, 2, 3, 5, 8, 40, 65)):
        self.rng, self.faults, self.lengths = rng, faults, lengths
        self.granules = deque()

    def refill(self):
        rng = self.rng
        while len(self.granules) < LONG_GRANULES:
            length = rng.choice(self.lengths)
            said, named = length, 0
            if rng.random() < self.faults:
                kind = rng.randrange(5)
                if kind == 0:
                    said = rng.randint(1, length)
                elif kind == 1:
                    said = rng.randint(length, MAX_PACKET_GRANULES)
                elif kind == 2:
                    said = rng.choice([0, 66, 127])
                elif kind == 3:
                    named = rng.randrange(length)
                else:
                    named = -1
            header = pack_bits(HEADER, {"granules": said, "address": rng.randrange(1 << 48)})
            bodies = [header.to_bytes(GRANULE_BYTES, "little")]
            bodies += [rng.randbytes(GRANULE_BYTES) for _ in range(length - 1)]
            self.granules += [
                (body, index == named, index == length - 1) for index, body in enumerate(bodies)
            ]

    def take(self, count):
        """(granules, index of the first one that is named or None, bits: it is an end); one name in
        a flit.
        """
        self.refill()
        taken = [self.granules.popleft() for _ in range(count)]
        names = [index for index, (_, named, _) in enumerate(taken) if named]
        ends = [end for _, _, end in taken]
        return [body for body, _, _ in taken], names[0] if names else None, ends


class Bench:
    """VcBuffers with a sender that keeps to its credit and a consumer; checks every cycle.

    Packets are compared by VC with those of the golden unpacker, and each limit with the granules
    that have come out.  Without faults the size of each beat and the poison of each granule are
    known too.  clear_at: cycles with `clear`: everything begins anew.

    joints, cuts, refuse_at: granules of a beat behind which, in the same beat, a packet follows on
    `rx`, and one that was cut short; on `deliver`, refuse begins (1) or ends (0).
    """

    def __init__(self, link, seed, *, sources=None, faults=0.0, ready=0.8, closed=(), busy=0.9,
                 rx_open=None, poison=0.15, clear_at=()):  # fmt: skip
        self.link, self.rng = link, random.Random(seed)
        self.sources = sources or [Source(self.rng, faults) for _ in range(VCS)]
        self.ready, self.closed, self.busy, self.poison = ready, closed, busy, poison
        self.rx_open = rx_open or (lambda cycle: 0xFF)
        self.dut = VcBuffers(link)
        self.capacity = [4 * units for units in link.vc_units]
        self.exact, self.clear_at = not faults, clear_at
        self.errors = self.expected_errors = 0
        self.refuse = False
        self.cycles = self.beats_out = self.granules_in = 0
        self.joints, self.cuts, self.refuse_at, self.mixed_poison = set(), set(), set(), 0
        self.lives = []  # packets of the times before each clear
        self._begin()
        self.patience = 520 if faults else 30  # refuse is thrown away a granule a cycle

    def _begin(self):
        """As after reset."""
        self.models = [Unpacker(vc) for vc in range(VCS)]
        self.sent, self.out = [0] * VCS, [0] * VCS
        self.written = [[0] * VCS] * 2  # in front of this cycle, and of the one before
        self.ends = [[] for _ in range(VCS)]  # granules sent up to each end
        self.marks = [deque() for _ in range(VCS)]  # poison of each granule
        self.expected = [[] for _ in range(VCS)]
        self.got = [[] for _ in range(VCS)]
        self.parts, self.poisons = [b""] * VCS, [0] * VCS
        self.pending = deque()
        self.held, self.was_open = None, 0

    def flit(self, limits):
        """Beats of one flit of a random VC that has credit, or None."""
        rng = self.rng
        vc = rng.choice([*self.closed, *range(VCS), *self.closed])
        credit = (4 * limits[vc] - self.sent[vc]) % 16384
        room = min(credit, rng.choice([1, 2, SHORT_GRANULES, LONG_GRANULES]))
        return self.beats_of(vc, room) if room else None

    def beats_of(self, vc, count):
        granules, first, ends = self.sources[vc].take(count)
        poison = self.rng.random() < self.poison
        self.ends[vc] += [self.sent[vc] + i + 1 for i, end in enumerate(ends) if end]
        self.marks[vc] += [int(poison)] * count
        full = self.link.beat_granules
        beats = []
        self.sent[vc] += count
        self.granules_in += count
        for low in range(0, count, full):
            part = granules[low : low + full]
            data = int.from_bytes(b"".join(part), "little")
            here = first is not None and 0 <= first - low < full
            beats.append((vc, data, len(part), low == 0, here, first - low if here else 0, poison))
            errors = self.models[vc].errors
            for index, body in enumerate(part, low):
                granule = Granule(body, index == 0, index == first, int(poison))
                before = self.models[vc]._dropping
                self.expected[vc] += self.models[vc].granule(granule)
                if self.models[vc]._dropping != before:
                    self.refuse_at.add((index - low, int(not before)))
            self.expected_errors += self.models[vc].errors > errors
        return beats

    def run(self, cycles, drain=3000):
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)

        async def bench(ctx):
            await self._bench(ctx, cycles, drain)

        simulator.add_testbench(bench)
        simulator.run()
        return self

    def _drive(self, ctx, limits, sending):
        """(VC, granules) that are delivered in this cycle."""
        deliver = self.dut.deliver
        if not self.pending and sending and self.rng.random() < self.busy:
            self.pending += self.flit(limits) or []
        ctx.set(deliver.valid, bool(self.pending))
        if not self.pending:
            return 0, 0
        beat = self.pending.popleft()
        names = ("vc", "data", "granules", "start", "first_valid", "first", "poison")
        for name, value in zip(names, beat, strict=True):
            ctx.set(getattr(deliver, name), value)
        return beat[0], beat[2]

    def _size(self, vc):
        """Granules of a beat that was chosen one cycle ago: full if one more than that is there,
        else all up to the last end.
        """
        full, there = self.link.beat_granules, self.written[1][vc]
        if there - self.out[vc] > full:
            return full
        return max(end for end in self.ends[vc] if end <= there) - self.out[vc]

    def _take(self, beat):
        """A beat is taken from `rx`."""
        vc, count, full = beat["vc"], beat["granules"], self.link.beat_granules
        self.beats_out += 1
        assert 1 <= count <= full and (count == full or beat["last"] >> count - 1 & 1)
        marks = [beat[name] for name in ("first", "last", "poison")]
        granules = split(beat["data"], count, *marks)
        seen = set()
        for i, (body, first, last, poison) in enumerate(granules):
            assert first == (not self.parts[vc]), f"VC {vc}: `first` out of place"
            self.parts[vc] += body
            self.poisons[vc] |= poison
            if self.exact:
                assert poison == self.marks[vc].popleft(), f"VC {vc}: poison of one granule"
            if last:
                said = unpack_bits(HEADER, int.from_bytes(self.parts[vc][:16], "little"))
                if i < count - 1:
                    self.joints.add(i)
                    if said["granules"] != len(self.parts[vc]) // GRANULE_BYTES:
                        self.cuts.add(i)
                seen.add(self.poisons[vc])
                self.got[vc].append(Packet(vc, self.parts[vc], self.poisons[vc]))
                self.parts[vc], self.poisons[vc] = b"", 0
        self.mixed_poison += seen == {0, 1}

    async def _bench(self, ctx, cycles, drain):
        dut, idle = self.dut, 0
        limits = [ctx.get(getattr(dut.limits, f"limit{vc}")) for vc in range(VCS)]
        assert limits == list(self.link.vc_units)
        fields = ("vc", "data", "granules", "first", "last", "poison")
        while self.cycles < cycles or (idle < self.patience and self.cycles < cycles + drain):
            sent_vc, sent = self._drive(ctx, limits, self.cycles < cycles)
            now_open = self.rx_open(self.cycles) & ~sum(1 << vc for vc in self.closed)
            clear = self.cycles in self.clear_at
            ctx.set(dut.clear, clear)
            ctx.set(dut.rx_open, now_open)
            ctx.set(dut.rx.ready, self.rng.random() < self.ready)
            _, _, valid, ready, error, *rest = await ctx.tick().sample(
                dut.rx.valid, dut.rx.ready, dut.error,
                *[getattr(dut.rx.p, name) for name in fields],
                *[getattr(dut.limits, f"limit{vc}") for vc in range(VCS)],
            )  # fmt: skip
            limits = rest[len(fields) :]
            beat = dict(zip(fields, rest, strict=False))
            self.errors += error != 0
            self.refuse |= error != 0
            vc, held = beat["vc"], self.held
            if valid and held is None:
                assert self.was_open >> vc & 1, f"cycle {self.cycles}: a beat of VC {vc}, not open"
                if self.exact:
                    assert beat["granules"] == self._size(vc), f"cycle {self.cycles}: size"
                self.out[vc] += beat["granules"]
            assert held is None or (valid and held == beat), f"cycle {self.cycles}: not held"
            self.held = beat if valid and not ready else None
            if valid and ready:
                self._take(beat)
            if not self.refuse:
                assert limits == [
                    (capacity + out) // 4 % 4096
                    for capacity, out in zip(self.capacity, self.out, strict=True)
                ], f"cycle {self.cycles}: credit"
            idle = 0 if valid or self.pending else idle + 1
            self.was_open = now_open
            now = list(self.written[0])
            now[sent_vc] += sent
            self.written = [now, self.written[0]]
            if clear:
                self.lives.append((self.got, self.parts, self.held, self.pending))
                self._begin()
                limits = list(self.link.vc_units)
                for source in self.sources:
                    source.granules.clear()
            self.cycles += 1
        self.limits = limits

    def check(self):
        """All packets have come out; what has ended is back as credit."""
        for vc in range(VCS):
            if vc not in self.closed:
                assert self.got[vc] == self.expected[vc], f"VC {vc}"
        assert self.errors == self.expected_errors


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize(("ready", "busy"), [(1.0, 1.0), (0.5, 0.6)])
def test_random(beat_bytes, ready, busy):
    """All VCs with unequal buffers, packets of all lengths across flits, stalls: order, shape of
    the beats, poison, and the credit of every cycle.
    """
    bench = Bench(link_of(beat_bytes), beat_bytes, ready=ready, busy=busy).run(500)
    bench.check()
    assert sum(map(len, bench.got)) > 20 and bench.errors == 0
    assert any(packet.poison for got in bench.got for packet in got)


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_each_alignment(beat_bytes):
    """Short packets of each length from each granule of a beat on, in one VC."""
    rng = random.Random(2)
    sources = [Source(rng, lengths=(1, 2, 3, 4, 5, 6, 7)) for _ in range(VCS)]
    bench = Bench(link_of(beat_bytes), 2, sources=sources, ready=1.0, poison=0.4).run(800)
    bench.check()
    seen = set()
    for got in bench.got:
        at = 0
        for packet in got:
            length = len(packet.data) // GRANULE_BYTES
            seen.add((at % 4, length))
            at += length
    assert seen == {(at, length) for at in range(4) for length in range(1, 8)}
    assert bench.joints == set(range(bench.link.beat_granules - 1))
    if beat_bytes > 16:
        assert bench.mixed_poison > 0, "poison of one packet in a beat, not of its neighbour"


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_packet_length(beat_bytes):
    """Headers and names that lie: bad packets are cut or dropped as the golden model does, the next
    ones are intact, and all credit comes back.
    """
    link = link_of(beat_bytes)
    bench = Bench(link, 10 + beat_bytes, faults=0.3, ready=0.9)
    bench.run({16: 2000, 32: 1200, 64: 900}[beat_bytes])
    assert bench.expected_errors > 12
    bench.check()
    assert sum(packet.poison for got in bench.got for packet in got) > 5
    inner = set(range(link.beat_granules - 1))
    assert bench.joints == bench.cuts == inner, "in the middle of beats"
    assert bench.refuse_at >= {(i, begins) for i in inner for begins in (0, 1)}
    # What is still inside: an open packet's granules, at most a beat of them
    for vc in range(VCS):
        gone = (4 * bench.limits[vc] - bench.capacity[vc]) % 16384
        assert 0 <= bench.sent[vc] - gone <= link.beat_granules + 3, f"VC {vc} leaks credit"


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_clear_in_the_middle(beat_bytes):
    """`clear` under full traffic, with packets half out and beats not taken: what comes behind it
    begins with headers and is intact, with the credit of the beginning.
    """
    bench = Bench(
        link_of(beat_bytes), 20 + beat_bytes, ready=0.6, busy=1.0, clear_at=range(90, 500, 31)
    )
    bench.run(560)
    bench.check()
    assert len(bench.lives) == 14
    assert sum(any(parts) for _, parts, _, _ in bench.lives) > 5, "packets half out"
    assert sum(held is not None for _, _, held, _ in bench.lives) > 2, "a beat not taken"
    assert sum(bool(pending) for _, _, _, pending in bench.lives) > 2, "a flit half in"
    assert sum(any(got) for got, *_ in bench.lives) > 7


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize("length", [64, 65])
def test_latency_and_rate(beat_bytes, length):
    """On `rx` 2 cycles behind `deliver`; full beats of one VC leave as they come, also across the
    ends of packets.
    """
    link, rng = link_of(beat_bytes), random.Random(1)
    sources = [Source(rng, lengths=(length,)) for _ in range(VCS)]
    bench = Bench(link, 1, sources=sources, ready=1.0, poison=0)
    full = link.beat_granules
    flits = iter([3, *[36] * 30])
    bench.flit = lambda limits: bench.beats_of(3, next(flits, 0) or 0)
    trace = []
    rx_valid = bench.dut.rx.valid

    simulator = Simulator(bench.dut)
    simulator.add_clock(1e-6)

    async def go(ctx):
        await bench._bench(ctx, 600, 100)

    async def watch(ctx):
        while True:
            _, _, came, valid = await ctx.tick().sample(bench.dut.deliver.valid, rx_valid)
            trace.append((came, valid))

    simulator.add_testbench(go)
    simulator.add_testbench(watch, background=True)
    simulator.run()
    bench.check()
    first_in = next(i for i, (came, _) in enumerate(trace) if came)
    first_out = next(i for i, (_, valid) in enumerate(trace) if valid)
    held_back = -(-(full + 1) // full) - 1  # beats until one granule more than a beat is there
    assert first_out == first_in + 2 + held_back
    last_in = max(i for i, (came, _) in enumerate(trace) if came)
    pauses = sum(not valid for _, valid in trace[first_out:last_in])
    assert pauses <= 4, "the output keeps up with the input"


def test_single_packet_latency():
    """A packet that ends in its beat is not held back."""
    bench = Bench(link_of(64), 1, sources=[Source(random.Random(1), lengths=(3,))] * VCS, ready=1.0)
    flits = iter([3])
    bench.flit = lambda limits: bench.beats_of(0, next(flits, 0))
    seen = []
    simulator = Simulator(bench.dut)
    simulator.add_clock(1e-6)

    async def go(ctx):
        await bench._bench(ctx, 20, 0)

    async def watch(ctx):
        while True:
            _, _, *now = await ctx.tick().sample(bench.dut.deliver.valid, bench.dut.rx.valid)
            seen.append(now)

    simulator.add_testbench(go)
    simulator.add_testbench(watch, background=True)
    simulator.run()
    bench.check()
    assert [valid for _, valid in seen].index(1) == [came for came, _ in seen].index(1) + 2


@pytest.mark.parametrize(("beat_bytes", "closed"), [(16, 0), (32, 5), (64, 4)])
def test_closed_vc(beat_bytes, closed):
    """A VC whose consumer never takes anything fills its buffer; all others go on."""
    bench = Bench(link_of(beat_bytes), 6, closed=(closed,)).run(
        {16: 2000, 32: 1200, 64: 900}[beat_bytes]
    )
    bench.check()
    assert not bench.got[closed]
    assert bench.sent[closed] == bench.capacity[closed], "it stands at the end of its credit"
    for vc in range(VCS):
        if vc != closed:
            assert bench.got[vc], f"VC {vc} starves"
    assert sum(bench.sent) > 8 * bench.capacity[closed]


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_open_in_turns(beat_bytes):
    """VCs that open and close at random."""
    rng = random.Random(4)
    masks = [rng.randrange(256) for _ in range(200)]
    bench = Bench(link_of(beat_bytes), 7, rx_open=lambda cycle: masks[cycle // 3] if cycle < 600
                  else 0xFF).run(600)  # fmt: skip
    bench.check()


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_overflow(beat_bytes):
    """More than the credit: reported, dropped; what was there comes out, the packet that lost its
    end is cut, the next one that a flit names is intact, credit of all of it comes back.
    """
    link = link_of(beat_bytes)
    rng = random.Random(9)
    header = pack_bits(HEADER, {"granules": 5, "address": 1}).to_bytes(GRANULE_BYTES, "little")
    packet = [header, *[rng.randbytes(GRANULE_BYTES) for _ in range(4)]]
    dut = VcBuffers(link)
    capacity = 4 * UNITS[2]
    stored = capacity - capacity % 5
    got, errors, events = [], [], {}

    def beats(granules, first):
        full = link.beat_granules
        for low in range(0, len(granules), full):
            part = granules[low : low + full]
            here = first is not None and low <= first < low + full
            yield part, low == 0, here, first - low if here else 0

    async def bench(ctx):
        async def tick():
            _, _, valid, error, limit, *beat = await ctx.tick().sample(
                dut.rx.valid, dut.error, dut.limits.limit2,
                dut.rx.p.data, dut.rx.p.granules, dut.rx.p.last, dut.rx.p.poison,
            )  # fmt: skip
            errors.append(error)
            events["limit"] = limit
            if valid:
                got.extend(split(*beat))

        async def send(granules, first):
            for part, start, here, at in beats(granules, first):
                ctx.set(dut.deliver.valid, 1)
                ctx.set(dut.deliver.vc, 2)
                ctx.set(dut.deliver.data, int.from_bytes(b"".join(part), "little"))
                ctx.set(dut.deliver.granules, len(part))
                ctx.set(dut.deliver.start, start)
                ctx.set(dut.deliver.first_valid, here)
                ctx.set(dut.deliver.first, at)
                await tick()
            ctx.set(dut.deliver.valid, 0)

        ctx.set(dut.rx.ready, 1)
        for _ in range(capacity // 5):
            await send(packet, 0)
        assert not any(errors)
        await send(packet, 0)  # does not fit any more
        await tick()
        assert Reason.OVERFLOW in errors
        events["before"] = len(errors)
        ctx.set(dut.rx_open, 1 << 2)
        for _ in range(2 * capacity):
            await tick()
        await send(packet[:2], None)  # nobody knows what this is
        await send([packet[4], *packet], 1)
        for _ in range(20):
            await tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert not any(errors[events["before"] :])
    packets, parts, bad = [], b"", 0
    for body, last, poison in got:
        parts, bad = parts + body, bad | poison
        if last:
            packets.append((parts, bad))
            parts, bad = b"", 0
    whole = b"".join(packet)
    cut = packets[capacity // 5 : -1]
    assert packets[: capacity // 5] == [(whole, 0)] * (capacity // 5)
    assert packets[-1] == (whole, 0)
    assert len(cut) <= 1 and all(bad and whole.startswith(part) for part, bad in cut)
    total = stored + 5 + 2 + 6
    assert events["limit"] == (capacity + total) // 4


def run_plain(link, payload, open_at, cycles):
    """[(vc, granules, first, last, poison)] on `rx`: payload is [(vc, granules, first or None)], a
    flit each, in single beats; VCs open in cycle `open_at`.
    """
    dut, beats = VcBuffers(link), []

    async def bench(ctx):
        ctx.set(dut.rx.ready, 1)
        for cycle in range(cycles):
            ctx.set(dut.rx_open, 0xFF if cycle >= open_at else 0)
            ctx.set(dut.deliver.valid, cycle < len(payload))
            if cycle < len(payload):
                vc, granules, first = payload[cycle]
                ctx.set(dut.deliver.vc, vc)
                ctx.set(dut.deliver.data, sum(g << 128 * i for i, g in enumerate(granules)))
                ctx.set(dut.deliver.granules, len(granules))
                ctx.set(dut.deliver.start, 1)
                ctx.set(dut.deliver.first_valid, first is not None)
                ctx.set(dut.deliver.first, first or 0)
            rx = dut.rx.p
            _, _, valid, *beat = await ctx.tick().sample(
                dut.rx.valid, rx.vc, rx.granules, rx.first, rx.last, rx.poison
            )
            if valid:
                beats.append(tuple(beat))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return beats


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_turns(beat_bytes):
    """With something in all VCs each of them has every eighth beat, full of packets."""
    packet, full = [pack_bits(HEADER, {"granules": 1})], beat_bytes // GRANULE_BYTES
    payload = [(vc, packet, 0) for _ in range(6 * full) for vc in range(VCS)]
    beats = run_plain(link_of(beat_bytes), payload, len(payload), 2 * len(payload) + 5)
    ones = (1 << full) - 1
    assert beats == [(vc, full, ones, ones, 0) for _ in range(6) for vc in range(VCS)]


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_cut_packet_does_not_wait(beat_bytes):
    """A packet that is cut short leaves when it is cut, whatever becomes of the one behind it."""
    header = pack_bits(HEADER, {"granules": 5})
    payload = [(2, [header], 0), (2, [7], None), (2, [header], 0)]
    beats = run_plain(link_of(beat_bytes), payload, 0, 30)
    assert sum(granules for _, granules, *_ in beats) == 2, "the next one waits for its second"
    end = 1 << beats[-1][1] - 1
    assert beats[-1][3:] == (end, end) and beats[0][2] == 1


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_clear_and_congestion(beat_bytes):
    """`congestion` follows the fullest buffer in quarters; `clear` empties everything."""
    link = link_of(beat_bytes)
    dut, seen = VcBuffers(link), []

    async def bench(ctx):
        def header():
            return pack_bits(HEADER, {"granules": 1})

        async def fill(granules):
            for _ in range(granules):
                ctx.set(dut.deliver.valid, 1)
                ctx.set(dut.deliver.vc, 6)
                ctx.set(dut.deliver.data, header())
                ctx.set(dut.deliver.granules, 1)
                ctx.set(dut.deliver.start, 1)
                ctx.set(dut.deliver.first_valid, 1)
                await ctx.tick()
                seen.append(ctx.get(dut.limits.congestion))
            ctx.set(dut.deliver.valid, 0)

        capacity = 4 * UNITS[6]
        await fill(capacity)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.limits.congestion) == 3
        assert seen == sorted(seen) and set(seen) == {0, 1, 2, 3}
        assert [seen.count(level) for level in range(3)] == pytest.approx([capacity / 4] * 3, abs=2)
        ctx.set(dut.rx_open, 0xFF)
        ctx.set(dut.rx.ready, 1)
        await ctx.tick().repeat(5)
        ctx.set(dut.clear, 1)
        await ctx.tick()
        ctx.set(dut.clear, 0)
        for _ in range(5):
            assert not ctx.get(dut.rx.valid)
            await ctx.tick()
        assert ctx.get(dut.limits.congestion) == 0
        assert ctx.get(dut.limits.limit6) == UNITS[6]
        await fill(2)
        await ctx.tick()
        assert ctx.get(dut.rx.valid)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.icarus
@pytest.mark.parametrize("beat_bytes", BEATS)
def test_emitted(beat_bytes, tmp_path):
    """The emitted Verilog in Icarus, cycle by cycle."""
    link, rng = link_of(beat_bytes), random.Random(3)
    bench = Bench(link, 3)
    beats = [beat for _ in range(30) for beat in bench.beats_of(rng.randrange(VCS), 3)]
    names = ("vc", "data", "granules", "start", "first_valid", "first", "poison")
    stimuli = []
    for beat in beats:
        stimulus = {f"deliver__{name}": int(value) for name, value in zip(names, beat, strict=True)}
        stimuli.append({"deliver__valid": 1, **stimulus, "rx_open": 255, "rx__ready": 1})
        stimuli.append({"deliver__valid": 0, "rx__ready": rng.randrange(2)})
    assert_same(lambda: VcBuffers(link), stimuli, tmp_path, unknown_until_valid=["rx__payload"])
