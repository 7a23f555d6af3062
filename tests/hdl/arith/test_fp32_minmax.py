"""Maximum, minimum and rectifier against the golden functions."""

import numpy as np
import pytest

from golden.arith import float32
from hdl.arith.fp32_minmax import Fp32MinMax, Fp32Relu, MinMaxOp
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, addition_pairs, specials

SEED = 32
COUNT = 200_000


def code(value):
    return value.view(np.uint32)


@pytest.mark.parametrize("stages", [0, 2])
def test_maximum_and_minimum(stages):
    rng = np.random.default_rng(SEED)
    a, b = addition_pairs(FP32, rng, COUNT)
    # Equal magnitudes are where signs decide.
    b[::7] = a[::7] ^ (rng.integers(0, 2, len(b[::7]), dtype=np.uint32) << 31)
    unit = compile_unit(Fp32MinMax(stages=stages))
    x, y = a.view(np.float32), b.view(np.float32)
    larger, smaller = code(float32.maximum(x, y)), code(float32.minimum(x, y))
    op = rng.integers(0, 2, COUNT, dtype=np.uint32)
    expected = np.where(op == MinMaxOp.MAXIMUM.value, larger, smaller)
    assert_same(unit.stream(a=a, b=b, op=op).o, expected, seed=SEED, a=a, b=b, op=op)


@pytest.mark.parametrize("stages", [0, 1])
def test_relu(stages):
    rng = np.random.default_rng(SEED)
    x = np.concatenate([specials(FP32), rng.integers(0, 1 << 32, COUNT, dtype=np.uint32)])
    unit = compile_unit(Fp32Relu(stages=stages))
    assert_same(unit.stream(i=x).o, code(float32.relu(x.view(np.float32))), seed=SEED, i=x)
