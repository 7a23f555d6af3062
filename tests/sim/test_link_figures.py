"""The figures of `make link-report`, over fewer cycles, against the same bars."""

import pytest

from sim.link_report import (
    BARS,
    cost_of_a_bad_flit,
    delay_for_round_trip,
    efficiency,
    latency,
    meets,
    plot,
    predicted,
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
    run = with_errors(1e-6, delay_for_round_trip(), 400_000)
    cost = cost_of_a_bad_flit(run)
    assert run["CRC_ERRORS_b"] > 100
    # 15 long flits and the bad one, the REPLAY flit; the run may end within a replay
    assert 16 * 10 <= cost <= 16 * 10 + 3, cost
    assert predicted(1e-6, cost) >= 0.92 and predicted(1e-8, cost) >= 0.999


def test_cost_of_a_bad_flit_both_ways_full():
    """The NAK waits for the end of a long flit, and the receive buffer's credit runs out."""
    run = with_errors(1e-6, delay_for_round_trip(), 400_000, sides=())
    assert run["CRC_ERRORS_b"] > 100
    assert 16 * 10 < cost_of_a_bad_flit(run) < 28 * 10


def test_plot(tmp_path):
    plot([(1e-8, 0.999, 0.998), (1e-6, 0.92, 0.9)], tmp_path / "goodput.png")
    assert (tmp_path / "goodput.png").read_bytes().startswith(b"\x89PNG")
    assert set(BARS) >= {"goodput_ber_1e-8", "goodput_ber_1e-6", "flip_flops"}
