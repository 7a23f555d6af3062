"""What a sequencer hands to its engine: one resolved, checked instruction.

Register numbers are already replaced by values, every rule of `isa.instructions` holds, and there
is work to do (no count is 0), so engines never see a bad or an empty instruction.
"""

from amaranth.hdl import signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from isa.fields import DIMS

EXTENT_BITS = 19
"""Bits of a byte position in a partition, one past the end included."""
ELEMENT_BITS = 17
"""Bits of an element count, 65536 included."""


class Pattern(data.Struct):
    """A resolved operand: dimension 0 is the innermost; [low, high) are the bytes it touches in
    each partition; an element has 1 << size bytes (with double_row that of a pair).
    """

    space: 2
    dtype: 4
    size: 2
    partition: 8
    partition_count: 8
    offset: 24
    step: data.ArrayLayout(signed(16), DIMS)
    count: data.ArrayLayout(16, DIMS)
    low: EXTENT_BITS
    high: EXTENT_BITS


class ColumnOperand(data.Struct):
    """A resolved [P, 1] operand; space NONE (0) means the immediate is used."""

    space: 2
    dtype: 4
    partition: 8
    offset: 24


class Issue(data.Struct):
    """One instruction for an engine.  `elements` = elements per partition of src0 (of dst for
    memset).
    """

    opcode: 8
    src0: Pattern
    src1: Pattern
    dst: Pattern
    column0: ColumnOperand
    column1: ColumnOperand
    imm0: 32
    imm1: 32
    imm2: 32
    op0: 8
    op1: 8
    func: 8
    reverse0: 1
    reverse1: 1
    accumulate: 1
    reduce_dims: 3
    sat: 1
    stochastic: 1
    part: 2
    double_row: 1
    transpose: 1
    elements: ELEMENT_BITS


class EngineSignature(wiring.Signature):
    """Engine seen from its sequencer (Out = sequencer drives).

    issue: stream of Issue.  read_done / complete: one-cycle pulses from the engine, at most one
    each per cycle, in issue order: all inputs of the instruction have been read / all its results
    are visible to every reader.
    """

    def __init__(self):
        super().__init__(
            {
                "issue": Out(stream.Signature(Issue)),
                "read_done": In(1),
                "complete": In(1),
            }
        )
