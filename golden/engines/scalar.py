"""Scalar engine: func(src0 * scale + bias), a product and a sum with a rounding each."""

import numpy as np

from golden.access import load, load_words, store, store_words
from golden.arith.functions.program import evaluate
from golden.engines.random import Generators, rounding


class ScalarEngine:
    """One method for each instruction, called with a resolved operation."""

    def __init__(self, memories):
        self._memories = memories
        self._generators = Generators(memories.sbuf.rows)

    def activation(self, op):
        """scale and bias are columns or immediates, imm2 is the slope of PRELU.

        Results are narrowed with `sat` and `stochastic`; NaN is canonical, COPY's too.
        """
        data = load(self._memories[op.src0.space], op.src0)
        result = evaluate(
            op.options["func"],
            data,
            self._column(op.column0, op.options["imm0"]),
            self._column(op.column1, op.options["imm1"]),
            _number(op.options["imm2"]),
        )
        sat, random = rounding(op, self._generators)
        store(self._memories[op.dst.space], op.dst, result, sat, random)

    def rand_set_state(self, op):
        """The generators of the partitions of src0 go on from its words."""
        self._generators.set(op.src0.partition, load_words(self._memories[op.src0.space], op.src0))

    def rand_get_state(self, op):
        """dst = the words of the generators of its partitions, which stay as they are."""
        words = self._generators.get(op.dst.partition, op.dst.partitions)
        store_words(self._memories[op.dst.space], op.dst, words)

    def _column(self, access, immediate):
        """float32 [partitions, 1], or [1, 1] of an immediate."""
        if access is None:
            return _number(immediate)
        return load(self._memories[access.space], access)


def _number(bits):
    return np.array([[bits]], np.uint32).view(np.float32)
