"""Two bridges back to back, in Amaranth's simulator: queues of packets in place of the link, models
of memory and core window, masters that write, read and check.
"""

import random
from collections import deque
from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module
from amaranth.sim import Simulator

from hdl.lib.axi import Resp
from hdl.link.bridge import Bridge
from isa.geometry import WORD_BYTES
from isa.link import HEADER, LINK_REGISTERS, VCS, Control, pack_bits, unpack_bits
from sim.models.axi_memory import AxiMemory, Burst, StreamWatch, Timing

OFFSETS = {register.name: register.offset for register in LINK_REGISTERS}
CORE = 1 << 44
OKAY, SLVERR = Resp.OKAY, Resp.SLVERR


class Pin:
    """Sets a signal when its value changes: the simulator's time goes into what Python does."""

    def __init__(self, ctx, signal):
        self.ctx, self.signal, self.value = ctx, signal, None

    def set(self, value):
        if value != self.value:
            self.value = value
            self.ctx.set(self.signal, value)


def raw(payload):
    """Sample this, and decode it with `struct` when it counts."""
    return payload.as_value()


def struct(payload, bits):
    """The payload's fields of sampled bits."""
    return payload.shape().from_bits(bits)


class SlowMemory(AxiMemory):
    """Memory in which a write is seen only from its answer on."""

    def __post_init__(self):
        super().__post_init__()
        self.hidden = []

    def _write_beat(self, queue, answers, beat, now):
        burst = queue[0]
        where = burst.address + burst.done * WORD_BYTES
        before = self.data[where : where + WORD_BYTES]
        super()._write_beat(queue, answers, beat, now)
        if self.data[where : where + WORD_BYTES] != before:
            self.data[where : where + WORD_BYTES] = before
            self.hidden.append((burst, where, beat))

    def _choose(self, answers, now):
        answer = super()._choose(answers, now)
        for _, where, beat in [entry for entry in self.hidden if entry[0] is answer]:
            word = beat.data.to_bytes(WORD_BYTES, "little")
            for i in range(WORD_BYTES):
                if beat.strb >> i & 1:
                    self.data[where + i] = word[i]
        self.hidden = [entry for entry in self.hidden if entry[0] is not answer]
        return answer

    async def serve_read(self, ctx, port):
        """As of AxiMemory, for one id."""
        watch, queue, now, offered, ready = StreamWatch("ar"), deque(), 0, False, 0
        valid_pin, ready_pin = Pin(ctx, port.r.valid), Pin(ctx, port.ar.ready)
        trigger = ctx.tick().sample(port.ar.valid, raw(port.ar.p), port.r.ready)
        async for _, _, valid, address, taken in trigger:
            now += 1
            if offered and taken:
                offered = False
                queue[0].done += 1
                if queue[0].done == queue[0].beats:
                    queue.popleft()
            if watch.see(valid, ready, address):
                address = struct(port.ar.p, address)
                queue.append(Burst(0, address.addr, self._check(address), self._due(now)))
                self.most_reads = max(self.most_reads, len(queue))
            if not offered and queue and queue[0].due <= now and self._moves():
                burst, offered = queue[0], True
                resp, word = self.peek(burst.address + burst.done * WORD_BYTES)
                last = int(burst.done == burst.beats - 1)
                ctx.set(port.r.p, {"data": word or 0, "resp": resp, "last": last})
            valid_pin.set(int(offered))
            ready = int(self._moves())
            ready_pin.set(ready)

    async def serve_write(self, ctx, port):
        """As of AxiMemory, for one id."""
        watch_aw, watch_w = StreamWatch("aw"), StreamWatch("w")
        queue, answers, now, aw_ready, w_ready, answer = deque(), [], 0, 0, 0, None
        pins = [Pin(ctx, s) for s in (port.b.valid, port.aw.ready, port.w.ready)]
        trigger = ctx.tick().sample(
            port.aw.valid, raw(port.aw.p), port.w.valid, raw(port.w.p), port.b.ready
        )
        async for _, _, aw_valid, address, w_valid, beat, b_ready in trigger:
            now += 1
            if answer is not None and b_ready:
                answers.remove(answer)
                answer = None
            if watch_w.see(w_valid, w_ready, beat):
                self._write_beat(queue, answers, struct(port.w.p, beat), now)
            if watch_aw.see(aw_valid, aw_ready, address):
                address = struct(port.aw.p, address)
                queue.append(Burst(0, address.addr, self._check(address), 0))
            if answer is None and answers and self._moves():
                answer = self._choose(answers, now)
                if answer is not None:
                    ctx.set(port.b.p, {"resp": SLVERR if answer.error else OKAY})
            aw_ready, w_ready = int(self._moves()), int(bool(queue) and self._moves())
            for pin, value in zip(pins, (int(answer is not None), aw_ready, w_ready), strict=True):
                pin.set(value)


