# amaranth: UnusedElaboratable=no
"""ROMs: every word, held read data, Amaranth and Verilog alike."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hdl.lib.rom import BlockRom, Rom
from hdl.lib.tile import add_tile
from verif.icarus import amaranth_trace, assert_same

SIZES = [(5, 2), (59, 16), (1, 8)]


def make(kind, width, depth):
    rng = random.Random(width)
    words = [rng.getrandbits(width) for _ in range(depth)]
    return kind(f"test{width}", width=width, words=words), words


def stimuli(kind, depth, cycles=200):
    rng = random.Random(depth)
    steps = [{"address": rng.randrange(depth)} for _ in range(cycles)]
    if kind is BlockRom:
        steps = [{**step, "en": rng.getrandbits(1)} for step in steps]
    return steps


@pytest.mark.parametrize(("width", "depth"), SIZES)
@pytest.mark.parametrize("kind", [BlockRom, Rom])
def test_against_a_list(kind, width, depth):
    rom, words = make(kind, width, depth)
    steps = stimuli(kind, depth)
    register, checked = None, 0
    for step, got in zip(steps, amaranth_trace(rom, steps), strict=True):
        expected = words[step["address"]] if kind is Rom else register
        if expected is not None:
            assert got["data"] == expected
            checked += 1
        if step.get("en"):
            register = words[step["address"]]
    assert checked > 150


class Around(wiring.Component):
    """A ROM as a tile, with its ports; a clock, as a bench has one."""

    def __init__(self, rom):
        self.rom = rom
        super().__init__(rom.signature)

    def elaborate(self, platform):
        m = Module()
        add_tile(m, platform, "rom", self.rom)
        for name, member in self.signature.members.items():
            mine, inner = getattr(self, name), getattr(self.rom, name)
            m.d.comb += mine.eq(inner) if member.flow == Out else inner.eq(mine)
        return m


@pytest.mark.icarus
@pytest.mark.parametrize(("width", "depth"), SIZES)
def test_verilog_text_is_the_same(width, depth, tmp_path):
    """The text of `verilog` in place of the elaborated memory."""
    known = assert_same(
        lambda: Around(make(BlockRom, width, depth)[0]),
        stimuli(BlockRom, depth),
        tmp_path,
        unknown_until_valid=("data",),
    )
    assert known > 150 * width


@pytest.mark.parametrize("words", [[1], [4, 1], [-1, 1]])
def test_contents_are_checked(words):
    with pytest.raises(ValueError, match="ROM small: 2 words or more of 2 bits"):
        Rom("small", width=2, words=words)
