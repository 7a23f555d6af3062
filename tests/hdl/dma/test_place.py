"""Rows against the address map, on every preset."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.dma.layout import walk_bits
from hdl.dma.place import RowPlace
from isa.address_map import CORE_BASE, PEER_WINDOW_BITS, PSUM_BASE, SEMAPHORE_BASE
from isa.geometry import PRESETS


def expected(config, address, size):
    """(sbuf, byte) or None."""
    if address + size <= config.hbm_bytes:
        return 0, address
    port = address >> PEER_WINDOW_BITS
    if 1 <= port <= config.links and (address + size - 1) >> PEER_WINDOW_BITS == port:
        return 0, address
    partition, offset = divmod(address - CORE_BASE, config.sbuf_stride_bytes)
    if 0 <= partition < config.partitions and offset + size <= config.sbuf_bytes:
        return 1, address - CORE_BASE
    return None


@pytest.mark.parametrize("links", [0, 1, 4])
@pytest.mark.parametrize("name", PRESETS)
def test_place(name, links):
    config = PRESETS[name].with_(links=links)
    bits = walk_bits(config)
    rng = random.Random(name)
    stride, last = config.sbuf_stride_bytes, config.partitions - 1
    edges = [
        0,
        config.hbm_bytes,
        CORE_BASE,
        PSUM_BASE,
        SEMAPHORE_BASE,
        *(p << PEER_WINDOW_BITS for p in range(1, 7)),
        (1 << bits) - 1,
        CORE_BASE + config.partitions * stride,
    ]
    edges += [
        CORE_BASE + p * stride + o for p in (0, 1, last) for o in (0, config.sbuf_bytes, stride)
    ]
    cases = []
    for edge in edges:
        for size in (
            1,
            2,
            16,
            4096,
            config.sbuf_bytes,
            config.sbuf_bytes + 1,
            0xFFFF_FFFF,
            rng.randrange(1, 1 << 32),
        ):
            cases += [
                (address, size)
                for base in (edge, edge - size)
                for delta in (-1, 0, 1)
                if 0 <= (address := base + delta) < 1 << bits
            ]
    dut = RowPlace(config)
    outcomes = set()

    async def bench(ctx):
        for address, size in cases:
            ctx.set(dut.address, address)
            ctx.set(dut.bytes, size)
            ctx.set(dut.take, 1)
            await ctx.tick()
            ctx.set(dut.take, 0)
            ctx.set(dut.address, ~address & 0xFFFF)
            await ctx.delay(1e-7)
            want = expected(config, address, size)
            assert ctx.get(dut.ok) == (want is not None), f"{address:#x} + {size:#x}"
            if want is not None:
                assert (ctx.get(dut.place.sbuf), ctx.get(dut.place.byte)) == want
            outcomes.add(want and want[0])

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert outcomes == {None, 0, 1}
