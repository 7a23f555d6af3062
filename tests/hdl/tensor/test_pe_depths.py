"""The processing element at every depth: the same results, 1 to 8 registers."""

import numpy as np
import pytest

from golden.arith import float32, matmul
from hdl.arith.decode import FloatDecode, OperandFormat
from hdl.arith.operand import PASS
from hdl.tensor.pe import Pe
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.tensor_formats import KINDS, operand_format, random_operand
from verif.vectors import FP32, random_codes

SEED = 58
COUNT = 400
SWAP_CYCLES = 2
EVERY_DEPTH = [(multiply, add) for multiply in range(3) for add in range(1, 7)]
DEPTHS = [(0, 1), (1, 1), (0, 3), (2, 2), (0, 5), (2, 4), (1, 6), (2, 6)]
"""One for each total of 1 to 8; the others at night."""


@pytest.fixture(scope="module")
def vectors():
    """Operands, addends and results of all pairs of formats and of transpose, in any order."""
    rng = np.random.default_rng(SEED)
    decode = compile_unit(FloatDecode())
    parts = []
    for kinds in [(a, b) for a in KINDS for b in KINDS]:
        codes = [random_operand(form, rng, COUNT) for form, _ in kinds]
        values = [matmul.operand(x, *kind) for x, kind in zip(codes, kinds, strict=True)]
        operands = [
            decode.stream(i=x, format=operand_format(kind).value).o
            for x, kind in zip(codes, kinds, strict=True)
        ]
        parts.append((*operands, float32.multiply(*values).view(np.uint32)))
    words = rng.integers(0, 1 << 16, 4 * COUNT, dtype=np.uint32)
    raw = decode.stream(i=words, format=OperandFormat.RAW.value).o
    parts.append((raw, np.full_like(words, PASS.as_value().value), words))
    order = rng.permutation(sum(len(part[0]) for part in parts))
    a, b, term = (np.concatenate(column)[order] for column in zip(*parts, strict=True))
    near = term + rng.integers(-(8 << 23), 8 << 23, term.size).astype(np.uint32)
    c = np.where(rng.random(term.size) < 0.7, near, random_codes(FP32, rng, term.size))
    c = c.astype(np.uint32)
    expected = float32.add(c.view(np.float32), term.view(np.float32)).view(np.uint32)
    return a, b, c, expected


@pytest.mark.parametrize(
    "multiply, add",
    [
        pytest.param(*depth, marks=[] if depth in DEPTHS else [pytest.mark.nightly])
        for depth in EVERY_DEPTH
    ],
)
def test_depth_changes_no_result(vectors, multiply, add):
    a, b, c, expected = vectors
    pe = Pe(multiply_stages=multiply, add_stages=add)
    pe.latency = SWAP_CYCLES + multiply + add

    def late(x, cycles):
        return np.concatenate(
            [np.zeros(cycles, np.uint32), x, np.zeros(SWAP_CYCLES + multiply - cycles, np.uint32)]
        )

    got = (
        compile_unit(pe)
        .stream(
            weight=late(a, 0),
            load=1,
            swap=1,
            moving=late(b, SWAP_CYCLES),
            active=1,
            sum_in=late(c, SWAP_CYCLES + multiply),
        )
        .sum_out[: a.size]
    )
    assert_same(got, expected, seed=SEED, a=a, b=b, c=c)
