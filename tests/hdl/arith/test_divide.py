"""The divider against the golden quotient, and directly against SoftFloat."""

import numpy as np
import pytest

from golden.arith.division import divide
from hdl.arith.divide import DIVIDE_STEPS, Fp32Divide
from verif import softfloat
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.known_cases import QUOTIENTS
from verif.stepped import stream_steps
from verif.vectors import FP32, corner_pairs, quotient_pairs

SEED = 40
COUNT = 200_000
NIGHTLY_COUNT = 2_000_000


@pytest.fixture(scope="module")
def divider():
    return compile_unit(Fp32Divide())


def check(unit, count, seed):
    a, b = quotient_pairs(FP32, np.random.default_rng(seed), count)
    expected = divide(a.view(np.float32), b.view(np.float32)).view(np.uint32)
    assert_same(stream_steps(unit, DIVIDE_STEPS, a=a, b=b), expected, seed=seed, a=a, b=b)


def test_quotients_equal_golden(divider):
    check(divider, COUNT, SEED)


def test_corner_pairs_equal_softfloat(divider):
    a, b = corner_pairs(FP32)
    assert_same(stream_steps(divider, DIVIDE_STEPS, a=a, b=b), softfloat.divide(a, b), a=a, b=b)


@pytest.mark.parametrize("name", QUOTIENTS)
def test_known_quotient(divider, name):
    a, b, expected = QUOTIENTS[name]
    assert_same(stream_steps(divider, DIVIDE_STEPS, a=[a], b=[b]), [expected], a=a, b=b)


def test_every_quotient_of_small_significands(divider):
    """All pairs of 7-bit fractions, the exponents such that many quotients are subnormal."""
    high, low = (part.ravel() for part in np.meshgrid(np.arange(128), np.arange(128)))
    for exponent in (127, 1, 0):
        a = (exponent << 23 | high << 16).astype(np.uint32)
        b = ((127 + 20 * (exponent < 2)) << 23 | low << 16).astype(np.uint32)
        expected = divide(a.view(np.float32), b.view(np.float32)).view(np.uint32)
        assert_same(stream_steps(divider, DIVIDE_STEPS, a=a, b=b), expected, a=a, b=b)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2))
def test_golden_at_length(divider, seed):
    check(divider, NIGHTLY_COUNT, [SEED, seed])
