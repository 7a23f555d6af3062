"""Small parts of the tensor engine, in Amaranth's simulator."""

import numpy as np
import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.sim import Simulator

from hdl.emit import emit
from hdl.tensor.array import PeArray
from hdl.tensor.moving import tag_layout
from hdl.tensor.result_port import DONE_TAG, ResultPort
from hdl.tensor.sequence import IN_FLIGHT, InOrderReport
from hdl.tensor.weight_loader import WeightLoader
from isa.geometry import preset


def simulate(component, bench):
    simulator = Simulator(component)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()


def test_reports_keep_the_order_of_issue():
    """Events of both units in any interleaving, each unit running ahead of the other at times."""
    rng = np.random.default_rng(4)
    units = rng.integers(0, 2, 200)
    report = InOrderReport()
    pulses = []

    async def bench(ctx):
        issued = 0
        events = [[], []]  # numbers of the instructions whose event came
        open_ = [[], []]
        for cycle in range(3_000):
            offer = issued < len(units) and rng.random() < (0.9 if cycle % 200 < 100 else 0.2)
            ctx.set(report.issue.valid, int(offer))
            ctx.set(report.issue.payload, int(units[issued]) if offer else 0)
            event = 0
            for unit in range(2):
                slow = 0.05 if (cycle // 300) % 2 == unit else 0.8
                if open_[unit] and rng.random() < slow:
                    events[unit].append(open_[unit].pop(0))
                    event |= 1 << unit
            ctx.set(report.event, event)
            if ctx.get(report.pulse):
                number = len(pulses)
                # In order, so every earlier one has had its event; one of this cycle is too new.
                assert number in events[units[number]]
                assert not (event >> int(units[number]) & 1 and events[units[number]][-1] == number)
                pulses.append(cycle)
            taken = offer and ctx.get(report.issue.ready)
            assert issued - len(pulses) <= IN_FLIGHT
            await ctx.tick()
            if taken:
                open_[units[issued]].append(issued)
                issued += 1

    simulate(report, bench)
    assert len(pulses) == len(units)


def test_loader_waits_for_swaps_and_counts_columns():
    loader = WeightLoader(preset("small"))
    beats = []

    async def bench(ctx):
        ctx.set(loader.issue.valid, 1)
        ctx.set(loader.issue.payload.swaps, 3)
        ctx.set(loader.beat.valid, 1)
        ctx.set(loader.beat.payload.mask, 0b1111)
        for swaps in (1, 2, 4, 3):
            ctx.set(loader.swaps, swaps)
            assert ctx.get(loader.beat.ready) == (swaps == 3)
            assert ctx.get(loader.active) == (swaps == 3)
            assert (ctx.get(loader.low) | ctx.get(loader.high) != 0) == (swaps == 3)
        masks = (1, 15, 15, 1, 1, 15)
        for index, mask in enumerate(masks):
            ctx.set(loader.beat.payload.mask, mask)
            ctx.set(loader.beat.payload.last, int(index == len(masks) - 1))
            beats.append(
                tuple(
                    ctx.get(getattr(loader, name))
                    for name in ("group", "shift", "low", "high", "done")
                )
            )
            await ctx.tick()
        assert ctx.get(loader.loads) == 1
        ctx.set(loader.beat.payload.mask, 1)
        assert (ctx.get(loader.group), ctx.get(loader.low)) == (0, 1)

    simulate(loader, bench)
    assert beats == [
        (0, 0, 0b0001, 0b0000, 0),
        (0, 1, 0b1110, 0b0001, 0),
        (1, 1, 0b1110, 0b0001, 0),
        (2, 1, 0b0010, 0b0000, 0),
        (2, 2, 0b0100, 0b0000, 0),
        (2, 3, 0b1000, 0b0111, 1),
    ]


def test_reset_forgets_columns_on_their_way():
    """A reset while a tag is in the delay line: it must not come out as a write."""
    config = preset("tiny")
    latency = 9
    port = ResultPort(config, latency=latency)
    seen = []

    async def bench(ctx):
        tag = tag_layout(config).const(
            {"valid": 1, "word": 5, "columns": 3, "rotation": 1, "last": 1}
        )
        for cycle in range(4 * latency):
            ctx.set(port.tag, tag if cycle == 2 * latency + 1 or 8 <= cycle < 12 else {})
            ctx.set(reset, int(cycle == 12))
            if ctx.get(port.accumulate.valid):
                seen.append(
                    (
                        cycle,
                        ctx.get(port.accumulate.word),
                        ctx.get(port.accumulate.partitions),
                        ctx.get(port.accumulate.tag),
                    )
                )
            await ctx.tick()

    reset = Signal()
    m = Module()
    m.submodules.port = ResetInserter(reset)(port)
    simulate(m, bench)
    # The one tag after the reset, `latency` + 1 cycles later, turned by one quadrant.
    assert seen == [(3 * latency + 2, 5, 0b1110, DONE_TAG)]


@pytest.mark.parametrize(
    "name, limit",
    [("tiny", 200_000), pytest.param("trn1", 3_000_000, marks=pytest.mark.nightly)],
)
def test_emission_is_small(name, limit):
    """Tiles are emitted once, so the text grows with the rows, not with the elements."""
    text = emit(PeArray(preset(name)), "array")
    assert len(text) < limit
    modules = [
        line.split("(")[0].split()[1] for line in text.splitlines() if line.startswith("module ")
    ]
    assert len(modules) == len(set(modules))
    assert sum(name.startswith("pe") for name in modules) == 3
