# amaranth: UnusedElaboratable=no
"""The ALU of a lane against the golden arithmetic, with operations that change every cycle."""

import numpy as np
import pytest

from golden.arith import float32
from hdl.vector.alu import Alu, AluEntry, Other, Select
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, addition_pairs, product_pairs

SEED = 50
COUNT = 100_000


def entry(**fields):
    return AluEntry.const(fields).as_bits()


def fp(bits):
    return bits.view(np.float32)


OPERATIONS = {
    "add": (entry(), Select.ADD, float32.add),
    "subtract": (entry(negate_b=1), Select.ADD, float32.subtract),
    "reverse subtract": (entry(negate_a=1), Select.ADD, lambda a, b: float32.subtract(b, a)),
    "multiply": (entry(), Select.MULTIPLY, float32.multiply),
    "max": (entry(other=Other.MINMAX), Select.OTHER, float32.maximum),
    "min": (entry(other=Other.MINMAX, minimum=1), Select.OTHER, float32.minimum),
    "pass a": (entry(other=Other.A), Select.OTHER, lambda a, b: a),
    "pass b": (entry(other=Other.B), Select.OTHER, lambda a, b: b),
}


@pytest.mark.parametrize("stages", [1, 2, 4, 6])
def test_operations_travel_with_their_operands(stages):
    rng = np.random.default_rng(SEED + stages)
    parts = [
        np.concatenate(pair)
        for pair in zip(
            addition_pairs(FP32, rng, COUNT), product_pairs(FP32, rng, COUNT), strict=True
        )
    ]
    order = rng.permutation(2 * COUNT)
    a, b = (part[order] for part in parts)
    chosen = rng.integers(0, len(OPERATIONS), 2 * COUNT)
    entries, selects, functions = zip(*OPERATIONS.values(), strict=True)
    select = np.array([s.value for s in selects])[chosen]
    unit = compile_unit(Alu(stages=stages))
    assert unit.latency == stages
    # The selection goes with the result: as many cycles later as the latency.
    o = unit.stream(
        a=a,
        b=b,
        entry=np.array(entries)[chosen],
        select=np.concatenate([np.zeros(stages, int), select[:-stages]]),
    ).o
    for index, (name, function) in enumerate(zip(OPERATIONS, functions, strict=True)):
        picked = np.flatnonzero(chosen[:-stages] == index)
        assert len(picked) > COUNT // len(OPERATIONS)
        want = function(fp(a[picked]), fp(b[picked])).view(np.uint32)
        assert_same(o[picked], want, seed=f"{SEED + stages} {name}", a=a[picked], b=b[picked])


@pytest.mark.parametrize("stages", [0, 7])
def test_stages_out_of_range_are_refused(stages):
    with pytest.raises(ValueError, match=f"1 to 6 stages, not {stages}"):
        Alu(stages=stages)
