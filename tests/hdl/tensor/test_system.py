"""The tensor engine on the real SBUF and PSUM, with bank denial, in Amaranth's simulator."""

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from hdl.memory.psum import Psum
from hdl.memory.sbuf import Sbuf
from hdl.tensor.engine import TensorEngine
from isa.geometry import WORD_BYTES, preset
from verif.tensor_bench import pack_issue
from verif.tensor_programs import expected_psum, images, random_program

CONFIG = preset("tiny").with_(sbuf_bytes=256, sbuf_stride_bytes=256)
P = CONFIG.partitions


async def write_narrow(ctx, port, partition, word, data, strobes):
    ctx.set(port.write.valid, 1)
    ctx.set(port.write.p.partition, partition)
    ctx.set(port.write.p.word, word)
    ctx.set(port.write.p.bytes, strobes)
    ctx.set(port.write.p.data, data)
    await ctx.tick().until(port.write.ready)
    ctx.set(port.write.valid, 0)


async def read_narrow(ctx, port, partition, word):
    ctx.set(port.read.valid, 1)
    ctx.set(port.read.p.partition, partition)
    ctx.set(port.read.p.word, word)
    await ctx.tick().until(port.read.ready)
    ctx.set(port.read.valid, 0)
    (data,) = await ctx.tick().sample(port.data).until(port.valid)
    return data


def test_program_on_real_memories():
    rng = np.random.default_rng(11)
    sbuf_image, psum_image = images(CONFIG, rng)
    psum_image[:, CONFIG.psum_words // 8 :] = 0
    program = random_program(CONFIG, rng, 24)
    m = Module()
    m.submodules.engine = engine = TensorEngine(CONFIG)
    m.submodules.sbuf = sbuf = Sbuf(CONFIG, reads=2, writes=1, narrows=1)
    m.submodules.psum = psum = Psum(CONFIG, reads=1, writes=1, narrows=1)
    wiring.connect(m, engine.stationary, sbuf.read0)
    wiring.connect(m, engine.moving, sbuf.read1)
    wiring.connect(m, engine.accumulate, psum.accumulate)
    used = np.argwhere(expected_psum(program, sbuf_image, psum_image) != psum_image).tolist()
    reports = {"read_done": 0, "complete": 0}

    async def watch(ctx):
        """Denies banks at random and counts reports."""
        async for _ in ctx.tick():
            ctx.set(sbuf.deny, int(rng.integers(0, 1 << len(sbuf.deny))))
            ctx.set(psum.deny, int(rng.integers(0, 1 << len(psum.deny))))
            for name in reports:
                reports[name] += ctx.get(getattr(engine.engine, name))

    async def bench(ctx):
        for p in range(P):
            for word in range(CONFIG.sbuf_words):
                data = sbuf_image[p][WORD_BYTES * word :][:WORD_BYTES].tobytes()
                await write_narrow(
                    ctx, sbuf.narrow0, p, word, int.from_bytes(data, "little"), 0xFFFF
                )
            for word in np.flatnonzero(psum_image[p]).tolist():
                await write_narrow(ctx, psum.narrow0, p, word, int(psum_image[p, word]), 0xF)
        for instruction in program:
            ctx.set(engine.engine.issue.payload.as_value(), pack_issue(instruction))
            ctx.set(engine.engine.issue.valid, 1)
            await ctx.tick().until(engine.engine.issue.ready)
            ctx.set(engine.engine.issue.valid, 0)
        for _ in range(4_000):
            await ctx.tick()
            if reports["complete"] == len(program):
                break
        assert reports == {"read_done": len(program), "complete": len(program)}
        want = expected_psum(program, sbuf_image, psum_image)
        for p, word in used:
            assert await read_narrow(ctx, psum.narrow0, p, word) == int(want[p, word]), (p, word)

    simulator = Simulator(m)
    simulator.add_clock(1e-9)
    simulator.add_testbench(watch, background=True)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(used) > 100
