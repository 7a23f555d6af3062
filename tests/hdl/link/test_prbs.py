# amaranth: UnusedElaboratable=no
"""PRBS-31: sequence of ITU-T O.150, errors counted by the self-synchronising checker."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.prbs import PrbsChecker, PrbsGenerator, prbs_seed

WIDTHS = [32, 64, 128]


def o150(seed, count):
    """Bits behind `seed` (oldest bit lowest): stages 28 and 31 are fed back, the output is
    inverted.
    """
    history = [seed >> i & 1 for i in range(31)]
    bits = 0
    for i in range(count):
        new = history[-31] ^ history[-28]
        history.append(new)
        bits |= (new ^ 1) << i
    return bits


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def check(width, symbols, gaps=0.0):
    """Numbers of the symbols that are found wrong."""
    dut, rng, wrong = PrbsChecker(symbol_bits=width), random.Random(width), []

    async def bench(ctx):
        for round_ in range(2):
            wrong.clear()
            ctx.set(dut.enable, 0)
            ctx.set(dut.valid, 1)
            ctx.set(dut.symbol, round_)
            await ctx.tick()
            assert not ctx.get(dut.error)
            ctx.set(dut.enable, 1)
            for number, symbol in enumerate(symbols):
                while rng.random() < gaps:
                    ctx.set(dut.valid, 0)
                    ctx.set(dut.symbol, rng.getrandbits(width))
                    assert not ctx.get(dut.error)
                    await ctx.tick()
                ctx.set(dut.valid, 1)
                ctx.set(dut.symbol, symbol)
                if ctx.get(dut.error):
                    wrong.append(number)
                await ctx.tick()

    simulate(dut, bench)
    return wrong


def cut(bits, width, count, offset=0):
    return [bits >> offset + width * i & ((1 << width) - 1) for i in range(count)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("lane", [0, 3, 15])
def test_sequence(width, lane):
    dut = PrbsGenerator(symbol_bits=width)
    wanted = cut(o150(prbs_seed(lane), width * 50), width, 50)

    async def bench(ctx):
        ctx.set(dut.seed, prbs_seed(lane))
        ctx.set(dut.load, 1)
        await ctx.tick()
        ctx.set(dut.load, 0)
        for number, symbol in enumerate(wanted):
            ctx.set(dut.step, 0)
            await ctx.tick()
            assert ctx.get(dut.symbol) == symbol, number
            ctx.set(dut.step, 1)
            await ctx.tick()

    simulate(dut, bench)


@pytest.mark.parametrize("width", WIDTHS)
def test_good_line(width):
    """Any boundary, either polarity, with gaps."""
    bits = o150(0x1234567, width * 100 + 64)
    for offset in (0, 1, 17):
        symbols = cut(bits, width, 99, offset)
        assert check(width, symbols, gaps=0.3) == []
        assert check(width, [~s & ((1 << width) - 1) for s in symbols]) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_counts_errors(width):
    """A wrong bit is wrong itself and as a reference 28 and 31 bits later: one or two symbols."""
    rng = random.Random(width)
    bits = o150(0x7654321, width * 90)
    for _ in range(6):
        place = rng.randrange(width, width * 80)
        wanted = {(place + later) // width for later in (0, 28, 31)}
        symbols = cut(bits ^ 1 << place, width, 88)
        assert check(width, symbols) == sorted(wanted), place


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("level", [0, 1])
def test_dead_line(width, level):
    """A constant satisfies the polynomial or its inverse, and is wrong all the same."""
    symbols = [((1 << width) - 1) * level] * 10
    assert check(width, symbols) == list(range(1, 10))


def test_noise():
    rng = random.Random(1)
    assert check(32, [rng.getrandbits(32) for _ in range(40)]) == list(range(1, 40))


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="32 or more"):
        PrbsChecker(symbol_bits=16)
