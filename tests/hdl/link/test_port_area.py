"""Area of a link: the bar of the specification."""

import pytest

from sim.link_area import FLIP_FLOP_LIMIT, link_area


@pytest.mark.nightly
def test_area_of_the_largest_link():
    """64 B on 8 lanes: below 18,000 flip-flops, the replay buffer in block RAM."""
    area = link_area()
    assert area["errors"] == []
    assert area["flip_flops"] < FLIP_FLOP_LIMIT
    parts = dict(area["parts"])
    assert parts["transmitter"]["RAMB36"] + parts["transmitter"]["RAMB18"] > 0
    assert area["ramb"] > 0 and area["luts"] > 0
