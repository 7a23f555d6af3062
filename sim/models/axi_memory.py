"""AXI4 memory for Amaranth's simulator.

Random latency, stalls and reordering, protocol checks, errors on demand.  For unit tests of up to
some ten thousand cycles; `hbm.sv` is the model for whole-chip simulation.
"""

import random
from collections import deque
from dataclasses import dataclass, field

from hdl.lib.axi import BURST_BOUNDARY, MAX_BURST_BEATS, Resp
from isa.geometry import WORD_BYTES


class StreamWatch:
    """Asserts that a stream holds valid and payload until it is taken."""

    def __init__(self, name):
        self.name, self.held = name, None

    def see(self, valid, ready, payload):
        """Note one clock edge; True when the payload was taken."""
        if self.held is not None:
            assert valid, f"{self.name}: valid was withdrawn"
            assert payload == self.held, f"{self.name}: payload changed while waiting"
        self.held = payload if valid and not ready else None
        return bool(valid and ready)


@dataclass
class Timing:
    """How a memory behaves.  Probabilities in 0..1, latencies in cycles."""

    latency: int = 4
    jitter: int = 0
    stall: float = 0.0
    """Chance, in each cycle and channel, that the memory does not move."""
    reorder: bool = False
    """Answers of different ids in random order, beats interleaved."""


@dataclass
class Burst:
    """One burst in the model."""

    id: int
    address: int
    beats: int
    due: int
    error: bool = False
    done: int = 0


@dataclass
class AxiMemory:
    """`data` behind any number of AXI ports: run `serve_read` / `serve_write` as simulator
    processes, one per port half.

    `faults` lists [low, high) byte ranges that answer SLVERR; beyond `data` it is DECERR.
    Counters: `read_beats`, `write_beats`, `most_reads` (bursts outstanding).
    """

    data: bytearray
    timing: Timing = field(default_factory=Timing)
    seed: int = 0
    faults: list = field(default_factory=list)
    read_beats: int = 0
    write_beats: int = 0
    most_reads: int = 0

    def __post_init__(self):
        self.random = random.Random(self.seed)

    def _moves(self):
        return self.timing.stall == 0 or self.random.random() >= self.timing.stall

    def _due(self, now):
        return (
            now
            + self.timing.latency
            + (self.random.randrange(self.timing.jitter + 1) if self.timing.jitter else 0)
        )

    def _check(self, address):
        beats = address.len + 1
        assert address.addr % WORD_BYTES == 0, f"AXI address {address.addr:#x} is not aligned"
        assert beats <= MAX_BURST_BEATS, f"AXI burst of {beats} beats"
        last = address.addr + beats * WORD_BYTES - 1
        assert address.addr // BURST_BOUNDARY == last // BURST_BOUNDARY, (
            f"burst at {address.addr:#x} crosses 4 KiB"
        )
        return beats

    def resp(self, address):
        """Answer of the word at `address`."""
        if address + WORD_BYTES > len(self.data):
            return Resp.DECERR
        if any(address < high and low < address + WORD_BYTES for low, high in self.faults):
            return Resp.SLVERR
        return Resp.OKAY

    def peek(self, address):
        """(resp, word) that a read of the word at `address` gives; data of an error are not told
        (None)."""
        resp = self.resp(address)
        return resp, None if resp == Resp.DECERR else int.from_bytes(
            self.data[address : address + WORD_BYTES], "little"
        )

    async def serve_read(self, ctx, port):
        """Process for the read half of a port."""
        watch = StreamWatch("ar")
        queues, now, ready, beat, bursts = {}, 0, 0, None, 0
        while True:
            _, _, valid, address, taken = await ctx.tick().sample(
                port.ar.valid, port.ar.p, port.r.ready
            )
            now += 1
            if beat is not None and taken:
                self.read_beats += 1
                burst, beat = beat, None
                burst.done += 1
                if burst.done == burst.beats:
                    queues[burst.id].popleft()
                    bursts -= 1
            if watch.see(valid, ready, address):
                burst = Burst(address.id, address.addr, self._check(address), self._due(now))
                queues.setdefault(burst.id, deque()).append(burst)
                bursts += 1
                self.most_reads = max(self.most_reads, bursts)
            if beat is None and self._moves():
                heads = [queue[0] for queue in queues.values() if queue and queue[0].due <= now]
                if heads:
                    beat = (
                        self.random.choice(heads)
                        if self.timing.reorder
                        else min(heads, key=lambda b: (-b.done, b.due))
                    )
                    where = beat.address + beat.done * WORD_BYTES
                    resp = self.resp(where)
                    word = (
                        0
                        if resp == Resp.DECERR
                        else int.from_bytes(self.data[where : where + WORD_BYTES], "little")
                    )
                    ctx.set(
                        port.r.p,
                        {
                            "id": beat.id,
                            "data": word,
                            "resp": resp,
                            "last": int(beat.done == beat.beats - 1),
                        },
                    )
            ctx.set(port.r.valid, beat is not None)
            ready = int(self._moves())
            ctx.set(port.ar.ready, ready)

    async def serve_write(self, ctx, port):
        """Process for the write half of a port."""
        watch_aw, watch_w = StreamWatch("aw"), StreamWatch("w")
        queue, answers, now, aw_ready, w_ready, answer = deque(), [], 0, 0, 0, None
        while True:
            _, _, aw_valid, address, w_valid, beat, b_ready = await ctx.tick().sample(
                port.aw.valid, port.aw.p, port.w.valid, port.w.p, port.b.ready
            )
            now += 1
            if answer is not None and b_ready:
                answers.remove(answer)
                answer = None
            if watch_w.see(w_valid, w_ready, beat):
                self._write_beat(queue, answers, beat, now)
            if watch_aw.see(aw_valid, aw_ready, address):
                queue.append(Burst(address.id, address.addr, self._check(address), 0))
            if answer is None and self._moves():
                answer = self._choose(answers, now)
                if answer is not None:
                    ctx.set(
                        port.b.p,
                        {"id": answer.id, "resp": Resp.SLVERR if answer.error else Resp.OKAY},
                    )
            ctx.set(port.b.valid, answer is not None)
            aw_ready = int(self._moves())
            w_ready = int(bool(queue) and self._moves())
            ctx.set(port.aw.ready, aw_ready)
            ctx.set(port.w.ready, w_ready)

    def _choose(self, answers, now):
        """An answer that is due: the oldest, or with `reorder` the oldest of a random id."""
        oldest = {}
        for answer in answers:
            oldest.setdefault(answer.id, answer)
        due = [answer for answer in oldest.values() if answer.due <= now]
        if not due:
            return None
        return self.random.choice(due) if self.timing.reorder else due[0]

    def _write_beat(self, queue, answers, beat, now):
        burst = queue[0]
        where = burst.address + burst.done * WORD_BYTES
        self.write_beats += 1
        if self.resp(where) != Resp.OKAY:
            burst.error = True
        else:
            word = beat.data.to_bytes(WORD_BYTES, "little")
            for index in range(WORD_BYTES):
                if beat.strb >> index & 1:
                    self.data[where + index] = word[index]
        burst.done += 1
        assert beat.last == (burst.done == burst.beats), (
            f"w.last wrong at beat {burst.done} of {burst.beats}"
        )
        if beat.last:
            burst.due = self._due(now)
            answers.append(queue.popleft())
