"""Comparisons, extrema and logical operators against the golden functions."""

import numpy as np
import pytest

from golden.arith import operators
from hdl.arith.fp32_compare import CompareOp, Fp32Compare
from hdl.vector.operators import COMPARE, compare_fields
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, addition_pairs, corner_pairs

SEED = 42
COUNT = 200_000
NIGHTLY_COUNT = 2_000_000


def pairs(count, seed):
    """Near pairs; of every third the magnitudes are equal, where signs decide."""
    rng = np.random.default_rng(seed)
    a, b = addition_pairs(FP32, rng, count)
    b[::3] = a[::3] ^ (rng.integers(0, 2, len(b[::3]), dtype=np.uint32) << 31)
    return a, b


def check(unit, a, b, seed):
    for op in COMPARE:
        expected = operators.alu(op, a.view(np.float32), b.view(np.float32)).view(np.uint32)
        code = CompareOp.const(compare_fields(op)).as_bits()
        assert_same(unit.stream(a=a, b=b, op=code).o, expected, seed=f"{seed} {op!r}", a=a, b=b)


@pytest.mark.parametrize("stages", [0, 2])
def test_every_operator(stages):
    unit = compile_unit(Fp32Compare(stages=stages))
    check(unit, *pairs(COUNT, SEED + stages), SEED + stages)
    check(unit, *corner_pairs(FP32), "corners")


@pytest.mark.nightly
def test_every_operator_at_length():
    check(compile_unit(Fp32Compare()), *pairs(NIGHTLY_COUNT, SEED + 5), SEED + 5)
