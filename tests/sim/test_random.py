"""Random programs: RTL equal to the golden model at any timing; 200 a commit, 10 000 nightly."""

import numpy as np
import pytest

from sim.script import Job, Timing
from verif.chip_runs import assert_equal, deep, shallow
from verif.random_program import generate

PER_PROCESS = 20


def random_timing(seed):
    """Timing anywhere between ideal and terrible."""
    rng = np.random.default_rng(seed)
    return Timing(
        latency=int(rng.integers(1, 200)),
        jitter=int(rng.choice([0, 7, 63])),
        rate=int(rng.choice([256, 128, 40])),
        hbm_stall=int(rng.choice([0, 50, 200])),
        stall=int(rng.choice([0, 50, 128, 220])),
        reorder=int(rng.integers(2)),
    )


def run(first, count, build):
    config = build("tiny")
    jobs = [Job(generate(config, seed)) for seed in range(first, first + count)]
    assert_equal(config, jobs, timing=random_timing(first), seed=first + 1)


@pytest.mark.parametrize("batch", range(10))
def test_random_programs(batch):
    run(batch * PER_PROCESS, PER_PROCESS, shallow if batch % 2 else deep)


@pytest.mark.smoke
def test_a_few_random_programs():
    run(10**6, 5, shallow)


@pytest.mark.icarus
def test_random_programs_on_icarus():
    config = shallow("tiny")
    jobs = [Job(generate(config, seed)) for seed in range(900, 903)]
    assert_equal(config, jobs, simulator="icarus", timing=random_timing(900))


@pytest.mark.nightly
@pytest.mark.parametrize("batch", range(100))
def test_many_random_programs(batch):
    run(10_000 + batch * 100, 100, shallow if batch % 2 else deep)
