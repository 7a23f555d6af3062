"""Two `Training` machines with a Python model of lanes, channel and the two ends' state between
them: for Amaranth's simulator, nothing of the real lanes is in it.

A frame lasts FRAME_CYCLES.  A token of data carries its sender's session, epoch and life (how often
its state was cleared); a receiver takes it if the session and epoch are those that its training
took, as the CRC salt makes it.  `Bench.pairs` then shows which lives have met: a life must never
take data from two lives of the peer.
"""

from collections import deque

from amaranth.hdl import Elaboratable, Module, ResetInserter, Signal
from amaranth.sim import Simulator

from hdl.link.training import Training
from isa.link import LinkConfig, LinkState, Width

LINK = LinkConfig(beat_bytes=16, lanes=4, replay_bytes=2048, training_timeout_cycles=512)
FRAME_CYCLES = 8
LOCK_FRAMES = 4
NAK_LIMIT_CYCLES = 200
"""Cycles without good data after which the model of a receiver asks for RECOVERY."""
CREDIT_CYCLES = 20
RESTART_CYCLES = 100


class Pair(Elaboratable):
    """Two machines; each has a reset of its own."""

    def __init__(self, links, restart_cycles):
        self.ends = [Training(link, restart_cycles=restart_cycles) for link in links]
        self.resets = [Signal(name=f"reset{i}") for i in range(2)]

    def elaborate(self, platform):
        m = Module()
        for i, (end, reset) in enumerate(zip(self.ends, self.resets, strict=True)):
            m.submodules[f"end{i}"] = ResetInserter(reset)(end)
        return m


class Direction:
    """Lanes from one end to the other."""

    def __init__(self, delay, lanes):
        self.delay, self.lanes = delay, lanes
        self.wire = deque()
        self.cut = self.noise = self.swapped = self.reversed = False
        self.dead = set()
        self.align_works = True
        self.mode, self.position, self.content, self.is_start = "silent", 0, None, False
        self.reset_receiver()

    def reset_receiver(self):
        self.good, self.bad = 0, 0
        self.aligned = self.in_data = False
        self.markers = 0

    @property
    def locked(self):
        """By physical lane of the receiver."""
        if self.good < LOCK_FRAMES:
            return 0
        return sum(1 << i for i in range(self.lanes) if i not in self.dead)


