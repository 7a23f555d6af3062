# amaranth: UnusedElaboratable=no
"""The ALU of a lane and the decoding of its operators against the golden ones."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.arith import operators
from hdl.vector.alu import Alu, AluOperation
from hdl.vector.delayed import delayed
from hdl.vector.operators import SLOW, decode_operation
from isa.fields import AluOp
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, addition_pairs, product_pairs, word_pairs

SEED = 50
COUNT = 60_000
SLOW_RESULT = 0x7F801234
"""A code that no unit changes."""


class AluOfCode(wiring.Component):
    """Decoder and ALU; the selection travels beside the data."""

    def __init__(self, *, stages):
        self.stages = self.latency = stages
        super().__init__({
            "a": In(32), "b": In(32), "code": In(8), "reverse": In(1), "o": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.alu = alu = Alu(stages=self.stages, slow=True)
        operation = Signal(AluOperation)
        decode_operation(m, operation, self.code, self.reverse)
        later = delayed(m, operation, self.stages, "operation")
        m.d.comb += [
            alu.a.eq(self.a), alu.b.eq(self.b), alu.slow.eq(SLOW_RESULT),
            alu.entry.eq(operation.entry), alu.select.eq(later.select), self.o.eq(alu.o),
        ]
        return m


def golden(op, a, b, reverse):
    if op in SLOW:
        return np.full_like(a, SLOW_RESULT)
    if op == AluOp.BYPASS or op.raw:
        return operators.alu(op, a, b, reverse)
    return operators.alu(op, a.view(np.float32), b.view(np.float32), reverse).view(np.uint32)


@pytest.mark.parametrize("stages", [1, 2, 4, 6])
def test_operations_travel_with_their_operands(stages):
    """A random operator in every cycle, on pairs that are hard for some of them."""
    rng = np.random.default_rng(SEED + stages)
    drawn = (
        addition_pairs(FP32, rng, COUNT), product_pairs(FP32, rng, COUNT), word_pairs(rng, COUNT),
    )
    order = rng.permutation(3 * COUNT)
    a, b = (np.concatenate(part)[order] for part in zip(*drawn, strict=True))
    codes = np.array(list(AluOp))
    code, reverse = rng.choice(codes, order.size), rng.integers(0, 2, order.size)
    unit = compile_unit(AluOfCode(stages=stages))
    assert unit.latency == stages
    found = unit.stream(a=a, b=b, code=code, reverse=reverse).o
    for op in AluOp:
        for turned in (0, 1):
            here = np.flatnonzero((code == op) & (reverse == turned))
            assert len(here) > COUNT // len(codes)
            x, y = a[here], b[here]
            expected = golden(op, x, y, turned)
            assert_same(found[here], expected, seed=f"{op!r} {turned}", a=x, b=y)


@pytest.mark.parametrize("stages", [0, 7])
def test_stages_out_of_range_are_refused(stages):
    with pytest.raises(ValueError, match=f"1 to 6 stages, not {stages}"):
        Alu(stages=stages)
