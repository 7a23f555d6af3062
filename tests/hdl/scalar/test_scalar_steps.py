"""The language of steps in hardware: random programs in the place of those of the functions."""

import numpy as np
import pytest

from golden.arith.functions import program
from hdl.scalar.step import float_bits, programs, step_word
from isa.fields import Function
from isa.functions import (
    PROGRAMS,
    R0,
    SCRATCH,
    SLOPE,
    Operand,
    Post,
    Select,
    Source,
    Step,
    Table,
    constant,
    first,
)
from verif.equality import assert_same
from verif.scalar_bench import PARTITIONS, ScalarBench, activation
from verif.vectors import FP32, random_codes

STAGES = 1
NAN, ONE = 0x7FC00000, 0x3F800000
CONSTANTS = (0.0, -0.0, 1.0, -2.5, 0.1875, 2.0**-149, -(2.0**-130), 2.0**120, float("inf"))
KEPT, NEGATED = Function.COPY, Function.RELU
"""Functions whose place two programs take that only move R0."""


def random_operand(rng, written, *, optional=False):
    if optional and rng.random() < 0.3:
        return Operand()
    kind = rng.random()
    source = (
        constant(float(rng.choice(CONSTANTS)))
        if kind < 0.25
        else SLOPE
        if kind < 0.35
        else Operand(Source(Source.R0 + int(rng.choice(written))))
    )
    if rng.random() < 0.3:
        source = abs(source)
    return -source if rng.random() < 0.3 else source


def random_step(rng, written, to):
    post = Post(int(rng.integers(len(Post))))
    select = None
    if rng.random() < 0.5:
        limit = float(rng.choice([0.0, 1.0, -1.0, 2.0**-140, -(2.0**100), 0.3125, float("inf")]))
        select = Select(
            limit, random_operand(rng, written), bool(rng.integers(2)), bool(rng.integers(2))
        )
    table = Table(int(rng.integers(len(Table)))) if rng.random() < 0.4 else Table.NONE
    # The sign of a NaN is anybody's; R0 is a sum and has none.
    ref = 0 if post is Post.COPY_SIGN else int(rng.choice(written))
    return Step(
        random_operand(rng, written),
        random_operand(rng, written, optional=True),
        random_operand(rng, written, optional=True),
        table,
        post,
        ref,
        select,
        to,
    )


def random_program(rng):
    """Steps that read only what has been written; R0 is written once."""
    length = int(rng.integers(2, 8))
    written, steps = [0], [first(to=0)]
    for place in range(1, length):
        to = int(rng.integers(1, SCRATCH)) if place < length - 1 else None
        steps.append(random_step(rng, written, to))
        if to is not None and to not in written:
            written.append(to)
    return tuple(steps)


@pytest.fixture(scope="module")
def bench():
    """With random programs, which golden and hardware read alike."""
    rng = np.random.default_rng(78)
    with pytest.MonkeyPatch.context() as patch:
        for function in Function:
            patch.setitem(PROGRAMS, function, random_program(rng))
        patch.setitem(PROGRAMS, KEPT, (first(to=0), Step(R0)))
        patch.setitem(PROGRAMS, NEGATED, (first(to=0), Step(-R0)))
        yield ScalarBench(STAGES)


def test_programs_reach_everything(bench):
    steps = [step for steps in PROGRAMS.values() for step in steps[1:]]
    assert {step.post for step in steps} == set(Post)
    assert {step.table for step in steps} == set(Table)
    assert {step.to for step in steps} == {None, 1, 2, 3}
    selects = [step.select for step in steps if step.select]
    assert len({(s.magnitude, s.below, s.limit < 0) for s in selects}) == 8


@pytest.mark.parametrize("function", Function)
def test_random_program(bench, function):
    rng = np.random.default_rng(function)
    x = random_codes(FP32, rng, PARTITIONS * 1500).reshape(PARTITIONS, 1500)
    x[:, ::2] = rng.normal(0, 2, (PARTITIONS, 750)).astype(np.float32).view(np.uint32)
    slope = np.float32(-1.75)
    bits = int(slope.view(np.uint32))
    with np.errstate(all="ignore"):
        one, zero = np.float32(1), np.float32(0)
        want = program.evaluate(function, x.view(np.float32), one, zero, slope)
    want = np.where(np.isnan(want), np.uint32(NAN), want.view(np.uint32))
    (found,), _ = bench.run([activation(function, x, slope=bits)], deny_source=40, deny_result=40)
    assert_same(found, want, x=x)


def test_a_step_without_product_and_sum_keeps_the_bits(bench):
    """Subnormals are not flushed, -0 keeps its sign, a NaN becomes the one."""
    bias = np.array([[1], [0x807FFFFF]], np.uint32)
    zero = np.zeros((PARTITIONS, 1), np.uint32)
    assert_same(bench.run([activation(KEPT, zero, bias=bias)])[0][0], bias)
    flipped = bias ^ np.uint32(1 << 31)
    assert_same(bench.run([activation(NEGATED, zero, bias=bias)])[0][0], flipped)
    minus_zero = np.full((PARTITIONS, 1), 1 << 31, np.uint32)
    results = bench.run(
        [
            activation(KEPT, minus_zero, bias=1 << 31),
            activation(NEGATED, zero),
            activation(NEGATED, zero + NAN),
        ]
    )[0]
    assert_same(
        np.concatenate(results, axis=1), np.array([[1 << 31, 1 << 31, NAN]] * PARTITIONS, np.uint32)
    )


REFUSED = {
    "BIAS cannot be operand a": Step(Operand(Source.BIAS)),
    "X cannot be operand b": Step(R0, Operand(Source.X)),
    "constant 0.1 is no FP32": Step(R0, constant(0.1)),
    "limit of a select must be a number": Step(R0, select=Select(float("nan"), R0)),
    "operand a of a step must have a source": Step(Operand()),
}


@pytest.mark.parametrize("message", REFUSED)
def test_step_that_the_engine_cannot_do_is_refused(message):
    with pytest.raises(ValueError, match=message):
        step_word(REFUSED[message], first=True)


def test_data_is_for_the_first_step_only():
    with pytest.raises(ValueError, match="SCALE cannot be operand b"):
        step_word(Step(R0, Operand(Source.SCALE)), first=False)


def test_program_must_end_with_its_result(monkeypatch):
    monkeypatch.setitem(PROGRAMS, Function.EXP, (first(), Step(R0)))
    with pytest.raises(ValueError, match="EXP: the last step"):
        programs()


def test_every_function_has_a_program():
    assert set(PROGRAMS) == set(Function)


def test_codes_of_constants():
    assert [float_bits(v) for v in (0.0, -0.0, 1.0, 2.0**-149, float("-inf"))] == [
        0,
        1 << 31,
        ONE,
        1,
        0xFF800000,
    ]
    assert float_bits(float("nan")) == NAN
