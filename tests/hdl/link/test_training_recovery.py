# amaranth: UnusedElaboratable=no
"""Training: resets of one side, cables pulled, recoveries, with the state of both ends in mind."""

import random

import pytest

from isa.link import Command, LinkState, Reason
from verif.training_bench import LINK, Bench

S = LinkState
TIMEOUT = LINK.training_timeout_cycles


async def good_again(bench, limit=24 * TIMEOUT):
    """Both ends ACTIVE and data taken both ways, by lives that know each other."""
    await bench.both_active(limit)
    taken = list(bench.taken)
    await bench.until(lambda b: all(b.taken[i] > taken[i] + 20 for i in range(2)), 400)
    bench.check_lives()
    for i in range(2):
        mine, other = bench.lives[i], bench.lives[1 - i]
        assert bench.pairs[i].get(mine) == other, "the lives that talk now"


@pytest.mark.parametrize("software", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_reset_of_one_side_at_any_time(seed, software):
    """Chip reset or RESTART of a side at random times in the life of the link: up again with fresh
    state, `lost` on both sides if they had exchanged data.
    """
    rng = random.Random(1000 + seed)

    async def scenario(bench):
        for _ in range(6):
            await bench.run(rng.choice([rng.randrange(1, 40), rng.randrange(40, 400)]))
            side = rng.randrange(2)
            before = list(bench.lives)
            active = all(bench.state(i) == S.ACTIVE for i in range(2))
            if software:
                await bench.pulse(side, "restart")
            else:
                await bench.reset(side, rng.choice([1, 1, 2, 30, 700]))
            await bench.run(3)
            await good_again(bench)
            assert bench.lives[side] > before[side]
            if active:
                assert bench.lives[1 - side] > before[1 - side], "the other side kept its state"
                assert Reason.PEER_RESET in bench.reasons[1 - side]

    Bench(delay=rng.choice([1, 5, 60])).simulate(scenario)


@pytest.mark.nightly
@pytest.mark.parametrize("when", range(0, 260, 2))
def test_reset_at_each_cycle_of_the_way_up(when):
    async def scenario(bench):
        await bench.run(when)
        await bench.reset(when // 2 % 2)
        await bench.run(3)
        await good_again(bench)

    Bench(delay=1 + when % 50).simulate(scenario)


@pytest.mark.parametrize("cycles", [1, 3, 10, 33, 100, 333, 1000, 3000, 10000])
def test_cable_pulled_and_put_back(cycles):
    """Both directions cut for a while; no software."""

    async def scenario(bench):
        await good_again(bench)
        for lane in bench.lanes:
            lane.cut = True
            lane.wire.clear()
        await bench.run(cycles)
        for lane in bench.lanes:
            lane.cut = False
        await bench.run(2 * 200)
        await good_again(bench, 40 * TIMEOUT)

    Bench().simulate(scenario)


@pytest.mark.parametrize("side", [0, 1])
def test_one_direction_cut(side):
    """Light in one direction only, for longer than all attempts last."""

    async def scenario(bench):
        await good_again(bench)
        bench.lanes[side].cut = True
        await bench.until(lambda b: b.state(1 - side) == S.FAILED, 20 * TIMEOUT)
        await bench.run(4 * TIMEOUT)
        bench.lanes[side].cut = False
        await good_again(bench, 60 * TIMEOUT)

    Bench().simulate(scenario)


def test_retrain_by_software_keeps_the_state():
    """Ten times in a row without any progress in between: full width, nothing lost."""

    async def scenario(bench):
        await good_again(bench)
        lives, sessions = list(bench.lives), [bench.ctx.get(e.session) for e in bench.pair.ends]
        for n in range(10):
            side = n % 2
            bench.force(side, tx_idle=0)
            await bench.pulse(side, "retrain")
            await bench.run(5)
            end = bench.pair.ends[side]
            assert not bench.ctx.get(end.tx_enable), "the transmitter comes to an end first"
            assert bench.ctx.get(end.stop_command) == Command.RETRAIN
            assert bench.state(side) == S.ACTIVE
            bench.force(side, tx_idle=None)
            bench.put(side, tx_idle=1)
            await bench.until(lambda b: b.state(side) == S.RECOVERY, 100)  # noqa: B023
            await bench.run(3)
            await good_again(bench)
        assert bench.lives == lives
        assert sessions == [bench.ctx.get(e.session) for e in bench.pair.ends]
        for i in range(2):
            assert set(bench.reasons[i]) <= {Reason.SOFTWARE, Reason.PEER_TRAINING}
            assert S.DEGRADE not in bench.trace[i]

    Bench().simulate(scenario)


def test_a_transmitter_that_never_stops_does_not_hold_up_a_retrain():
    async def scenario(bench):
        await good_again(bench)
        bench.force(0, tx_idle=0)
        await bench.pulse(0, "retrain")
        await bench.until(lambda b: b.state(0) == S.RECOVERY, TIMEOUT + 5)
        await good_again(bench)

    Bench().simulate(scenario)


def test_disable_tells_the_peer():
    """The peer goes silent too, tries again after a while, and finds this end when it is back."""

    async def scenario(bench):
        await good_again(bench)
        bench.force(0, enable=0)
        await bench.run(5)
        assert bench.ctx.get(bench.pair.ends[0].stop_command) == Command.DISABLE
        await bench.pulse(1, "peer_command", Command.DISABLE)
        await bench.run(2)
        assert bench.state(1) == S.DISABLED and bench.reasons[1] == [Reason.PEER_DISABLED]
        assert bench.sending[1] == 0
        await bench.until(lambda b: b.state(0) == S.DISABLED, 100)
        await bench.until(lambda b: b.state(1) == S.DETECT, 200)
        await bench.run(5 * TIMEOUT)
        assert bench.state(0) == S.DISABLED and bench.sending[0] == 0
        bench.force(0, enable=1)
        await good_again(bench)

    Bench().simulate(scenario)


REASONS = [
    ("nak_limit", 1, Reason.NAK_LIMIT),
    ("replay_limit", 1, Reason.REPLAY_LIMIT),
    ("rx_error", Reason.BAD_TYPE, Reason.BAD_TYPE),
    ("tx_error", Reason.BAD_ACKNOWLEDGE, Reason.BAD_ACKNOWLEDGE),
    ("buffer_error", Reason.OVERFLOW, Reason.OVERFLOW),
    ("training_seen", 1, Reason.PEER_TRAINING),
    ("peer_command", Command.RETRAIN, Reason.PEER_TRAINING),
]


@pytest.mark.parametrize(("name", "value", "reason"), REASONS)
def test_each_reason_to_leave_active(name, value, reason):
    """RECOVERY with the reason, state kept."""

    async def scenario(bench):
        await good_again(bench)
        lives = list(bench.lives)
        await bench.pulse(0, name, value)
        await bench.until(lambda b: b.state(0) == S.RECOVERY, 3)
        await bench.run(1)
        assert bench.reasons[0] == [reason]
        await good_again(bench)
        assert bench.lives == lives

    Bench().simulate(scenario)


def test_a_bad_packet_is_reported_and_changes_nothing():
    async def scenario(bench):
        await good_again(bench)
        await bench.pulse(0, "buffer_error", Reason.PACKET_LENGTH)
        await bench.run(20)
        assert bench.reasons[0] == [Reason.PACKET_LENGTH]
        assert bench.state(0) == S.ACTIVE

    Bench().simulate(scenario)


@pytest.mark.parametrize("progress", [False, True])
def test_recoveries_without_progress_narrow_the_link(progress):
    """The fourth in a row degrades; a payload accepted in between clears the count."""

    async def scenario(bench):
        await good_again(bench)
        for n in range(4):
            if progress and n == 2:
                await bench.pulse(0, "rx_progress")
            await bench.pulse(0, "nak_limit")
            await bench.run(3)
            await good_again(bench)
        assert (S.DEGRADE in bench.trace[0]) == (not progress)
        assert (bench.widths[0][0] != 0) == (not progress)
        assert bench.widths[1][0] == 0

    Bench().simulate(scenario)


@pytest.mark.parametrize("lacks", ["credit", "start"])
def test_an_end_that_does_not_come_up(lacks):
    """End 0 becomes ACTIVE and sends; end 1 does not get beyond CREDIT_INIT: nothing is lost."""

    async def scenario(bench):
        if lacks == "credit":
            bench.force(1, credits_known=0)
        else:
            bench.force(1, rx_start=0)
        await bench.until(lambda b: b.state(1) == S.CREDIT_INIT, 2 * TIMEOUT)
        await bench.until(lambda b: b.state(1) == S.RECOVERY, 2 * TIMEOUT)
        bench.force(1, credits_known=None, rx_start=None)
        await good_again(bench)
        assert bench.trace[0].count(S.ACTIVE) == 2
        assert bench.lives == [1, 1], "state was lost without need"
        assert Reason.PEER_RESET not in bench.reasons[0] + bench.reasons[1]

    Bench().simulate(scenario)


@pytest.mark.parametrize("error", ["nak_limit", "replay_limit", "rx_error", "training_seen"])
@pytest.mark.parametrize("side", [0, 1])
def test_errors_between_active_and_credit_init_lose_nothing(side, error):
    """One end is ACTIVE and has sent, the other one in CREDIT_INIT, and either fails."""

    async def scenario(bench):
        bench.force(1, credits_known=0)
        await bench.until(lambda b: b.state(0) == S.ACTIVE, 2 * TIMEOUT)
        await bench.run(20)
        assert bench.state(1) == S.CREDIT_INIT
        value = Reason.BAD_TYPE if error == "rx_error" else 1
        await bench.pulse(side, error, value)
        await bench.until(lambda b: b.state(side) == S.RECOVERY, 3)
        bench.force(1, credits_known=None)
        await good_again(bench)
        assert bench.lives == [1, 1]

    Bench().simulate(scenario)


@pytest.mark.parametrize("apart", range(250, 700, 40))
def test_ends_that_restart_meet_whatever_the_timeout(apart):
    """Silence that is longer than DETECT would let them miss each other for ever: here 400 cycles
    of DETECT and, by the parameter, as many of silence.
    """

    async def scenario(bench):
        bench.ctx.set(bench.pair.resets[1], 1)
        await bench.run(apart)
        bench.ctx.set(bench.pair.resets[1], 0)
        await good_again(bench, 3000)

    Bench(timeout=400, restart_cycles=420).simulate(scenario)


def test_round_trip_of_a_lost_session_is_forgotten():
    """Behind a reset of the peer the round trip is 0 until it has been measured anew."""

    async def scenario(bench):
        await good_again(bench)
        end = bench.pair.ends[0]
        old = bench.ctx.get(end.rtt)
        assert old == 2 * 40 + 14
        for lane in bench.lanes:
            lane.delay = 90
        await bench.reset(1)
        lives = bench.lives[0]
        await bench.until(lambda b: b.lives[0] > lives, 8 * TIMEOUT)
        await bench.run(2)
        assert bench.state(0) == S.TS1
        assert bench.ctx.get(end.rtt) == 0 and bench.ctx.get(end.timer_cycles) == 500
        bench.rtt[0].clear()
        await good_again(bench)
        assert set(bench.rtt[0]) == {bench.ctx.get(end.rtt)} == {2 * 90 + 14}

    Bench(delay=40, timeout=2048).simulate(scenario)


@pytest.mark.parametrize("seed", range(2))
def test_random_trouble(seed):
    """Cuts, noise, resets, retrains at random; then quiet: the link must be up, and no life may
    have taken data of two lives of the peer (checked in every cycle).
    """
    rng = random.Random(seed)

    async def scenario(bench):
        for _ in range(25):
            side = rng.randrange(2)
            kind = rng.choice(["cut", "noise", "reset", "retrain", "restart", "nak_limit"])
            if kind in ("cut", "noise"):
                setattr(bench.lanes[side], kind, True)
                await bench.run(rng.choice([1, 10, 100, 600]))
                setattr(bench.lanes[side], kind, False)
            elif kind == "reset":
                await bench.reset(side, rng.choice([1, 50]))
            else:
                await bench.pulse(side, kind)
            await bench.run(rng.choice([1, 10, 100, 300]))
        await bench.run(250)
        await good_again(bench, 60 * TIMEOUT)

    Bench(delay=rng.choice([2, 30])).simulate(scenario)


@pytest.mark.nightly
def test_long_idle():
    async def scenario(bench):
        await bench.both_active()
        trace = [list(t) for t in bench.trace]
        await bench.run(100_000)
        assert bench.trace == trace

    Bench().simulate(scenario)
