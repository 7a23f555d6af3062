# amaranth: UnusedElaboratable=no
"""Training: the way up, every state's bound, width, capability, round trip."""

import pytest

from isa.link import FrameType, LinkState, Reason, Width
from verif.training_bench import LINK, Bench

S = LinkState
UP = [S.RESET, S.DETECT, S.LOCK, S.ALIGN, S.TS1, S.TS2, S.CREDIT_INIT, S.ACTIVE]
TIMEOUT = LINK.training_timeout_cycles


@pytest.mark.smoke
def test_the_way_up():
    """All states in order, nothing reported, one life, no width change."""

    async def scenario(bench):
        await bench.both_active()
        await bench.run(50)
        for i, end in enumerate(bench.pair.ends):
            assert bench.trace[i] == UP
            assert bench.reasons[i] == [] and bench.lost[i] == 1
            assert bench.ctx.get(end.up) and not bench.ctx.get(end.fresh)
            assert bench.ctx.get(end.peer_session) == bench.ctx.get(bench.pair.ends[1 - i].session)
            assert bench.taken[i] > 0

    Bench().simulate(scenario)


# State in which end 0 gets stuck; what makes it so; where it goes and why.
STUCK = {
    S.DETECT: (S.FAILED, Reason.NO_PEER),
    S.LOCK: (S.RECOVERY, Reason.NO_LOCK),
    S.ALIGN: (S.RECOVERY, Reason.DESKEW),
    S.TS1: (S.RECOVERY, Reason.TRAINING_TIMEOUT),
    S.TS2: (S.RECOVERY, Reason.TRAINING_TIMEOUT),
    S.CREDIT_INIT: (S.RECOVERY, Reason.TRAINING_TIMEOUT),
    S.RECOVERY: (S.RECOVERY, Reason.TRAINING_TIMEOUT),
}


def disturb(bench, state, kind, on):
    """From now on (or no longer) nothing good comes to end 0."""
    if state == S.LOCK:
        bench.lanes[1].dead = set(range(1, LINK.lanes)) if on else set()
        bench.force(0, min_width=0 if on else 2)
    elif state == S.ALIGN:
        bench.lanes[1].align_works = not on
    elif state == S.RECOVERY:
        bench.force(0, frame_sent=0 if on else None)
    elif kind == "dead":
        bench.lanes[1].cut = on
        bench.lanes[1].wire.clear()
    else:
        bench.lanes[1].noise = on


@pytest.mark.parametrize("kind", ["dead", "noise"])
@pytest.mark.parametrize("state", STUCK)
def test_each_state_ends_by_its_bound(state, kind):
    """Dead or noisy lanes in each state: left at the bound with the reason of the specification;
    the link comes up once they are well again.
    """
    after, reason = STUCK[state]

    async def scenario(bench):
        if state in (S.LOCK, S.ALIGN) or state == S.DETECT:
            disturb(bench, state, kind, True)
        if state == S.RECOVERY:
            await bench.both_active()
            await bench.pulse(0, "retrain")
        await bench.until(lambda b: b.state(0) == state, 4 * TIMEOUT)
        if state == S.CREDIT_INIT:
            bench.force(0, rx_start=0)
        disturb(bench, state, kind, True)
        since = bench.cycle
        await bench.until(lambda b: reason in b.reasons[0], TIMEOUT + 5)
        assert bench.cycle - since > TIMEOUT - 10
        await bench.run(2)
        assert bench.state(0) == after
        if state != S.RECOVERY:  # that one goes over into the next RECOVERY
            assert bench.stay[0][state] in (TIMEOUT, TIMEOUT + 1)
        bench.force(0, rx_start=None)
        disturb(bench, state, kind, False)
        await bench.both_active(12 * TIMEOUT)
        await bench.run(100)
        bench.check_lives()

    Bench().simulate(scenario)


@pytest.mark.parametrize("state", [S.DETECT, S.LOCK, S.ALIGN, S.TS1, S.TS2, S.CREDIT_INIT, S.ACTIVE,
                                   S.RECOVERY])  # fmt: skip
def test_peer_dropped_in_each_state(state):
    """The peer falls silent for good: this end leaves every state within its bound and reports
    failure; when the peer is there again, the link comes up.
    """

    async def scenario(bench):
        if state == S.RECOVERY:
            await bench.both_active()
            await bench.pulse(0, "retrain")
        await bench.until(lambda b: b.state(0) == state, 4 * TIMEOUT)
        bench.ctx.set(bench.pair.resets[1], 1)
        await bench.until(lambda b: b.state(0) == S.FAILED, 16 * TIMEOUT)
        for bounded, stay in bench.stay[0].items():
            if bounded not in (S.ACTIVE, S.FAILED):
                assert stay <= TIMEOUT + 1, bounded
        await bench.run(2 * TIMEOUT)
        bench.ctx.set(bench.pair.resets[1], 0)
        await bench.both_active(16 * TIMEOUT)
        await bench.run(100)
        bench.check_lives()

    Bench().simulate(scenario)


