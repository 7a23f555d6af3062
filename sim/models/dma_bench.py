"""Bench for one DMA engine: memories with random timing, triggers, and the expected result."""

import random
from dataclasses import dataclass, field
from typing import Any

from amaranth.sim import Simulator

from hdl.dma.engine import DmaEngine
from isa.address_map import CORE_BASE, DmaCause
from isa.encoding import DescriptorError, decode_descriptor, encode_descriptor
from isa.fields import Update
from isa.geometry import DESCRIPTOR_BYTES, WORD_BYTES
from sim.models.axi_memory import AxiMemory, StreamWatch, Timing
from sim.models.narrow_memory import NarrowMemory


@dataclass
class Expected:
    """What a run must leave behind."""

    hbm: bytearray
    sbuf: list
    updates: list = field(default_factory=list)
    cause: DmaCause = DmaCause.NONE
    error_address: int = 0
    descriptors: int = 0
    bytes: int = 0


def locate(config, hbm, sbuf, address, size):
    """(bytearray, offset) of a row, None when it lies in no one memory."""
    if address >= 0 and address + size <= config.hbm_bytes:
        return hbm, address
    partition, offset = divmod(address - CORE_BASE, config.sbuf_stride_bytes)
    if 0 <= partition < config.partitions and offset + size <= config.sbuf_bytes:
        return sbuf[partition], offset
    return None


def rows_of(descriptor):
    """(source, destination) address of each row, in order."""
    if descriptor.row_bytes == 0:
        return
    sides = (
        (descriptor.src_address, descriptor.src_stride),
        (descriptor.dst_address, descriptor.dst_stride),
    )
    for i2 in range(descriptor.count[2]):
        for i1 in range(descriptor.count[1]):
            for i0 in range(descriptor.count[0]):
                yield tuple(
                    first + i0 * stride[0] + i1 * stride[1] + i2 * stride[2]
                    for first, stride in sides
                )


def expect(config, hbm, sbuf, triggers, *, bus_errors=None):
    """Byte-wise model of an engine.

    bus_errors: {descriptor address: rows that are copied in full before the bus error}.
    """
    result = Expected(bytearray(hbm), [bytearray(row) for row in sbuf])
    bus_errors = bus_errors or {}

    def fail(cause, address):
        if result.cause == DmaCause.NONE:
            result.cause, result.error_address = cause, address

    for start, count in triggers:
        for address in range(start, start + count * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES):
            if address % DESCRIPTOR_BYTES or address + DESCRIPTOR_BYTES > config.hbm_bytes:
                fail(DmaCause.BAD_DESCRIPTOR, address)
                break
            try:
                d = decode_descriptor(bytes(hbm[address : address + DESCRIPTOR_BYTES]))
            except DescriptorError:
                fail(DmaCause.BAD_DESCRIPTOR, address)
                continue
            cause = DmaCause.NONE
            for number, (src, dst) in enumerate(rows_of(d)):
                if bus_errors.get(address) == number:
                    cause = DmaCause.BUS_ERROR
                    break
                source = locate(config, hbm, sbuf, src, d.row_bytes)
                target = locate(config, result.hbm, result.sbuf, dst, d.row_bytes)
                if source is None or target is None:
                    cause = DmaCause.BAD_ADDRESS
                    break
                (memory, low), (there, at) = source, target
                there[at : at + d.row_bytes] = memory[low : low + d.row_bytes]
                result.bytes += d.row_bytes
            if cause != DmaCause.NONE:
                fail(cause, address)
                continue
            result.descriptors += 1
            if d.update_kind != Update.NONE:
                result.updates.append((d.update_semaphore, int(d.update_kind), d.update_value))
    return result


