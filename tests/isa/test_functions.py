"""Programs of the functions: steps that the engine can do, numbers that FP32 has."""

import math

import numpy as np
import pytest

from isa.fields import Function
from isa.functions import (
    ONE,
    PROGRAMS,
    R0,
    R1,
    SCRATCH,
    Operand,
    Post,
    Select,
    Source,
    Step,
    Table,
    constant,
    horner,
)

COUNTS = {
    1: "COPY RELU EXP LOG SQRT RSQRT RECIPROCAL ABS SIGN",
    2: "SQUARE PRELU",
    3: "SIGMOID",
    4: "SILU",
    5: "TANH",
    6: "GELU_TANH",
    7: "MISH SILU_DERIVATIVE",
    9: "SOFTPLUS",
    12: "SIN",
    13: "ARCTAN",
    14: "COS ERF",
    15: "GELU GELU_DERIVATIVE",
}
STEPS = {name: count for count, names in COUNTS.items() for name in names.split()}
"""Cycles of an element: what software counts on."""


def operands(step):
    found = [step.a, step.b, step.c]
    return [*found, step.select.other] if step.select else found


def test_every_function_has_a_program():
    assert set(PROGRAMS) == set(Function)
    assert {function.name: len(steps) for function, steps in PROGRAMS.items()} == STEPS


@pytest.mark.parametrize("function", Function)
def test_first_step_takes_the_data_and_no_other_does(function):
    steps = PROGRAMS[function]
    first = steps[0]
    assert (first.a, first.b, first.c) == (
        Operand(Source.X),
        Operand(Source.SCALE),
        Operand(Source.BIAS),
    )
    given = {Source.X, Source.SCALE, Source.BIAS}
    for step in steps[1:]:
        assert not given & {operand.source for operand in operands(step)}
        assert step.a.source != Source.NONE


@pytest.mark.parametrize("function", Function)
def test_last_step_and_no_other_gives_the_result(function):
    places = [step.to for step in PROGRAMS[function]]
    assert places[-1] is None
    assert all(place in range(SCRATCH) for place in places[:-1])


def unwritten_reads(steps):
    """Registers read before they are written, ref included where it is looked at."""
    written, found = set(), []
    for number, step in enumerate(steps):
        read = {operand.source - Source.R0 for operand in operands(step)}
        if step.select or step.post in (Post.COPY_SIGN, Post.FLIP_ODD):
            read.add(step.ref)
        found += [(number, place) for place in read if place >= 0 and place not in written]
        written.add(step.to)
    return found


@pytest.mark.parametrize("function", Function)
def test_registers_are_written_before_they_are_read(function):
    assert unwritten_reads(PROGRAMS[function]) == []


def test_the_check_of_registers_sees_a_read_too_early():
    early = Step(R0, R1, to=0)
    assert unwritten_reads([Step(Operand(Source.X), to=0), early]) == [(1, 1)]
    selecting = Step(R0, ref=2, select=Select(0.0, ONE))
    assert unwritten_reads([Step(Operand(Source.X), to=0), selecting]) == [(1, 2)]


@pytest.mark.parametrize("function", Function)
def test_every_register_that_is_written_is_read(function):
    steps = PROGRAMS[function]
    for number, step in enumerate(steps[:-1]):
        for later in steps[number + 1 :]:
            sources = {operand.source - Source.R0 for operand in operands(later)}
            if step.to in sources or later.ref == step.to:
                break
            assert later.to != step.to, f"step {number} is lost"
        else:
            raise AssertionError(f"step {number} is not used")


@pytest.mark.parametrize("function", Function)
def test_numbers_are_fp32(function):
    for step in PROGRAMS[function]:
        numbers = [operand.constant for operand in operands(step)]
        if step.select:
            assert math.isfinite(step.select.limit)
            numbers.append(step.select.limit)
        for number in numbers:
            assert math.isnan(number) or float(np.float32(number)) == number


def test_only_prelu_looks_at_the_slope():
    users = {
        function
        for function, steps in PROGRAMS.items()
        if any(o.source == Source.SLOPE for step in steps for o in operands(step))
    }
    assert users == {Function.PRELU}


def test_everything_of_the_language_is_used():
    steps = [step for steps in PROGRAMS.values() for step in steps]
    assert {step.table for step in steps} == set(Table)
    assert {step.post for step in steps} == set(Post)
    assert {o.source for step in steps for o in operands(step)} == set(Source)


def test_horner():
    """3 + 5 t + 7 t^2 is (7 t + 5) t + 3."""
    assert list(horner((3.0, 5.0, 7.0), R1, to=0)) == [
        Step(R1, constant(7.0), constant(5.0), to=0),
        Step(R1, R0, constant(3.0), to=0),
    ]


def test_signs_of_operands():
    """Absolute first, then negated."""
    assert -abs(R0) == Operand(Source.R0, absolute=True, negate=True)
    assert abs(-R0) == Operand(Source.R0, absolute=True)
    negative = -R0
    assert -negative == R0
