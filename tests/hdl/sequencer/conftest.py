"""One elaborated sequencer for many tests."""

import pytest

from isa.address_map import Sequencer
from isa.geometry import preset
from verif.sequencer_bench import SequencerBench


@pytest.fixture(scope="session")
def vector():
    return SequencerBench(preset("tiny"), Sequencer.VECTOR)


@pytest.fixture(scope="session")
def small_buffer():
    """A sequencer without an engine, whose buffer holds 8 instructions."""
    return SequencerBench(preset("tiny").with_(fetch_depth=8), Sequencer.SYNC)
