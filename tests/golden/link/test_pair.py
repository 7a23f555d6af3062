"""Two ports without lanes, with faults in the beats: nothing is lost, doubled or out of order, and
all credit is back.
"""

import numpy as np
import pytest

from golden.link.receiver import Verdict
from golden.link.wire import Pair
from isa.link import LinkConfig, Reason

SHAPES = [(16, 4), (32, 8), (64, 16)]


def link_of(size, lanes=4, **changes):
    return LinkConfig(beat_bytes=size, lanes=lanes, **changes)


def load(pair, packets, seed=0, vcs=range(8), most=65):
    rng = np.random.default_rng(seed)
    for _ in range(packets):
        for side in (0, 1):
            vc = int(rng.choice(list(vcs)))
            pair.send(side, vc, int(rng.integers(1, most + 1)), poison=rng.random() < 0.05)


def bit_errors(rate, seed, sides=(0, 1)):
    rng = np.random.default_rng(seed)

    def fault(side, number, beat):
        if side not in sides or rng.random() >= rate:
            return beat
        beat = bytearray(beat)
        beat[rng.integers(len(beat))] ^= 1 << int(rng.integers(8))
        return bytes(beat)

    return fault


@pytest.mark.smoke
@pytest.mark.parametrize(("size", "lanes"), SHAPES)
def test_clean(size, lanes):
    """tt-metal #51125 (VCs of unequal depth), #27801 (one counter for several senders)."""
    pair = Pair(link_of(size, lanes))
    load(pair, 60)
    pair.settle(20000)
    pair.check()
    assert pair.recoveries == 0
    assert all(end.tx.counts["REPLAYS"] == 0 for end in pair.ends)


@pytest.mark.parametrize(("size", "lanes"), SHAPES)
@pytest.mark.parametrize("rate", [0.002, 0.02])
def test_bit_errors(size, lanes, rate):
    pair = Pair(link_of(size, lanes), fault=bit_errors(rate * size / 64, 5), delay=20)
    load(pair, 60, seed=size)
    pair.settle(100_000)
    pair.check()
    assert sum(end.rx.counts["CRC_ERRORS"] for end in pair.ends) > 0


def test_errors_only_in_the_direction_of_acknowledgements():
    pair = Pair(link_of(64), fault=bit_errors(0.1, 6, sides=(1,)))
    for _ in range(150):
        pair.send(0, 0, 65)
    pair.settle(100_000)
    pair.check()


@pytest.mark.parametrize("number", range(4, 40))
def test_any_single_beat_lost(number):
    """tt-metal #37473: a lost credit notice was for ever.  Any one flit is replaced by garbage."""
    rng = np.random.default_rng(number)

    def fault(side, beat_number, beat):
        return rng.bytes(64) if (side, beat_number) == (0, number) else beat

    pair = Pair(link_of(64), fault=fault)
    load(pair, 4, seed=number)
    pair.settle(20000)
    pair.check()
    assert pair.ends[1].rx.counts["CRC_ERRORS"] == 1
    assert pair.recoveries == 0


@pytest.mark.smoke
def test_nak_lost_is_repeated():
    """LUNA 58e0cc9, 7.4 of the error matrix: the NAK itself is lost."""
    hits = []

    def fault(side, number, beat):
        slot = int.from_bytes(beat[48:], "little")
        is_nak = side == 1 and slot >> 20 & 1 and len(hits) == 1
        if (side, number) == (0, 20) or is_nak:
            hits.append(number)
            return bytes([beat[0] ^ 1]) + beat[1:]
        return beat

    pair = Pair(link_of(64), fault=fault)
    load(pair, 10, seed=3, most=4)
    pair.settle(20000)
    pair.check()
    assert len(hits) == 2 and pair.ends[1].rx.counts["NAK_REPEATS"] >= 1


def test_both_ends_in_hunt_hear_each_other():
    """Both directions full of long flits, both hit in the same cycle: both NAKs are heard, and
    within a round trip and two long flits of each side payload goes on; no timer, no RECOVERY.
    """
    delay, hit = 40, 300

    def fault(side, number, beat):
        return bytes([beat[0] ^ 1]) + beat[1:] if number == hit else beat

    pair = Pair(link_of(64, replay_bytes=1 << 16), delay=delay, fault=fault)
    for _ in range(120):
        pair.send(0, 0, 65)
        pair.send(1, 0, 65)
    pair.run(hit + delay)
    assert [end.rx.hunting for end in pair.ends] == [False, False]
    pair.run(10)
    assert [end.rx.hunting for end in pair.ends] == [True, True]
    before = [end.rx.progress for end in pair.ends]
    # NAK behind the flit in work, round trip, REPLAY behind the announced flit, a long flit
    pair.run(2 * delay + 3 * 10 + 10)
    assert all(end.rx.progress > old for end, old in zip(pair.ends, before, strict=True))
    for end in pair.ends:
        assert (end.rx.counts["CRC_ERRORS"], end.tx.counts["REPLAYS"]) == (1, 1)
    pair.settle(20_000)
    pair.check()
    for end in pair.ends:
        assert end.rx.counts["NAK_REPEATS"] == end.tx.counts["TIMER_REPLAYS"] == 0
    assert pair.recoveries == 0


