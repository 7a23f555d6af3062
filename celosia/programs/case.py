"""A program with what is needed to judge it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from isa.program import Program


@dataclass
class Case:
    """macs: multiply-accumulates of the useful work.

    bound_cycles: cycles that the tensor engine needs at least (its cost model, see `tensor_bound`).
    judge: takes {output name: array} and returns lines to print; raises AssertionError when an
    output is far from what numpy computes in float64.  Bit-exactness is checked elsewhere, over the
    whole memory image.
    """

    name: str
    program: Program
    macs: int
    bound_cycles: int
    judge: Callable = lambda outputs: []
    inputs: dict = field(default_factory=dict)


def tiles(size, edge):
    """[(start, length)] of `size` cut into tiles of `edge`, the last one shorter."""
    return [(start, min(edge, size - start)) for start in range(0, size, edge)]


def tensor_bound(config, moving):
    """Cycles of a sequence of weight tiles: moving = [[N of each multiply_moving] of each tile].

    sum over tiles of max(P/4, sum of max(N, start-up)) + fill, where fill is the first weight load
    and the way through the array.  Source: the cost model of the tensor engine in docs/tensor.md.
    """
    edge = config.array
    steady = sum(
        max(edge // 4, sum(max(n, config.start_up_cycles) for n in chunks)) for chunks in moving
    )
    return steady + edge // 4 + 2 * edge - 1


def relative_error(got, exact):
    """Largest error over the largest magnitude, in float64."""
    got, exact = np.asarray(got, dtype=np.float64), np.asarray(exact, dtype=np.float64)
    return float(np.max(np.abs(got - exact)) / max(np.max(np.abs(exact)), np.finfo(float).tiny))


@dataclass
class PairCase:
    """Two programs for two chips that a link joins at port 0.

    judge: takes [{output name: array} of each chip] and returns lines to print.
    """

    name: str
    programs: list
    macs: int
    bound_cycles: int
    judge: Callable = lambda outputs: []
