"""The lane of the scalar engine against the golden arithmetic, operands changing every cycle."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.arith import float32
from hdl.scalar.lane import ScalarLane
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, product_pairs

SEED = 60
COUNT = 100_000
LOAD_CYCLES = 2


class FreeLane(wiring.Component):
    """A lane that loads `operand` as scale and bias every cycle.

    o = func(x * operand + the operand of `stages` vectors later).
    """

    def __init__(self, *, stages):
        self.stages = stages
        self.latency = LOAD_CYCLES + 2 * stages + 1
        super().__init__({"x": In(32), "operand": In(32), "relu": In(1), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.lane = lane = ScalarLane(stages=self.stages)
        x = self.x
        for cycle in range(LOAD_CYCLES):
            register = Signal(32, name=f"x{cycle}")
            m.d.sync += register.eq(x)
            x = register
        m.d.comb += [
            lane.control.load_immediate.eq(1),
            lane.control.load.eq(0b11),
            lane.control.advance0.eq(1),
            lane.control.advance1.eq(1),
            lane.control.relu.eq(self.relu),
            lane.control.output_write.eq(1),
            lane.immediate.eq(self.operand),
            lane.src.eq(x),
            self.o.eq(lane.o),
        ]
        return m


@pytest.mark.parametrize("stages", [1, 2, 4, 6])
def test_product_then_sum_then_function(stages):
    rng = np.random.default_rng(SEED + stages)
    x, operand = product_pairs(FP32, rng, COUNT)
    # A third of the sums cancels: the bias that is used is the operand `stages` later.
    product = float32.multiply(x.view(np.float32), operand.view(np.float32)).view(np.uint32)
    cancel = np.flatnonzero(rng.random(COUNT - stages) < 0.2)
    cancel = cancel[(cancel % (2 * stages)) < stages]
    operand[cancel + stages] = (
        product[cancel] ^ np.uint32(0x80000000) ^ rng.integers(0, 4, len(cancel), np.uint32)
    )
    unit = compile_unit(FreeLane(stages=stages))
    scale, bias = operand[:-stages].view(np.float32), operand[stages:].view(np.float32)
    x_used = x[:-stages].view(np.float32)
    want = float32.add(float32.multiply(x_used, scale), bias)
    for relu, expected in ((0, want), (1, float32.relu(want))):
        found = unit.stream(x=x, operand=operand, relu=relu).o[:-stages]
        assert_same(
            found, expected.view(np.uint32), seed=SEED + stages, a=x[:-stages], b=operand[:-stages]
        )
    assert (want.view(np.uint32) >> 31).any()
