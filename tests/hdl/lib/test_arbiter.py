# amaranth: UnusedElaboratable=no
"""RoundRobin: one grant, fair, and only `advance` moves the turn; the one-hot helpers."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hdl.lib.arbiter import RoundRobin, one_hot_index, one_hot_mux
from hdl.lib.select import or_tree, select_value
from verif.icarus import amaranth_trace


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_grants(count):
    """One-hot among the requests, the next in the circle after the last one that advanced."""
    rng = random.Random(count)
    stimuli = [{"request": rng.getrandbits(count), "advance": rng.getrandbits(1)}
               for _ in range(300)]
    last = count - 1
    for cycle, (stimulus, step) in enumerate(
            zip(stimuli, amaranth_trace(RoundRobin(count), stimuli), strict=True)):
        order = [(last + 1 + i) % count for i in range(count)]
        asking = [i for i in order if stimulus["request"] >> i & 1]
        assert step["grant"] == (1 << asking[0] if asking else 0), f"cycle {cycle}"
        if asking and stimulus["advance"]:
            last = asking[0]


@pytest.mark.parametrize("count", [2, 5])
def test_nobody_waits_longer_than_all_others(count):
    rng = random.Random(1)
    waits, longest = [0] * count, 0
    dut = RoundRobin(count)
    async def bench(ctx):
        nonlocal longest
        request = 0
        ctx.set(dut.advance, 1)
        for _ in range(500):
            request |= rng.getrandbits(count)
            ctx.set(dut.request, request)
            _, _, grant = await ctx.tick().sample(dut.grant)
            for i in range(count):
                if grant >> i & 1:
                    waits[i] = 0
                elif request >> i & 1:
                    waits[i] += 1
                    longest = max(longest, waits[i])
            request &= ~grant

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert longest == count - 1


def test_everybody_gets_an_equal_share():
    trace = amaranth_trace(RoundRobin(3), [{"request": 0b111, "advance": 1}] * 30)
    assert [step["grant"] for step in trace] == [1, 2, 4] * 10


def test_count_is_checked():
    with pytest.raises(ValueError, match="at least one requester"):
        RoundRobin(0)


def evaluate(expression_of, **inputs):
    """Value of a combinational expression for input values {name: (value, bits)}."""
    signals = {name: Signal(bits, name=name) for name, (_, bits) in inputs.items()}
    m, o = Module(), Signal(32)
    m.d.comb += o.eq(expression_of(**signals))
    result = []

    async def bench(ctx):
        for name, (value, _) in inputs.items():
            ctx.set(signals[name], value)
        result.append(ctx.get(o))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return result[0]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_selection(count):
    values = [7 * i + 3 for i in range(count)]
    packed = sum(v << 8 * i for i, v in enumerate(values))
    bits = (count - 1).bit_length()
    for i in range(count):
        def words(v):
            return [v.word_select(n, 8) for n in range(count)]
        assert evaluate(lambda v, s: select_value(s, words(v)), v=(packed, 8 * count),
                        s=(i, bits)) == values[i]
        assert evaluate(lambda v, s: one_hot_mux(s, words(v)), v=(packed, 8 * count),
                        s=(1 << i, count)) == values[i]
        assert evaluate(lambda s: one_hot_index(s, count), s=(1 << i, count)) == i
    assert evaluate(lambda v, s: one_hot_mux(s, words(v)), v=(packed, 8 * count), s=(0, count)) == 0
    folded = 0
    for value in values:
        folded |= value
    assert evaluate(lambda v: or_tree(words(v)), v=(packed, 8 * count)) == folded


def test_index_width_is_checked():
    with pytest.raises(ValueError, match="3 values and 1 bits"):
        select_value(Signal(1), [Signal(4)] * 3)
