"""The flow model: against the closed form of go-back-N, to the flit against the bit-exact pair."""

import numpy as np
import pytest

from golden.link.flow import (
    LONG_BITS,
    Errors,
    Flow,
    Pattern,
    closed_form,
    full_loss_cycles,
    loss_cycles,
)
from golden.link.wire import Pair
from isa.link import HEADER, LinkConfig, pack_bits

RTT = 150


def test_closed_form_is_the_textbook_one():
    """Bad flit and round trip only, no overhead: 0.99992 .. 0.54 at 1e-9 .. 1e-5."""
    expected = {1e-9: 0.99992, 1e-8: 0.9992, 1e-7: 0.992, 1e-6: 0.924, 1e-5: 0.54}
    for ber, goodput in expected.items():
        digits = len(str(goodput)) - 2
        assert round(closed_form(ber, RTT + 10), digits) == goodput


@pytest.mark.parametrize(
    ("ber", "cycles"), [(1e-8, 60_000), (1e-7, 250_000), (1e-6, 250_000), (1e-5, 100_000)]
)
def test_goodput_of_one_direction_is_the_closed_form(ber, cycles):
    """The number of bad flits is random, so the closed form is taken at the rate that came."""
    flow = Flow(RTT, (ber, 0.0), has_data=(True, False), seed=3)
    flow.run(cycles)
    good, bad = flow.delivered[1], flow.sides[1].bad_flits
    rate = bad / (good + bad)
    came = -np.expm1(np.log1p(-rate) / LONG_BITS) if bad else 0.0
    assert flow.goodput(0) == pytest.approx(closed_form(came, loss_cycles(RTT)), rel=0.01)
    wanted = (good + bad) * -np.expm1(LONG_BITS * np.log1p(-ber))
    assert abs(bad - wanted) < 5 * (1 + wanted) ** 0.5


def test_cost_of_a_bad_flit():
    """At 150 cycles: 10 + 150 + 1 + 9 + 1 into silence, 10 + 150 + 6.5 + 5.5 + 1 in full load."""
    assert loss_cycles(RTT) == 171
    assert full_loss_cycles(RTT) == 173


@pytest.mark.parametrize("ber", [1e-7, 1e-6, 3e-6])
def test_goodput_of_both_directions_is_the_closed_form(ber):
    """At 1e-6 both directions carry 0.919: no NAK is lost to a peer that hunts."""
    flow = Flow(RTT, (ber, ber), seed=4, replay_beats=1024)
    flow.run(400_000)
    for side in (0, 1):
        good, bad = flow.delivered[1 - side], flow.sides[1 - side].bad_flits
        came = -np.expm1(np.log1p(-bad / (good + bad)) / LONG_BITS)
        wanted = closed_form(came, full_loss_cycles(RTT))
        assert flow.goodput(side) == pytest.approx(wanted, rel=0.01)
    assert closed_form(1e-6, full_loss_cycles(RTT)) == pytest.approx(0.9185, abs=2e-4)
    assert flow.recoveries == 0 and not any(side.timer_replays for side in flow.sides)


def test_rate_of_drawn_errors():
    errors = Errors(1e-5, 1)
    hits = sum(errors.of(0, 10) for _ in range(100_000))
    assert hits / 100_000 == pytest.approx(1 - (1 - 1e-5) ** LONG_BITS, rel=0.03)


def full_pair(delay, faults, flits):
    """A bit-exact pair whose queues hold long flits without end."""
    link = LinkConfig(lanes=4, replay_bytes=1 << 18, vc_units=(1024,) * 8)

    def fault(side, number, beat):
        return bytes([beat[0] ^ 1]) + beat[1:] if number in faults[side] else beat

    pair = Pair(link, delay=delay, fault=fault)
    header = pack_bits(HEADER, {"kind": 1, "granules": 39}).to_bytes(16, "little")
    for end in pair.ends:
        for index in range(flits):
            end.tx.push(0, header + index.to_bytes(608, "little"), last=True)
    return pair


@pytest.mark.parametrize(
    ("rate", "delay", "seed"),
    [(0.0, 17, 0), (0.003, 17, 10), (0.03, 17, 1), (0.03, 3, 2), (0.1, 5, 2), (0.1, 3, 4)],
)
def test_flow_is_the_bit_exact_pair_flit_for_flit(rate, delay, seed):
    cycles = 2600
    rng = np.random.default_rng(seed)
    faults = [frozenset(np.nonzero(rng.random(cycles) < rate)[0].tolist()) for _ in range(2)]
    pair = full_pair(delay, faults, cycles // 10)
    flow = Flow(2 * delay, [Pattern(each) for each in faults], replay_beats=4096)
    for now in range(0, cycles, 100):
        pair.run(100)
        flow.run(100)
        rows = []
        for side, end in zip(flow.sides, pair.ends, strict=True):
            exact = [end.rx.progress, end.rx.counts["CRC_ERRORS"], end.rx.counts["NAK_REPEATS"],
                     end.tx.counts["REPLAYS"], end.tx.counts["TIMER_REPLAYS"],
                     end.tx.base]  # fmt: skip
            model = [side.expected, side.bad_flits, side.nak_repeats, side.replays,
                     side.timer_replays, side.base]  # fmt: skip
            rows.append((exact, model))
        assert all(exact == model for exact, model in rows), f"cycle {now + 100}: {rows}"
    assert pair.recoveries == flow.recoveries
    if rate:
        assert sum(end.rx.counts["CRC_ERRORS"] for end in pair.ends) > 2
    if rate >= 0.1:
        assert flow.recoveries > 0


@pytest.mark.nightly
def test_ten_million_flits_with_one_in_a_thousand_bad():
    """Nothing stalls: both directions full, flit error rate 1e-3."""
    ber = 1e-3 / LONG_BITS
    flow = Flow(RTT, (ber, ber), seed=5, replay_beats=1024, recovery_cycles=400)
    flow.run(50_000_000)
    assert sum(flow.delivered) > 9_000_000
    assert flow.goodput(0) == pytest.approx(closed_form(ber, full_loss_cycles(RTT)), rel=0.01)
