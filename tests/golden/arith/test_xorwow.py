"""XORWOW against published outputs and against plain integers."""

import numpy as np
import pytest

from golden.arith.xorwow import Xorwow
from isa.seeding import seeded
from verif.equality import assert_same

WORD = (1 << 32) - 1
MARSAGLIA = (123456789, 362436069, 521288629, 88675123, 5783321, 6615241)
"""The initial words of the paper."""


def scalar(state, count):
    """The paper's C, in Python integers: words and final state."""
    x, y, z, w, v, d = (int(word) for word in state)
    words = []
    for _ in range(count):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4) ^ (t ^ (t << 1))) & WORD
        d = (d + 362437) & WORD
        words.append((d + v) & WORD)
    return words, [x, y, z, w, v, d]


def test_published_outputs_of_xorwow():
    """The outputs for the paper's initial words, as in the tests of D's standard library."""
    lanes = Xorwow(3)
    lanes.state = np.tile(np.array(MARSAGLIA, np.uint32), (3, 1))
    expected = [246875399, 3690007200, 1264581005, 3906711041, 1866187943]
    expected += [2481925219, 2464530826, 1604040631, 3653403911]
    assert_same(lanes.step(9), np.tile(expected, (3, 1)))


@pytest.mark.parametrize("seed", [0, 1, 0xDEADBEEF, (1 << 64) - 1])
def test_every_lane_equals_plain_integers(seed):
    lanes = Xorwow(5, seed)
    initial = lanes.state
    assert_same(initial, seeded(5, seed))
    words = lanes.step(2000)
    expected = [scalar(state, 2000) for state in initial]
    assert_same(words, np.array([words for words, _ in expected], np.uint32), seed=seed)
    assert_same(lanes.state, np.array([state for _, state in expected], np.uint32), seed=seed)


@pytest.mark.nightly
def test_a_million_steps():
    lanes = Xorwow(1, 5)
    words, state = scalar(lanes.state[0], 1_000_000)
    assert_same(lanes.step(1_000_000)[0], np.array(words, np.uint32))
    assert_same(lanes.state[0], np.array(state, np.uint32))


@pytest.mark.parametrize("parts", [(1,) * 12, (0, 4, 8), (5, 7), (11, 1)])
def test_steps_may_be_divided(parts):
    whole = Xorwow(4, 7).step(12)
    lanes = Xorwow(4, 7)
    assert_same(np.concatenate([lanes.step(part) for part in parts], axis=1), whole)


def test_no_steps():
    lanes = Xorwow(4, 7)
    before = lanes.state
    assert lanes.step(0).shape == (4, 0)
    assert_same(lanes.state, before)


def test_a_saved_state_continues():
    lanes = Xorwow(4, 7)
    lanes.step(100)
    saved = lanes.state
    expected = lanes.step(50)
    other = Xorwow(4, 8)
    other.state = saved
    assert_same(other.step(50), expected)


@pytest.mark.parametrize("count", [1, 4])
def test_reading_and_writing_the_state_copies(count):
    lanes = Xorwow(count, 7)
    expected = lanes.state.copy()
    lanes.state[:] = 0
    assert_same(lanes.state, expected)
    given = expected.copy()
    lanes.state = given
    given[:] = 0
    assert_same(lanes.state, expected)


def test_lanes_do_not_depend_on_their_number():
    assert_same(Xorwow(128, 9).step(20)[:3], Xorwow(3, 9).step(20))


def test_seeds_and_lanes_differ():
    words = np.concatenate([Xorwow(128, seed).step(8) for seed in range(8)])
    assert len(np.unique(words, axis=0)) == len(words)


def test_a_state_of_another_type_or_shape_is_refused():
    lanes = Xorwow(4)
    with pytest.raises(TypeError, match="uint32 state expected"):
        lanes.state = np.zeros((4, 6), np.int64)
    with pytest.raises(ValueError, match=r"state of shape \(4, 6\) expected, not \(6, 4\)"):
        lanes.state = np.zeros((6, 4), np.uint32)


def test_bits_are_balanced_and_do_not_follow_their_predecessors():
    """Each of 32 bits over 128 x 4096 words: ones, and equalities with the word before."""
    words = Xorwow(128, 10).step(4096)
    assert words.dtype == np.uint32
    for bit in range(32):
        ones = (words >> np.uint32(bit)) & np.uint32(1)
        for trials in (ones, ones[:, 1:] ^ ones[:, :-1]):
            deviation = (int(trials.sum()) - trials.size / 2) / (trials.size / 4) ** 0.5
            assert abs(deviation) < 4.5, f"bit {bit}: {deviation:.1f} sigma"