class CoreWindow:
    """Slave of a LocalBus: bytes at CORE + 0.., what is written noted in `writes` (cycle, address,
    strobes, data); an error at addresses in `faults` and beyond the bytes.
    """

    def __init__(self, size, *, seed=0, slow=0.3):
        self.random = random.Random(seed)
        self.data, self.slow = bytearray(self.random.randbytes(size)), slow
        self.faults, self.writes = set(), []
        self.seen: Any = None

    async def serve(self, ctx, port):
        watch, ready, answer, offered, now = StreamWatch("bus.req"), 0, None, False, 0
        req_ready, resp_valid = Pin(ctx, port.req.ready), Pin(ctx, port.resp.valid)
        trigger = ctx.tick().sample(port.req.valid, raw(port.req.p), port.resp.ready)
        async for _, _, valid, request, taken in trigger:
            now += 1
            if offered and taken:
                answer, offered = None, False
            if watch.see(valid, ready, request):
                assert answer is None, "a request before the answer of the one before"
                answer = self._access(struct(port.req.p, request), now)
                ctx.set(port.resp.p, {"data": answer[0], "error": answer[1]})
            offered |= answer is not None and self.random.random() >= self.slow
            resp_valid.set(int(offered))
            ready = int(answer is None and self.random.random() >= self.slow)
            req_ready.set(ready)

    def _access(self, request, now):
        at = request.address - CORE
        assert request.address % WORD_BYTES == 0
        if not 0 <= at <= len(self.data) - WORD_BYTES or at in self.faults:
            return 0, 1
        if request.write:
            word = request.data.to_bytes(WORD_BYTES, "little")
            for i in range(WORD_BYTES):
                if request.strb >> i & 1:
                    self.data[at + i] = word[i]
            self.writes.append((now, request.address, request.strb, request.data))
            if self.seen is not None:
                self.seen(request)
            return 0, 0
        return int.from_bytes(self.data[at : at + WORD_BYTES], "little"), 0


