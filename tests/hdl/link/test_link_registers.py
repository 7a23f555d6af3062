# amaranth: UnusedElaboratable=no
"""LinkRegisters: reset values, write masks, strobes, snapshot, saturation, unknown offsets."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.registers import LinkRegisters
from isa.link import (
    COUNTER_OFFSET,
    COUNTERS,
    LANE_ERRORS_OFFSET,
    LINK_BLOCK_BYTES,
    LINK_REGISTERS,
    VC_GRANULES_OFFSET,
    VCS,
    Control,
    LinkConfig,
    LinkState,
    Reason,
    counter_offset,
)

LINK = LinkConfig(beat_bytes=16, lanes=4)
OFFSET = {r.name: r.offset for r in LINK_REGISTERS}
ONES = 0xFFFFFFFF


class Access:
    def __init__(self, ctx, dut):
        self.ctx, self.dut = ctx, dut

    def read(self, offset):
        offset = OFFSET.get(offset, offset)
        self.ctx.set(self.dut.port.offset, offset)
        return self.ctx.get(self.dut.port.value)

    async def write(self, offset, data):
        ctx, port = self.ctx, self.dut.port
        ctx.set(port.offset, OFFSET.get(offset, offset))
        ctx.set(port.data, data)
        ctx.set(port.write, 1)
        await ctx.tick()
        ctx.set(port.write, 0)

    async def snapshot(self, also=0):
        """The levels of CONTROL are left alone."""
        await self.write("CONTROL", self.read("CONTROL") | Control.SNAPSHOT | also)
        await self.ctx.tick().repeat(2)

    def counters(self):
        return {name: self.read(counter_offset(name)) for name in COUNTERS}


def simulate(scenario, **parameters):
    dut = LinkRegisters(LINK, **parameters)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await scenario(ctx, dut, Access(ctx, dut))

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.smoke
def test_reset_values():
    async def scenario(ctx, dut, access):
        assert access.read("CONTROL") == Control.ENABLE | Control.AUTO_RESTART
        assert access.read("TRAINING_TIMEOUT") == LINK.training_timeout_cycles
        assert access.read("MIN_WIDTH") == 2
        assert access.read("WEIGHTS") == 0x11111111
        for name in ("INJECT_RATE", "INJECT_BURST", "INJECT_STUCK", "INJECT_DROP", "STATUS", "RTT"):
            assert access.read(name) == 0, name

    simulate(scenario)


def test_what_can_be_written():
    """All ones and random words to every offset of the block: only the rw registers change, by
    their mask.
    """
    rng = random.Random(5)
    masks = {
        "CONTROL": Control.ENABLE | Control.LOOPBACK | Control.PRBS | Control.AUTO_RESTART,
        "WEIGHTS": ONES,
        "INJECT_RATE": ONES,
        "INJECT_BURST": 63,
        "INJECT_STUCK": ONES,
    }

    async def scenario(ctx, dut, access):
        for value in (ONES, *(rng.getrandbits(32) for _ in range(3))):
            for offset in range(0, LINK_BLOCK_BYTES, 4):
                await access.write(offset, value)
            for name, mask in masks.items():
                assert access.read(name) == value & mask, name
            expected = max(256, value & 0xFFFFFF)
            assert access.read("TRAINING_TIMEOUT") == expected
            assert access.read("MIN_WIDTH") == min(2, value & 3)
            for offset in range(0, LINK_BLOCK_BYTES, 4):
                if offset not in (OFFSET[n] for n in (*masks, "TRAINING_TIMEOUT", "MIN_WIDTH")):
                    assert access.read(offset) == 0, hex(offset)
        for value in (0, 255, 256, 257):
            await access.write("TRAINING_TIMEOUT", value)
            assert access.read("TRAINING_TIMEOUT") == max(256, value)

    simulate(scenario)


def test_strobes_are_pulses():
    async def scenario(ctx, dut, access):
        for bit, name in ((Control.RETRAIN, "retrain"), (Control.RESTART, "restart")):
            await access.write("CONTROL", bit | Control.ENABLE)
            assert ctx.get(getattr(dut, name)) == 1
            await ctx.tick()
            assert ctx.get(dut.retrain) == ctx.get(dut.restart) == 0
            assert access.read("CONTROL") == Control.ENABLE
        await access.write("INJECT_DROP", 77)
        assert ctx.get(dut.inject_drop) == 1 and ctx.get(dut.inject_drop_count) == 77
        await ctx.tick()
        assert ctx.get(dut.inject_drop) == 0 and ctx.get(dut.inject_drop_count) == 77
        assert access.read("INJECT_DROP") == 0

    simulate(scenario)


def test_status():
    """Every field of the read-only registers at its place."""

    async def scenario(ctx, dut, access):
        for name, value in (("state", LinkState.ACTIVE), ("tx_width", 5), ("rx_width", 2),
                            ("reversed", 1), ("fresh", 1), ("locked", 0b1011), ("inverted", 0b0110),
                            ("session", 0x89ABCDEF), ("epoch", 2), ("peer_version", 1),
                            ("peer_capability", 0xA5)):  # fmt: skip
            ctx.set(getattr(dut, name), value)
        assert access.read("STATUS") == 7 | 5 << 4 | 2 << 8 | 1 << 12 | 1 << 14
        assert access.read("LANES") == 0b1011 | 0b0110 << 16
        assert access.read("SESSION") == 0x89ABCDEF
        assert access.read("EPOCH") == 2
        assert access.read("PEER") == 1 | 0xA5 << 4

        async def pulse(name, value=1):
            ctx.set(getattr(dut, name), value)
            await ctx.tick()
            ctx.set(getattr(dut, name), 0)

        await pulse("overflow")
        await pulse("reason", Reason.NAK_LIMIT)
        await pulse("reason", Reason.SOFTWARE)
        status = access.read("STATUS")
        assert status >> 13 & 1 and status >> 16 & 31 == 9 and status >> 24 & 31 == 1
        for rtt in (500, 20, 70):
            ctx.set(dut.rtt, rtt)
            await pulse("rtt_valid")
        assert access.read("RTT") == 70 | 500 << 16 and access.read("RTT_MIN") == 20
        await access.write("CONTROL", Control.CLEAR)
        await ctx.tick()
        assert access.read("STATUS") >> 15 == 0 and access.read("STATUS") >> 13 & 1 == 0
        await pulse("reason", Reason.PEER_RESET)
        assert access.read("STATUS") >> 16 == 11 | 11 << 8
        ctx.set(dut.rtt, 44)
        await pulse("rtt_valid")
        assert access.read("RTT") == 44 | 44 << 16 and access.read("RTT_MIN") == 44

    simulate(scenario)


def test_each_counter_counts_its_own_event():
    """Different numbers of pulses on all inputs; a snapshot shows them all, and only a snapshot."""

    async def scenario(ctx, dut, access):
        names = [name for name in COUNTERS if name != "REPLAY_PEAK"]
        for step in range(40):
            for i, name in enumerate(names):
                ctx.set(getattr(dut, name.lower()), int(step <= i))
            ctx.set(dut.replay_level, (17 * step) % 40)
            ctx.set(dut.lane_error, 0b1101 if step % 4 == 0 else 0)
            ctx.set(dut.sent_vc, step % VCS)
            ctx.set(dut.sent_granules, step)
            ctx.set(dut.accepted, step < 20)
            ctx.set(dut.accepted_vc, 7 - step % VCS)
            ctx.set(dut.accepted_granules, 1)
            await ctx.tick()
        ctx.set(dut.lane_error, 0)
        ctx.set(dut.replay_level, 0)
        await ctx.tick()
        assert set(access.counters().values()) == {0}, "before the first snapshot"
        await access.snapshot()
        expected = {name: i + 1 for i, name in enumerate(names)}
        expected["REPLAY_PEAK"] = max((17 * step) % 40 for step in range(40))
        assert access.counters() == expected
        for lane in range(LINK.lanes):
            assert access.read(LANE_ERRORS_OFFSET + 4 * lane) == (10 if lane != 1 else 0)
        for vc in range(VCS):
            sent = sum(step for step in range(names.index("TX_DATA") + 1) if step % VCS == vc)
            assert access.read(VC_GRANULES_OFFSET + 4 * vc) == sent
            taken = sum(1 for step in range(20) if 7 - step % VCS == vc)
            assert access.read(VC_GRANULES_OFFSET + 0x20 + 4 * vc) == taken
        ctx.set(dut.skips, 1)
        await ctx.tick()
        ctx.set(dut.skips, 0)
        await ctx.tick()
        assert access.counters() == expected, "counted, but not shown"
        await access.snapshot(also=Control.CLEAR)
        expected["SKIPS"] += 1
        assert access.counters() == expected, "the values before the clearing"
        await access.snapshot()
        assert set(access.counters().values()) == {0}

    simulate(scenario)


def test_counters_saturate():
    """From 2^32 - 3: up to the limit and not beyond, also by steps that would jump over it."""

    async def scenario(ctx, dut, access):
        offset, sent = counter_offset("CRC_ERRORS"), VC_GRANULES_OFFSET + 4 * 2
        ctx.set(dut.sent_vc, 2)
        ctx.set(dut.sent_granules, 39)
        for n in range(5):
            await access.snapshot()
            assert access.read(offset) == min(ONES, ONES - 2 + n)
            assert access.read(sent) == (ONES if n else ONES - 2)
            ctx.set(dut.crc_errors, 1)
            ctx.set(dut.tx_data, 1)
            await ctx.tick()
            ctx.set(dut.crc_errors, 0)
            ctx.set(dut.tx_data, 0)
            await ctx.tick()
        await access.snapshot(also=Control.CLEAR)
        await access.snapshot()
        assert access.read(offset) == access.read(sent) == 0

    simulate(scenario, counter_init=ONES - 2)


def test_unknown_offsets_read_zero():
    """Also those of the transaction layer, and lanes that are not there."""

    async def scenario(ctx, dut, access):
        await access.snapshot()
        known = {r.offset for r in LINK_REGISTERS if r.offset < 0x100}
        known |= {counter_offset(name) for name in COUNTERS}
        known |= {LANE_ERRORS_OFFSET + 4 * lane for lane in range(LINK.lanes)}
        known |= {VC_GRANULES_OFFSET + 4 * i for i in range(2 * VCS)}
        assert COUNTER_OFFSET + 4 * len(COUNTERS) <= LANE_ERRORS_OFFSET
        for offset in range(0, LINK_BLOCK_BYTES, 4):
            value = access.read(offset)
            assert offset in known or value == 0, hex(offset)
            assert offset < COUNTER_OFFSET or offset not in known or value == ONES, hex(offset)

    simulate(scenario, counter_init=ONES)
