"""Vector engine: element-wise operations, reductions, scans, casts; FP32 inside, whatever the
dtypes, or words for raw operators.
"""

import numpy as np

from golden.access import load, load_bits, load_words, store, store_bits, store_words
from golden.arith import float32
from golden.arith.operators import alu
from golden.engines.random import Generators, rounding
from isa.fields import AluOp

_REDUCTIONS = {
    AluOp.ADD: float32.reduce_add,
    AluOp.MAX: float32.reduce_max,
    AluOp.MIN: float32.reduce_min,
}


def column(memories, access, imm):
    """A [P, 1] operand as float32 [partitions, 1], or the immediate [1, 1]."""
    if access is not None:
        return load(memories[access.space], access)
    return np.array([[imm]], np.uint32).view(np.float32)


def word_column(memories, access, imm):
    """The same as words, uint32."""
    if access is not None:
        return load_words(memories[access.space], access)
    return np.array([[imm]], np.uint32)


class VectorEngine:
    """One method for each instruction, called with a resolved operation."""

    def __init__(self, memories):
        self._memories = memories
        self._generators = Generators(memories.sbuf.rows)

    def _load(self, access, raw=False):
        return (load_words if raw else load)(self._memories[access.space], access)

    def _store(self, op, result):
        """uint32 words as they are; float32 values rounded as `op` says."""
        memory = self._memories[op.dst.space]
        if result.dtype == np.uint32:
            store_words(memory, op.dst, result)
        else:
            store(memory, op.dst, result, *rounding(op, self._generators))

    def tensor_tensor(self, op):
        """dst = src0 op0 src1."""
        operator = AluOp(op.options["op0"])
        a, b = (self._load(access, operator.raw) for access in (op.src0, op.src1))
        self._store(op, alu(operator, a, b))

    def tensor_scalar(self, op):
        """dst = (src0 op0 operand0) op1 operand1; a raw op0 makes all of it raw."""
        raw = AluOp(op.options["op0"]).raw
        data = self._load(op.src0, raw)
        for i, access in enumerate((op.column0, op.column1)):
            read = word_column if raw else column
            operand = read(self._memories, access, op.options[f"imm{i}"])
            data = alu(op.options[f"op{i}"], data, operand, op.options[f"reverse{i}"])
        self._store(op, data)

    def tensor_copy(self, op):
        """Bits when the dtypes agree, else widened and narrowed."""
        if op.src0.dtype == op.dst.dtype:
            bits = load_bits(self._memories[op.src0.space], op.src0)
            store_bits(self._memories[op.dst.space], op.dst, bits)
        else:
            self._store(op, self._load(op.src0))

    def tensor_reduce(self, op):
        """Sums in eight interleaved partials, or extrema, over the innermost dimensions."""
        data = self._load(op.src0)
        counts = [count for _, count in op.src0.dims]
        group = 1
        for count in counts[len(counts) - op.options["reduce_dims"] :]:
            group *= count
        data = data.reshape(op.src0.partitions, -1, group)
        self._store(op, _REDUCTIONS[op.options["op0"]](data))

    def memset(self, op):
        """One value everywhere; FP32 bits as they are, all other dtypes narrowed."""
        self._store(op, np.array([[op.options["imm0"]]], np.uint32).view(np.float32))

    def tensor_tensor_scan(self, op):
        """dst[i] = (src0[i] op0 dst[i - 1]) op1 src1[i], element after element; FP32 is carried."""
        a, b = self._load(op.src0), self._load(op.src1)
        carry = column(self._memories, op.column0, op.options["imm0"])[:, 0]
        result = np.empty_like(a)
        for i in range(a.shape[1]):
            carry = alu(op.options["op0"], a[:, i], carry)
            carry = alu(op.options["op1"], carry, b[:, i])
            result[:, i] = carry
        self._store(op, result)

    def rand_set_state(self, op):
        """The generators of the partitions of src0 continue from its words."""
        words = load_words(self._memories[op.src0.space], op.src0)
        self._generators.set(op.src0.partition, words)

    def rand_get_state(self, op):
        """dst = the states of its partitions."""
        self._store(op, self._generators.get(op.dst.partition, op.dst.partitions))
