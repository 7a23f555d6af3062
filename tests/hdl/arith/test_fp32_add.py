"""The FP32 adder against the golden sum, and directly against SoftFloat."""

import numpy as np
import pytest

from golden.arith import float32
from hdl.arith.fp32_add import Fp32Add
from verif import softfloat
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.known_cases import SUMS
from verif.stage_sweep import StageSweep
from verif.vectors import FP32, addition_pairs, corner_pairs, specials

SEED = 30
COUNT = 200_000
NIGHTLY_COUNT = 4_000_000
SOFTFLOAT_COUNT = 1_000_000
MOST_STAGES = 8


def golden(operation, a, b):
    return operation(a.view(np.float32), b.view(np.float32)).view(np.uint32)


@pytest.fixture(scope="module")
def sweep():
    return compile_unit(StageSweep(Fp32Add, most_stages=MOST_STAGES))


@pytest.fixture(scope="module")
def adder():
    return compile_unit(Fp32Add())


@pytest.fixture(scope="module")
def subtractor():
    return compile_unit(Fp32Add(stages=3, subtract=True))


def test_every_number_of_stages_equals_golden(sweep):
    a, b = addition_pairs(FP32, np.random.default_rng(SEED), COUNT)
    results = sweep.stream(a=a, b=b)
    expected = golden(float32.add, a, b)
    for stages in range(MOST_STAGES + 1):
        assert_same(getattr(results, f"o_{stages}"), expected, seed=SEED, a=a, b=b)


@pytest.mark.parametrize("stages", [0, 2, 4])
def test_latency_is_the_number_of_stages(stages):
    a, b = addition_pairs(FP32, np.random.default_rng(SEED + stages), COUNT)
    unit = compile_unit(Fp32Add(stages=stages))
    assert unit.latency == stages
    assert_same(unit.stream(a=a, b=b).o, golden(float32.add, a, b), seed=SEED, a=a, b=b)


def test_subtraction_travels_with_its_operands(subtractor):
    rng = np.random.default_rng(SEED)
    a, b = addition_pairs(FP32, rng, COUNT)
    negate = rng.integers(0, 2, COUNT, dtype=np.uint32)
    expected = np.where(negate, golden(float32.subtract, a, b), golden(float32.add, a, b))
    got = subtractor.stream(a=a, b=b, negate_b=negate).o
    assert_same(got, expected, seed=SEED, a=a, b=b, negate=negate)


@pytest.mark.parametrize("name", SUMS)
def test_known_sum(adder, subtractor, name):
    a, b, expected = SUMS[name]
    assert_same(adder.stream(a=[a], b=[b]).o, [expected], a=a, b=b)
    assert_same(adder.stream(a=[b], b=[a]).o, [expected], a=b, b=a)
    negated = b ^ (1 << 31)
    assert_same(subtractor.stream(a=[a], b=[negated], negate_b=[1]).o, [expected], a=a, b=b)


def test_corner_pairs_equal_softfloat(adder):
    a, b = corner_pairs(FP32)
    assert_same(adder.stream(a=a, b=b).o, softfloat.add(a, b), a=a, b=b)


def test_minus_zero_leaves_every_number_as_it_is(adder):
    """So a partial sum passes a row that is not in use."""
    a = specials(FP32)
    a = a[(a & 0x7FFFFFFF) <= 0x7F800000]
    assert_same(adder.stream(a=a, b=0x80000000).o, a, a=a)


@pytest.mark.nightly
def test_golden_at_length(adder, subtractor):
    rng = np.random.default_rng(SEED)
    a, b = addition_pairs(FP32, rng, NIGHTLY_COUNT)
    assert_same(adder.stream(a=a, b=b).o, golden(float32.add, a, b), seed=SEED, a=a, b=b)
    got = subtractor.stream(a=a, b=b, negate_b=1).o
    assert_same(got, golden(float32.subtract, a, b), seed=SEED, a=a, b=b)


@pytest.mark.nightly
def test_softfloat_at_length(adder):
    a, b = addition_pairs(FP32, np.random.default_rng(SEED + 1), SOFTFLOAT_COUNT)
    assert_same(adder.stream(a=a, b=b).o, softfloat.add(a, b), seed=SEED + 1, a=a, b=b)