class Wire:
    """One direction of a link: packets by VC from the `tx` of one bridge to the `rx` of the other.

    `room`: granules of a VC's queue.  `drop(vc)` may be set to a function that says True for a
    packet that shall vanish; `edit(vc, granules)` may change one.
    """

    def __init__(self, link, *, seed=0, stall=0.0, room=80):
        self.link, self.random, self.stall, self.room = link, random.Random(seed), stall, room
        self.queues = [deque() for _ in range(VCS)]
        self.parts = [[] for _ in range(VCS)]
        self.inside, self.dropping = [False] * VCS, [False] * VCS
        self.packets = [0] * VCS
        self.sent = []
        self.edit: Any = None
        self.closed = self.held = False
        """Nothing moves; nothing is delivered."""
        self.takes_when_lost = True
        self.clear_now = False
        self.beats = 0

    def clear(self):
        """Forget everything: the session is lost."""
        self.clear_now = True

    def inject(self, vc, granules, *, poison=False, marks=True):
        """A packet from nowhere."""
        for i, granule in enumerate(granules):
            first, last = (i == 0, i == len(granules) - 1) if marks else (False, False)
            self.queues[vc].append((granule, first, last, poison))

    def _take(self, vc, beat, lost):
        count = beat.granules
        assert 1 <= count <= self.link.beat_granules
        ends = beat.last >> count - 1
        assert beat.last == ends << count - 1, "a bridge ends its packets with their beats"
        self.inside[vc] = not ends
        if lost or self.dropping[vc]:
            self.dropping[vc] &= not ends
            return
        assert ends or count == self.link.beat_granules, "a beat that is not full"
        for i in range(count):
            self.parts[vc].append(beat.data >> 128 * i & ((1 << 128) - 1))
        if ends:
            packet, self.parts[vc] = self.parts[vc], []
            self.check(vc, packet)
            if self.edit is not None:
                packet = self.edit(vc, packet)
            self.inject(vc, packet)

    def check(self, vc, packet):
        header = unpack_bits(HEADER, packet[0])
        assert header["granules"] == len(packet), f"{header} has {len(packet)} granules"
        assert header["spare"] == 0
        assert header["kind"] == {0: header["kind"], 2: 4, 4: 3}[vc] and header["kind"] in (
            (1, 2) if vc == 0 else (3, 4)
        )
        self.packets[vc] += 1
        self.sent.append((vc, header))

    async def serve_tx(self, ctx, bridge):
        served = (0, 2, 4)
        ports = [getattr(bridge, f"tx{vc}") for vc in served]
        others = [getattr(bridge, f"tx{vc}").valid for vc in range(VCS) if vc not in served]
        watches = [StreamWatch(f"tx{vc}") for vc in served]
        pins, ready = [Pin(ctx, port.ready) for port in ports], [0] * len(served)
        trigger = ctx.tick().sample(
            bridge.lost, Cat(others), *(p.valid for p in ports), *(raw(p.p) for p in ports)
        )
        async for _, _, lost, wrong, *sampled in trigger:
            assert not wrong, "a packet on a VC that is not in use"
            for i, vc in enumerate(served):
                valid, beat = sampled[i], sampled[i + len(served)]
                # In the cycle of `lost` everything is taken, or nothing and offers may go.
                taken = self.takes_when_lost if lost else ready[i]
                if watches[i].see(valid, taken, beat):
                    self._take(vc, struct(ports[i].p, beat), lost)
                if lost:
                    watches[i].held = None
                    self.dropping[vc] = self.inside[vc]
                    self.parts[vc] = []
                    pins[i].value = None
                room = len(self.queues[vc]) + len(self.parts[vc]) < self.room
                ready[i] = int(room and not self.closed and self.random.random() >= self.stall)
                pins[i].set(ready[i])

    async def serve_rx(self, ctx, bridge):
        offer, port = None, bridge.rx
        valid = Pin(ctx, port.valid)
        trigger = ctx.tick().sample(port.ready, bridge.rx_open)
        async for _, _, ready, open_ in trigger:
            if offer is not None and ready:
                offer = None
                self.beats += 1
            if self.clear_now:
                offer, self.clear_now = None, False
                self.queues = [deque() for _ in range(VCS)]
            if (
                offer is None
                and not (self.closed or self.held)
                and self.random.random() >= self.stall
            ):
                able = [vc for vc in range(VCS) if self._ready(vc) and open_ >> vc & 1]
                if able:
                    vc = self.random.choice(able)
                    offer = self._beat(vc)
                    ctx.set(port.p, offer)
            valid.set(int(offer is not None))

    def _ready(self, vc):
        """A full beat or the end of a packet is there."""
        count = self.link.beat_granules
        head = list(self.queues[vc])[:count] if self.queues[vc] else []
        return len(head) == count or any(last for _, _, last, _ in head)

    def _beat(self, vc):
        """Packets back to back, or one that ends before the beat is full."""
        queue, data, count = self.queues[vc], 0, 0
        firsts, lasts, poisons = 0, 0, 0
        while count < self.link.beat_granules and queue:
            granule, first, last, poison = queue.popleft()
            data |= granule << 128 * count
            firsts |= first << count
            lasts |= last << count
            poisons |= poison << count
            count += 1
            if last and self.random.random() < 0.5:
                break
        return {
            "vc": vc,
            "data": data,
            "granules": count,
            "first": firsts,
            "last": lasts,
            "poison": poisons,
        }


