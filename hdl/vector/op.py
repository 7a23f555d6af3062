"""What the lanes of the vector engine are told about an instruction."""

from amaranth.hdl import C, Mux, Signal
from amaranth.lib import data, enum

from hdl.arith.pipeline import bind
from hdl.lib.issue import ELEMENT_BITS
from hdl.vector.alu import AluOperation, Other
from hdl.vector.operators import SLOW, decode_operation
from isa.fields import DIMS, AluOp
from isa.instructions import BY_NAME

OPERANDS = 2
_PLUS_ZERO = 0x00000000
_INFINITY = 0x7F800000
_MINUS_INFINITY = 0xFF800000


class OperandB(enum.Enum, shape=2):
    """Second operand of ALU0; the first is the element of src0."""

    OPERAND = 0
    SRC1 = 1
    PARTIAL = 2


class VectorOp(data.Struct):
    """An instruction for the lanes.

    elements: beats of src0, or of the result when there is no src0.  count, reduce_dims: a
    reduction takes the product of the innermost counts.  columns: bit i, operand i comes from the
    src1 reader, else it is `immediate` i.  alu1 of a reduction joins the partials.  slow: ALU0
    takes what the slow unit makes of an element, with `power` a ** b, else a / b, operands swapped
    with `swap`.  scan: operand 0 is the result before, operand of ALU1 the element of src1.
    """

    elements: ELEMENT_BITS
    uses_src0: 1
    uses_src1: 1
    reduce: 1
    reduce_dims: 3
    count: data.ArrayLayout(16, DIMS)
    columns: OPERANDS
    immediate: data.ArrayLayout(32, OPERANDS)
    b: OperandB
    alu0: AluOperation
    alu1: AluOperation
    slow: 1
    power: 1
    swap: 1
    scan: 1


def is_op(issue, name):
    """1 when `issue` is the instruction `name`."""
    return issue.opcode == BY_NAME[name].opcode


def decode_vector_op(m, op, issue):
    """Drives the VectorOp `op` from the Issue."""
    two, scalar, reduce, fill, state, scan = (
        bind(m, short, is_op(issue, name)) for short, name in (
            ("two", "tensor_tensor"), ("scalar", "tensor_scalar"), ("reduce", "tensor_reduce"),
            ("fill", "memset"), ("state", "rand_get_state"), ("scan", "tensor_tensor_scan")))
    slow = bind(m, "slow", (two | scalar) & ((issue.op0 == SLOW[0]) | (issue.op0 == SLOW[1])))
    code0, code1 = Signal(8), Signal(8)
    m.d.comb += [
        code0.eq(Mux(two | scalar | reduce | scan, issue.op0, AluOp.BYPASS)),
        code1.eq(Mux(scalar | scan, issue.op1, Mux(reduce, issue.op0, AluOp.BYPASS))),
    ]
    decode_operation(m, op.alu0, code0, scalar & issue.reverse0)
    decode_operation(m, op.alu1, code1, scalar & issue.reverse1)
    identity = Mux(issue.op0 == AluOp.MAX, C(_MINUS_INFINITY, 32),
                   Mux(issue.op0 == AluOp.MIN, C(_INFINITY, 32), C(_PLUS_ZERO, 32)))
    m.d.comb += [
        op.elements.eq(issue.elements),
        op.uses_src0.eq(~(fill | state)),
        op.uses_src1.eq(two | scan),
        op.reduce.eq(reduce),
        op.reduce_dims.eq(issue.reduce_dims),
        op.count.eq(issue.src0.count),
        op.columns[0].eq((scalar | scan) & (issue.column0.space != 0)),
        op.columns[1].eq(scalar & (issue.column1.space != 0)),
        # A reduction starts its partials, and fills up what has no partner, with the identity.
        op.immediate[0].eq(Mux(reduce, identity, issue.imm0)),
        op.immediate[1].eq(Mux(reduce, identity, issue.imm1)),
        op.b.eq(Mux(two, OperandB.SRC1, Mux(reduce, OperandB.PARTIAL, OperandB.OPERAND))),
        op.slow.eq(slow),
        op.power.eq(issue.op0 == AluOp.POWER),
        op.swap.eq(scalar & issue.reverse0),
        op.scan.eq(scan),
    ]
    with m.If(fill):
        m.d.comb += op.alu0.entry.other.eq(Other.B)
