"""The generator of one lane against plain integers and against the golden generator."""

import numpy as np
import pytest

from golden.arith import xorwow
from hdl.arith.xorwow import WORDS, Xorwow
from verif.cxxrtl import compile_unit
from verif.equality import assert_same

SEED = 72
STEPS = 10_000
NIGHTLY_STEPS = 1_000_000
MASK = (1 << 32) - 1
# The words that Marsaglia's program starts from (Xorshift RNGs, section 3.1).
PAPER = (123456789, 362436069, 521288629, 88675123, 5783321, 6615241)


@pytest.fixture(scope="module")
def unit():
    return compile_unit(Xorwow())


def reference(state, count):
    """(words, states before each step): the published formula in Python's integers."""
    x, y, z, w, v, d = (int(word) for word in state)
    words, states = [], []
    for _ in range(count):
        states.append((x, y, z, w, v, d))
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = ((v ^ (v << 4)) ^ (t ^ (t << 1))) & MASK
        d = (d + 362437) & MASK
        words.append((v + d) & MASK)
    return np.array(words, np.uint32), np.array(states, np.uint32)


def run(unit, *commands):
    """(words, states) of every cycle of the parts [(step, load, value) arrays]."""
    columns = [np.concatenate(column) for column in zip(*commands, strict=True)]
    result = unit.stream(**dict(zip(("step", "load", "value"), columns, strict=True)))
    states = np.stack([getattr(result, f"state__{k}") for k in range(WORDS)], axis=1)
    return result.word, states


def loading(state):
    one, zero = np.ones(WORDS, np.uint32), np.zeros(WORDS, np.uint32)
    return zero, one, np.array(state, np.uint32)


def stepping(step):
    step = np.asarray(step, np.uint32)
    return step, *(np.zeros(len(step), np.uint32) for _ in range(2))


def random_states(count):
    return np.random.default_rng(SEED).integers(0, 1 << 32, (count, WORDS), dtype=np.uint32)


@pytest.mark.parametrize(
    "state",
    [PAPER, (1, 0, 0, 0, 0, 0), (0, 0, 0, 0, 1 << 31, MASK), (MASK,) * 6, *random_states(3)],
)
def test_words_and_states_equal_the_formula(unit, state):
    words, states = run(unit, loading(state), stepping(np.ones(STEPS)))
    expected_words, expected_states = reference(state, STEPS)
    assert_same(words[WORDS:], expected_words, seed=SEED)
    assert_same(states[WORDS:], expected_states, seed=SEED)


def test_words_equal_golden_lanes(unit):
    lanes = 4
    golden = xorwow.Xorwow(lanes, SEED)
    states = golden.state
    expected = golden.step(STEPS)
    for lane in range(lanes):
        words, _ = run(unit, loading(states[lane]), stepping(np.ones(STEPS)))
        assert_same(words[WORDS:], expected[lane], seed=SEED)


def test_only_steps_advance(unit):
    step = np.random.default_rng(SEED).integers(0, 2, STEPS)
    words, states = run(unit, loading(PAPER), stepping(step))
    expected_words, expected_states = reference(PAPER, STEPS)
    taken = np.cumsum(step) - step
    assert_same(words[WORDS:], expected_words[taken], seed=SEED)
    assert_same(states[WORDS:], expected_states[taken], seed=SEED)


def test_a_saved_state_continues(unit):
    """Save in the middle, go on, load what was saved: the same words again."""
    half = STEPS // 2
    _, states = run(unit, loading(PAPER), stepping(np.ones(half)), stepping([0]))
    on = stepping(np.ones(half))
    words, _ = run(unit, loading(PAPER), stepping(np.ones(STEPS)), loading(states[-1]), on)
    expected, _ = reference(PAPER, STEPS)
    assert_same(words[WORDS : WORDS + STEPS], expected, seed=SEED)
    assert_same(words[2 * WORDS + STEPS :], expected[half:], seed=SEED)


@pytest.mark.parametrize("step", [0, 1])
def test_a_load_moves_the_words_and_does_not_step(unit, step):
    one = np.ones(1, np.uint32)
    words, states = run(
        unit, loading(PAPER), (one * step, one, one * 0xDEADBEEF), stepping(np.ones(100))
    )
    expected = [*PAPER[1:], 0xDEADBEEF]
    assert_same(states[WORDS + 1], np.array(expected, np.uint32))
    assert_same(words[WORDS + 1 :], reference(expected, 100)[0])


@pytest.mark.nightly
def test_a_million_words_equal_golden(unit):
    golden = xorwow.Xorwow(1, SEED)
    state = golden.state[0]
    words, states = run(unit, loading(state), stepping(np.ones(NIGHTLY_STEPS)), stepping([0]))
    assert_same(words[WORDS:-1], golden.step(NIGHTLY_STEPS)[0], seed=SEED)
    assert_same(states[-1], golden.state[0], seed=SEED)
