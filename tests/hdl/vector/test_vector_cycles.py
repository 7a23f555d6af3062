"""What instructions of the vector engine cost, in cycles from completion to completion."""

import numpy as np
import pytest

from isa.dtypes import DType
from isa.fields import SLOW_CYCLES, AluOp, Space
from isa.instructions import BY_NAME
from verif.lane_bench import lane_bench
from verif.lane_programs import random_memories
from verif.memory_bench import make_pattern

STAGES = (1, 4)
SKIPPED = 4
"""Instructions at the start that are not in steady state."""
ISSUE_GAP = 4
"""The sequencer hands out an instruction every 5 cycles."""
ADD, MULTIPLY = int(AluOp.ADD), int(AluOp.MULTIPLY)
SHIFT, INT_ADD = int(AluOp.SHIFT_LEFT), int(AluOp.INT_ADD)
COLUMNS = {
    f"column{i}": {
        "space": int(Space.SBUF),
        "dtype": int(DType.FP32),
        "partition": 0,
        "offset": 2048 + 4 * i,
    }
    for i in range(2)
}


def operands(config, count, space):
    half = config.sbuf_bytes // 4 if space == Space.SBUF else config.psum_bytes // 4
    return {
        name: make_pattern(
            config, space=space, dtype=DType.FP32, offset=half * i, dims=[(1, count)]
        )
        for i, name in enumerate(("src0", "src1", "dst"))
    }


def instruction(name, found, **more):
    used = [o.slot for o in BY_NAME[name].operands]
    return {
        "opcode": BY_NAME[name].opcode,
        **{slot: found[slot] for slot in used},
        **more,
        "elements": found["src0"]["count"][0],
    }


def mixtures(config, count):
    sbuf, psum = operands(config, count, Space.SBUF), operands(config, count, Space.PSUM)
    scalar = {"op0": ADD, "op1": MULTIPLY, "imm0": 5, "imm1": 6}
    return {
        "sums in SBUF": [instruction("tensor_tensor", sbuf, op0=ADD)],
        "products in PSUM": [instruction("tensor_tensor", psum, op0=MULTIPLY)],
        "immediates": [instruction("tensor_scalar", sbuf, **scalar)],
        "columns": [instruction("tensor_scalar", sbuf, **scalar, **COLUMNS)],
        "copies": [instruction("tensor_copy", sbuf)],
        "memsets": [instruction("memset", sbuf, imm0=1)],
        "words": [instruction("tensor_tensor", sbuf, op0=int(AluOp.INT_MULTIPLY))],
        "words and an immediate": [
            instruction("tensor_scalar", sbuf, op0=SHIFT, op1=INT_ADD, imm0=3, imm1=6)
        ],
        "comparisons": [instruction("tensor_tensor", sbuf, op0=int(AluOp.LESS))],
        "changing": [
            instruction("tensor_tensor", sbuf, op0=MULTIPLY),
            instruction("memset", psum, imm0=1),
            instruction("tensor_copy", sbuf),
            instruction("tensor_tensor", sbuf, op0=int(AluOp.BITWISE_XOR)),
            instruction("tensor_scalar", sbuf, **scalar),
        ],
    }


def cycles_each(program, stages, **options):
    """Cycles per instruction in steady state."""
    bench = lane_bench("vector", stages)
    memories = random_memories(np.random.default_rng(0), bench.config)
    run = bench.run(program, *memories, cycle_limit=20_000, issue_gap=ISSUE_GAP, **options)
    assert len(run.completed) == len(program)
    return (run.completed[-1] - run.completed[SKIPPED - 1]) / (len(program) - SKIPPED)


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize(
    "mixture",
    (
        *("sums in SBUF", "products in PSUM", "immediates", "columns", "copies", "memsets"),
        *("words", "words and an immediate", "comparisons", "changing"),
    ),
)
def test_an_element_a_cycle_back_to_back(stages, mixture):
    config = lane_bench("vector", stages).config
    for count in (16, 17, 64):
        program = mixtures(config, count)[mixture] * 20
        assert cycles_each(program, stages) == count