def test_noise_for_ever_in_all_states_ends_in_failure():
    """Errors without end while ACTIVE: four recoveries a width, each width, then FAILED."""

    async def scenario(bench):
        await bench.both_active()
        bench.lanes[1].noise = True
        bench.force(0, auto_restart=0)
        await bench.until(lambda b: b.state(0) == S.FAILED, 60 * TIMEOUT)
        assert bench.reasons[0][0] == Reason.NAK_LIMIT
        assert bench.reasons[0][-1] == Reason.RECOVERY_LIMIT
        # 12 attempts: the first one is the NAK limit; the last one at each width degrades.
        assert bench.reasons[0].count(Reason.NO_LOCK) == 11
        assert bench.trace[0].count(S.DEGRADE) == 3
        assert bench.trace[0].count(S.RECOVERY) == 11
        await bench.run(3 * TIMEOUT)
        assert bench.state(0) == S.FAILED, "AUTO_RESTART is off"
        bench.lanes[1].noise = False
        await bench.pulse(0, "restart")
        await bench.both_active(8 * TIMEOUT)

    Bench().simulate(scenario)


@pytest.mark.parametrize("dead", range(4))
@pytest.mark.parametrize("reversed_", [False, True])
def test_a_dead_lane_halves_the_width(dead, reversed_):
    """Towards end 0 a lane is dead: the half without it, one direction only."""

    async def scenario(bench):
        bench.lanes[1].dead = {dead}
        bench.lanes[1].reversed = reversed_
        await bench.both_active(8 * TIMEOUT)
        logical = 3 - dead if reversed_ else dead
        half = Width.LOW_HALF if logical in (2, 3) else Width.HIGH_HALF
        assert bench.widths[0] == (half, half)
        assert bench.widths[1] == (Width.FULL, Width.FULL)
        assert Reason.LANE_LOST in bench.reasons[0]
        assert Reason.LANE_LOST not in bench.reasons[1]

    Bench().simulate(scenario)


def test_widths_of_the_two_directions_are_independent():
    """A quarter in one direction, a half in the other."""

    async def scenario(bench):
        bench.lanes[1].dead = {0, 1, 3}
        bench.lanes[0].dead = {3}
        await bench.both_active(12 * TIMEOUT)
        assert bench.widths[0] == (Width.QUARTER2, Width.QUARTER2)
        assert bench.widths[1] == (Width.LOW_HALF, Width.LOW_HALF)

    Bench().simulate(scenario)


@pytest.mark.parametrize("least", [0, 1])
def test_width_below_the_allowed_one_is_not_taken(least):
    async def scenario(bench):
        bench.lanes[1].dead = {0, 2} if least else {0}
        bench.force(0, min_width=least)
        await bench.until(lambda b: Reason.RECOVERY_LIMIT in b.reasons[0], 30 * TIMEOUT)
        assert S.ACTIVE not in bench.trace[0]

    Bench().simulate(scenario)


@pytest.mark.parametrize("delay", [1, 40])
def test_capability_mismatch_fails_on_both_sides(delay):
    """Both ends say why, fall silent and stay so; software may try again."""
    other = LINK.with_(capability_flags=LINK.capability_flags ^ 1)

    async def scenario(bench):
        await bench.until(lambda b: all(b.state(i) == S.FAILED for i in range(2)), 4 * TIMEOUT)
        await bench.run(4 * TIMEOUT)
        for i in range(2):
            assert bench.reasons[i] == [Reason.CAPABILITY]
            assert bench.state(i) == S.FAILED, "no restart"
            assert bench.sending[i] == 0
            assert S.TS2 not in bench.trace[i]
        await bench.pulse(0, "restart")
        await bench.run(2)
        assert bench.state(0) == S.DETECT

    Bench(delay=delay, links=(LINK, other)).simulate(scenario)


