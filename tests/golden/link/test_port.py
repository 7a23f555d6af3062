"""Whole golden ports over channels: training, widths, retraining, resets of one side, bad lanes."""

import numpy as np
import pytest

from golden.link.channel import Channel
from golden.link.port import PortPair
from isa.link import HEADER, LinkConfig, LinkState, Reason, Width, pack_bits

TIMEOUT = 1500


def link_of(size=64, lanes=4, **changes):
    return LinkConfig(beat_bytes=size, lanes=lanes, training_timeout_cycles=TIMEOUT, **changes)


def pair_of(link, first=None, second=None, **arguments):
    links = link if isinstance(link, tuple) else (link, link)
    first = Channel(links[0], 1, **(first or {}))
    second = Channel(links[1], 2, **(second or {}))
    return PortPair(link, [first, second], **arguments)


class Traffic:
    """Packets with random data; `check` holds what came against what was sent."""

    def __init__(self, pair, seed=0):
        self.pair, self.rng = pair, np.random.default_rng(seed)
        self.sent = [[[] for _ in range(8)] for _ in range(2)]

    def load(self, packets, most=65):
        for _ in range(packets):
            for side in (0, 1):
                vc, granules = int(self.rng.integers(8)), int(self.rng.integers(1, most + 1))
                header = pack_bits(HEADER, {"kind": 1, "granules": granules})
                packet = header.to_bytes(16, "little") + self.rng.bytes(16 * (granules - 1))
                self.sent[side][vc].append(packet)
                self.pair.ports[side].send(vc, packet)

    def settle(self, most=40_000):
        def quiet():
            ports = self.pair.ports
            return self.pair.is_up and all(port.endpoint.quiet for port in ports)

        self.pair.run_until(quiet, most)

    def check(self):
        for side in (0, 1):
            for vc in range(8):
                got = [packet.data for packet in self.pair.ports[1 - side].received[vc]]
                assert got == self.sent[side][vc], f"VC {vc} from side {side} differs"

    def forget(self):
        """Both ends have lost their state: only what comes from now on counts."""
        self.sent = [[[] for _ in range(8)] for _ in range(2)]
        for port in self.pair.ports:
            for each in port.received:
                each.clear()


def run_steps(pair, count):
    for _ in range(count):
        pair.step()


def bring_up(pair, most=4 * TIMEOUT):
    pair.run_until(lambda: pair.is_up, most)
    return pair


