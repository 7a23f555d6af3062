"""Bench for the local bus: real semaphores, a RAM as registers, models of the memories."""

import random
from typing import Any

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from hdl.chip.bus import Bus
from hdl.chip.host import HostPort
from hdl.chip.registers import WINDOW_BITS
from hdl.lib.ram import LutRam
from hdl.sequencer.semaphores import Semaphores
from isa.address_map import PSUM_BASE, PSUM_STRIDE_BYTES, SBUF_BASE
from isa.geometry import PSUM_WORD_BYTES, WORD_BYTES
from sim.models.axi_memory import AxiMemory, Timing
from sim.models.narrow_memory import NarrowMemory


class _Wiring(Elaboratable):
    """The bus with semaphores and a RAM in place of the control registers."""

    def __init__(self, config, host):
        # Any: the members of a component come from its signature, at run time.
        self.bus: Any = Bus(config)
        self.host: Any = HostPort(config) if host else None
        self.semaphores: Any = Semaphores(config, updaters=1)
        self.registers: Any = LutRam(width=32, depth=1 << (WINDOW_BITS - 2))

    def elaborate(self, platform):
        m = Module()
        m.submodules.bus = bus = self.bus
        m.submodules.semaphores = semaphores = self.semaphores
        m.submodules.registers = registers = self.registers
        if self.host is not None:
            m.submodules.host = self.host
            wiring.connect(m, self.host.bus, bus.master0)
        wiring.connect(m, bus.update, semaphores.update0)
        m.d.comb += [
            semaphores.read5.index.eq(bus.semaphore_index),
            bus.semaphore_value.eq(semaphores.read5.value),
            registers.w_en.eq(bus.register.write),
            registers.w_addr.eq(bus.register.offset >> 2),
            registers.w_data.eq(bus.register.data),
            registers.r_addr.eq(bus.register.offset >> 2),
            bus.register.value.eq(registers.r_data),
        ]
        return m


class BusBench:
    """Memories behind one bus.  `stall` slows every target and every master down at random.  With
    `host`, master 0 is the host port `top.host`."""

    def __init__(self, config, *, seed=0, stall=0.0, host=False):
        rng = random.Random(seed)
        self.config, self.stall, self.seed = config, stall, seed
        self.top = _Wiring(config, host)
        self.bus = self.top.bus
        self.hbm = AxiMemory(
            bytearray(rng.randbytes(config.hbm_bytes)),
            timing=Timing(latency=3, jitter=3, stall=stall),
            seed=seed,
        )

        def rows(size):
            return [bytearray(rng.randbytes(size)) for _ in range(config.partitions)]

        self.sbuf = NarrowMemory(
            rows(config.sbuf_bytes), word_bytes=WORD_BYTES, stall=stall, seed=seed
        )
        self.psum = NarrowMemory(
            rows(config.psum_bytes), word_bytes=PSUM_WORD_BYTES, stall=stall, seed=seed
        )

    def locate(self, address):
        """(bytearray, offset) of a word of HBM, SBUF or PSUM; None elsewhere."""
        config = self.config
        if 0 <= address < config.hbm_bytes:
            return self.hbm.data, address
        for memory, base, stride in (
            (self.sbuf, SBUF_BASE, config.sbuf_stride_bytes),
            (self.psum, PSUM_BASE, PSUM_STRIDE_BYTES),
        ):
            partition, offset = divmod(address - base, stride)
            if 0 <= partition < config.partitions and offset < len(memory.rows[partition]):
                return memory.rows[partition], offset
        return None

    def snapshot(self):
        """Everything that an access could disturb in the memories."""
        return bytes(self.hbm.data), [bytes(row) for row in self.sbuf.rows + self.psum.rows]

    def run(self, *scripts, limit=50_000, extra=()):
        """Each script is an async function (ctx); all run at once.  `extra`: further processes
        (function, port)."""
        sim = Simulator(self.top)
        sim.add_clock(1e-6)
        bus = self.bus
        for serve, port in (
            (self.hbm.serve_read, bus.hbm_read),
            (self.hbm.serve_write, bus.hbm_write),
            (self.sbuf.serve, bus.sbuf),
            (self.psum.serve, bus.psum),
            *extra,
        ):

            async def process(ctx, serve=serve, port=port):
                await serve(ctx, port)

            sim.add_process(process)
        finished = set()
        for number, script in enumerate(scripts):

            async def bench(ctx, script=script, number=number):
                await script(ctx)
                finished.add(number)

            sim.add_testbench(bench)

        async def watch(ctx):
            for _ in range(limit):
                if len(finished) == len(scripts):
                    return
                await ctx.tick()
            raise AssertionError(
                f"after {limit} cycles finished: scripts {sorted(finished)} of {len(scripts)}"
            )

        sim.add_testbench(watch, background=True)
        sim.run()
        assert len(finished) == len(scripts)


class BusMaster:
    """Master `index` of a bench: `await access(...)` gives (data, error)."""

    def __init__(self, bench, index):
        self.port = getattr(bench.bus, f"master{index}")
        self.random, self.stall = random.Random(bench.seed * 16 + index), bench.stall
        self.accesses = 0

    async def _pause(self, ctx):
        while self.random.random() < self.stall:
            await ctx.tick()

    async def access(self, ctx, address, *, write=0, strb=0xFFFF, data=0):
        """One access from request to answer."""
        port = self.port
        await self._pause(ctx)
        ctx.set(port.req.p, {"address": address, "write": write, "strb": strb, "data": data})
        ctx.set(port.req.valid, 1)
        await ctx.tick().until(port.req.ready)
        ctx.set(port.req.valid, 0)
        await self._pause(ctx)
        ctx.set(port.resp.ready, 1)
        value, error = (
            await ctx.tick().sample(port.resp.p.data, port.resp.p.error).until(port.resp.valid)
        )
        ctx.set(port.resp.ready, 0)
        self.accesses += 1
        return value, error

    async def read(self, ctx, address):
        """A read that must succeed."""
        value, error = await self.access(ctx, address)
        assert not error, f"read of {address:#x} failed"
        return value

    async def write(self, ctx, address, data, strb=0xFFFF):
        """A write that must succeed."""
        _, error = await self.access(ctx, address, write=1, strb=strb, data=data)
        assert not error, f"write to {address:#x} failed"
