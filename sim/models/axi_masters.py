"""AXI4 masters for Amaranth's simulator, which check what they get."""

import random
from collections import deque

from hdl.lib.axi import BURST_BOUNDARY, MAX_BURST_BEATS, Resp
from isa.geometry import WORD_BYTES
from sim.models.axi_memory import StreamWatch


def random_burst(rng, low, high, longest=MAX_BURST_BEATS):
    """(address, beats) of a legal burst in [low, high)."""
    beats = 1 + rng.randrange(longest)
    while True:
        address = rng.randrange(low, high - beats * WORD_BYTES + 1) // WORD_BYTES * WORD_BYTES
        if (
            address // BURST_BOUNDARY == (address + beats * WORD_BYTES - 1) // BURST_BOUNDARY
            and address >= low
        ):
            return address, beats


class ReadMaster:
    """Reads `bursts` (address, beats) and compares each beat with `peek(address)`: (resp, word or
    None for any).

    With `id_bits` each burst has a random id, and bursts are answered in order all the same.
    """

    def __init__(self, peek, bursts, *, seed=0, stall=0.0, outstanding=8, id_bits=0):
        self.peek, self.bursts, self.outstanding, self.id_bits = (
            peek,
            deque(bursts),
            outstanding,
            id_bits,
        )
        self.random, self.stall = random.Random(seed), stall
        self.errors = self.beats = 0
        self.asked, self.granted = [], []
        """Cycles in which a request was first offered, and taken."""

    @property
    def done(self):
        return not self.bursts and not self.waiting

    waiting = ()

    async def serve(self, ctx, port):
        """Process for one AxiRead port."""
        watch, valid, ready, now, identity = StreamWatch("r"), False, 0, 0, 0
        self.waiting = waiting = deque()
        while True:
            _, _, taken, r_valid, beat = await ctx.tick().sample(
                port.ar.ready, port.r.valid, port.r.p
            )
            now += 1
            if valid and taken:
                self.granted.append(now)
                waiting.append([*self.bursts.popleft(), 0, identity])
                valid = False
            if watch.see(r_valid, ready, beat):
                self._check(waiting, beat)
            if (
                not valid
                and self.bursts
                and len(waiting) < self.outstanding
                and self.random.random() >= self.stall
            ):
                address, beats = self.bursts[0]
                self.asked.append(now + 1)
                identity = self.random.getrandbits(self.id_bits)
                ctx.set(port.ar.p, {"id": identity, "addr": address, "len": beats - 1})
                valid = True
            ctx.set(port.ar.valid, valid)
            ready = int(self.random.random() >= self.stall)
            ctx.set(port.r.ready, ready)

    def _check(self, waiting, beat):
        assert waiting, "an answer that nobody asked for"
        address, beats, number, identity = waiting[0]
        where = address // WORD_BYTES * WORD_BYTES + WORD_BYTES * number
        resp, word = self.peek(where)
        assert (beat.id, beat.resp) == (identity, resp), f"answer for {where:#x}"
        self.errors += resp != Resp.OKAY
        assert word is None or beat.data == word, f"data of {where:#x}"
        waiting[0][2] += 1
        self.beats += 1
        assert beat.last == (waiting[0][2] == beats), "last"
        if beat.last:
            waiting.popleft()


class WriteMaster:
    """Writes `bursts` (address, [(data, strb), ...]) and counts the answers; data may run ahead of
    or behind addresses."""

    def __init__(self, bursts, *, seed=0, stall=0.0, id_bits=0):
        self.id_bits, self.ids = id_bits, deque()
        self.addresses = deque((address, len(beats)) for address, beats in bursts)
        self.beats = deque(
            (data, strb, int(i == len(beats) - 1))
            for _, beats in bursts
            for i, (data, strb) in enumerate(beats)
        )
        self.random, self.stall = random.Random(seed), stall
        self.answers = []
        self.expected = len(bursts)
        self.asked, self.granted = [], []

    @property
    def done(self):
        return len(self.answers) == self.expected

    async def serve(self, ctx, port):
        """Process for one AxiWrite port."""
        watch, aw_valid, w_valid, ready, now = StreamWatch("b"), False, False, 0, 0
        while True:
            _, _, aw_taken, w_taken, b_valid, answer = await ctx.tick().sample(
                port.aw.ready, port.w.ready, port.b.valid, port.b.p
            )
            now += 1
            if aw_valid and aw_taken:
                self.granted.append(now)
                self.addresses.popleft()
                aw_valid = False
            if w_valid and w_taken:
                self.beats.popleft()
                w_valid = False
            if watch.see(b_valid, ready, answer):
                self.answers.append(answer.resp)
                assert answer.id == self.ids.popleft(), "id of an answer"
                assert len(self.answers) <= self.expected, "an answer too many"
            if not aw_valid and self.addresses and self.random.random() >= self.stall:
                address, beats = self.addresses[0]
                self.asked.append(now + 1)
                self.ids.append(self.random.getrandbits(self.id_bits))
                ctx.set(port.aw.p, {"id": self.ids[-1], "addr": address, "len": beats - 1})
                aw_valid = True
            if not w_valid and self.beats and self.random.random() >= self.stall:
                data, strb, last = self.beats[0]
                ctx.set(port.w.p, {"data": data, "strb": strb, "last": last})
                w_valid = True
            ctx.set(port.aw.valid, aw_valid)
            ctx.set(port.w.valid, w_valid)
            ready = int(self.random.random() >= self.stall)
            ctx.set(port.b.ready, ready)
