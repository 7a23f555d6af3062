"""The operators of the vector engine: AluOp to its function, in the two classes they come in."""

from golden.arith import comparison, float32, integer
from golden.arith.division import divide
from golden.arith.power import power
from isa.fields import AluOp

VALUES = {
    AluOp.ADD: float32.add,
    AluOp.SUBTRACT: float32.subtract,
    AluOp.MULTIPLY: float32.multiply,
    AluOp.MAX: float32.maximum,
    AluOp.MIN: float32.minimum,
    AluOp.DIVIDE: divide,
    AluOp.POWER: power,
    AluOp.ABS_MAX: comparison.abs_max,
    AluOp.ABS_MIN: comparison.abs_min,
    AluOp.EQUAL: comparison.equal,
    AluOp.NOT_EQUAL: comparison.not_equal,
    AluOp.GREATER: comparison.greater,
    AluOp.GREATER_EQUAL: comparison.greater_equal,
    AluOp.LESS: comparison.less,
    AluOp.LESS_EQUAL: comparison.less_equal,
    AluOp.LOGICAL_AND: comparison.logical_and,
    AluOp.LOGICAL_OR: comparison.logical_or,
    AluOp.LOGICAL_XOR: comparison.logical_xor,
}
"""On float32 arrays."""

WORDS = {
    AluOp.BITWISE_AND: integer.bitwise_and,
    AluOp.BITWISE_OR: integer.bitwise_or,
    AluOp.BITWISE_XOR: integer.bitwise_xor,
    AluOp.SHIFT_LEFT: integer.shift_left,
    AluOp.SHIFT_RIGHT: integer.shift_right,
    AluOp.SHIFT_RIGHT_ARITHMETIC: integer.shift_right_arithmetic,
    AluOp.INT_ADD: integer.add,
    AluOp.INT_SUBTRACT: integer.subtract,
    AluOp.INT_MULTIPLY: integer.multiply,
    AluOp.INT_MAX: integer.maximum,
    AluOp.INT_MIN: integer.minimum,
    AluOp.INT_EQUAL: integer.equal,
    AluOp.INT_NOT_EQUAL: integer.not_equal,
    AluOp.INT_GREATER: integer.signed_greater,
    AluOp.INT_GREATER_EQUAL: integer.signed_greater_equal,
    AluOp.INT_LESS: integer.signed_less,
    AluOp.INT_LESS_EQUAL: integer.signed_less_equal,
    AluOp.UINT_GREATER: integer.unsigned_greater,
    AluOp.UINT_GREATER_EQUAL: integer.unsigned_greater_equal,
    AluOp.UINT_LESS: integer.unsigned_less,
    AluOp.UINT_LESS_EQUAL: integer.unsigned_less_equal,
}
"""On uint32 arrays: the raw operators."""


def alu(operator, a, b, reverse=0):
    """a operator b, or b operator a when `reverse`; BYPASS passes `a` whatever `reverse`.

    float32 arrays, for a raw operator uint32 arrays; KeyError for what is no AluOp.
    """
    if operator == AluOp.BYPASS:
        return a
    if reverse:
        a, b = b, a
    return (WORDS if AluOp(operator).raw else VALUES)[operator](a, b)
