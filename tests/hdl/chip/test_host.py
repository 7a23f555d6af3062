"""The host port: AXI bursts onto the bus."""

import random

import pytest

from hdl.chip.host import HOST_ID_BITS
from hdl.lib.axi import Resp
from isa.address_map import (
    PSUM_BASE,
    REGISTER_BASE,
    SemaphoreView,
    psum_address,
    sbuf_address,
    semaphore_address,
)
from isa.geometry import WORD_BYTES, preset
from sim.models.axi_masters import ReadMaster, WriteMaster, random_burst
from sim.models.bus_bench import BusBench, BusMaster

TINY = preset("tiny")


class Host:
    """A bench with a reading and a writing host."""

    def __init__(self, *, reads=(), writes=(), seed=0, stall=0.0):
        self.bench = BusBench(TINY, seed=seed, stall=stall, host=True)
        self.reader = ReadMaster(self.peek, reads, seed=seed, stall=stall, id_bits=HOST_ID_BITS)
        self.writer = WriteMaster(writes, seed=seed, stall=stall, id_bits=HOST_ID_BITS)

    def peek(self, address):
        found = self.bench.locate(address)
        if found is None:
            return Resp.SLVERR, None
        data, offset = found
        return Resp.OKAY, int.from_bytes(data[offset : offset + WORD_BYTES], "little")

    def run(self, *scripts, limit=30_000):
        async def finish(ctx):
            while not (self.reader.done and self.writer.done):
                await ctx.tick()

        port = self.bench.top.host
        self.bench.run(
            finish,
            *scripts,
            limit=limit,
            extra=[(self.reader.serve, port.read), (self.writer.serve, port.write)],
        )


def apply(image_of, bursts):
    """Write bursts into the bytearrays that `image_of(address)` finds."""
    for address, beats in bursts:
        for number, (data, strb) in enumerate(beats):
            found = image_of(address // WORD_BYTES * WORD_BYTES + WORD_BYTES * number)
            if found is None:
                continue
            memory, offset = found
            for byte in range(WORD_BYTES):
                if strb >> byte & 1:
                    memory[offset + byte] = data >> 8 * byte & 255


@pytest.mark.parametrize("seed, stall", [(0, 0.0), (1, 0.4)])
def test_bursts_read_what_the_memories_hold(seed, stall):
    """All three memories, ids echoed, a burst that runs out of SBUF has errors from there on."""
    rng = random.Random(seed)
    areas = [
        (0, TINY.hbm_bytes),
        (sbuf_address(TINY, 1, 0), sbuf_address(TINY, 3, 0)),
        (psum_address(TINY, 2, 0), psum_address(TINY, 2, TINY.psum_bytes - 16) + 16),
    ]
    reads = [
        random_burst(rng, *rng.choice(areas), longest=rng.choice((1, 5, 40))) for _ in range(15)
    ]
    reads.insert(4, (sbuf_address(TINY, 3, TINY.sbuf_bytes - 48), 5))
    reads.insert(7, (PSUM_BASE - 16, 1))
    reads.append((0x1004, 1))
    host = Host(reads=reads, seed=seed, stall=stall)
    host.run()
    assert host.reader.beats == sum(beats for _, beats in reads)
    assert host.reader.errors == 2 + 1


@pytest.mark.parametrize("seed, stall", [(0, 0.0), (1, 0.4)])
def test_bursts_write(seed, stall):
    """Random strobes; a beat without a target makes the whole answer an error, the others are
    written."""
    rng = random.Random(seed)
    writes = []
    for low, high in (
        (0x100, 0x4000),
        (sbuf_address(TINY, 0, 0), sbuf_address(TINY, 1, 0)),
        (psum_address(TINY, 1, 0), psum_address(TINY, 1, TINY.psum_bytes - 16) + 16),
    ):
        for _ in range(4):
            address, beats = random_burst(rng, low, high, longest=6)
            writes.append(
                (
                    address,
                    [
                        (rng.getrandbits(128), rng.choice((0xFFFF, rng.getrandbits(16))))
                        for _ in range(beats)
                    ],
                )
            )
    end = sbuf_address(TINY, 3, TINY.sbuf_bytes - 32)
    for place, start in ((5, end), (8, PSUM_BASE - 32)):  # good beats first, bad beats first
        writes.insert(place, (start, [(rng.getrandbits(128), 0xFFFF) for _ in range(4)]))
    host = Host(writes=writes, seed=seed, stall=stall)
    copies = {
        id(m): bytearray(m)
        for m in [host.bench.hbm.data, *host.bench.sbuf.rows, *host.bench.psum.rows]
    }

    def image(address):
        found = host.bench.locate(address)
        return found and (copies[id(found[0])], found[1])

    apply(image, writes)
    host.run()
    for memory in [host.bench.hbm.data, *host.bench.sbuf.rows, *host.bench.psum.rows]:
        assert memory == copies[id(memory)]
    assert len(host.writer.answers) == len(writes)
    assert [i for i, answer in enumerate(host.writer.answers) if answer == Resp.SLVERR] == [5, 8]


def test_narrow_access():
    """A 4-byte register access: address inside the word, strobes of its lane (AXI places narrow
    data by address)."""
    value = 0x1234_5678
    host = Host(
        writes=[
            (REGISTER_BASE + 0x18, [(value << 64, 0x0F00)]),
            (semaphore_address(6, SemaphoreView.ADD), [(5 << 64, 0x0F00)]),
            (semaphore_address(6, SemaphoreView.INCREMENT), [(0, 0x0F00)]),
        ]
    )
    held = {REGISTER_BASE + 0x10: value << 64, semaphore_address(4): 6 << 64}
    host.reader.peek = lambda address: (Resp.OKAY, held[address])

    async def read_later(ctx):
        while not host.writer.done:
            await ctx.tick()
        host.reader.bursts += [(REGISTER_BASE + 0x18, 1), (semaphore_address(6), 1)]
        while host.reader.beats < 2:
            await ctx.tick()

    host.run(read_later)
    assert host.writer.answers == [Resp.OKAY] * 3
    assert host.reader.beats == 2


def test_longest_burst():
    """256 beats, as other AXI masters may send."""
    rng = random.Random(1)
    payload = [(rng.getrandbits(128), 0xFFFF) for _ in range(256)]
    host = Host(writes=[(0x3000, payload)])
    host.run()
    assert host.bench.hbm.data[0x3000:0x4000] == b"".join(
        data.to_bytes(16, "little") for data, _ in payload
    )
    host = Host(reads=[(0x5000, 256)])
    host.run()
    assert host.reader.beats == 256


def test_reads_and_writes_take_turns():
    """Neither direction waits for more than one burst of the other, nor for the sequencers'
    accesses."""
    reads, writes = [(0x1000, 2)] * 20, [(0x8000 + 64 * i, [(i, 0xFFFF)] * 2) for i in range(20)]
    host = Host(reads=reads, writes=writes)
    order = []
    for master, name in ((host.reader, "r"), (host.writer, "w")):
        master.granted = type(
            "Log", (list,), {"append": lambda self, cycle, name=name: order.append(name)}
        )()
    other = BusMaster(host.bench, 4)

    async def sequencer(ctx):
        for i in range(20):
            await other.write(ctx, 0x9000 + 16 * i, i)

    host.run(sequencer)
    assert order == ["w", "r"] * 20
