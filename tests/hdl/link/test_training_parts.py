# amaranth: UnusedElaboratable=no
"""Parts of the training: choice of lanes, session, round trip, agreement."""

import random

import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from hdl.link.agreement import Agreement
from hdl.link.round_trip import RoundTrip
from hdl.link.session import Session
from hdl.link.width_choice import WidthChoice
from isa.link import LINK_VERSION, FrameType, LinkConfig, Width


def simulate(dut, bench, *, clock=True):
    simulator = Simulator(dut)
    if clock:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("lanes", [4, 8])
def test_the_widest_allowed_group(lanes):
    """All sets of locked lanes (random ones for 8), orders, levels, turns, against the rule."""
    dut, rng = WidthChoice(LinkConfig(beat_bytes=64, lanes=lanes)), random.Random(lanes)

    async def bench(ctx):
        sets = range(16) if lanes == 4 else [rng.getrandbits(8) | rng.getrandbits(8)
                                             for _ in range(60)] + [255, 0]  # fmt: skip
        for locked in sets:
            for reversed_ in (0, 1):
                for level in range(3):
                    for least in range(3):
                        for turn in range(4):
                            for name, value in (("locked", locked), ("reversed", reversed_),
                                                ("level", level), ("least", least),
                                                ("turn", turn)):  # fmt: skip
                                ctx.set(getattr(dut, name), value)
                            logical = {lanes - 1 - i if reversed_ else i
                                       for i in range(lanes) if locked >> i & 1}  # fmt: skip
                            good = [w for w in Width
                                    if 1 << level <= w.divisor <= 1 << least
                                    and set(w.lanes(lanes)) <= logical]  # fmt: skip
                            assert ctx.get(dut.valid) == bool(good)
                            if not good:
                                continue
                            widest = [w for w in good if w.divisor == good[0].divisor]
                            base = {1: 0, 2: 1, 4: 3}[good[0].divisor]
                            count = good[0].divisor
                            ordered = sorted(widest, key=lambda w: (w - base - turn) % count)  # noqa: B023
                            assert ctx.get(dut.width) == ordered[0]

    simulate(dut, bench, clock=False)


def test_session_differs_behind_a_reset():
    """The generator goes on in reset; a model of its polynomial gives every number."""
    reset = Signal()
    session = Session()
    dut = ResetInserter(reset)(session)

    async def bench(ctx):
        ctx.set(session.entropy, 0x5A5A0000)
        state, cycles, got = 0x6E6C696E, 0, []

        async def tick():
            nonlocal state, cycles
            bit = (state >> 31 ^ state >> 21 ^ state >> 1 ^ state) & 1
            state = (state << 1 | bit) & 0xFFFFFFFF
            await ctx.tick()

        for n in range(6):
            ctx.set(reset, 1)
            for _ in range(3):
                await tick()
            assert ctx.get(session.session) == 0
            ctx.set(reset, 0)
            ctx.set(session.renew, 1)
            expected = state ^ 0x5A5A0000
            await tick()
            ctx.set(session.renew, 0)
            assert ctx.get(session.session) == expected
            assert ctx.get(session.epoch) == (n + 1) % 4, "the epoch goes on too"
            got.append(expected)
            await tick()
        assert len(set(got)) == 6

    simulate(dut, bench)


def test_round_trip_and_timer():
    """Echo = last stamp and the cycles since; rtt only when asked for; timer within its limits."""
    dut, rng = RoundTrip(), random.Random(3)

    async def bench(ctx):
        now = 0
        for _ in range(60):
            rtt, stamp = rng.choice([1, 40, 500, 21000, 30000, 65535]), rng.getrandbits(16)
            measure, seen = rng.randrange(2), rng.randrange(2)
            if rng.random() < 0.2:
                ctx.set(dut.clear, 1)
                await ctx.tick()
                ctx.set(dut.clear, 0)
                now = (now + 1) % 65536
                assert ctx.get(dut.rtt) == 0
            before = ctx.get(dut.rtt)
            ctx.set(dut.measure, measure)
            ctx.set(dut.frame.seen, seen)
            ctx.set(dut.frame.stamp, stamp)
            ctx.set(dut.frame.echo, (now - rtt) % 65536)
            ctx.set(dut.frame_valid, 1)
            assert ctx.get(dut.stamp) == now
            await ctx.tick()
            ctx.set(dut.frame_valid, 0)
            assert ctx.get(dut.rtt_valid) == (measure & seen)
            assert ctx.get(dut.rtt) == (rtt if measure and seen else before)
            later = rng.randrange(2, 50)
            await ctx.tick().repeat(later)
            now = (now + 1 + later) % 65536
            assert ctx.get(dut.echo) == (stamp + 1 + later) % 65536
            assert ctx.get(dut.timer_cycles) == min(65535, max(256, 3 * ctx.get(dut.rtt) + 500))

    simulate(dut, bench)


def test_agreement():
    """Random frames with few different contents against counts kept in lists."""
    link, rng = LinkConfig(beat_bytes=16, lanes=4), random.Random(9)
    dut = Agreement(link)
    seen_both = set()

    async def bench(ctx):
        row, seen_row = [], []
        for _ in range(4000):
            if rng.random() < 0.05:
                ctx.set(dut.restart, 1)
                await ctx.tick()
                ctx.set(dut.restart, 0)
                row, seen_row = [], []
            content = {
                "type": rng.choices([FrameType.TS1, FrameType.TS2, FrameType.ALIGN], [8, 30, 1])[0],
                "version": LINK_VERSION,
                "capability": link.capability ^ (rng.random() < 0.02),
                "want": rng.random() < 0.03,
                "epoch": 1,
                "fresh": rng.random() < 0.03,
                "seen": rng.random() < 0.9,
                "session": 5 + (rng.random() < 0.03),
                "stamp": rng.getrandbits(16),
            }
            for name, value in content.items():
                ctx.set(getattr(dut.frame, name), int(value))
            ctx.set(dut.frame_valid, 1)
            await ctx.tick()
            ctx.set(dut.frame_valid, 0)
            if content["type"] == FrameType.ALIGN:
                row, seen_row = [], []
            else:
                same = [content[k] for k in ("version", "capability", "want", "epoch", "fresh",
                                             "session")]  # fmt: skip
                confirms = content["type"] == FrameType.TS2 and content["seen"]
                if row and row[-1] != same:
                    row, seen_row = [], []
                row.append(same)
                seen_row = [*seen_row, same] if confirms else []
                assert ctx.get(dut.differs) == (content["capability"] != link.capability)
            assert ctx.get(dut.agreed) == (len(row) >= 4)
            assert ctx.get(dut.confirmed) == (len(seen_row) >= 4)
            seen_both.add((len(row) >= 4, len(seen_row) >= 4))

    simulate(dut, bench)
    assert len(seen_both) == 3
