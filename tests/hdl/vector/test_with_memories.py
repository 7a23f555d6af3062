"""Vector and scalar engine side by side on the chip's own SBUF and PSUM."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped
from amaranth.sim import Simulator

from hdl.lib.issue import EngineSignature, Issue
from hdl.memory.psum import Psum
from hdl.memory.sbuf import Sbuf
from hdl.scalar.engine import ScalarEngine
from hdl.vector.engine import VectorEngine
from isa.address_map import Sequencer
from isa.geometry import preset
from verif.lane_model import expected
from verif.lane_programs import SCALAR, VECTOR, Programs, random_memories

CONFIG = preset("tiny")
WINDOW = 256
LIMIT = 4000
ENGINES = {"vector": VECTOR, "scalar": SCALAR}


class Both(wiring.Component):
    """The two engines and the memories; the memories' narrow ports are driven by the bench."""

    def __init__(self):
        super().__init__({name: In(EngineSignature()) for name in ENGINES})
        self.sbuf, self.psum = Sbuf(CONFIG, 3, 2, 1), Psum(CONFIG, 3, 2, 1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.sbuf, m.submodules.psum = self.sbuf, self.psum
        m.submodules.vector_engine = vector = VectorEngine(CONFIG)
        m.submodules.scalar_engine = scalar = ScalarEngine(CONFIG)
        connect(m, flipped(self.vector), vector.engine)
        connect(m, flipped(self.scalar), scalar.engine)
        for name, memory in (("sbuf", self.sbuf), ("psum", self.psum)):
            ports = (
                getattr(vector, f"src0_{name}"),
                getattr(vector, f"src1_{name}"),
                getattr(scalar, f"src_{name}"),
            )
            for port, read in zip(ports, memory.read, strict=True):
                connect(m, port, read)
            for engine, write in zip((vector, scalar), memory.write, strict=True):
                connect(m, getattr(engine, f"dst_{name}"), write)
        return m


def halves(rng):
    """Programs that touch nothing in common: one engine has the low ends of the memories."""
    programs = {}
    for name, names in ENGINES.items():
        drawn = []
        while len(drawn) < 6:
            found = Programs(rng, CONFIG, window=WINDOW, max_elements=16).draw(
                str(rng.choice(names))
            )
            used = [
                found[key] for key in ("dst", "src0", "src1", "column0", "column1") if key in found
            ]
            low = all(i["space"] == 0 or i["offset"] < WINDOW for i in used)
            high = all(i["space"] == 0 or i["offset"] >= WINDOW for i in used)
            if low if name == "vector" else high:
                drawn.append(found)
        programs[name] = drawn
    return programs


@pytest.mark.parametrize("deny", [0, 0.4])
def test_engines_side_by_side(deny):
    rng = np.random.default_rng(int(deny * 10))
    images = [np.zeros_like(image) for image in random_memories(rng, CONFIG)]
    for image, full in zip(images, random_memories(rng, CONFIG), strict=True):
        image[:, :WINDOW], image[:, -WINDOW:] = full[:, :WINDOW], full[:, -WINDOW:]
    programs = halves(rng)
    dut = Both()
    completes = dict.fromkeys(ENGINES, 0)
    found = [np.zeros_like(image) for image in images]

    def places(memory, image, size):
        ends = [
            *range(WINDOW // size),
            *range((image.shape[1] - WINDOW) // size, image.shape[1] // size),
        ]
        return [
            (p, word, slice(word * size, (word + 1) * size))
            for p in range(CONFIG.partitions)
            for word in ends
        ]

    async def load(ctx, memory, image, size):
        port = memory.narrow[0].write
        ctx.set(port.valid, 1)
        for p, word, where in places(memory, image, size):
            ctx.set(
                port.p,
                {
                    "partition": p,
                    "word": word,
                    "bytes": (1 << size) - 1,
                    "data": int.from_bytes(image[p, where].tobytes(), "little"),
                },
            )
            await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def unload(ctx, memory, image, size):
        port = memory.narrow[0]
        for p, word, where in places(memory, image, size):
            ctx.set(port.read.p, {"partition": p, "word": word})
            ctx.set(port.read.valid, 1)
            await ctx.tick().until(port.read.ready)
            ctx.set(port.read.valid, 0)
            (data,) = await ctx.tick().sample(port.data).until(port.valid)
            image[p, where] = np.frombuffer(data.to_bytes(size, "little"), np.uint8)

    async def bench(ctx):
        for memory, image, size in ((dut.sbuf, images[0], 16), (dut.psum, images[1], 4)):
            await load(ctx, memory, image, size)
        left = {name: list(program) for name, program in programs.items()}
        for _ in range(LIMIT):
            if all(completes[name] == len(programs[name]) for name in ENGINES):
                break
            taken = {}
            for name in ENGINES:
                port = getattr(dut, name)
                ctx.set(port.issue.valid, bool(left[name]))
                if left[name]:
                    ctx.set(port.issue.p, Issue.const(left[name][0]))
                taken[name] = left[name] and ctx.get(port.issue.ready)
                completes[name] += ctx.get(port.complete)
            for memory in (dut.sbuf, dut.psum):
                width = len(memory.deny)
                ctx.set(
                    memory.deny,
                    sum(int(bit) << i for i, bit in enumerate(rng.random(width) < deny)),
                )
            await ctx.tick()
            for name in ENGINES:
                if taken[name]:
                    left[name].pop(0)
        assert completes == {name: len(program) for name, program in programs.items()}
        for memory, image, size in ((dut.sbuf, found[0], 16), (dut.psum, found[1], 4)):
            ctx.set(memory.deny, 0)
            await unload(ctx, memory, image, size)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    # Nothing in common: one after the other is as good as side by side
    between = expected(programs["vector"], *images)
    wanted = expected(programs["scalar"], *between, engine=Sequencer.SCALAR)
    for got, want in zip(found, wanted, strict=True):
        assert (got == want).all()
    assert any((want != image).any() for want, image in zip(wanted, images, strict=True))
