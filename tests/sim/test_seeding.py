"""Generators that a program seeds, on the whole chip."""

import numpy as np

from sim.device import tensor_of
from sim.script import Job, Timing
from verif.chip_runs import assert_equal, shallow
from verif.equality import assert_same
from verif.seeded_program import ENGINES, expected, first_words, seeded_program

SLOW = Timing(latency=70, jitter=31, stall=80)


def test_seeded_generators():
    """Unseeded behind a reset every lane of both engines draws the same words, seeded each draws
    others: the states read back and the rounded elements are those of plain integers.
    """
    config = shallow("tiny")
    seeds = (None, 1, 0xC0FFEE)
    for timing in (Timing(), SLOW):
        jobs = [Job(seeded_program(config, seed)) for seed in seeds]
        batch, _ = assert_equal(config, jobs, timing=timing)
        drawn = []
        for seed, job, result in zip(seeds, jobs, batch.results, strict=True):
            assert not result.error
            for name, codes in expected(config, seed).items():
                got = tensor_of(result.image, job.program.tensor(name))
                assert_same(np.ascontiguousarray(got).view(codes.dtype), codes)
            states = [
                state
                for name in ENGINES
                for state in tensor_of(result.image, job.program.tensor(f"before_{name}"))
            ]
            drawn.append(first_words(states))
        unseeded, *seeded = drawn
        assert len(unseeded) == 8 and len(set(unseeded)) == 1
        assert len(set(seeded[0] + seeded[1])) == 16
