"""The power unit against the golden power."""

import numpy as np
import pytest

from golden.arith.power import power
from hdl.arith.power import POWER_LAST, POWER_STEPS, Power
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.known_cases import POWERS
from verif.stepped import stream_steps
from verif.vectors import FP32, corner_pairs, power_pairs

SEED = 41
COUNT = 60_000
NIGHTLY_COUNT = 1_000_000


@pytest.fixture(scope="module")
def unit():
    return compile_unit(Power())


def check(unit, a, b, seed, steps=POWER_STEPS):
    expected = power(a.view(np.float32), b.view(np.float32)).view(np.uint32)
    assert_same(stream_steps(unit, steps, a=a, b=b), expected, seed=seed, a=a, b=b)


def test_powers_equal_golden(unit):
    a, b = power_pairs(np.random.default_rng(SEED), COUNT)
    check(unit, a, b, SEED)


def test_every_pair_of_corners(unit):
    check(unit, *corner_pairs(FP32), "corners")


def test_the_result_stays_to_the_last_step(unit):
    a, b = power_pairs(np.random.default_rng(SEED + 1), COUNT // 10)
    for steps in range(POWER_STEPS + 1, POWER_LAST + 2):
        check(unit, a, b, f"{steps} steps", steps)


@pytest.mark.parametrize("name", POWERS)
def test_known_power(unit, name):
    a, b, expected = POWERS[name]
    assert_same(stream_steps(unit, POWER_STEPS, a=[a], b=[b]), [expected], a=a, b=b)


@pytest.mark.nightly
def test_golden_at_length(unit):
    for seed in range(4):
        a, b = power_pairs(np.random.default_rng([SEED, seed]), NIGHTLY_COUNT // 4)
        check(unit, a, b, [SEED, seed])
