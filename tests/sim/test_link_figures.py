"""The figures of `make link-report`, over fewer cycles, against the same bars."""

import pytest

from sim.link_report import (
    BARS,
    ROUND_TRIP,
    closed_form,
    cost_of_a_bad_flit,
    delays_for,
    efficiency,
    latency,
    meets,
    plot,
    saturated,
    sustained,
    with_errors,
)


@pytest.mark.parametrize(
    ("name", "data", "packet"),
    [
        ("flit_efficiency", 1, 1),
        ("write_1k_efficiency", 64, 65),
        ("write_256_efficiency", 16, 17),
    ],
)
def test_efficiency(name, data, packet):
    granules = packet if packet > 1 else 65
    run = saturated(20_000, minimum=granules, maximum=granules)
    value = efficiency(run, data, packet)
    assert meets(name, value), value
    assert value <= 39 / 40 * data / packet, "more than the format can carry"
    assert meets("sustained_slots", sustained(run))


@pytest.mark.parametrize(("name", "granules"), [("short_flit_cycles", 3), ("long_flit_cycles", 39)])
def test_latency(name, granules):
    value = latency(granules)
    assert meets(name, value), value
    assert value >= 10, "faster than the pipeline is long"


def test_goodput():
    """What a bad flit costs over a round trip of 150 cycles, by the errors that came."""
    run = with_errors(1e-6, delays_for(ROUND_TRIP), 400_000)
    assert run["CRC_ERRORS_b"] > 100
    assert run["nak_way_min_a"] == ROUND_TRIP and run["nak_ways_a"] > 100
    assert run["rtt_a"] == ROUND_TRIP - 9, "a NAK passes more stages than a training frame"
    cost = cost_of_a_bad_flit(run)
    # The bad flit, 15 behind it, the REPLAY flit; now and then a NAK or a REPLAY flit is hit too
    assert ROUND_TRIP + 10 <= cost <= ROUND_TRIP + 15, cost
    assert closed_form(1e-6, cost) >= 0.92 and closed_form(1e-8, cost) >= 0.999


def test_cost_of_a_bad_flit_both_ways_full():
    """The NAK waits for the end of a long flit, and the receive buffer's credit runs out."""
    run = with_errors(1e-6, delays_for(ROUND_TRIP), 400_000, sides=())
    assert run["CRC_ERRORS_b"] > 100
    assert 16 * 10 < cost_of_a_bad_flit(run) < 28 * 10


def test_round_trip_below_the_pipelines():
    with pytest.raises(ValueError, match="round trip of 10 cycles: at least"):
        delays_for(10)


def test_plot(tmp_path):
    plot([(1e-8, 0.999, 0.998), (1e-6, 0.92, 0.9)], tmp_path / "goodput.png")
    assert (tmp_path / "goodput.png").read_bytes().startswith(b"\x89PNG")
    assert set(BARS) >= {"goodput_ber_1e-8", "goodput_ber_1e-6", "flip_flops"}
