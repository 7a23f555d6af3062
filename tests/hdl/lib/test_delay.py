# amaranth: UnusedElaboratable=no
"""DelayLine: every short length, both kinds."""

import random

import pytest

from hdl.lib.delay import DelayLine
from verif.icarus import amaranth_trace


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("cycles", range(10))
def test_delays(cycles, clean):
    rng = random.Random(cycles)
    values = [rng.getrandbits(9) for _ in range(40)]
    trace = amaranth_trace(
        DelayLine(width=9, cycles=cycles, clean=clean), [{"i": value} for value in values])
    assert [step["o"] for step in trace] == [0] * cycles + values[:40 - cycles]


@pytest.mark.parametrize(("width", "cycles"), [(0, 1), (4, -1)])
def test_parameters_are_checked(width, cycles):
    with pytest.raises(ValueError, match="delay line"):
        DelayLine(width=width, cycles=cycles)
