"""What an ALU does for each AluOp."""

from typing import NamedTuple

from amaranth.hdl import C, Mux

from hdl.arith.fp32_compare import CompareKind
from hdl.arith.integer import IntegerKind
from hdl.vector.alu import Other, Select
from isa.fields import AluOp


class _Relation(NamedTuple):
    """Where it holds: as in CompareOp and IntegerOp."""

    less: int = 0
    equal: int = 0
    greater: int = 0


_LESS, _GREATER = _Relation(less=1), _Relation(greater=1)
_LESS_EQUAL, _GREATER_EQUAL = _Relation(1, 1), _Relation(0, 1, 1)
_EQUAL, _NOT_EQUAL = _Relation(equal=1), _Relation(less=1, greater=1)

COMPARE = {
    AluOp.MAX: (CompareKind.EXTREMUM, _LESS),
    AluOp.MIN: (CompareKind.EXTREMUM, _GREATER),
    AluOp.ABS_MAX: (CompareKind.EXTREMUM, _LESS),
    AluOp.ABS_MIN: (CompareKind.EXTREMUM, _GREATER),
    AluOp.EQUAL: (CompareKind.RELATION, _EQUAL),
    AluOp.NOT_EQUAL: (CompareKind.RELATION, _NOT_EQUAL),
    AluOp.GREATER: (CompareKind.RELATION, _GREATER),
    AluOp.GREATER_EQUAL: (CompareKind.RELATION, _GREATER_EQUAL),
    AluOp.LESS: (CompareKind.RELATION, _LESS),
    AluOp.LESS_EQUAL: (CompareKind.RELATION, _LESS_EQUAL),
    # One operand true, or both.
    AluOp.LOGICAL_AND: (CompareKind.LOGIC, _Relation(equal=1)),
    AluOp.LOGICAL_OR: (CompareKind.LOGIC, _Relation(less=1, equal=1)),
    AluOp.LOGICAL_XOR: (CompareKind.LOGIC, _Relation(less=1)),
}
_MAGNITUDE = (AluOp.ABS_MAX, AluOp.ABS_MIN)

INTEGER = {
    AluOp.BITWISE_AND: (IntegerKind.AND, _Relation()),
    AluOp.BITWISE_OR: (IntegerKind.OR, _Relation()),
    AluOp.BITWISE_XOR: (IntegerKind.XOR, _Relation()),
    AluOp.SHIFT_LEFT: (IntegerKind.SHIFT, _Relation()),
    AluOp.SHIFT_RIGHT: (IntegerKind.SHIFT, _Relation()),
    AluOp.SHIFT_RIGHT_ARITHMETIC: (IntegerKind.SHIFT, _Relation()),
    AluOp.INT_ADD: (IntegerKind.SUM, _Relation()),
    AluOp.INT_SUBTRACT: (IntegerKind.SUM, _Relation()),
    AluOp.INT_MULTIPLY: (IntegerKind.PRODUCT, _Relation()),
    AluOp.INT_MAX: (IntegerKind.EXTREMUM, _LESS),
    AluOp.INT_MIN: (IntegerKind.EXTREMUM, _GREATER),
    AluOp.INT_EQUAL: (IntegerKind.RELATION, _EQUAL),
    AluOp.INT_NOT_EQUAL: (IntegerKind.RELATION, _NOT_EQUAL),
    AluOp.INT_GREATER: (IntegerKind.RELATION, _GREATER),
    AluOp.INT_GREATER_EQUAL: (IntegerKind.RELATION, _GREATER_EQUAL),
    AluOp.INT_LESS: (IntegerKind.RELATION, _LESS),
    AluOp.INT_LESS_EQUAL: (IntegerKind.RELATION, _LESS_EQUAL),
    AluOp.UINT_GREATER: (IntegerKind.RELATION, _GREATER),
    AluOp.UINT_GREATER_EQUAL: (IntegerKind.RELATION, _GREATER_EQUAL),
    AluOp.UINT_LESS: (IntegerKind.RELATION, _LESS),
    AluOp.UINT_LESS_EQUAL: (IntegerKind.RELATION, _LESS_EQUAL),
}
_UNSIGNED = (
    AluOp.UINT_GREATER,
    AluOp.UINT_GREATER_EQUAL,
    AluOp.UINT_LESS,
    AluOp.UINT_LESS_EQUAL,
)

SLOW = (AluOp.DIVIDE, AluOp.POWER)
"""Those of the slow unit."""


def integer_fields(op):
    """Fields of the IntegerOp of a raw AluOp, except `swap`."""
    kind, relation = INTEGER[op]
    return {
        "kind": kind,
        **relation._asdict(),
        "left": op == AluOp.SHIFT_LEFT,
        "arithmetic": op == AluOp.SHIFT_RIGHT_ARITHMETIC,
        "subtract": kind in (IntegerKind.RELATION, IntegerKind.EXTREMUM)
        or op == AluOp.INT_SUBTRACT,
        "unsigned": op in _UNSIGNED,
    }


def compare_fields(op):
    """Fields of the CompareOp of an AluOp on values that is not arithmetic."""
    kind, relation = COMPARE[op]
    return {
        "kind": kind,
        **relation._asdict(),
        "unordered": op == AluOp.NOT_EQUAL,
        "magnitude": op in _MAGNITUDE,
    }


def decode_operation(m, operation, code, reverse):
    """Drives the AluOperation `operation`: a op b, or b op a when `reverse`; `code` is an AluOp."""
    entry = operation.entry
    m.d.comb += [
        entry.eq(0), operation.select.eq(Select.OTHER), entry.integer.swap.eq(reverse),
    ]
    with m.Switch(code):
        with m.Case(AluOp.ADD):
            m.d.comb += operation.select.eq(Select.ADD)
        with m.Case(AluOp.SUBTRACT):
            m.d.comb += [operation.select.eq(Select.ADD),
                         entry.negate_a.eq(reverse), entry.negate_b.eq(~reverse)]
        with m.Case(AluOp.MULTIPLY):
            m.d.comb += operation.select.eq(Select.MULTIPLY)
        with m.Case(*SLOW):
            m.d.comb += entry.other.eq(Other.SLOW)
        for op in COMPARE:
            with m.Case(op):
                fields = compare_fields(op)
                less, greater = fields.pop("less"), fields.pop("greater")
                # Extrema and logical operators commute.
                turn = reverse if fields["kind"] == CompareKind.RELATION else C(0, 1)
                m.d.comb += [
                    entry.other.eq(Other.COMPARE),
                    entry.compare.less.eq(Mux(turn, greater, less)),
                    entry.compare.greater.eq(Mux(turn, less, greater)),
                    *(entry.compare[name].eq(value) for name, value in fields.items()),
                ]
        for op in INTEGER:
            with m.Case(op):
                m.d.comb += [
                    operation.select.eq(Select.INTEGER),
                    *(entry.integer[name].eq(value)
                      for name, value in integer_fields(op).items()),
                ]
