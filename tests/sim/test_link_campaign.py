"""Two ports on bad channels: nothing lost, duplicated or reordered, every credit back.

The bench itself checks each packet; see `verif.link_bench`.
"""

import pytest

from isa.link import LinkState, Reason
from verif.link_bench import CampaignError, Scenario, link_bench

SMALL = {"beat_bytes": 16, "lanes": 4, "replay_bytes": 8192}
WIDE = {"beat_bytes": 64, "lanes": 8}
FLIT_ERRORS = 1e-3
"""Of long flits: 40 steps of a beat of 16 B, 10 of 64 B."""


def flits(run, name="RX_DATA"):
    return run[f"{name}_a"] + run[f"{name}_b"]


def reasons(run):
    """{first, last reason of both sides}."""
    words = [run["reasons_a"], run["reasons_b"]]
    return {Reason(w & 31) for w in words} | {Reason(w >> 8 & 31) for w in words}


def mixed(**changes):
    """Traffic on all VCs, uneven in the two directions, with stalls everywhere."""
    return Scenario(
        **{
            "rate": 0.05,
            "stall": 0.1,
            "open": 0.95,
            "delay": 20,
            "skew": 6,
            "sides": (("rate_b", 0.5), ("stall_b", 0.0), ("open_b", 0.8), ("maximum_b", 9)),
            **changes,
        }
    )


@pytest.mark.parametrize(("name", "rate"), [(SMALL, 0.002), (WIDE, 0.01)], ids=["16B", "64B"])
def test_clean(name, rate):
    """Half a load: short flits and long ones."""
    run = link_bench(**name).run(mixed(packets=400, rate=rate, sides=()))
    assert flits(run, "CRC_ERRORS") == flits(run, "REPLAYS") == 0
    assert flits(run, "RX_SHORT") > 0 and flits(run, "RX_LONG") > 0
    assert reasons(run) == {Reason.NONE}


def test_flit_errors():
    """1e5 flits at a flit error rate of 1e-3, both directions at once."""
    run = link_bench(**SMALL).run(
        Scenario(
            packets=36_000,
            maximum=5,
            rate=0.01,
            open=0.97,
            delay=30,
            skew=4,
            step_error_rate=FLIT_ERRORS / 4,
            burst=20,
        )
    )
    assert flits(run) >= 100_000
    assert flits(run, "CRC_ERRORS") >= 0.3 * FLIT_ERRORS * flits(run)
    assert flits(run, "REPLAYS") > 20
    assert flits(run, "REPLAYED_FLITS") > flits(run, "REPLAYS")


FAULTS = {
    "retrains": {"retrain_every": 3000},
    "resets": {"reset_every": 6000},
    "cuts": {"cut_every": 12000, "cut_cycles": 10_000},
    "drops": {"drop_every": 3000},
    "stuck": {"stuck_every": 20_000, "heal_every": 15_000},
    "closed": {"close_every": 300},
    "everything": {
        "retrain_every": 20_000,
        "reset_every": 50_000,
        "cut_every": 60_000,
        "drop_every": 20_000,
        "stuck_every": 90_000,
        "heal_every": 40_000,
        "close_every": 500,
        "ppm": 300,
    },
}
EXPECTED = {
    "retrains": "RECOVERIES",
    "cuts": "RECOVERIES",
    "drops": "RECOVERIES",
    "stuck": "WIDTH_CHANGES",
    "closed": "CREDIT_STALL",
    "everything": "RECOVERIES",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault):
    run = link_bench(**SMALL).run(
        mixed(cycles=150_000, step_error_rate=1e-4, bit_offset=1, inverted=1, **FAULTS[fault])
    )
    if fault == "resets":  # the counters of a chip restart with it; the first start is a loss too
        assert flits(run, "lost") - 2 > 3
    else:
        assert flits(run, EXPECTED[fault]) > 3
    if fault not in ("resets", "cuts", "everything", "stuck"):
        assert run["lost_a"] == run["lost_b"] == 1, "state was lost without need"
    if fault in ("retrains", "cuts", "drops", "stuck"):
        assert reasons(run) - {Reason.NONE}, "no reason was latched"


@pytest.mark.parametrize("delay", [0, 1, 7, 100, 700, 2000])
def test_round_trips(delay):
    """Round trips of 2 to 4000 cycles: window and replay buffer limit the rate, not the truth."""
    run = link_bench(**SMALL).run(
        mixed(cycles=30_000, delay=delay, skew=0, step_error_rate=2e-5, training_limit=400_000)
    )
    assert run["packets_a"] > 20 and run["packets_b"] > 20
    assert run["rtt_a"] >= 2 * delay


@pytest.mark.parametrize("ppm", [300, 600])
def test_rates_differ(ppm):
    run = link_bench(**SMALL).run(mixed(cycles=100_000, ppm=ppm))
    assert flits(run, "CRC_ERRORS") == 0


def test_lanes_reversed():
    run = link_bench(**SMALL).run(mixed(packets=100, reversed=1, bit_offset=1, inverted=1, skew=20))
    assert flits(run, "CRC_ERRORS") == 0


def test_one_closed_channel_blocks_no_other():
    """A consumer that never takes: the other seven VCs keep their rate."""
    run = link_bench(**SMALL).run(mixed(cycles=40_000, close_every=1000))
    assert run["packets_a"] > 300


def test_idle():
    """10^5 cycles without traffic: no retraining."""
    run = link_bench(**SMALL).run(Scenario(cycles=100_000, vcs=0))
    assert flits(run, "RECOVERIES") == 0 and flits(run, "CRC_ERRORS") == 0
    assert run["ACTIVE_CYCLES_a"] >= 100_000


def test_bench_sees_a_lost_link():
    """The bench itself: a dead channel is a failure, not a pass."""
    with pytest.raises(CampaignError, match="not ACTIVE"):
        link_bench(**SMALL).run(mixed(training_limit=100))
    assert LinkState.ACTIVE == 7


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8))
def test_ten_million_flits(seed):
    """1e7 flits in eight parts, flit error rate 1e-3, all faults; below saturation, so short."""
    run = link_bench(**SMALL).run(
        mixed(
            seed=seed + 100,
            packets=660_000,
            maximum=5,
            rate=0.01,
            sides=(),
            step_error_rate=FLIT_ERRORS / 4,
            burst=20,
            cycle_limit=60_000_000,
            **FAULTS["everything"],
        )
    )
    assert flits(run, "accepted") >= 1_250_000
    assert flits(run, "channel_errors") >= FLIT_ERRORS * flits(run, "accepted")


@pytest.mark.nightly
def test_hundred_thousand_retrains():
    """Credits leak nothing over 1e5 retrains."""
    run = link_bench(**SMALL).run(
        mixed(cycles=60_000_000, cycle_limit=200_000_000, retrain_every=200)
    )
    assert flits(run, "RECOVERIES") >= 100_000