class Bench:
    """Runs a scenario.

    `await bench.run(n)` advances n cycles, `await bench.until(condition, limit)` until
    `condition(bench)`.  `state(i)`, `lost[i]` (pulses), `trace[i]` (states in order), `reasons[i]`,
    `rtt[i]`, `frames_sent[i]`, `taken[i]` (tokens accepted by end i).
    """

    def __init__(self, *, delay=3, links=(LINK, LINK), timeout=None, restart_cycles=RESTART_CYCLES):
        self.pair = Pair(links, restart_cycles)
        self.links, self.timeout = links, timeout
        self.lanes = [Direction(delay, links[0].lanes) for _ in range(2)]
        self.cycle = 0
        self.lost, self.lives, self.taken = [0, 0], [0, 0], [0, 0]
        self.trace = [[], []]
        self.stay = [{}, {}]
        """Longest stay in each state, in cycles."""
        self.entered = [0, 0]
        self.reasons, self.rtt = [[], []], [[], []]
        self.pairs = [{}, {}]
        self.widths = [None, None]
        self.sending = [0, 0]
        self.silent_since = [0, 0]
        self.forced = [{}, {}]
        self.known, self.quiet, self.failed = [0, 0], [0, 0], [0, 0]
        self._set = [{}, {}]

    def simulate(self, scenario):
        simulator = Simulator(self.pair)
        simulator.add_clock(1e-6)

        async def main(ctx):
            self.ctx = ctx
            for i, end in enumerate(self.pair.ends):
                ctx.set(end.enable, 1)
                ctx.set(end.auto_restart, 1)
                ctx.set(end.min_width, 2)
                ctx.set(end.entropy, 0x1234567 * (i + 1))
                limit = self.timeout or self.links[i].training_timeout_cycles
                ctx.set(end.timeout, limit)
                ctx.set(end.tx_idle, 1)
            await scenario(self)

        simulator.add_testbench(main)
        simulator.run()
        return self

    def state(self, i):
        return self.trace[i][-1] if self.trace[i] else LinkState.RESET

    def put(self, i, **values):
        """Set inputs of end i; unchanged ones cost nothing."""
        end, old = self.pair.ends[i], self._set[i]
        for name, value in values.items():
            value = self.forced[i].get(name, value)
            if old.get(name) != value:
                old[name] = value
                self.ctx.set(getattr(end, name), value)

    def force(self, i, **values):
        """Inputs that the model shall not change; None gives one back."""
        for name, value in values.items():
            self.forced[i].pop(name, None)
            if value is not None:
                self.put(i, **{name: value})
                self.forced[i][name] = value

    async def pulse(self, i, name, value=1):
        end = self.pair.ends[i]
        self.ctx.set(getattr(end, name), value)
        await self.run(1)
        self.ctx.set(getattr(end, name), 0)

    async def reset(self, i, cycles=1):
        self.ctx.set(self.pair.resets[i], 1)
        await self.run(cycles)
        self.ctx.set(self.pair.resets[i], 0)

    async def until(self, condition, limit):
        for _ in range(limit):
            if condition(self):
                return
            await self.run(1)
        states = [self.state(i).name for i in range(2)]
        raise AssertionError(f"not within {limit} cycles; states {states}, {self.reasons}")

    async def both_active(self, limit=20000):
        await self.until(lambda b: all(b.state(i) == LinkState.ACTIVE for i in range(2)), limit)

    async def run(self, cycles):
        for _ in range(cycles):
            await self._step()

    async def _step(self):
        ends = self.pair.ends
        _, _, *sampled = await self.ctx.tick().sample(
            *(
                signal
                for e in ends
                for signal in (
                    e.state, e.send, e.start, e.unlock, e.align, e.rx_width, e.tx_enable,
                    e.rx_enable, e.lost, e.reason, e.rtt_valid, e.rtt, e.failed,
                )
            )
        )  # fmt: skip
        half = len(sampled) // 2
        for i in range(2):
            self._end(i, sampled[i * half : (i + 1) * half])
        self.cycle += 1

    def _end(self, i, sampled):
        (state, send, start, unlock, align, width, tx_enable, rx_enable, lost, reason, rtt_valid,
         rtt, failed) = sampled  # fmt: skip
        state = LinkState(state)
        if not self.trace[i] or self.trace[i][-1] != state:
            self.trace[i].append(state)
            self.entered[i] = self.cycle
        stay = self.cycle - self.entered[i] + 1
        self.stay[i][state] = max(stay, self.stay[i].get(state, 0))
        self.sending[i] = send
        if reason:
            self.reasons[i].append(reason)
        if rtt_valid:
            self.rtt[i].append(rtt)
        assert lost or not failed or self.failed[i], "failed rises with lost"
        self.failed[i] = failed
        if lost:
            self.lost[i] += 1
            self.lives[i] += 1
            self.known[i] = 0
        self._transmit(i, send, start, tx_enable)
        self._receive(i, unlock, align, width, rx_enable)

    def _transmit(self, i, send, start, tx_enable):
        """Lanes of end i, sending."""
        lanes, ctx, end = self.lanes[i], self.ctx, self.pair.ends[i]
        frame_sent = 0
        item = None
        if send == 0:
            lanes.mode, lanes.position = "silent", 0
        elif send == 1 and lanes.mode != "frames":
            lanes.mode, lanes.position, lanes.is_start = "frames", 0, False
        if lanes.mode == "frames":
            if lanes.position == 0:
                lanes.content = ctx.get(end.tx_frame.as_value())
            lanes.position += 1
            if lanes.position == FRAME_CYCLES:
                lanes.position, frame_sent = 0, 1
                item = ("start" if lanes.is_start else "frame", lanes.content)
                if lanes.is_start:
                    lanes.mode = "data"
                lanes.is_start = bool(start) and not lanes.is_start
        elif lanes.mode == "data":
            token = None
            if tx_enable and self.known[i]:
                token = (ctx.get(end.session), ctx.get(end.epoch), self.lives[i])
            item = ("data", token)
        if item is not None and not lanes.cut:
            lanes.wire.append((self.cycle + lanes.delay, item))
        self.put(i, started=int(lanes.mode == "data"), frame_sent=frame_sent)

    def _receive(self, i, unlock, align, width, rx_enable):
        """Lanes of end i, receiving: those that end 1 - i drives."""
        lanes, ctx = self.lanes[1 - i], self.ctx
        kind, content = None, None
        if lanes.wire and lanes.wire[0][0] <= self.cycle:
            kind, content = lanes.wire.popleft()[1]
        if lanes.noise and kind is not None:
            kind = "bad"
        pulses = dict.fromkeys(("frame_valid", "rx_start", "training_seen", "nak_limit"), 0)
        if unlock:
            lanes.reset_receiver()
        if not align:
            lanes.aligned = False
        if lanes.in_data:
            self._receive_data(i, kind, content, rx_enable, pulses)
        elif kind in ("frame", "start"):
            lanes.good, lanes.bad = lanes.good + 1, 0
            alive = [n for n in range(lanes.lanes) if n not in lanes.dead]
            group = [
                n if not lanes.reversed else lanes.lanes - 1 - n
                for n in Width(width).lanes(lanes.lanes)
            ]
            works = lanes.align_works and all(n in alive for n in group)
            if lanes.locked and align and works:
                lanes.aligned = True
            if lanes.aligned and kind == "start":
                lanes.in_data, pulses["rx_start"], self.quiet[i] = True, 1, 0
                self.widths[i] = width, ctx.get(self.pair.ends[1 - i].tx_width)
            elif lanes.locked:
                self._frame(i, content)
                pulses["frame_valid"] = 1
        else:
            # Silence, noise and data are bad frames.
            lanes.bad += 1
            if lanes.bad >= LOCK_FRAMES * FRAME_CYCLES * 2:
                lanes.good = 0
        self.put(
            i,
            locked=lanes.locked,
            reversed=int(lanes.reversed),
            aligned=int(lanes.aligned),
            order_bad=int(lanes.swapped and lanes.aligned),
            credits_known=self.known[i],
            **pulses,
        )

    def _frame(self, i, content):
        self.ctx.set(self.pair.ends[i].frame.as_value(), content)

    def _receive_data(self, i, kind, content, rx_enable, pulses):
        lanes = self.lanes[1 - i]
        ctx, end = self.ctx, self.pair.ends[i]
        lanes.markers = lanes.markers + 1 if kind == "frame" else lanes.markers
        if kind == "frame" and lanes.markers % 4 == 0:
            pulses["training_seen"] = 1
        if kind == "data" and rx_enable:
            if content is None:
                # Control flits: credit, nothing else.
                self.quiet[i] = 0
                self.known[i] = 1
            elif content[:2] == (ctx.get(end.peer_session), ctx.get(end.peer_epoch)):
                self.quiet[i] = 0
                self.known[i] = 1
                self.taken[i] += 1
                self._meet(i, content[2])
        self.quiet[i] += 1
        if self.quiet[i] % NAK_LIMIT_CYCLES == 0:
            pulses["nak_limit"] = 1

    def _meet(self, i, peer_life):
        mine = self.lives[i]
        known = self.pairs[i].setdefault(mine, peer_life)
        assert known == peer_life, (
            f"cycle {self.cycle}: life {mine} of end {i} took data of lives {known} and "
            f"{peer_life} of the peer"
        )

    def check_lives(self):
        """Lives that exchanged data did so with each other only, in both directions."""
        for i in range(2):
            for mine, other in self.pairs[i].items():
                back = self.pairs[1 - i].get(other)
                assert back in (None, mine), f"end {i}: {mine} <- {other}, but {other} <- {back}"