class Writer:
    """AXI master that writes `bursts`: (id, address, [(data, strobes), ...]), one after the other;
    `answers`: (id, resp) in their order.  Data may come before or behind their address.
    """

    def __init__(self, *, seed=0, stall=0.0, ahead=4):
        self.random, self.stall, self.ahead = random.Random(seed), stall, ahead
        self.addresses, self.beats, self.answers, self.open = deque(), deque(), [], deque()
        self.expected = 0
        self.on_answer, self.go = None, False

    def add(self, identity, address, beats):
        self.addresses.append({"id": identity, "addr": address, "len": len(beats) - 1})
        self.open.append(identity)
        for i, (data, strb) in enumerate(beats):
            self.beats.append({"data": data, "strb": strb, "last": int(i == len(beats) - 1)})
        self.expected += 1

    @property
    def done(self):
        return len(self.answers) == self.expected

    async def serve(self, ctx, port):
        watch, aw, w, ready = StreamWatch("b"), False, False, 0
        pins = [Pin(ctx, s) for s in (port.aw.valid, port.w.valid, port.b.ready)]
        trigger = ctx.tick().sample(port.aw.ready, port.w.ready, port.b.valid, raw(port.b.p))
        async for _, _, aw_taken, w_taken, valid, answer in trigger:
            if aw and aw_taken:
                self.addresses.popleft()
                aw = False
            if w and w_taken:
                self.beats.popleft()
                w = False
            if watch.see(valid, ready, answer):
                answer = struct(port.b.p, answer)
                assert self.open, "an answer that nobody asked for"
                assert answer.id == self.open.popleft(), "order of answers"
                self.answers.append((answer.id, answer.resp))
                if self.on_answer is not None:
                    self.on_answer(len(self.answers) - 1, answer.resp)
            if self.go and not aw and self.addresses and self.random.random() >= self.stall:
                ctx.set(port.aw.p, self.addresses[0])
                aw = True
            if self.go and not w and self.beats and self.random.random() >= self.stall:
                ctx.set(port.w.p, self.beats[0])
                w = True
            ready = int(self.random.random() >= self.stall)
            for pin, value in zip(pins, (int(aw), int(w), ready), strict=True):
                pin.set(value)


class Reader:
    """AXI master that reads bursts (id, address, beats); `results`: (id, resp of all beats,
    [data]) in their order.
    """

    def __init__(self, *, seed=0, stall=0.0):
        self.random, self.stall = random.Random(seed), stall
        self.bursts, self.open, self.results, self.expected = deque(), deque(), [], 0
        self.go = False

    def add(self, identity, address, beats):
        self.bursts.append((identity, address, beats))
        self.expected += 1

    @property
    def done(self):
        return len(self.results) == self.expected

    async def serve(self, ctx, port):
        watch, ar, ready, words = StreamWatch("r"), False, 0, []
        ar_valid, r_ready = Pin(ctx, port.ar.valid), Pin(ctx, port.r.ready)
        trigger = ctx.tick().sample(port.ar.ready, port.r.valid, raw(port.r.p))
        async for _, _, taken, valid, beat in trigger:
            if ar and taken:
                self.open.append(self.bursts.popleft())
                ar = False
            if watch.see(valid, ready, beat):
                beat = struct(port.r.p, beat)
                assert self.open, "an answer that nobody asked for"
                identity, _, beats = self.open[0]
                assert beat.id == identity, "order of answers"
                words.append((beat.resp, beat.data))
                assert beat.last == (len(words) == beats), "last"
                if beat.last:
                    resps = {resp for resp, _ in words}
                    assert len(resps) == 1, "one answer for all beats"
                    self.results.append((identity, resps.pop(), [data for _, data in words]))
                    self.open.popleft()
                    words = []
            if self.go and not ar and self.bursts and self.random.random() >= self.stall:
                identity, address, beats = self.bursts[0]
                ctx.set(port.ar.p, {"id": identity, "addr": address, "len": beats - 1})
                ar = True
            ar_valid.set(int(ar))
            ready = int(self.random.random() >= self.stall)
            r_ready.set(ready)


class Side:
    """A bridge with its surroundings.  `register`: its registers from a test."""

    def __init__(self, config, *, seed, stall, timing, core_bytes=1 << 14):
        rng = random.Random(seed)
        # Any: the members of a component come from its signature, at run time.
        self.bridge: Any = Bridge(config)
        self.memory = SlowMemory(
            bytearray(rng.randbytes(config.hbm_bytes)), timing=timing, seed=seed
        )
        self.core = CoreWindow(core_bytes, seed=seed, slow=stall)
        self.writer = Writer(seed=seed + 1, stall=stall)
        self.reader = Reader(seed=seed + 2, stall=stall)
        self.errors = []
        self.denied = 0

    async def watch_errors(self, ctx, _):
        """Notes the reasons of bad packets."""
        trigger = ctx.tick().sample(self.bridge.packet_error, self.bridge.window_denied)
        async for _, _, reason, denied in trigger:
            self.denied += denied
            if reason:
                self.errors.append(reason)

    async def register(self, ctx, name, data=None, *, window=0):
        """Write, or read when `data` is None."""
        port = self.bridge.registers
        ctx.set(port.offset, OFFSETS[name] + 16 * window)
        if data is None:
            _, _, value = await ctx.tick().sample(port.value)
            return value
        ctx.set(port.data, data)
        ctx.set(port.write, 1)
        await ctx.tick()
        ctx.set(port.write, 0)
        return None

    async def window(self, ctx, index, first, last, *, writes=1, reads=1, core=0):
        """Set a window: addresses of its first and last page."""
        await self.register(ctx, "WINDOW_BASE", first >> 12, window=index)
        await self.register(ctx, "WINDOW_LIMIT", last >> 12, window=index)
        mode = writes | reads << 1 | core << 4
        await self.register(ctx, "WINDOW_MODE", mode, window=index)

    async def open(self, ctx):
        """Everything is allowed."""
        await self.window(ctx, 0, 0, (1 << 44) - 1)
        await self.window(ctx, 1, 0, (1 << 44) - 1, core=1)

    async def clear(self, ctx):
        await self.register(ctx, "CONTROL", int(Control.CLEAR))