@pytest.mark.parametrize("stages", STAGES)
def test_short_instructions_stay_below_the_start_up(stages):
    config = lane_bench("vector", stages).config
    for name, mixture in mixtures(config, 1).items():
        assert cycles_each(mixture * 20, stages) <= config.start_up_cycles, name


@pytest.mark.parametrize("stages", STAGES)
def test_columns_behind_a_second_source_cost_three_cycles(stages):
    found = mixtures(lane_bench("vector", stages).config, 64)
    program = (found["sums in SBUF"] + found["columns"]) * 10
    assert 2 * cycles_each(program, stages) == 2 * 64 + 3


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("op", [AluOp.ADD, AluOp.MAX])
def test_reductions_cost_their_elements_and_one_join(stages, op):
    """N + join, whatever the size of the groups; join at most 4 * stages + 4."""
    config = lane_bench("vector", stages).config
    for group in (*range(1, 21), 240):
        groups = 240 // group
        program = [
            {
                "opcode": BY_NAME["tensor_reduce"].opcode,
                "op0": int(op),
                "reduce_dims": 1,
                "elements": group * groups,
                "src0": make_pattern(
                    config,
                    space=Space.SBUF,
                    dtype=DType.FP32,
                    offset=0,
                    dims=[(1, group), (group, groups)],
                ),
                "dst": make_pattern(
                    config, space=Space.SBUF, dtype=DType.FP32, offset=4096, dims=[(1, groups)]
                ),
            }
        ] * 8
        join = cycles_each(program, stages) - group * groups
        assert 0 < join <= 4 * stages + 4, (group, join)


@pytest.mark.parametrize("stages", STAGES)
def test_a_dependent_instruction_waits_for_one_round_trip(stages):
    """Reader, two ALUs, buffer, writer and reports: 2 * stages + 16 beyond the elements."""
    config = lane_bench("vector", stages).config
    place = operands(config, 64, Space.SBUF)["src0"]
    program = [instruction("tensor_copy", {"src0": place, "dst": place})] * 12
    assert cycles_each(program, stages) <= 64 + 2 * stages + 16


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("op", [AluOp.DIVIDE, AluOp.POWER])
def test_slow_operators_cost_the_same_for_all_data(stages, op):
    """N * SLOW_CYCLES, instructions without a bubble between them, whatever ALU1 does behind."""
    config = lane_bench("vector", stages).config
    for count in (2, 16):
        sbuf = operands(config, count, Space.SBUF)
        for found in (
            instruction("tensor_tensor", sbuf, op0=int(op)),
            instruction("tensor_scalar", sbuf, op0=int(op), op1=ADD, imm0=0, reverse0=1),
        ):
            assert cycles_each([found] * 12, stages) == SLOW_CYCLES * count


@pytest.mark.parametrize("stages", STAGES)
def test_a_slow_operator_between_fast_ones_costs_its_own_cycles(stages):
    config = lane_bench("vector", stages).config
    found = mixtures(config, 16)["sums in SBUF"]
    slow = instruction("tensor_tensor", operands(config, 16, Space.PSUM), op0=int(AluOp.DIVIDE))
    program = (2 * found + [slow]) * 9
    whole = cycles_each(program[: 3 * 7 + SKIPPED], stages) * 3
    assert whole == 2 * 16 + SLOW_CYCLES * 16


@pytest.mark.parametrize("stages", STAGES)
def test_scans_cost_both_alus_an_element(stages):
    """N * (2 * stages + 1), also from one scan to the next."""
    config = lane_bench("vector", stages).config
    for count in (8, 32):
        sbuf = operands(config, count, Space.SBUF)
        found = instruction("tensor_tensor_scan", sbuf, op0=MULTIPLY, op1=ADD, imm0=0)
        assert cycles_each([found] * 12, stages) == count * (2 * stages + 1)
