"""Scans of the vector engine against numpy's float32 and SoftFloat, one step after the other."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from golden.access import Access
from golden.engines.vector import VectorEngine
from golden.memory import Memories
from golden.operation import Operation
from isa.dtypes import DType
from isa.fields import AluOp, Space
from isa.geometry import preset
from verif import softfloat
from verif.equality import assert_same
from verif.vectors import FP32, random_codes

SEED = 51
NAN, SIGN = np.uint32(0x7FC00000), np.uint32(1 << 31)
PARTITIONS, SCANS, LENGTH = 128, 64, 7
OPERATORS = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)


def extremum(a, b, larger):
    """By numpy's comparison, of equal zeros by their signs."""
    x, y = a.view(np.float32), b.view(np.float32)
    with np.errstate(invalid="ignore"):
        greater = (x > y) | ((x == y) & (a >> 31 < b >> 31))
    return np.where(np.isnan(x) | np.isnan(y), NAN, np.where(greater == larger, a, b))


def by_numpy(operation, flushed, a, b):
    """Of codes; flushed: results below 2^-126 are zero."""
    with np.errstate(all="ignore"):
        result = operation(a.view(np.float32), b.view(np.float32))
    if flushed:
        result = np.where(np.abs(result) < 2.0**-126, np.copysign(np.float32(0), result), result)
    return np.where(np.isnan(result), NAN, result.view(np.uint32))


EXTREMA = {AluOp.MAX: partial(extremum, larger=True), AluOp.MIN: partial(extremum, larger=False)}
NUMPY = EXTREMA | {
    AluOp.ADD: partial(by_numpy, np.add, False),
    AluOp.SUBTRACT: partial(by_numpy, np.subtract, False),
    AluOp.MULTIPLY: partial(by_numpy, np.multiply, True),
}
SOFTFLOAT = EXTREMA | {
    AluOp.ADD: softfloat.add,
    AluOp.SUBTRACT: softfloat.subtract,
    AluOp.MULTIPLY: softfloat.multiply,
}


def partner(rng, code):
    """Codes that are hard for an operation with `code`: as many each about its negative or itself,
    close in magnitude, and such that the product is at an end of the range; some are any.
    """
    other = random_codes(FP32, rng, code.size)
    kind = rng.integers(0, 7, code.size)
    exponent = (code >> 23 & 0xFF).astype(np.int64)
    near = exponent + rng.integers(-26, 27, code.size)
    far = rng.choice([1, 254], code.size) + 127 - exponent + rng.integers(-3, 4, code.size)
    target = np.where(kind < 4, near, far)
    moved = other & np.uint32(0x807FFFFF) | np.clip(target, 0, 254).astype(np.uint32) << 23
    close = code ^ rng.choice([0, SIGN], code.size) ^ rng.integers(0, 4, code.size, np.uint32)
    return np.where(kind < 2, close, np.where(kind < 6, moved, other)).astype(np.uint32)


def scans(rng, op0, op1, operators):
    """(initial, a, b, expected), codes [..., scans, partitions]: made together, since what is hard
    depends on what is carried.
    """
    count = SCANS * PARTITIONS
    initial = carry = random_codes(FP32, rng, count)
    columns = []
    for _ in range(LENGTH):
        a = partner(rng, carry)
        between = operators[op0](a, carry)
        b = partner(rng, between)
        carry = operators[op1](between, b)
        columns.append((a, b, carry))
    shape = LENGTH, SCANS, PARTITIONS
    return (
        initial.reshape(SCANS, PARTITIONS),
        *(np.array(part).reshape(shape) for part in zip(*columns, strict=True)),
    )


def check(operators, seed):
    """All pairs of operators: more than a million steps of which every operand is a number."""
    rng = np.random.default_rng(seed)
    memories = Memories(preset("trn1"))
    engine = VectorEngine(memories)
    words = memories.sbuf.bytes.view(np.uint32)
    numbers = 0

    def access(row, scan, count=LENGTH):
        offset = 4 * (row * SCANS + scan) * LENGTH
        return Access(Space.SBUF, DType.FP32, 0, PARTITIONS, offset, ((1, count),))

    def place(row):
        """View [elements, scans, partitions] of the operands of all scans."""
        part = words[:, row * SCANS * LENGTH : (row + 1) * SCANS * LENGTH]
        return part.reshape(PARTITIONS, SCANS, LENGTH).transpose(2, 1, 0)

    for op0, op1 in product(OPERATORS, OPERATORS):
        initial, a, b, expected = scans(rng, op0, op1, operators)
        for row, part in enumerate((a, b, initial[None])):
            place(row)[: len(part)] = part
        for scan in range(SCANS):
            operands = access(0, scan), access(1, scan), access(3, scan), access(2, scan, 1), None
            options = {"op0": op0, "op1": op1, "imm0": 0, "sat": 0, "stochastic": 0}
            engine.tensor_tensor_scan(Operation("tensor_tensor_scan", *operands, options, False))
        assert_same(place(3), expected, seed=f"{seed} {op0!r} {op1!r}", a=a, b=b)
        carried = np.concatenate([initial[None], expected[:-1]])
        numbers += int(np.isfinite(np.stack([a, b, carried]).view(np.float32)).all(axis=0).sum())
    assert numbers > 1_000_000, numbers


def test_scans_equal_numpy():
    check(NUMPY, SEED)


@pytest.mark.nightly
def test_scans_equal_softfloat():
    check(SOFTFLOAT, SEED + 1)