class DmaBench:
    """One engine with its memories.  Random contents; sources are read as they were before the run
    (tests keep sources and destinations apart)."""

    def __init__(self, config, *, seed=0, timing=None, sbuf_stall=0.0, update_stall=0.0):
        self.config, self.random = config, random.Random(seed)
        # Any: the members of a component come from its signature, at run time.
        self.dut: Any = DmaEngine(config)
        self.memory = AxiMemory(
            bytearray(self.random.randbytes(config.hbm_bytes)), timing=timing or Timing(), seed=seed
        )
        self.sbuf = NarrowMemory(
            [bytearray(self.random.randbytes(config.sbuf_bytes)) for _ in range(config.partitions)],
            word_bytes=WORD_BYTES,
            stall=sbuf_stall,
            seed=seed + 1,
        )
        self.update_stall = update_stall
        self.updates = []
        self.cycles = 0

    def place(self, address, descriptors):
        """Write descriptors (Descriptor or 128 raw bytes) into HBM; returns the trigger for
        them."""
        for number, item in enumerate(descriptors):
            raw = item if isinstance(item, bytes) else encode_descriptor(item)
            low = address + number * DESCRIPTOR_BYTES
            self.memory.data[low : low + DESCRIPTOR_BYTES] = raw
        return address, len(descriptors)

    async def _updates(self, ctx):
        port, watch, ready = self.dut.update, StreamWatch("update"), 0
        while True:
            _, _, valid, update = await ctx.tick().sample(port.valid, port.p)
            if watch.see(valid, ready, update):
                self.updates.append((update.semaphore, update.kind, update.value))
            ready = int(self.random.random() >= self.update_stall)
            ctx.set(port.ready, ready)

    async def trigger(self, ctx, address, count):
        """Hand over one trigger."""
        port = self.dut.trigger
        ctx.set(port.p, {"address": address, "count": count})
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def idle(self, ctx, limit):
        """Wait for the end of the work; returns the cycles that it took."""
        for cycle in range(limit):
            if not ctx.get(self.dut.status.busy):
                return cycle
            await ctx.tick()
        raise AssertionError(f"DMA still busy after {limit} cycles")

    async def pulse(self, ctx, signal):
        """One cycle of 1."""
        ctx.set(signal, 1)
        await ctx.tick()
        ctx.set(signal, 0)

    def script(self, *steps, vcd=None):
        """Simulate from reset: each step is an async function of the context."""
        sim = Simulator(self.dut)
        sim.add_clock(1e-6)
        dut = self.dut

        async def read(ctx):
            await self.memory.serve_read(ctx, dut.read)

        async def write(ctx):
            await self.memory.serve_write(ctx, dut.write)

        async def sbuf(ctx):
            await self.sbuf.serve(ctx, dut.sbuf)

        async def main(ctx):
            for step in steps:
                await step(ctx)

        for process in (read, write, sbuf, self._updates):
            sim.add_process(process)
        sim.add_testbench(main)
        if vcd:
            with sim.write_vcd(vcd):
                sim.run()
        else:
            sim.run()

    def check(self, triggers, *, limit=20_000, bus_errors=None):
        """A step: run the triggers and compare everything with the model."""

        async def step(ctx):
            want = expect(
                self.config, self.memory.data, self.sbuf.rows, triggers, bus_errors=bus_errors
            )
            self.updates.clear()
            await self.pulse(ctx, self.dut.clear)
            for address, count in triggers:
                await self.trigger(ctx, address, count)
            self.cycles = await self.idle(ctx, limit)
            self.compare(ctx, want)

        return step

    def compare(self, ctx, want):
        """Assert memories, updates and status."""
        report_difference("HBM", self.memory.data, want.hbm)
        for partition, row in enumerate(self.sbuf.rows):
            report_difference(f"SBUF partition {partition}", row, want.sbuf[partition])
        assert self.updates == want.updates
        status = self.dut.status
        got = (DmaCause(ctx.get(status.cause)), ctx.get(status.error_address))
        assert got == (want.cause, want.error_address), (
            f"{got[0]!r} {got[1]:#x}, not {want.cause!r} {want.error_address:#x}"
        )
        assert ctx.get(status.descriptors) == want.descriptors
        assert ctx.get(status.bytes) == want.bytes


def report_difference(name, got, want):
    """Assert equality; tells the first bytes that differ."""
    if got != want:
        places = [i for i, (a, b) in enumerate(zip(got, want, strict=True)) if a != b]
        shown = ", ".join(f"{i:#x}: {got[i]:02x} not {want[i]:02x}" for i in places[:8])
        raise AssertionError(f"{name}: {len(places)} bytes differ: {shown}")
