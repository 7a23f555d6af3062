"""Scalar engine: func(src0 * scale + bias), a product and a sum with a rounding each."""

import numpy as np

from golden.access import load, store
from golden.arith.functions.program import evaluate
from golden.engines.vector import column


class ScalarEngine:
    """One method for each instruction, called with a resolved operation."""

    def __init__(self, memories):
        self._memories = memories

    def activation(self, op):
        """scale and bias are columns or immediates; NaN results are canonical, COPY's too."""
        data = load(self._memories[op.src0.space], op.src0)
        scale = column(self._memories, op.column0, op.options["imm0"])
        bias = column(self._memories, op.column1, op.options["imm1"])
        slope = np.array([[op.options["imm2"]]], np.uint32).view(np.float32)
        result = evaluate(op.options["func"], data, scale, bias, slope)
        store(self._memories[op.dst.space], op.dst, result)