@pytest.mark.parametrize("period", [37, 150])
def test_retrain_in_full_load_leaks_no_credit(period):
    """tt-metal #45872: a few completion credits were lost in a retrain; LUNA 4eb0ae2."""
    pair = Pair(link_of(64), delay=11)
    load(pair, 60, seed=period)
    for _ in range(15):
        pair.run(period)
        pair.retrain()
    pair.settle(50_000)
    pair.check()


def test_total_loss_for_a_while_is_survived():
    """tt-metal #28334, #20085: outages of 1 .. 10^4 cycles."""
    for length in (1, 10, 100, 1000):
        start = 60

        def fault(side, number, beat, start=start, length=length):
            return bytes(64) if start <= number < start + length else beat

        pair = Pair(link_of(64), fault=fault)
        load(pair, 30, seed=length)
        pair.settle(60_000)
        pair.check()


def test_blocked_vc_does_not_stop_the_others():
    """axi-pcie-core PR #196: one stalled lane starved all others."""
    pair = Pair(link_of(64))
    pair.ends[1].open -= {3}
    for _ in range(12):
        for vc in range(8):
            pair.send(0, vc, 65)
    pair.run(2200)
    for vc in set(range(8)) - {3}:
        assert len(pair.ends[1].received[vc]) == 12
    assert pair.ends[1].received[3] == []
    assert len(pair.ends[1].buffers.buffers[3]) == 512, "its buffer is full and no more"
    pair.ends[1].open.add(3)
    pair.settle(20000)
    pair.check()


def test_random_back_pressure_never_overflows():
    """surf PR #239, #227: flow control and overflow under random back-pressure."""
    pair = Pair(link_of(64, vc_units=(32,) * 8), fault=bit_errors(0.003, 8), delay=15)
    load(pair, 60)
    rng = np.random.default_rng(4)
    for _ in range(3000):
        for end in pair.ends:
            if rng.random() < 0.02:
                end.open = {vc for vc in range(8) if rng.random() < 0.5}
        pair.step()
    for end in pair.ends:
        end.open = set(range(8))
    pair.settle(60_000)
    pair.check()
    assert not {Reason.OVERFLOW, Reason.BAD_CREDIT} & set(pair.ends[0].reasons)


@pytest.mark.smoke
def test_idle_link_stays_in_frame():
    """usb3_pipe #15: without traffic the link fell back to training.  pslse #9: credit must not
    depend on new traffic.
    """
    pair = Pair(link_of(64))
    pair.ends[1].open.clear()
    for _ in range(16):
        pair.send(0, 0, 65)
    pair.run(3000)
    assert pair.ends[0].tx.credits[0].available == 0
    pair.ends[1].open.add(0)
    pair.run(600)
    assert pair.ends[0].tx.credits[0].available >= 1020
    pair.run(2000)
    assert not pair.ends[0].reasons and not pair.ends[1].reasons
    assert Verdict.HUNTED not in pair.ends[0].verdicts[100:]


@pytest.mark.smoke
def test_poison_reaches_the_consumer():
    pair = Pair(link_of(64))
    pair.send(0, 2, 5, poison=True)
    pair.settle(2000)
    assert pair.ends[1].received[2][0].poison == 1
    assert pair.ends[1].rx.counts["POISON_RECEIVED"] >= 1


def test_credit_is_conserved_in_every_cycle():
    """Sender's free + under way + held + not yet told = depth of every VC; openpiton #179."""
    pair = Pair(link_of(64, vc_units=(32,) * 8), fault=bit_errors(0.01, 9))
    load(pair, 60)
    for _ in range(1200):
        pair.step()
        for side, end in enumerate(pair.ends):
            other = pair.ends[1 - side]
            for vc in range(8):
                counter, back = end.tx.credits[vc], other.buffers.returns[vc]
                if counter.known:
                    held = len(other.buffers.buffers[vc])
                    under_way = (counter.sent - back.left - held) % (1 << 14)
                    untold = (back.capacity + back.left - 4 * counter.limit) % (1 << 14)
                    assert counter.available + under_way + held + untold == 128
                    assert max(under_way, untold) <= 128


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8))
def test_long_campaign(seed):
    rng = np.random.default_rng(seed)
    size, lanes = SHAPES[seed % 3]
    units = tuple(int(u) for u in rng.choice([32, 64, 128, 256], 8))
    weights = [int(w) for w in rng.integers(0, 16, 8)]
    link = link_of(size, lanes, vc_units=units, replay_bytes=int(rng.choice([2048, 16384])))
    pair = Pair(link, fault=bit_errors(0.004, seed), delay=int(rng.integers(1, 80)),
                weights=weights)  # fmt: skip
    for round_number in range(20):
        load(pair, 200, seed=100 * seed + round_number)
        pair.run(int(rng.integers(2000)))
        pair.retrain()
    pair.settle(2_000_000)
    pair.check()
