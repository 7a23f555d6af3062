"""The FP32 multiplier against the golden product, and directly against SoftFloat."""

import numpy as np
import pytest

from golden.arith import float32
from hdl.arith.fp32_mul import Fp32Mul
from verif import softfloat
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.known_cases import PRODUCTS
from verif.stage_sweep import StageSweep
from verif.vectors import FP32, corner_pairs, product_pairs

SEED = 31
COUNT = 200_000
NIGHTLY_COUNT = 4_000_000
SOFTFLOAT_COUNT = 1_000_000
MOST_STAGES = 7


def golden(a, b):
    return float32.multiply(a.view(np.float32), b.view(np.float32)).view(np.uint32)


@pytest.fixture(scope="module")
def multiplier():
    return compile_unit(Fp32Mul())


def test_every_number_of_stages_equals_golden():
    sweep = compile_unit(StageSweep(Fp32Mul, most_stages=MOST_STAGES))
    a, b = product_pairs(FP32, np.random.default_rng(SEED), COUNT)
    results = sweep.stream(a=a, b=b)
    expected = golden(a, b)
    for stages in range(MOST_STAGES + 1):
        assert_same(getattr(results, f"o_{stages}"), expected, seed=SEED, a=a, b=b)


def test_golden(multiplier):
    a, b = product_pairs(FP32, np.random.default_rng(SEED + 1), 4 * COUNT)
    assert_same(multiplier.stream(a=a, b=b).o, golden(a, b), seed=SEED + 1, a=a, b=b)


def test_corner_pairs_equal_softfloat(multiplier):
    a, b = corner_pairs(FP32)
    assert_same(multiplier.stream(a=a, b=b).o, softfloat.multiply(a, b), a=a, b=b)


@pytest.mark.parametrize("name", PRODUCTS)
def test_known_product(multiplier, name):
    a, b, expected = PRODUCTS[name]
    assert_same(multiplier.stream(a=[a], b=[b]).o, [expected], a=a, b=b)
    assert_same(multiplier.stream(a=[b], b=[a]).o, [expected], a=b, b=a)


@pytest.mark.nightly
def test_golden_at_length(multiplier):
    a, b = product_pairs(FP32, np.random.default_rng(SEED + 2), NIGHTLY_COUNT)
    assert_same(multiplier.stream(a=a, b=b).o, golden(a, b), seed=SEED + 2, a=a, b=b)


@pytest.mark.nightly
def test_softfloat_at_length(multiplier):
    a, b = product_pairs(FP32, np.random.default_rng(SEED + 3), SOFTFLOAT_COUNT)
    assert_same(multiplier.stream(a=a, b=b).o, softfloat.multiply(a, b), seed=SEED + 3, a=a, b=b)
