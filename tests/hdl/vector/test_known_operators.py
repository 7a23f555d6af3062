"""Operands on which the arithmetic of others went wrong, through the vector engine."""

import numpy as np
import pytest

from golden.arith import operators
from isa.dtypes import DType
from isa.fields import AluOp, Space
from isa.instructions import BY_NAME
from verif import softfloat
from verif.equality import assert_same
from verif.known_cases import POWERS, PRODUCTS, QUOTIENTS, SUMS
from verif.lane_bench import lane_bench
from verif.memory_bench import make_pattern
from verif.vectors import FP32, corner_codes

STAGES = 4
LIMIT = 60_000
ROOM = 512
"""Elements of an operand in a partition."""
SPECIAL = [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF]


def pattern(slot, count):
    return make_pattern(
        lane_bench("vector", STAGES).config,
        space=Space.SBUF,
        dtype=DType.FP32,
        offset=4 * ROOM * slot,
        dims=[(1, count)],
    )


def step(name, source, target, count, **fields):
    """An instruction with operands in slots of the memory."""
    sources = {f"src{i}": pattern(slot, count) for i, slot in enumerate(source)}
    return {
        "opcode": BY_NAME[name].opcode,
        **sources,
        "dst": pattern(target, count),
        "elements": count,
        **{key: int(value) for key, value in fields.items()},
    }


def run(program, a, b, slot=2):
    """What `program` leaves in a slot, with the codes a and b in slots 0 and 1."""
    bench = lane_bench("vector", STAGES)
    config = bench.config
    lanes = config.partitions
    count = -(-len(a) // lanes)
    sbuf = np.zeros((lanes, config.sbuf_bytes), np.uint8)
    for place, codes in enumerate((a, b)):
        rows = np.resize(np.asarray(codes, np.uint32), (lanes, count))
        sbuf[:, 4 * ROOM * place : 4 * (ROOM * place + count)] = rows.view(np.uint8)
    psum = np.zeros((lanes, config.psum_bytes), np.uint8)
    found = bench.run(program(count), sbuf, psum, cycle_limit=LIMIT).sbuf
    block = np.ascontiguousarray(found[:, 4 * ROOM * slot : 4 * (ROOM * slot + count)])
    return block.view(np.uint32).ravel()[: len(a)]


def binary(op, a, b):
    return run(lambda n: [step("tensor_tensor", (0, 1), 2, n, op0=op)], a, b)


@pytest.mark.parametrize(
    ("op", "cases"),
    [
        (AluOp.ADD, SUMS),
        (AluOp.MULTIPLY, PRODUCTS),
        (AluOp.DIVIDE, QUOTIENTS),
        (AluOp.POWER, POWERS),
    ],
)
def test_known_results(op, cases):
    """Among them all sums of signed zeros, 0 * -x, x - x, divisions of NaN, by and of zero."""
    a, b, expected = (np.array(part, np.uint32) for part in zip(*cases.values(), strict=True))
    assert_same(binary(op, a, b), expected, a=a, b=b)


def test_signed_zeros():
    plus, minus = 0x00000000, 0x80000000
    a, b = [plus, plus, minus, minus], [plus, minus, plus, minus]
    for op, expected in (
        (AluOp.ADD, [plus, plus, plus, minus]),
        (AluOp.SUBTRACT, [plus, plus, minus, plus]),
        (AluOp.MULTIPLY, [plus, minus, minus, plus]),
        (AluOp.MAX, [plus, plus, plus, minus]),
        (AluOp.MIN, [plus, minus, minus, minus]),
        (AluOp.DIVIDE, [0x7FC00000] * 4),
        (AluOp.POWER, [0x3F800000] * 4),
        (AluOp.EQUAL, [0x3F800000] * 4),
        (AluOp.LESS, [0] * 4),
        (AluOp.LOGICAL_OR, [0] * 4),
    ):
        assert_same(binary(op, a, b), expected, seed=repr(op))
    assert_same(binary(AluOp.ADD, [0x80800000], [0x00800000]), [plus])


def test_a_difference_that_is_subnormal():
    assert_same(binary(AluOp.SUBTRACT, [0x00800001], [0x00800000]), [0x00000001])


def test_minus_is_a_minus_b_in_both_orders():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 64)).astype(np.float32).view(np.uint32)
    assert_same(binary(AluOp.SUBTRACT, a, b), softfloat.subtract(a, b), a=a, b=b)
    for reverse, (x, y) in ((0, (a, 0x3FC00000)), (1, (0x3FC00000, a))):
        found = run(
            lambda n, reverse=reverse: [
                step(
                    *("tensor_scalar", (0,), 2, n),
                    op0=AluOp.SUBTRACT,
                    imm0=0x3FC00000,
                    reverse0=reverse,
                )
            ],
            a,
            b,
        )
        assert_same(found, softfloat.subtract(*np.broadcast_arrays(x, y)), a=a)


def test_a_quotient_then_its_product():
    """Dependent, back to back: the product takes the quotient, which is subnormal."""

    def program(n):
        return [
            step("tensor_tensor", (0, 1), 2, n, op0=AluOp.DIVIDE),
            step("tensor_tensor", (2, 1), 3, n, op0=AluOp.MULTIPLY),
        ]

    a, b = [0x98E7D58F] * 9, [0x5F4135EF] * 9
    assert_same(run(program, a, b), [0x80000133] * 9)
    assert_same(run(program, a, b, slot=3), [0x98E7B3AE] * 9)

    def fused(n):
        fields = {"op0": AluOp.DIVIDE, "op1": AluOp.MULTIPLY, "imm0": b[0], "imm1": b[0]}
        return [step("tensor_scalar", (0,), 2, n, **fields)]

    assert_same(run(fused, a, b), [0x98E7B3AE] * 9)


def test_a_product_and_its_sum_are_rounded_apart():
    """Fused operations by way of double precision went wrong for tiny products; ours are two
    roundings, the first one flushed: x * imm0 + imm1 in one instruction.
    """
    for x, scale, addend, expected in (
        (0x97000800, 0x1CFFF001, 0x00010002, 0x00010002),  # fused: 00010001
        (0x3F800800, 0x3F800800, 0xBF801000, 0x00000000),  # fused: 2^-24
        (0x00FFFFFF, 0x3F000000, 0x80800000, 0x00000000),  # fused: -0
        (0x7F000000, 0x40000000, 0xFF000000, 0x7F800000),  # fused: 2^127
    ):
        fields = {"op0": AluOp.MULTIPLY, "op1": AluOp.ADD, "imm0": scale, "imm1": addend}
        found = run(
            lambda n, fields=fields: [step("tensor_scalar", (0,), 2, n, **fields)], [x] * 9, [0]
        )
        assert_same(found, [expected] * 9, x=x)


@pytest.mark.parametrize("op", operators.VALUES)
def test_subnormals_zeros_and_corners_through_every_operator(op):
    corners = np.concatenate([SPECIAL, corner_codes(FP32)[::3]]).astype(np.uint32)
    a, b = (part.ravel() for part in np.meshgrid(corners, corners))
    expected = operators.alu(op, a.view(np.float32), b.view(np.float32)).view(np.uint32)
    assert_same(binary(op, a, b), expected, a=a, b=b)


@pytest.mark.parametrize("op", operators.WORDS)
def test_words_through_every_raw_operator(op):
    words = [0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0x7FC00001, 77]
    a, b = (part.ravel() for part in np.meshgrid(np.array(words, np.uint32), words))
    b = b.astype(np.uint32)
    assert_same(binary(op, a, b), operators.alu(op, a, b), a=a, b=b)
