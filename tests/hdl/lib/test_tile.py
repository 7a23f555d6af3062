# amaranth: UnusedElaboratable=no
"""Tiles: emitted once, and emitted the same as simulated inline."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.emit import emit
from hdl.lib.arbiter import RoundRobin
from hdl.lib.delay import DelayLine
from hdl.lib.fifo import StreamFifo
from hdl.lib.tile import add_tile, tile_name
from verif.icarus import assert_same


class Inverter(wiring.Component):
    """A tile without registers."""

    tile_parameters = ()
    tile_combinational = True

    def __init__(self):
        super().__init__({"i": In(4), "o": Out(4)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(~self.i)
        return m


class Chain(wiring.Component):
    """Four delay tiles, one of another length, and an inverter."""

    def __init__(self):
        super().__init__({"i": In(4), "o": Out(4)})

    def elaborate(self, platform):
        m = Module()
        value = self.i
        for index, cycles in enumerate((5, 5, 4, 5)):
            delay = add_tile(m, platform, f"delay{index}", DelayLine(width=4, cycles=cycles))
            m.d.comb += delay.i.eq(value)
            value = delay.o
        inverter = add_tile(m, platform, "inverter", Inverter())
        m.d.comb += [inverter.i.eq(value), self.o.eq(inverter.o)]
        return m


def test_a_tile_is_emitted_once_per_parameters():
    text = emit(Chain(), "chain")
    assert text.count("module delayline_4_5_0(") == 1
    assert text.count("module delayline_4_4_0(") == 1
    assert text.count("module inverter(") == 1
    assert text.count("module lutram_4_4_4(") == 1
    assert text.count("delayline_4_5_0 delay") == 3
    assert text == emit(Chain(), "chain"), "emission is not repeatable"


def test_names_tell_parameters_apart():
    assert tile_name(DelayLine(width=4, cycles=5)) != tile_name(DelayLine(width=4, cycles=6))
    assert tile_name(DelayLine(width=4, cycles=5)) != tile_name(
        DelayLine(width=4, cycles=5, clean=True))


@pytest.mark.icarus
def test_chain_in_icarus(tmp_path):
    rng = random.Random(1)
    known = assert_same(Chain, [{"i": rng.getrandbits(4)} for _ in range(100)], tmp_path)
    assert known == 400


@pytest.mark.icarus
def test_fifo_in_icarus(tmp_path):
    rng = random.Random(2)
    stimuli = [{"i__payload": rng.getrandbits(20), "i__valid": int(rng.random() < 0.6),
                "o__ready": int(rng.random() < 0.5)} for _ in range(300)]
    assert assert_same(lambda: StreamFifo(20, depth=4), stimuli, tmp_path) > 0


@pytest.mark.icarus
def test_arbiter_in_icarus(tmp_path):
    rng = random.Random(3)
    stimuli = [{"request": rng.getrandbits(5), "advance": rng.getrandbits(1)} for _ in range(100)]
    assert assert_same(lambda: RoundRobin(5), stimuli, tmp_path) == 500
