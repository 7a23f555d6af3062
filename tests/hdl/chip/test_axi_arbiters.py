"""Several AXI masters on one port: whose data, in which order, how fairly."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.chip.axi_read_arbiter import AxiReadArbiter
from hdl.chip.axi_write_arbiter import AxiWriteArbiter
from hdl.lib.axi import Resp
from isa.geometry import WORD_BYTES, preset
from sim.models.axi_masters import ReadMaster, WriteMaster, random_burst
from sim.models.axi_memory import AxiMemory, Timing

TINY = preset("tiny")
SIZE = 1 << 16
TIMINGS = {
    "fast": (Timing(latency=1), 0.0),
    "reordering": (Timing(latency=3, jitter=31, reorder=True), 0.0),
    "stalling": (Timing(latency=5, jitter=15, reorder=True, stall=0.4), 0.4),
}


def simulate(dut, processes, masters, limit):
    """Run until every master is done; returns the cycles."""
    cycles = 0

    async def watch(ctx):
        nonlocal cycles
        while not all(master.done for master in masters):
            await ctx.tick()
            cycles += 1
            assert cycles < limit, (
                f"masters unfinished: {[i for i, m in enumerate(masters) if not m.done]}"
            )

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    for serve, port in processes:

        async def process(ctx, serve=serve, port=port):
            await serve(ctx, port)

        sim.add_process(process)
    sim.add_testbench(watch)
    sim.run()
    return cycles


def port_of(dut, index):
    return getattr(dut, f"master{index}")


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("masters", [1, 2, 3, 7])
def test_reads_come_back_to_their_master(masters, timing):
    """Each master sees its own bursts, whole and in order; a memory error reaches only the one that
    asked."""
    rng = random.Random(f"{masters}{timing}")
    speed, stall = TIMINGS[timing]
    memory = AxiMemory(bytearray(rng.randbytes(SIZE)), timing=speed, seed=masters)
    memory.faults.append((0, 64))
    dut = AxiReadArbiter(TINY, masters)
    readers = []
    for i in range(masters):
        bursts = [random_burst(rng, 64, SIZE, rng.choice((1, 4, 64))) for _ in range(12)]
        if i == masters - 1:
            bursts.insert(3, (16, 2))
            bursts.insert(5, (SIZE, 4))
        readers.append(ReadMaster(memory.peek, bursts, seed=i, stall=stall))
    simulate(
        dut,
        [(reader.serve, port_of(dut, i)) for i, reader in enumerate(readers)]
        + [(memory.serve_read, dut.port)],
        readers,
        20_000,
    )
    assert [reader.errors for reader in readers] == [0] * (masters - 1) + [2 + 4]
    assert memory.read_beats == sum(reader.beats for reader in readers)
    if timing != "fast" and masters > 1:
        assert memory.most_reads > 2, "the test wants several bursts under way"


def blocks(rng, count, bursts):
    """{master: bursts} of random strobes, each master in its own eighth of the memory; the image
    that they leave."""
    image = bytearray(SIZE)
    work = []
    for index in range(count):
        low = SIZE // 8 * index
        mine = []
        for _ in range(bursts):
            address, beats = random_burst(rng, low, low + SIZE // 8, rng.choice((1, 3, 64)))
            payload = [
                (rng.getrandbits(128), rng.choice((0xFFFF, 0, rng.getrandbits(16))))
                for _ in range(beats)
            ]
            mine.append((address, payload))
            for number, (data, strb) in enumerate(payload):
                for byte in range(WORD_BYTES):
                    if strb >> byte & 1:
                        image[address + WORD_BYTES * number + byte] = data >> 8 * byte & 255
        work.append(mine)
    return work, image


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("masters", [1, 2, 3, 7])
def test_writes_keep_data_with_their_addresses(masters, timing):
    """Data follow the order of the addresses, whoever is early; answers return to their master,
    errors too."""
    rng = random.Random(f"{masters}{timing}")
    speed, stall = TIMINGS[timing]
    memory = AxiMemory(bytearray(SIZE), timing=speed, seed=masters)
    work, image = blocks(rng, masters, 10)
    work[-1].insert(4, (SIZE, [(1, 0xFFFF)] * 3))
    dut = AxiWriteArbiter(TINY, masters)
    writers = [WriteMaster(bursts, seed=i, stall=stall) for i, bursts in enumerate(work)]
    simulate(
        dut,
        [(writer.serve, port_of(dut, i)) for i, writer in enumerate(writers)]
        + [(memory.serve_write, dut.port)],
        writers,
        20_000,
    )
    assert memory.data == image
    for writer in writers[:-1]:
        assert writer.answers == [Resp.OKAY] * 10
    assert sorted(writers[-1].answers) == [Resp.OKAY] * 10 + [Resp.SLVERR]
    assert writers[-1].answers[4] == Resp.SLVERR, "answers of one master in order"


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_read_requests_are_granted_fairly(stall):
    """Masters that always ask are served in turn: in any stretch, no one is ahead by more than one
    grant."""
    memory = AxiMemory(bytearray(SIZE), timing=Timing(latency=1, stall=stall), seed=1)
    dut = AxiReadArbiter(TINY, 5)
    readers = [
        ReadMaster(memory.peek, [(16 * i, 1)] * 40, seed=i, outstanding=100) for i in range(5)
    ]
    simulate(
        dut,
        [(reader.serve, port_of(dut, i)) for i, reader in enumerate(readers)]
        + [(memory.serve_read, dut.port)],
        readers,
        4000,
    )
    check_turns(readers)


def test_write_bursts_are_granted_fairly():
    memory = AxiMemory(bytearray(SIZE), timing=Timing(latency=1, stall=0.3), seed=2)
    dut = AxiWriteArbiter(TINY, 5)
    writers = [WriteMaster([(16 * i, [(i, 1)])] * 40, seed=i) for i in range(5)]
    simulate(
        dut,
        [(writer.serve, port_of(dut, i)) for i, writer in enumerate(writers)]
        + [(memory.serve_write, dut.port)],
        writers,
        4000,
    )
    check_turns(writers)


def check_turns(masters):
    """They ask again at once, so at any time their numbers of grants differ by one at most."""
    order = sorted(
        (cycle, index) for index, master in enumerate(masters) for cycle in master.granted
    )
    counts = [0] * len(masters)
    for _, index in order[: -len(masters)]:
        counts[index] += 1
        assert max(counts) - min(counts) <= 1, f"{counts}"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("half", ["read", "write"])
def test_requests_at_random_times(half, seed):
    """Requests come and are taken at random: an offer does not change while it waits (the memory
    model asserts it), and nobody lets more than one round of others pass."""
    timing = Timing(latency=1, stall=(0.5, 0.8, 0.2)[seed])
    memory = AxiMemory(bytearray(SIZE), timing=timing, seed=seed)
    count = 5
    if half == "read":
        dut = AxiReadArbiter(TINY, count)
        masters = [
            ReadMaster(memory.peek, [(16 * i, 1)] * 40, seed=i, stall=0.7, outstanding=100)
            for i in range(count)
        ]
        model = memory.serve_read
    else:
        dut = AxiWriteArbiter(TINY, count)
        masters = [WriteMaster([(16 * i, [(i, 1)])] * 40, seed=i, stall=0.7) for i in range(count)]
        model = memory.serve_write
    processes = [(master.serve, port_of(dut, i)) for i, master in enumerate(masters)]
    simulate(dut, [*processes, (model, dut.port)], masters, 8000)
    longest = 0
    for master in masters:
        others = [cycle for other in masters if other is not master for cycle in other.granted]
        for asked, granted in zip(master.asked, master.granted, strict=True):
            longest = max(longest, sum(asked <= cycle < granted for cycle in others))
    assert 1 <= longest <= count - 1


def test_full_rate():
    """Two masters with long bursts keep the port busy in both directions."""
    memory = AxiMemory(bytearray(SIZE), timing=Timing(latency=2), seed=3)
    dut = AxiReadArbiter(TINY, 2)
    readers = [
        ReadMaster(memory.peek, [(1024 * i, 64) for i in range(6)], seed=i) for i in range(2)
    ]
    cycles = simulate(
        dut,
        [(reader.serve, port_of(dut, i)) for i, reader in enumerate(readers)]
        + [(memory.serve_read, dut.port)],
        readers,
        2000,
    )
    assert cycles <= 2 * 6 * 64 + 12
    memory = AxiMemory(bytearray(SIZE), timing=Timing(latency=2), seed=4)
    dut = AxiWriteArbiter(TINY, 2)
    writers = [
        WriteMaster([(1024 * i, [(i, 0xFFFF)] * 64) for i in range(6)], seed=i) for i in range(2)
    ]
    cycles = simulate(
        dut,
        [(writer.serve, port_of(dut, i)) for i, writer in enumerate(writers)]
        + [(memory.serve_write, dut.port)],
        writers,
        2000,
    )
    assert cycles <= 2 * 6 * 64 + 12
