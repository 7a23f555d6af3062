"""Steps of the functions as words of the control memory, made from `isa.functions.PROGRAMS`."""

import math
import struct

from amaranth.lib import data, enum

from hdl.arith.fp32 import NAN_BITS
from hdl.lib.rom import BlockRom
from isa.functions import PROGRAMS, SCRATCH, Operand, Post, Source, Step, Table

ADDRESS_BITS = 8
"""Of the control memory."""
OPERANDS = ("a", "b", "c", "other")
"""Operands of a step; `other` is that of `select`."""


class Pick(enum.Enum, shape=3):
    """Where a lane takes an operand from. DATA is X for a, SCALE for b and BIAS for c."""

    DATA = 0
    VALUE = 1
    R0 = 4
    R1 = 5
    R2 = 6
    R3 = 7


class OperandWord(data.Struct):
    """The value is taken absolute first, then negated."""

    pick: Pick
    absolute: 1
    negate: 1


class SelectWord(data.Struct):
    """`isa.functions.Select`; `used` is 0 where a step has none."""

    used: 1
    magnitude: 1
    below: 1
    limit: 32


class StepWord(data.Struct):
    """A step. value: that of operand i, for those that pick VALUE; it is the slope of the
    instruction where bit i of `slope` is 1. raw: nothing is done to the bits, not even to a NaN.
    last: the result leaves the engine, else it goes to scratch register `to`.
    """

    operand: data.ArrayLayout(OperandWord, len(OPERANDS))
    value: data.ArrayLayout(32, len(OPERANDS))
    slope: len(OPERANDS)
    multiply: 1
    add: 1
    table: Table
    post: Post
    ref: range(SCRATCH)
    select: SelectWord
    raw: 1
    last: 1
    to: range(SCRATCH)


_DATA = {"a": Source.X, "b": Source.SCALE, "c": Source.BIAS, "other": None}
_SCRATCH = (Source.R0, Source.R1, Source.R2, Source.R3)
RAW = "raw"
"""Name of the program that passes words on: of the instructions that move random states."""


def float_bits(value):
    """FP32 code of a number, of NaN the canonical one; `ValueError` if it has none exactly."""
    if math.isnan(value):
        return NAN_BITS
    code = struct.pack("<f", value)
    if struct.unpack("<f", code)[0] != value:
        raise ValueError(f"constant {value!r} is no FP32 number")
    return int.from_bytes(code, "little")


def step_word(step, *, first):
    """The fields of StepWord, as a dict; `ValueError` for a step that the engine cannot do."""
    if step.a.source is Source.NONE:
        raise ValueError("operand a of a step must have a source")
    select = step.select
    given = {"a": step.a, "b": step.b, "c": step.c, "other": select.other if select else Operand()}
    word = {
        "operand": [_operand(name, operand, first=first) for name, operand in given.items()],
        "value": [
            float_bits(operand.constant) if operand.source is Source.CONSTANT else 0
            for operand in given.values()
        ],
        "slope": sum(
            (operand.source is Source.SLOPE) << i for i, operand in enumerate(given.values())
        ),
        "multiply": int(step.b.source is not Source.NONE),
        "add": int(step.c.source is not Source.NONE),
        "table": step.table,
        "post": step.post,
        "ref": step.ref,
        "last": int(step.to is None),
        "to": step.to or 0,
    }
    if select:
        if math.isnan(select.limit):
            raise ValueError("the limit of a select must be a number")
        word["select"] = {
            "used": 1,
            "magnitude": int(select.magnitude),
            "below": int(select.below),
            "limit": float_bits(select.limit),
        }
    return word


def _operand(name, operand, *, first):
    source = operand.source
    if source in _SCRATCH:
        pick = Pick.R0.value + _SCRATCH.index(source)
    elif source in (Source.CONSTANT, Source.SLOPE):
        pick = Pick.VALUE.value
    elif source is Source.NONE or (first and source is _DATA[name]):
        pick = Pick.DATA.value
    else:
        raise ValueError(f"{source.name} cannot be operand {name} of this step")
    return {"pick": pick, "absolute": int(operand.absolute), "negate": int(operand.negate)}


def programs():
    """{function or RAW: [fields of StepWord]}, in the order in which they stand in the ROM."""
    words = {}
    for function, steps in PROGRAMS.items():
        if [step.to is None for step in steps] != [False] * (len(steps) - 1) + [True]:
            raise ValueError(f"{function.name}: the last step, and no other, must give the result")
        try:
            words[function] = [step_word(s, first=i == 0) for i, s in enumerate(steps)]
        except ValueError as error:
            raise ValueError(f"{function.name}: {error}") from None
    words[RAW] = [{**step_word(Step(Operand(Source.X)), first=True), "raw": 1}]
    return words


def start_addresses():
    """{function or RAW: address of its first step}."""
    starts, address = {}, 0
    for name, steps in programs().items():
        starts[name] = address
        address += len(steps)
    return starts


def step_rom():
    """`BlockRom` of 2^ADDRESS_BITS words StepWord."""
    words = [StepWord.const(step).as_bits() for steps in programs().values() for step in steps]
    if len(words) > 1 << ADDRESS_BITS:
        raise ValueError(f"{len(words)} steps, the control memory holds {1 << ADDRESS_BITS}")
    words += [0] * ((1 << ADDRESS_BITS) - len(words))
    return BlockRom("steps", width=StepWord.as_shape().size, words=words)