class BridgeBench:
    """Bridges `a` and `b`; `there`: Wire from a to b, `back`: from b to a."""

    def __init__(self, config, *, seed=0, stall=0.0, timing=None, room=80):
        timing = timing or Timing(latency=5, jitter=10, stall=stall)
        self.config = config
        self.a = Side(config, seed=10 * seed, stall=stall, timing=timing)
        self.b = Side(config, seed=10 * seed + 5, stall=stall, timing=timing)
        self.there = Wire(config.link, seed=seed, stall=stall, room=room)
        self.back = Wire(config.link, seed=seed + 1, stall=stall, room=room)

    async def lose(self, ctx, *, cycles=0):
        """The session is lost at both ends; with `cycles` the link is FAILED for so long."""
        sides = (self.a.bridge, self.b.bridge)
        for bridge in sides:
            ctx.set(bridge.lost, 1)
            ctx.set(bridge.failed, int(cycles > 0))
            for vc in range(VCS):
                ctx.set(getattr(bridge, f"tx{vc}").ready, self.there.takes_when_lost)
        self.there.clear()
        self.back.clear()
        await ctx.tick()
        for bridge in sides:
            ctx.set(bridge.lost, 0)
        if cycles:
            await ctx.tick().repeat(cycles)
            for bridge in sides:
                ctx.set(bridge.failed, 0)

    async def until(self, ctx, condition, *, limit=20_000):
        """Let the masters go, and wait."""
        for side in (self.a, self.b):
            side.writer.go = side.reader.go = True
        for _ in range(limit):
            if condition():
                return
            await ctx.tick()
        raise AssertionError(f"still waiting after {limit} cycles")

    async def settle(self, ctx, *, limit=20_000, more=400):
        """All masters are done, nothing is on its way, and `more` cycles have passed."""
        await self.until(
            ctx,
            lambda: (
                all(s.writer.done and s.reader.done for s in (self.a, self.b))
                and not any(map(len, self.there.queues + self.back.queues))
            ),
            limit=limit,
        )
        await ctx.tick().repeat(more)

    def run(self, script, *, vcd=None):
        """`script`: async function (ctx)."""
        m = Module()
        m.submodules.a, m.submodules.b = self.a.bridge, self.b.bridge
        sim = Simulator(_Top(m))
        sim.add_clock(1e-6)
        serve = []
        for side in (self.a, self.b):
            bridge = side.bridge
            serve += [
                (side.memory.serve_read, bridge.hbm_read),
                (side.memory.serve_write, bridge.hbm_write),
                (side.core.serve, bridge.bus),
                (side.writer.serve, bridge.write),
                (side.reader.serve, bridge.read),
                (side.watch_errors, None),
            ]
        serve += [
            (self.there.serve_tx, self.a.bridge),
            (self.there.serve_rx, self.b.bridge),
            (self.back.serve_tx, self.b.bridge),
            (self.back.serve_rx, self.a.bridge),
        ]
        for function, port in serve:

            async def process(ctx, function=function, port=port):
                await function(ctx, port)

            sim.add_process(process)
        sim.add_testbench(script)
        if vcd:
            with sim.write_vcd(vcd):
                sim.run()
        else:
            sim.run()


class _Top(Elaboratable):
    def __init__(self, m):
        self.m = m

    def elaborate(self, platform):
        return self.m


def header(**fields):
    """Header granule."""
    return pack_bits(HEADER, fields)
