# amaranth: UnusedElaboratable=no
"""RAMs: byte enables, the old value on a collision, held read data, Amaranth and Verilog alike."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hdl.lib.ram import BlockRam, LutRam
from hdl.lib.tile import add_tile
from verif.icarus import amaranth_trace, assert_same

SIZES = [(32, 5, 8), (12, 16, 12), (128, 4, 16), (1, 2, 1)]


def stimuli(kind, width, depth, granularity, cycles=200):
    rng = random.Random(width)
    steps = []
    for _ in range(cycles):
        step = {
            "w_en": rng.getrandbits(width // granularity) if rng.random() < 0.7 else 0,
            "w_addr": rng.randrange(depth), "w_data": rng.getrandbits(width),
        }
        step["r_addr"] = step["w_addr"] if rng.random() < 0.3 else rng.randrange(depth)
        if kind is BlockRam:
            step["r_en"] = rng.getrandbits(1)
        steps.append(step)
    return steps


@pytest.mark.parametrize(("width", "depth", "granularity"), SIZES)
@pytest.mark.parametrize("kind", [BlockRam, LutRam])
def test_against_a_model(kind, width, depth, granularity):
    steps = stimuli(kind, width, depth, granularity)
    trace = amaranth_trace(kind(width=width, depth=depth, granularity=granularity), steps)
    words, register, collisions = [0] * depth, 0, 0
    for cycle, (step, got) in enumerate(zip(steps, trace, strict=True)):
        now = words[step["r_addr"]]
        expected = register if kind is BlockRam else now
        assert got["r_data"] == expected, f"cycle {cycle}"
        if step.get("r_en"):
            register = now
            collisions += step["r_addr"] == step["w_addr"] and step["w_en"] != 0
        for lane in range(width // granularity):
            if step["w_en"] >> lane & 1:
                mask = ((1 << granularity) - 1) << granularity * lane
                words[step["w_addr"]] = (words[step["w_addr"]] & ~mask) | (step["w_data"] & mask)
    assert kind is LutRam or collisions > 2


class Around(wiring.Component):
    """A RAM as a tile, with its ports."""

    def __init__(self, ram):
        self.ram = ram
        super().__init__(ram.signature)

    def elaborate(self, platform):
        m = Module()
        add_tile(m, platform, "ram", self.ram)
        for name, member in self.signature.members.items():
            mine, inner = getattr(self, name), getattr(self.ram, name)
            m.d.comb += mine.eq(inner) if member.flow == Out else inner.eq(mine)
        return m


@pytest.mark.icarus
@pytest.mark.parametrize(("width", "depth", "granularity"), SIZES)
@pytest.mark.parametrize("kind", [BlockRam, LutRam])
def test_verilog_text_is_the_same(kind, width, depth, granularity, tmp_path):
    """The text of `verilog` in place of the elaborated memory."""
    known = assert_same(
        lambda: Around(kind(width=width, depth=depth, granularity=granularity)),
        stimuli(kind, width, depth, granularity), tmp_path,
        unknown_until_valid=("r_data",) if kind is BlockRam else ())
    assert known > 150 * width


@pytest.mark.parametrize("size", [
    {"width": 8, "depth": 1}, {"width": 0, "depth": 4}, {"width": 8, "depth": 4, "granularity": 3}])
def test_sizes_are_checked(size):
    with pytest.raises(ValueError, match="needs 2 words or more"):
        BlockRam(**size)