@pytest.mark.smoke
@pytest.mark.parametrize(("size", "lanes"), [(16, 4), (32, 8), (64, 4), (64, 16)])
def test_comes_up_and_carries_packets(size, lanes):
    """Skew, inverted lanes, lanes in reverse order, symbol boundaries two bits off."""
    bits = 8 * size // lanes
    pair = pair_of(
        link_of(size, lanes, skip_cycles=64),
        {"skew": [0, 7, 19, 2] * (lanes // 4), "inverted": (0, 3), "delay": 9},
        {"reverse": True, "shift": [bits - 2] * lanes},
    )
    traffic = Traffic(bring_up(pair))
    assert all(port.training.receive_width == Width.FULL for port in pair.ports)
    traffic.load(15)
    traffic.settle()
    traffic.check()
    assert all(not port.training.reasons and not port.losses for port in pair.ports)


@pytest.mark.smoke
def test_round_trip_is_measured():
    near, far = (bring_up(pair_of(link_of(), {"delay": d}, {"delay": d})) for d in (5, 25))
    for a, b in zip(near.ports, far.ports, strict=True):
        assert b.training.rtt - a.training.rtt == 40


def test_retrain_in_traffic_keeps_everything():
    """tt-metal #45872; LUNA 4eb0ae2: polarity inversion lost on entering recovery."""
    pair = bring_up(pair_of(link_of(), {"inverted": (1, 2)}, {"skew": [3, 0, 0, 1]}))
    traffic = Traffic(pair)
    traffic.load(40)
    for turn in range(4):
        run_steps(pair, 60 + 17 * turn)
        pair.ports[turn % 2].retrain()
        pair.run_until(lambda: not any(port.is_up for port in pair.ports), 100)
        bring_up(pair)
    traffic.settle()
    traffic.check()
    assert all(port.losses == 0 for port in pair.ports)
    assert all(port.training.counts["RECOVERIES"] == 4 for port in pair.ports)


def test_bit_errors_of_a_bad_cable():
    pair = bring_up(pair_of(link_of(), {"error_rate": 3e-5}, {"error_rate": 3e-5, "burst": 20}))
    traffic = Traffic(pair, 5)
    traffic.load(60)
    traffic.settle()
    traffic.check()
    assert sum(channel.errors for channel in pair.channels) > 10


@pytest.mark.parametrize(
    "state", ["DETECT", "LOCK", "ALIGN", "TS1", "TS2", "CREDIT_INIT", "ACTIVE"]
)
@pytest.mark.parametrize("loss", ["unplugged", "errors"])
def test_every_state_ends_when_the_line_is_bad_and_the_link_returns_by_itself(state, loss):
    """surf PR #1363 (timeout behind the error branch: never left), tt-metal #45873 (no way out of a
    handshake), liteiclink #3 (manual reset behind a cable pull).
    """
    pair = pair_of(link_of())
    port = pair.ports[0]
    pair.run_until(lambda: port.training.state == LinkState[state], 3000)
    for channel in pair.channels:
        channel.plugged = loss != "unplugged"
        channel.error_rate = 0.02 if loss == "errors" else 0.0
    pair.run_until(lambda: port.training.state != LinkState[state], TIMEOUT + 600)
    run_steps(pair, 500)
    for channel in pair.channels:
        channel.plugged, channel.error_rate = True, 0.0
    bring_up(pair, 30_000)
    traffic = Traffic(pair)
    traffic.forget()
    traffic.load(4)
    traffic.settle()
    traffic.check()


@pytest.mark.parametrize("length", [1, 3, 30, 300])
def test_short_outage_loses_nothing(length):
    """tt-metal #28334, #20085: flapping links."""
    pair = bring_up(pair_of(link_of()))
    traffic = Traffic(pair)
    traffic.load(25)
    run_steps(pair, 50)
    for channel in pair.channels:
        channel.dropped = length
    traffic.settle()
    traffic.check()


@pytest.mark.parametrize("when", [40, 57, 64, 71, 85, 100, 160, 250])
def test_reset_of_one_side(when):
    """artiq #1504 (no return behind a restart of one side), bedrock-rtl #1057, #1058 (sends while
    the receiver is in reset): both learn that state is lost, nothing old is delivered afterwards.
    """
    pair = pair_of(link_of())
    traffic = Traffic(pair)
    for step in range(when):
        if step == 90:
            traffic.load(20)
        pair.step()
    losses = [port.losses for port in pair.ports]
    sessions = [port.training.session for port in pair.ports]
    was_up = pair.ports[1].is_up
    pair.ports[0].restart()
    pair.step()
    if was_up:
        pair.run_until(lambda: pair.ports[1].losses > losses[1], 3000)
        assert Reason.PEER_RESET in pair.ports[1].training.reasons
        assert pair.ports[1].training.session != sessions[1]
    traffic.forget()
    bring_up(pair)
    assert pair.ports[0].training.session != sessions[0]
    assert not any(any(each) for port in pair.ports for each in port.received)
    traffic.forget()
    traffic.load(10)
    traffic.settle()
    traffic.check()


def test_disabled_port_is_silent():
    """tt-metal #43660: a port that is down still answered training.  The time to detect a peer is
    longer than a failed port is silent, else two ports could miss each other for ever.
    """
    pair = bring_up(pair_of(link_of().with_(training_timeout_cycles=5000)))
    pair.ports[0].disable()
    run_steps(pair, 40)
    for _ in range(200):
        assert pair.ports[0].cycle([None] * 4) == [None] * 4
    assert [port.training.state for port in pair.ports] == [LinkState.DISABLED] * 2
    assert pair.ports[1].training.reasons == [Reason.PEER_DISABLED]
    pair.ports[1].restart()
    run_steps(pair, 5500)
    assert Reason.NO_PEER in pair.ports[1].training.reasons
    pair.ports[0].restart()
    bring_up(pair, 20_000)


@pytest.mark.smoke
@pytest.mark.parametrize(
    "other", [{"capability_flags": 1}, {"size": 32, "lanes": 8}], ids=["flow control", "shape"]
)
def test_other_capabilities_fail_with_a_reason(other):
    """tt-metal #54650: the ends of a cable with different flow control, and no error."""
    first = link_of(16, 4) if "size" in other else link_of()
    second = link_of(16, 4, capability_flags=3) if "size" in other else link_of(**other)
    pair = pair_of((first, second))
    pair.run_until(lambda: all(p.training.state == LinkState.FAILED for p in pair.ports), 8000)
    assert Reason.CAPABILITY in {p.training.reasons[0] for p in pair.ports}
    failed = next(p for p in pair.ports if p.training.reasons[0] == Reason.CAPABILITY)
    run_steps(pair, 5000)
    assert failed.training.state == LinkState.FAILED, "does not restart by itself"


def test_lanes_in_disorder_fail_with_a_reason():
    pair = pair_of(link_of())
    step = pair.channels[0].step

    def crossed(symbols):
        out = step(symbols)
        return [out[1], out[0], *out[2:]]

    pair.channels[0].step = crossed
    pair.run_until(lambda: pair.ports[1].training.state == LinkState.FAILED, 3000)
    assert pair.ports[1].training.reasons == [Reason.LANE_ORDER]


@pytest.mark.parametrize(("skew", "width"), [(56, Width.FULL), (57, Width.LOW_HALF)])
def test_skew_up_to_the_limit_and_beyond(skew, width):
    pair = bring_up(pair_of(link_of(), {"skew": [0, 0, skew, 0]}))
    training = pair.ports[1].training
    assert training.receive_width == width
    assert training.reasons == ([] if width == Width.FULL else [Reason.DESKEW] * 4)


@pytest.mark.parametrize(
    ("lane", "width"), [(0, Width.HIGH_HALF), (1, Width.HIGH_HALF), (3, Width.LOW_HALF)]
)
def test_lane_that_never_locks_narrows_its_direction_only(lane, width):
    pair = pair_of(link_of())
    pair.channels[0].stuck = {lane: 1}
    bring_up(pair)
    assert pair.ports[1].training.receive_width == width
    assert pair.ports[0].training.receive_width == Width.FULL
    assert Reason.LANE_LOST in pair.ports[1].training.reasons
    traffic = Traffic(pair)
    traffic.load(12)
    traffic.settle()
    traffic.check()


def test_lane_that_dies_in_traffic_loses_nothing():
    pair = bring_up(pair_of(link_of()))
    traffic = Traffic(pair)
    traffic.load(20)
    run_steps(pair, 40)
    pair.channels[1].stuck = {2: 0}
    traffic.settle()
    traffic.check()
    assert pair.ports[0].training.receive_width == Width.LOW_HALF


def test_no_lane_left_fails_and_reports():
    pair = bring_up(pair_of(link_of(), auto_restart=False))
    pair.ports[0].training.allowed = pair.ports[1].training.allowed = 1
    losses = pair.ports[1].losses
    pair.channels[0].stuck = dict.fromkeys(range(4), 0)
    states = [port.training for port in pair.ports]
    pair.run_until(lambda: all(t.state == LinkState.FAILED for t in states), 40_000)
    assert pair.ports[1].losses == losses + 1
    assert Reason.RECOVERY_LIMIT in states[1].reasons


def test_nobody_there():
    pair = pair_of(link_of(), auto_restart=False)
    for channel in pair.channels:
        channel.plugged = False
    run_steps(pair, TIMEOUT + 5)
    assert [port.training.reasons for port in pair.ports] == [[Reason.NO_PEER]] * 2


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6))
def test_campaign_of_faults(seed):
    """Errors, drops, stuck lanes and retrains at random: all packets, once, in order."""
    rng = np.random.default_rng(seed)
    size, lanes = [(16, 4), (32, 8), (64, 4)][seed % 3]
    pair = bring_up(pair_of(link_of(size, lanes, skip_cycles=100)))
    traffic = Traffic(pair, seed)
    for _ in range(40):
        traffic.load(10)
        channel = pair.channels[int(rng.integers(2))]
        fault = int(rng.integers(4))
        channel.error_rate = 1e-5 if fault == 0 else 0.0
        channel.dropped = int(rng.integers(1, 100)) if fault == 1 else 0
        if fault == 2:
            pair.ports[int(rng.integers(2))].retrain()
        run_steps(pair, int(rng.integers(500)))
    for channel in pair.channels:
        channel.error_rate = 0.0
    traffic.settle(400_000)
    traffic.check()
    assert all(port.losses == 0 for port in pair.ports)
