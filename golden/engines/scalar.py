"""Scalar engine: func(src0 * scale + bias), a product and a sum with a rounding each."""

from golden.access import load, store
from golden.arith import float32
from golden.engines.vector import column
from isa.fields import Function

_FUNCTIONS = {Function.COPY: lambda x: x, Function.RELU: float32.relu}


class ScalarEngine:
    """One method for each instruction, called with a resolved operation."""

    def __init__(self, memories):
        self._memories = memories

    def activation(self, op):
        """scale and bias are columns or immediates; NaN results are canonical, COPY's too."""
        data = load(self._memories[op.src0.space], op.src0)
        scale = column(self._memories, op.column0, op.options["imm0"])
        bias = column(self._memories, op.column1, op.options["imm1"])
        data = float32.add(float32.multiply(data, scale), bias)
        store(self._memories[op.dst.space], op.dst, _FUNCTIONS[op.options["func"]](data))
