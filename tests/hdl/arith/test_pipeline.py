# amaranth: UnusedElaboratable=no
"""What all arithmetic units share: stages, enable, latency."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from golden.arith import bfloat16, float32
from hdl.arith.decode import FloatDecode
from hdl.arith.fp32_add import Fp32Add
from hdl.arith.fp32_mul import Fp32Mul
from hdl.arith.narrow import FloatNarrow
from hdl.arith.operand import Operand
from hdl.arith.pe_mac import PeMultiply
from verif.vectors import FP32, addition_pairs

SEED = 34
CYCLES = 120
UNITS = (FloatDecode, FloatNarrow, Fp32Add, Fp32Mul, PeMultiply)


def two(operation):
    return lambda a, b: operation(a.view(np.float32), b.view(np.float32)).view(np.uint32)


def decoded(x):
    """The number 1 or 2 of the low bit of `x`, as an operand."""
    return [
        {"sign": 0, "exponent": int(v & 1), "significand": 1 << 11, "nan": 0, "inf": 0, "zero": 0}
        for v in x
    ]


def result(unit, a, b):
    """Inputs by port name, and the expected output, for each of the vectors."""
    if unit is Fp32Add:
        return {"a": a, "b": b}, two(float32.add)(a, b)
    if unit is Fp32Mul:
        return {"a": a, "b": b}, two(float32.multiply)(a, b)
    if unit is FloatNarrow:
        return {"i": a}, bfloat16.narrow(a.view(np.float32))
    if unit is FloatDecode:
        layout = Operand.as_shape()
        ones = 0x3F800000 + ((a & 1) << 23)
        packed = [layout.const(value).as_value().value for value in decoded(a)]
        return {"i": ones}, np.array(packed)
    products = ((127 + (a & 1) + (b & 1)) << 23).astype(np.uint32)
    return {"a": decoded(a), "b": decoded(b), "active": np.ones(len(a), int)}, products


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("unit", UNITS)
def test_registers_advance_only_when_enabled(unit, stages):
    rng = np.random.default_rng(SEED)
    a, b = addition_pairs(FP32, rng, CYCLES)
    inputs, expected = result(unit, a, b)
    enabled = rng.random(CYCLES) < 0.5
    dut = unit(stages=stages, enable=True)
    compared = 0

    async def testbench(ctx):
        nonlocal compared
        taken = []
        for cycle in range(CYCLES):
            for name, values in inputs.items():
                value = values[cycle]
                ctx.set(getattr(dut, name), value if isinstance(value, dict) else int(value))
            ctx.set(dut.en, int(enabled[cycle]))
            if len(taken) >= stages:
                output = dut.o.as_value() if hasattr(dut.o, "as_value") else dut.o
                got = ctx.get(output)
                want = int(expected[taken[-stages]])
                assert got == want, f"cycle {cycle}: got {got:08x}, expected {want:08x}"
                compared += 1
            if enabled[cycle]:
                taken.append(cycle)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert compared > CYCLES // 2
    assert 20 < enabled.sum() < CYCLES - 20


@pytest.mark.parametrize("unit", UNITS)
def test_parameters_are_checked(unit):
    for bad in (-1, 1.5, "2", True):
        with pytest.raises(ValueError, match="stages must be a non-negative integer"):
            unit(stages=bad)
    with pytest.raises(TypeError, match="enable must be a bool"):
        unit(enable=1)
    with pytest.raises(TypeError):
        unit(2)


@pytest.mark.parametrize("unit", UNITS)
def test_latency_ports_and_tile_parameters(unit):
    plain, enabled = unit(stages=3), unit(stages=3, enable=True)
    assert plain.latency == enabled.latency == 3
    assert unit().latency == 0
    assert not hasattr(plain, "en")
    assert "en" in enabled.signature.members
    assert plain.tile_parameters != enabled.tile_parameters != unit(enable=True).tile_parameters


def test_subtraction_has_its_own_tile():
    assert Fp32Add().tile_parameters != Fp32Add(subtract=True).tile_parameters
    assert "negate_b" not in Fp32Add().signature.members
