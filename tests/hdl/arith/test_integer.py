"""The integer unit against the golden operators on words."""

import numpy as np
import pytest

from golden.arith import operators
from hdl.arith.integer import IntegerOp, IntegerUnit
from hdl.vector.operators import integer_fields
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.stage_sweep import StageSweep
from verif.vectors import word_pairs

SEED = 43
COUNT = 100_000
NIGHTLY_COUNT = 4_500_000
NIGHTLY_SEEDS = 5
MOST_STAGES = 6
OPS = list(operators.WORDS)


@pytest.fixture(scope="module")
def sweep():
    return compile_unit(StageSweep(IntegerUnit, most_stages=MOST_STAGES))


def check(stream, outputs, count, seed):
    """A random operator in every cycle."""
    rng = np.random.default_rng(seed)
    a, b = word_pairs(rng, count)
    chosen, swap = rng.permutation(a.size) % len(OPS), rng.integers(0, 2, a.size)
    codes = np.array([
        [IntegerOp.const({**integer_fields(op), "swap": s}).as_bits() for s in (0, 1)]
        for op in OPS
    ])[chosen, swap]
    expected = np.empty_like(a)
    for index, op in enumerate(OPS):
        for s in (0, 1):
            here = (chosen == index) & (swap == s)
            expected[here] = operators.alu(op, a[here], b[here], s)
    results = stream(a=a, b=b, op=codes)
    for name in outputs:
        assert_same(getattr(results, name), expected, seed=f"{seed} {name}", a=a, b=b, op=codes)


@pytest.mark.nightly
def test_every_number_of_stages_equals_golden(sweep):
    check(sweep.stream, [f"o_{n}" for n in range(MOST_STAGES + 1)], COUNT, SEED)


@pytest.mark.parametrize("stages", [1, 4])
def test_latency_is_the_number_of_stages(stages):
    unit = compile_unit(IntegerUnit(stages=stages))
    assert unit.latency == stages
    check(unit.stream, ["o"], COUNT, SEED + stages)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(NIGHTLY_SEEDS))
def test_golden_at_length(sweep, seed):
    """Over a million vectors of each operator in all: as many of each."""
    assert NIGHTLY_COUNT // len(OPS) * NIGHTLY_SEEDS > 1_000_000
    check(sweep.stream, ["o_1"], NIGHTLY_COUNT, [SEED, seed])
