"""Models as Verilator builds them."""

import re

import pytest

from isa.geometry import preset
from sim.rtl import chip_model

_CONFIG = preset("tiny")


@pytest.fixture(scope="module")
def code():
    """The C++ text of the chip `tiny`, without what runs once."""
    model = chip_model(_CONFIG)
    files = sorted(model.directory.glob("Vtop_*.cpp"))
    return "\n".join(path.read_text() for path in files if "Slow" not in path.name)


@pytest.mark.parametrize("tile", ["scalarlane", "vectorlane", "writelane", "widen"])
def test_instances_share_their_code(code, tile):
    """One function serves several lanes: less code runs through the cache."""
    pattern = rf"^void Vtop_{tile}\w*___nba_sequent__TOP__\w*?__(\d+)\("
    first = [name for name in re.findall(pattern, code, re.MULTILINE) if name == "0"]
    assert 1 <= len(first) < _CONFIG.partitions
