"""A cycle-exact model and random traffic for Sbuf and Psum: every request is accounted for."""

import numpy as np
from amaranth.hdl import Fragment
from amaranth.sim import Simulator

from hdl.memory.ports import NARROW_READ_CYCLES, WIDE_READ_CYCLES
from verif.memory_bench import pack, store_word


class BankedMemoryBench:
    """Drives random requests at every port of a Sbuf or Psum and checks each cycle.

    Rules checked: a write is done when taken; a read gives the contents before the writes of its
    cycle, after exactly the cycles of its port, and data come at no other time; each bank takes at
    most one read and one write a cycle; a denied bank takes none.

    Parameters
    ----------
    dut : Sbuf or Psum
    rng : numpy Generator
    load, deny : float
        Probability that an idle port asks, and that a grant of a bank is taken away.
    words : sequence of int or None
        Words that traffic goes to; all when None.  Few words make every kind of conflict.
    """

    def __init__(self, dut, rng, *, load=0.7, deny=0.0, words=None, read=True, write=True):
        g = self.geometry = dut.geometry
        self.dut, self.rng, self.load, self.deny = dut, rng, load, deny
        self.words = list(range(g.words)) if words is None else list(words)
        self.read, self.write = read, write
        self.memory = np.zeros((g.partitions, g.words * g.word_bytes), dtype=np.uint8)
        self.taken = {"read": 0, "write": 0, "narrow read": 0, "narrow write": 0}
        self.ports = [("read", port, port.req) for port in dut.read]
        self.ports += [("write", port, port) for port in dut.write]
        self.ports += [("narrow read", port, port.read) for port in dut.narrow]
        self.ports += [("narrow write", port, port.write) for port in dut.narrow]
        self.waits = [0] * len(self.ports)
        self.longest_wait = 0
        self._due = {}
        self._pending = [None] * len(self.ports)

    def bank(self, word):
        g = self.geometry
        return word % g.banks if g.interleaved else word // g.rows

    def request(self, kind):
        """A random payload."""
        g, rng = self.geometry, self.rng
        word = int(rng.choice(self.words))
        bits = lambda n: pack(rng.integers(0, 2, n), 1)  # noqa: E731
        data = lambda n: int.from_bytes(rng.bytes(n), "little")  # noqa: E731
        partition = int(rng.integers(g.partitions))
        if kind == "read":
            return word
        if kind == "write":
            return {"word": word, "partitions": bits(g.partitions), "bytes": bits(g.word_bytes),
                    "data": data(g.word_bytes * g.partitions)}
        if kind == "narrow read":
            return {"partition": partition, "word": word}
        return {"partition": partition, "word": word, "bytes": bits(g.word_bytes),
                "data": data(g.word_bytes)}

    def drive(self, ctx):
        """Offer requests for this cycle."""
        g = self.geometry
        for index, (kind, _, channel) in enumerate(self.ports):
            wanted = self.write if "write" in kind else self.read
            if self._pending[index] is None and wanted and self.rng.random() < self.load:
                self._pending[index] = self.request(kind)
                ctx.set(channel.p, self._pending[index])
            ctx.set(channel.valid, int(self._pending[index] is not None))
        self.denied = pack(self.rng.random(2 * g.banks) < self.deny, 1)
        ctx.set(self.dut.deny, self.denied)

    def signals(self):
        """What `check` wants to have sampled."""
        sampled = [channel.ready for _, _, channel in self.ports]
        for kind, port, _ in self.ports:
            if "read" in kind:
                sampled += [port.valid, port.data]
        return sampled

    def check(self, cycle, samples, blocked_reads=(), blocked_writes=()):
        """Account for one cycle; `blocked` banks must not take anything."""
        g = self.geometry
        count = len(self.ports)
        readies, answers = samples[:count], samples[count:]
        used = {"read": set(), "write": set()}
        writes = []
        for index, (kind, _, _) in enumerate(self.ports):
            payload = self._pending[index]
            if payload is None:
                continue
            if not readies[index]:
                self.waits[index] += 1
                self.longest_wait = max(self.longest_wait, self.waits[index])
                continue
            self.waits[index] = 0
            self._pending[index] = None
            self.taken[kind] += 1
            word = payload if kind == "read" else payload["word"]
            bank, side = self.bank(word), kind.split()[-1]
            denied = self.denied >> bank + (g.banks if side == "write" else 0) & 1
            assert not denied, f"cycle {cycle}: denied bank {bank} took a {kind}"
            assert bank not in (blocked_reads if side == "read" else blocked_writes), (
                f"cycle {cycle}: the accumulate port did not win bank {bank}")
            assert bank not in used[side], f"cycle {cycle}: bank {bank} took two {side}s"
            used[side].add(bank)
            at = word * g.word_bytes
            if kind == "read":
                rows = self.memory[:, at:at + g.word_bytes]
                self._due[index, cycle + WIDE_READ_CYCLES] = np.ascontiguousarray(rows).tobytes()
            elif kind == "narrow read":
                row = self.memory[payload["partition"], at:at + g.word_bytes]
                self._due[index, cycle + NARROW_READ_CYCLES] = row.tobytes()
            elif kind == "write":
                writes.append((word, payload["partitions"], payload["bytes"], payload["data"]))
            else:
                p = payload["partition"]
                data = payload["data"] << g.data_bits * p
                writes.append((word, 1 << p, payload["bytes"], data))
        for write in writes:
            store_word(self.memory, g.word_bytes, *write)
        place = 0
        for index, (kind, _, _) in enumerate(self.ports):
            if "read" in kind:
                valid, data = answers[place:place + 2]
                place += 2
                due = self._due.pop((index, cycle), None)
                where = f"cycle {cycle}: {kind} port {index}"
                assert valid == (due is not None), f"{where}: valid={valid}"
                if valid:
                    got = data.to_bytes(len(due), "little")
                    assert got == due, f"{where}: {got.hex()} != {due.hex()}"

    def run(self, cycles):
        """Random traffic for that many cycles."""
        async def bench(ctx):
            for cycle in range(cycles):
                self.drive(ctx)
                _, _, *samples = await ctx.tick().sample(*self.signals())
                self.check(cycle, samples)

        simulate(self.dut, bench, checks=True)


def simulate(dut, bench, *, checks=False):
    """Run an asynchronous bench to its end, with the run-time checks of the design or without."""
    simulator = Simulator(Fragment.get(dut, "formal") if checks else dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
