"""Lanes: the scrambler against a register shifted bit by bit, striping word by word, skip steps."""

import numpy as np
import pytest

from golden.link.lanes import PERIOD, LaneReceive, LaneTransmit, Scrambler, scrambler_bits
from isa.link import SKIP_WORD, LinkConfig, Width, lane_seed

SHAPES = [(16, 4), (32, 4), (32, 8), (64, 4), (64, 8), (64, 16)]


def shifted(seed, count):
    """The definition: the register of the specification, one bit at a time."""
    state, bits = seed, []
    for _ in range(count):
        bits.append(state >> 22)
        state = (state << 1 | (state >> 22 ^ state >> 17) & 1) & 0x7FFFFF
    return bits


@pytest.mark.smoke
@pytest.mark.parametrize("seed", [1, 0x7FFFFF, lane_seed(0), lane_seed(15)])
def test_scrambler_is_the_shift_register(seed):
    expected = shifted(seed, 4000)
    scrambler = Scrambler(seed)
    got = []
    for size in (32, 64, 128, 1, 7) * 17:
        word = scrambler.take(size)
        got += [word >> i & 1 for i in range(size)]
    assert got[:3900] == expected[:3900]
    assert scrambler_bits(seed, 4000).tolist() == expected


def test_scrambler_has_its_full_period():
    """2^23 - 1 bits: in one period each state but 0 occurs once."""
    bits = scrambler_bits(1, PERIOD + 46).astype(np.uint32)
    assert (bits[:46] == bits[PERIOD:]).all()
    states = np.zeros(PERIOD, dtype=np.uint32)
    for i in range(23):
        states = states << 1 | bits[i : PERIOD + i]
    seen = np.bincount(states, minlength=1 << 23)
    assert seen[0] == 0 and (seen[1:] == 1).all()


@pytest.mark.smoke
def test_seeds_of_all_lanes_differ():
    seeds = {lane_seed(lane) for lane in range(16)}
    assert len(seeds) == 16 and 0 not in seeds


def words(symbol, count):
    return [symbol >> 32 * i & 0xFFFFFFFF for i in range(count)]


@pytest.mark.smoke
@pytest.mark.parametrize(("size", "lanes"), SHAPES)
@pytest.mark.parametrize("width", Width)
def test_striping_and_scrambling_word_by_word(size, lanes, width):
    link = LinkConfig(beat_bytes=size, lanes=lanes)
    beat = np.random.default_rng(size).integers(0, 1 << 32, size // 4, dtype=np.uint32)
    steps = LaneTransmit(link, width).beat(beat.tobytes())
    active = list(width.lanes(lanes))
    assert len(steps) == width.divisor
    for lane in range(lanes):
        sent = [word for step in steps for word in words(step[lane], link.symbol_words)]
        if lane not in active:
            assert sent == [0] * len(sent)
            continue
        own = beat[active.index(lane) :: len(active)]
        stream = shifted(lane_seed(lane), 32 * len(own))
        for index, word in enumerate(own):
            key = sum(bit << i for i, bit in enumerate(stream[32 * index : 32 * index + 32]))
            assert sent[index] == int(word) ^ key


@pytest.mark.smoke
@pytest.mark.parametrize(("size", "lanes"), SHAPES)
@pytest.mark.parametrize("width", Width)
def test_beats_come_back_with_skips_repeated_and_dropped(size, lanes, width):
    """surf d6069b2a8 (CRC ran over skip words), LUNA 8189f1a (skips starved): a skip at every place
    of a beat, and the PHY drops or repeats it.
    """
    link = LinkConfig(beat_bytes=size, lanes=lanes, skip_cycles=65)
    rng = np.random.default_rng(7)
    tx, rx = LaneTransmit(link, width), LaneReceive(link, width)
    sent, got, data_steps, skips = [], [], 0, 0
    for _ in range(300):
        sent.append(rng.bytes(size))
        for step in tx.beat_and_skips(sent[-1]):
            is_skip = all(
                words(step[lane], link.symbol_words) == [SKIP_WORD] * link.symbol_words
                for lane in width.lanes(lanes)
            )
            data_steps, skips = data_steps + (not is_skip), skips + is_skip
            assert not is_skip or data_steps == 65 * skips, "one behind every 65 steps of data"
            for _ in range(int(rng.integers(3)) if is_skip else 1):
                beat = rx.step(step)
                if beat is not None:
                    got.append(beat)
    assert got == sent
    assert skips == 300 * width.divisor // 65 > 0


@pytest.mark.smoke
@pytest.mark.parametrize(("damaged", "is_skip"), [(0, True), (3, True), (4, False), (8, False)])
def test_skip_steps_are_known_by_most_lanes(damaged, is_skip):
    """A bit error in a skip step must not shift all beats behind it, and half the lanes with skip
    words by chance are data.
    """
    link = LinkConfig(beat_bytes=64, lanes=8)
    tx, rx = LaneTransmit(link), LaneReceive(link)
    step = tx.skip()
    for lane in range(damaged):
        step[lane] ^= 1 << 7 * lane
    assert (rx.step(step) is None) == is_skip
    assert rx.skips == is_skip
