# amaranth: UnusedElaboratable=no
"""Reader and Writer on real memories: copies between all places, against numpy and in Icarus."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hdl.memory.ports import PsumNarrow, SbufNarrow
from hdl.memory.psum import Psum
from hdl.memory.reader import Reader, ReadRequest
from hdl.memory.sbuf import Sbuf
from hdl.memory.writer import Writer, WriteRequest
from isa.dtypes import NARROW, DType
from isa.fields import Space
from isa.geometry import PSUM_WORD_BYTES, WORD_BYTES, preset
from verif.banked_memory_bench import simulate
from verif.icarus import assert_same, ports
from verif.memory_bench import load_lanes, pack, random_pattern, store_lanes

CONFIG = preset("tiny").with_(sbuf_bytes=1024, psum_bank_bytes=64)
P = CONFIG.partitions


class CopyPath(wiring.Component):
    """A reader that feeds a writer, with SBUF and PSUM behind both."""

    def __init__(self):
        super().__init__({
            "read": In(stream.Signature(ReadRequest)),
            "write": In(stream.Signature(WriteRequest)),
            "sbuf": In(SbufNarrow(CONFIG)),
            "psum": In(PsumNarrow(CONFIG)),
            "sbuf_deny": In(2 * CONFIG.sbuf_banks),
            "psum_deny": In(16),
            "done": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.sbuf = sbuf = Sbuf(CONFIG, 1, 1, 1)
        m.submodules.psum = psum = Psum(CONFIG, 1, 1, 1)
        m.submodules.reader = reader = Reader(CONFIG)
        m.submodules.writer = writer = Writer(CONFIG)
        for mine, theirs in ((self.read, reader.request), (self.write, writer.request)):
            m.d.comb += [
                theirs.valid.eq(mine.valid), theirs.p.eq(mine.p), mine.ready.eq(theirs.ready)]
        connect(m, reader.sbuf, sbuf.read[0])
        connect(m, reader.psum, psum.read[0])
        connect(m, writer.sbuf, sbuf.write[0])
        connect(m, writer.psum, psum.write[0])
        m.d.comb += [
            writer.i.valid.eq(reader.out.valid), writer.i.p.data.eq(reader.out.p.data),
            reader.out.ready.eq(writer.i.ready), self.done.eq(writer.done),
            sbuf.deny.eq(self.sbuf_deny), psum.deny.eq(self.psum_deny),
        ]
        for mine, theirs in ((self.sbuf, sbuf.narrow[0]), (self.psum, psum.narrow[0])):
            m.d.comb += [
                theirs.read.valid.eq(mine.read.valid), theirs.read.p.eq(mine.read.p),
                mine.read.ready.eq(theirs.read.ready),
                mine.valid.eq(theirs.valid), mine.data.eq(theirs.data),
                theirs.write.valid.eq(mine.write.valid), theirs.write.p.eq(mine.write.p),
                mine.write.ready.eq(theirs.write.ready),
            ]
        return m


def random_copies(rng, number, *, apart):
    """(source, destination, options) of copies; `apart`: sources and destinations never overlap."""
    copies = []
    for _ in range(number):
        source = random_pattern(rng, CONFIG, max_elements=16, part=(0.0, 0.5) if apart else (0, 1))
        destination = random_pattern(rng, CONFIG, counts=source["count"],
                                     part=(0.5, 1.0) if apart else (0, 1))
        options = {"raw": int(source["dtype"] == destination["dtype"])}
        if DType(destination["dtype"]) in NARROW and not options["raw"]:
            options |= {"sat": int(rng.integers(2))}
        copies.append((source, destination, options))
    return copies


@pytest.mark.parametrize(("apart", "deny"), [(True, 0.0), (True, 0.4), (False, 0.2)])
def test_copies(apart, deny):
    """Back to back when nothing depends on an earlier copy, else each after `done` of the last."""
    rng = np.random.default_rng([5, int(10 * deny), apart])
    copies = random_copies(rng, 25, apart=apart)
    dut = CopyPath()
    spaces = {
        Space.SBUF: (dut.sbuf, WORD_BYTES,
                     rng.integers(0, 256, (P, CONFIG.sbuf_bytes), dtype=np.uint8)),
        Space.PSUM: (dut.psum, PSUM_WORD_BYTES,
                     rng.integers(0, 256, (P, CONFIG.psum_bytes), dtype=np.uint8)),
    }

    async def offer(ctx, channel, payload):
        ctx.set(channel.p, payload)
        ctx.set(channel.valid, 1)
        for _ in range(1000):
            _, _, ready = await ctx.tick().sample(channel.ready)
            if ready:
                break
        else:
            raise AssertionError("not taken in 1000 cycles")
        ctx.set(channel.valid, 0)

    def words(word_bytes, memory):
        for p in range(P):
            for word in range(memory.shape[1] // word_bytes):
                yield p, word, slice(word * word_bytes, (word + 1) * word_bytes)

    async def bench(ctx):
        for port, word_bytes, memory in spaces.values():
            for p, word, place in words(word_bytes, memory):
                await offer(ctx, port.write, {
                    "partition": p, "word": word, "bytes": (1 << word_bytes) - 1,
                    "data": int.from_bytes(memory[p, place].tobytes(), "little")})
        reads = [{"pattern": source, "raw": options["raw"]} for source, _, options in copies]
        writes = [{"pattern": destination, **options} for _, destination, options in copies]
        done = 0
        for _ in range(10000):
            for pending, channel in ((reads, dut.read), (writes, dut.write)):
                # A copy that may depend on earlier ones starts when they are done.
                start = pending and (apart or len(copies) - len(pending) == done)
                ctx.set(channel.valid, int(bool(start)))
                if start:
                    ctx.set(channel.p, pending[0])
            for denied in (dut.sbuf_deny, dut.psum_deny):
                ctx.set(denied, pack(rng.random(len(denied)) < deny, 1))
            _, _, read, write, pulse = await ctx.tick().sample(
                dut.read.ready & dut.read.valid, dut.write.ready & dut.write.valid, dut.done)
            if read:
                reads.pop(0)
            if write:
                writes.pop(0)
            done += pulse
            if done == len(copies):
                break
        assert done == len(copies), f"{done} copies in 10000 cycles"
        ctx.set(dut.sbuf_deny, 0)
        ctx.set(dut.psum_deny, 0)
        for source, destination, options in copies:
            values = load_lanes(spaces[source["space"]][2], source, options["raw"])
            store_lanes(spaces[destination["space"]][2], destination, values, **options)
        for space, (port, word_bytes, memory) in spaces.items():
            for p, word, place in words(word_bytes, memory):
                await offer(ctx, port.read, {"partition": p, "word": word})
                await ctx.tick().repeat(2)
                assert ctx.get(port.valid)
                got, expected = ctx.get(port.data), memory[p, place].tobytes()
                assert got.to_bytes(word_bytes, "little") == expected, (
                    f"{space.name} partition {p} word {word}")

    simulate(dut, bench)


@pytest.mark.icarus
def test_emitted_in_icarus(tmp_path):
    rng = np.random.default_rng(6)
    inputs, _ = ports(CopyPath())
    stimuli = []
    source, destination, options = random_copies(rng, 1, apart=False)[0]
    for cycle in range(300):
        if cycle % 12 == 0:  # payloads change in the middle of a transfer too: both sides see it
            source, destination, options = random_copies(rng, 1, apart=False)[0]
        stimulus = {name: int.from_bytes(rng.bytes(len(signal) // 8 + 1), "little")
                    & ((1 << len(signal)) - 1) for name, signal in inputs.items()}
        stimulus["read__payload"] = ReadRequest.const(
            {"pattern": source, "raw": options["raw"]}).as_bits()
        stimulus["write__payload"] = WriteRequest.const(
            {"pattern": destination, **options}).as_bits()
        stimulus["sbuf_deny"] &= 0x11
        stimuli.append(stimulus)
    known = assert_same(
        CopyPath, stimuli, tmp_path, unknown_until_valid=["sbuf__data", "psum__data"])
    assert known > 300 * 100
