"""Vector engine: element-wise operations, reductions, casts; FP32 inside, whatever the dtypes."""

import numpy as np

from golden.access import load, load_bits, store, store_bits, to_bits
from golden.arith import float32
from isa.fields import AluOp

_BINARY = {
    AluOp.ADD: float32.add,
    AluOp.SUBTRACT: float32.subtract,
    AluOp.MULTIPLY: float32.multiply,
    AluOp.MAX: float32.maximum,
    AluOp.MIN: float32.minimum,
}


def alu(operator, a, b, reverse=0):
    """a operator b, or b operator a when reversed; BYPASS passes `a` whatever `reverse`."""
    if operator == AluOp.BYPASS:
        return a
    if reverse:
        a, b = b, a
    return _BINARY[operator](a, b)


def column(memories, access, imm):
    """A [P, 1] operand as float32 [partitions, 1], or the immediate."""
    if access is not None:
        return load(memories[access.space], access)
    return np.array([[imm]], np.uint32).view(np.float32)


class VectorEngine:
    """One method for each instruction, called with a resolved operation."""

    def __init__(self, memories):
        self._memories = memories

    def _load(self, access):
        return load(self._memories[access.space], access)

    def _store(self, access, values):
        store(self._memories[access.space], access, values)

    def tensor_tensor(self, op):
        """dst = src0 op0 src1."""
        self._store(op.dst, alu(op.options["op0"], self._load(op.src0), self._load(op.src1)))

    def tensor_scalar(self, op):
        """dst = (src0 op0 operand0) op1 operand1."""
        data = self._load(op.src0)
        for i, access in enumerate((op.column0, op.column1)):
            operand = column(self._memories, access, op.options[f"imm{i}"])
            data = alu(op.options[f"op{i}"], data, operand, op.options[f"reverse{i}"])
        self._store(op.dst, data)

    def tensor_copy(self, op):
        """Bits when the dtypes agree, else widened (a NaN keeps its code) or narrowed (it does
        not).
        """
        if op.src0.dtype == op.dst.dtype:
            bits = load_bits(self._memories[op.src0.space], op.src0)
            store_bits(self._memories[op.dst.space], op.dst, bits)
        else:
            self._store(op.dst, self._load(op.src0))

    def tensor_reduce(self, op):
        """Sums in eight interleaved partials, or maxima, over the innermost dimensions."""
        data = self._load(op.src0)
        counts = [count for _, count in op.src0.dims]
        group = 1
        for count in counts[len(counts) - op.options["reduce_dims"] :]:
            group *= count
        data = data.reshape(op.src0.partitions, -1, group)
        reduce = float32.reduce_add if op.options["op0"] == AluOp.ADD else float32.reduce_max
        self._store(op.dst, reduce(data))

    def memset(self, op):
        """One value everywhere; FP32 bits as they are, BF16 narrowed."""
        value = np.array([[op.options["imm0"]]], np.uint32).view(np.float32)
        bits = to_bits(value, op.dst.dtype)
        view = op.dst.view(self._memories[op.dst.space])
        view[...] = bits[0, 0]