@pytest.mark.parametrize("delay", range(1, 9))
def test_capability_mismatch_of_ends_that_come_at_different_times(delay):
    """End 0 comes to TS1 long after the other one: it still lets the other one see why."""
    other = LINK.with_(capability_flags=LINK.capability_flags ^ 2)

    async def scenario(bench):
        bench.lanes[1].delay = delay
        bench.lanes[1].align_works = False
        await bench.until(lambda b: b.state(1) == S.TS1, TIMEOUT)
        await bench.run(100)
        bench.lanes[1].align_works = True
        await bench.until(lambda b: all(b.state(i) == S.FAILED for i in range(2)), TIMEOUT // 2)
        assert bench.reasons == [[Reason.CAPABILITY]] * 2

    Bench(links=(LINK, other)).simulate(scenario)


def test_the_bound_comes_before_everything_else():
    """What would lead on comes in the very cycle in which the bound is met: too late.  One cycle
    earlier it is in time.
    """

    def locks(early):
        async def scenario(bench):
            bench.lanes[1].cut = True
            await bench.until(lambda b: b.state(0) == S.DETECT, 10)
            await bench.run(TIMEOUT - 1 - early)
            bench.force(0, locked=1)
            await bench.run(2)
            assert bench.state(0) == (S.LOCK if early else S.FAILED)

        Bench().simulate(scenario)

    locks(early=0)
    locks(early=1)


@pytest.mark.parametrize("state", [S.TS1, S.TS2])
def test_frames_without_end_that_never_agree(state):
    """A frame in every cycle, each with another session: the state ends all the same."""

    async def scenario(bench):
        await bench.until(lambda b: b.state(0) == state, TIMEOUT)
        bench.lanes[1].cut = True
        bench.lanes[1].wire.clear()
        end = bench.pair.ends[0]
        bench.force(0, frame_valid=1)
        bench.ctx.set(end.frame.type, FrameType.TS1)
        bench.ctx.set(end.frame.version, 1)
        bench.ctx.set(end.frame.capability, LINK.capability)
        bench.ctx.set(end.frame.fresh, 1)
        for n in range(TIMEOUT + 20):
            bench.ctx.set(end.frame.session, n)
            await bench.run(1)
        assert Reason.TRAINING_TIMEOUT in bench.reasons[0]
        assert bench.stay[0][S.TS1] <= TIMEOUT + 1

    Bench().simulate(scenario)


def test_wrong_lane_order_fails():
    async def scenario(bench):
        bench.lanes[1].swapped = True
        await bench.until(lambda b: b.state(0) == S.FAILED, 4 * TIMEOUT)
        await bench.run(4 * TIMEOUT)
        assert bench.reasons[0] == [Reason.LANE_ORDER]
        assert bench.state(0) == S.FAILED

    Bench().simulate(scenario)


@pytest.mark.parametrize("delays", [(1, 1), (2, 7), (25, 100), (200, 200), (64, 3)])
def test_round_trip(delays):
    """The round trip is the delay there and back and twice what lies between the sampling of a
    frame and its arrival: here FRAME_CYCLES - 1 cycles, the frame itself.
    """

    async def scenario(bench):
        bench.lanes[0].delay, bench.lanes[1].delay = delays
        await bench.both_active(8 * TIMEOUT)
        for i in range(2):
            assert bench.rtt[i]
            assert set(bench.rtt[i]) == {sum(delays) + 14}
            timer = bench.ctx.get(bench.pair.ends[i].timer_cycles)
            assert timer == min(65535, max(256, 3 * (sum(delays) + 14) + 500))

    Bench(timeout=2048).simulate(scenario)


@pytest.mark.nightly
@pytest.mark.parametrize("delay", range(1, 201))
def test_round_trip_at_each_delay(delay):
    async def scenario(bench):
        await bench.both_active(8 * TIMEOUT)
        assert set(bench.rtt[0]) == set(bench.rtt[1]) == {2 * delay + 14}

    Bench(delay=delay, timeout=2048).simulate(scenario)


def test_disabled_port_is_silent():
    """ENABLE = 0: nothing on the lanes, whatever the peer does; enabled again, it comes up."""

    async def scenario(bench):
        bench.force(1, enable=0)
        await bench.run(3)
        for _ in range(10):
            await bench.run(TIMEOUT // 2)
            assert bench.state(1) == S.DISABLED and bench.sending[1] == 0
        await bench.reset(0)
        await bench.run(TIMEOUT)
        assert bench.trace[1] in ([S.RESET, S.DETECT, S.DISABLED], [S.RESET, S.DISABLED])
        assert bench.sending[1] == 0
        assert bench.ctx.get(bench.pair.ends[1].failed)
        lost = bench.lost[1]
        await bench.run(50)
        assert bench.lost[1] == lost, "one pulse on entry"
        bench.force(1, enable=1)
        await bench.both_active(8 * TIMEOUT)

    Bench().simulate(scenario)


@pytest.mark.parametrize("mode", ["loopback_mode", "prbs_mode"])
def test_test_modes(mode):
    """LOOPBACK and PRBS last as long as their bit; the link starts anew behind them."""

    async def scenario(bench):
        await bench.both_active()
        lost = bench.lost[0]
        bench.force(0, **{mode: 1})
        await bench.run(4)
        state = S.LOOPBACK if mode == "loopback_mode" else S.PRBS
        assert bench.state(0) == state and bench.lost[0] == lost + 1
        await bench.run(3 * TIMEOUT)
        assert bench.state(0) == state
        assert bench.sending[0] == (1 if mode == "loopback_mode" else 3)
        bench.force(0, **{mode: 0})
        await bench.run(2)
        await bench.both_active(16 * TIMEOUT)
        bench.check_lives()

    Bench().simulate(scenario)
