"""AxiRouter and PeerBus: accesses by address to HBM and peers."""

import random

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from hdl.chip.axi_router import AxiRouter
from hdl.chip.peer_bus import PeerBus
from isa.address_map import PEER_WINDOW_BITS
from isa.geometry import WORD_BYTES, preset
from sim.models.axi_masters import ReadMaster, WriteMaster, random_burst
from sim.models.axi_memory import AxiMemory, Timing
from sim.models.bridge_bench import CoreWindow

CHIP = preset("tiny").with_(links=2)
SIZE = 1 << 15
TARGETS = 1 + CHIP.links


def memories(rng, stall):
    timings = (Timing(3, 5, stall), Timing(40, 30, stall), Timing(9, 60, stall))
    return [
        AxiMemory(bytearray(rng.randbytes(SIZE)), timing=timing, seed=i)
        for i, timing in enumerate(timings)
    ]


def simulate(top, processes, script, limit=20_000):
    sim = Simulator(top)
    sim.add_clock(1e-6)
    for function, port in processes:

        async def process(ctx, function=function, port=port):
            await function(ctx, port)

        sim.add_process(process)

    async def bench(ctx):
        await script(ctx, limit)

    sim.add_testbench(bench)
    sim.run()


def test_bursts_go_where_they_belong():
    """Reads and writes in random order of targets; answers in the order of the requests."""
    rng = random.Random(1)
    dut, parts = AxiRouter(CHIP), memories(rng, 0.2)
    parts[1].faults.append((0x100, 0x110))
    images = [bytearray(part.data) for part in parts]
    reads, writes, expected = [], [], []
    for _ in range(60):
        target, run = rng.randrange(TARGETS), rng.randrange(1, 4)
        for _ in range(run):
            address, beats = random_burst(rng, 0, SIZE // 2, rng.choice((1, 4, 64)))
            reads.append((address + (target << PEER_WINDOW_BITS), beats))
            address, beats = random_burst(rng, SIZE // 2, SIZE, rng.choice((1, 4, 64)))
            data = [(rng.getrandbits(128), rng.getrandbits(16)) for _ in range(beats)]
            writes.append((address + (target << PEER_WINDOW_BITS), data))
            for i, (word, strb) in enumerate(data):
                for byte in range(WORD_BYTES):
                    if strb >> byte & 1:
                        images[target][address + 16 * i + byte] = word >> 8 * byte & 255
            expected.append(0)

    def peek(address):
        return parts[address >> PEER_WINDOW_BITS].peek(address % (1 << PEER_WINDOW_BITS))

    reader = ReadMaster(peek, reads, seed=1, stall=0.1)
    writer = WriteMaster(writes, seed=2, stall=0.3)

    async def script(ctx, limit):
        for _ in range(limit):
            if reader.done and writer.done:
                return
            await ctx.tick()
        raise AssertionError("not finished")

    processes = [(reader.serve, dut.read), (writer.serve, dut.write)]
    for i, part in enumerate(parts):
        processes += [
            (part.serve_read, getattr(dut, f"read{i}")),
            (part.serve_write, getattr(dut, f"write{i}")),
        ]
    simulate(dut, processes, script)
    assert writer.answers == expected
    assert [part.data for part in parts] == images


def test_hbm_is_not_held_by_a_burst_that_waits_for_data():
    """A burst to HBM is announced only when its last datum has come; then it does not pause."""
    dut = AxiRouter(CHIP)

    async def script(ctx, _):
        ctx.set(dut.write.aw.p, {"addr": 0x40, "len": 7})
        ctx.set(dut.write.aw.valid, 1)
        await ctx.tick().until(dut.write.aw.ready)
        ctx.set(dut.write.aw.valid, 0)
        for beat in range(8):
            for _ in range(20):
                assert not ctx.get(dut.write0.aw.valid)
                await ctx.tick()
            ctx.set(dut.write.w.p, {"data": beat, "strb": 0xFFFF, "last": int(beat == 7)})
            ctx.set(dut.write.w.valid, 1)
            await ctx.tick().until(dut.write.w.ready)
            ctx.set(dut.write.w.valid, 0)
        ctx.set(dut.write0.aw.ready, 1)
        ctx.set(dut.write0.w.ready, 1)
        await ctx.tick().until(dut.write0.aw.valid)

    simulate(dut, [], script)


class _Single(Elaboratable):
    def __init__(self, masters):
        self.peer_bus, self.router = PeerBus(CHIP, masters=masters), AxiRouter(CHIP)

    def elaborate(self, platform):
        m = Module()
        m.submodules.peer_bus, m.submodules.router = self.peer_bus, self.router
        connect(m, self.peer_bus.read, self.router.read)
        connect(m, self.peer_bus.write, self.router.write)
        return m


def test_single_accesses_pass_or_go_to_their_peer():
    """An address without a port goes to the bus, as one of the chip does; a peer that does not
    answer holds up nobody who asks the bus.
    """
    rng = random.Random(3)
    top, parts = _Single(2), memories(rng, 0.0)
    parts[2].faults.append((0x200, 0x210))
    buses = [CoreWindow(0x1000, seed=i) for i in range(2)]

    async def access(ctx, index, address, *, write=0, data=0, strb=0xFFFF):
        port = getattr(top.peer_bus, f"master{index}")
        ctx.set(port.req.p, {"address": address, "write": write, "strb": strb, "data": data})
        ctx.set(port.req.valid, 1)
        await ctx.tick().until(port.req.ready)
        ctx.set(port.req.valid, 0)
        ctx.set(port.resp.ready, 1)
        word, error = (
            await ctx.tick().sample(port.resp.p.data, port.resp.p.error).until(port.resp.valid)
        )
        ctx.set(port.resp.ready, 0)
        return word, error

    def held(data, at):
        return int.from_bytes(data[at : at + 16], "little")

    async def script(ctx, _):
        core = 1 << 44
        for window in range(5):
            base = window << PEER_WINDOW_BITS
            for at in (0, 0x40, 0x7FF0):
                got = await access(ctx, 0, base + at)
                if 1 <= window < TARGETS:
                    assert got == (held(parts[window].data, at), 0)
                    assert await access(ctx, 0, base + at, write=1, data=77, strb=0xFFFF) == (0, 0)
                    assert held(parts[window].data, at) == 77
                else:
                    assert got == (0, 1), "the bus knows no such address"
            if window == 0:
                assert await access(ctx, 0, core + 0x20) == (held(buses[0].data, 0x20), 0)
        assert (await access(ctx, 0, (2 << PEER_WINDOW_BITS) + 0x200))[1] == 1
        assert (await access(ctx, 0, (2 << PEER_WINDOW_BITS) + 0x200, write=1))[1] == 1
        assert (await access(ctx, 0, (2 << PEER_WINDOW_BITS) + 0x210))[1] == 0
        # Master 0 waits for a slow peer, master 1 is served at once.
        port = top.peer_bus.master0
        ctx.set(port.req.p, {"address": 1 << PEER_WINDOW_BITS, "write": 0})
        ctx.set(port.req.valid, 1)
        await ctx.tick().until(port.req.ready)
        ctx.set(port.req.valid, 0)
        assert await access(ctx, 1, core + 0x30) == (held(buses[1].data, 0x30), 0)
        assert not ctx.get(port.resp.valid)

    parts[1].timing.latency = 120
    processes = []
    for i in (1, 2):
        processes += [
            (parts[i].serve_read, getattr(top.router, f"read{i}")),
            (parts[i].serve_write, getattr(top.router, f"write{i}")),
        ]
    processes += [(buses[i].serve, getattr(top.peer_bus, f"bus{i}")) for i in range(2)]
    simulate(top, processes, script)
