"""Formats and modes of the tensor engine: rates of loads, changes without a bubble, known cases."""

import numpy as np
import pytest

from isa.dtypes import MATMUL, TRANSPOSED, DType
from isa.fields import Part
from isa.geometry import preset
from verif.tensor_bench import Access, Load, Multiply, TensorBench
from verif.tensor_programs import expected_psum, images

CONFIG = preset("tiny").with_(double_row=1)
P = CONFIG.partitions
PASSES = (
    (Part.LOW, Part.LOW),
    (Part.LOW, Part.HIGH_FINITE),
    (Part.HIGH_FINITE, Part.LOW),
    (Part.HIGH, Part.HIGH),
)


@pytest.fixture(scope="module")
def bench():
    return TensorBench(CONFIG)


def flat(start, count, rows=P):
    return Access(0, rows, start, (count, 1, 1, 1), (1, 0, 0, 0))


def part_of(dtype, part=Part.HIGH):
    return part if dtype == DType.FP32 else Part.FULL


def check(run, program, sbuf, psum):
    differ = np.argwhere(run.psum != expected_psum(program, sbuf, psum))
    assert not len(differ), f"{len(differ)} words differ, first at {differ[0]}"


def zeros():
    return (
        np.zeros((P, CONFIG.sbuf_bytes), np.uint8),
        np.zeros((P, CONFIG.psum_words), np.uint32),
    )


def put(sbuf, byte, values):
    """`values` [P, n] of any type from `byte` on."""
    raw = np.ascontiguousarray(values).view(np.uint8)
    sbuf[:, byte : byte + raw.shape[1]] = raw


@pytest.mark.parametrize("transpose", [0, 1])
@pytest.mark.parametrize("double_row", [0, 1])
def test_beats_of_a_load(bench, double_row, transpose):
    """M / 4 where elements of at most 2 bytes are contiguous and aligned, else M."""
    if double_row and transpose:
        return
    dtypes = TRANSPOSED if transpose else MATMUL
    for dtype in dtypes:
        if double_row and dtype.itemsize > 1:
            continue
        modes = {"dtype": dtype, "part": part_of(dtype)}
        modes |= {"double_row": double_row, "transpose": transpose}
        quick = dtype.itemsize <= 2
        strided = Access(0, P, 0, (P, 1, 1, 1), (2, 0, 0, 0))
        for source, beats in ((flat(8, P), 1 if quick else P), (flat(9, P), P), (strided, P)):
            run = bench.run([Load(source, **modes)], *zeros(), cycle_limit=500)
            assert len(run.cycles["beat"]) == beats, (dtype, source)


@pytest.mark.parametrize("deny", [0, 100])
def test_modes_change_without_a_bubble(bench, deny):
    """Weights of one format and mode are loaded while columns of another go in."""
    kinds = [
        {"dtype": DType.BF16},
        {"dtype": DType.FP8_E4M3FN, "double_row": 1},
        {"dtype": DType.FP32, "part": Part.LOW},
        {"dtype": DType.INT16, "transpose": 1},
        {"dtype": DType.FP8_E5M2},
        {"dtype": DType.FP32, "part": Part.HIGH},
        {"dtype": DType.UINT8, "transpose": 1},
        {"dtype": DType.TF32},
        {"dtype": DType.FP8_E3M4, "double_row": 1},
        {"dtype": DType.FP16},
    ]
    sbuf, psum = images(CONFIG, np.random.default_rng(8))
    n, program = 20, []
    for index in range(40):
        kind = kinds[index % len(kinds)]
        program.append(Load(flat(8 * index, P), **kind))
        other = dict(kinds[(3 * index + 1) % len(kinds)])
        if kind.get("double_row"):
            other = {"dtype": DType.FP8_E4M3, "double_row": 1}
        elif other.get("double_row") or other.get("transpose") or kind.get("transpose"):
            other = {"dtype": DType.BF16, "transpose": kind.get("transpose", 0)}
        program.append(Multiply(flat(16 * index, n), flat(n * (index % 3), n), True, **other))
    run = bench.run(program, sbuf, psum, cycle_limit=20_000, deny=deny, issue_gap=3)
    check(run, program, sbuf, psum)
    columns = run.cycles["column"]
    if not deny:
        assert columns[-1] - columns[0] + 1 == len(columns) == 40 * n


def passes(source, moving, result, which=PASSES):
    for index, (first, second) in enumerate(which):
        yield Load(source, dtype=DType.FP32, part=first)
        yield Multiply(moving, result, index > 0, dtype=DType.FP32, part=second)


def test_four_passes_are_as_good_as_fp32(bench):
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((P, n)).astype(np.float32) for n in (P, 16))
    sbuf, psum = zeros()
    put(sbuf, 0, a)
    put(sbuf, 64, b)
    program = list(passes(flat(0, P), flat(16, 16), flat(0, 16)))
    run = bench.run(program, sbuf, psum, cycle_limit=2_000)
    check(run, program, sbuf, psum)
    got = run.psum[:, :16].view(np.float32)
    a, b = a.astype(np.float64), b.astype(np.float64)
    exact, size = np.einsum("km,kn->mn", a, b), np.einsum("km,kn->mn", abs(a), abs(b))
    assert (abs(got - exact) < 2.0**-22 * size).all()


def test_two_passes_select_fp32_numbers_exactly(bench):
    """A stationary of zeros and ones: HIGH * LOW and HIGH * HIGH."""
    rng = np.random.default_rng(4)
    b = rng.standard_normal((P, 8)).astype(np.float32)
    sbuf, psum = zeros()
    put(sbuf, 0, np.eye(P, dtype=np.float32)[::-1])
    put(sbuf, 64, b)
    which = ((Part.HIGH_FINITE, Part.LOW), (Part.HIGH, Part.HIGH))
    program = list(passes(flat(0, P), flat(16, 8), flat(0, 8), which))
    run = bench.run(program, sbuf, psum, cycle_limit=2_000)
    assert (run.psum[:, :8] == b[::-1].view(np.uint32)).all()


def test_four_by_four_of_1_195(bench):
    """4 * (153 / 128)^2 is exact in FP32; partial sums cut to BF16 are not."""
    sbuf, psum = zeros()
    put(sbuf, 0, np.full((P, 32), 0x3F99, np.uint16))
    program = [Load(flat(0, P)), Multiply(flat(16, 4), flat(0, 4), False)]
    run = bench.run(program, sbuf, psum, cycle_limit=500)
    assert (run.psum[:, :4] == 0x40B6E200).all()


def test_rows_are_added_in_ascending_order(bench):
    """2^24 + 1 + 1 - 2^24: from row 0 on each one is a tie and lost; the other way round is 2."""
    for order, expected in ((1, 0.0), (-1, 2.0)):
        first = np.array([2.0**24, 1, 1][::order], np.float32)
        column = np.append(first, np.float32(-(2.0**24)))
        weights = np.repeat(column[:, None], P, axis=1)
        sbuf, psum = zeros()
        put(sbuf, 0, (weights.view(np.uint32) >> 16).astype(np.uint16))
        put(sbuf, 64, np.full((P, 4), 0x3F80, np.uint16))
        program = [Load(flat(0, P)), Multiply(flat(32, 4), flat(0, 4), False)]
        run = bench.run(program, sbuf, psum, cycle_limit=500)
        assert (run.psum[:, :4].view(np.float32) == expected).all()


def test_a_transpose_passes_nan_codes(bench):
    """Through an identity of any dtype; every code of NaN, infinity and -0 comes out as it is."""
    codes = np.array([[0x7FC0, 0xFFC1, 0x7F81, 0xFF80], [0x8000, 0, 1, 0xFFFF]] * 2, np.uint16)
    for dtype, one in ((DType.BF16, 0x3F80), (DType.FP16, 0x7E01)):
        sbuf, psum = zeros()
        put(sbuf, 0, codes)
        put(sbuf, 64, (np.eye(P) * one).astype(np.uint16))
        program = [
            Load(flat(0, P), dtype=DType.UINT16, transpose=1),
            Multiply(flat(32, P), flat(0, P), False, dtype=dtype, transpose=1),
        ]
        run = bench.run(program, sbuf, psum, cycle_limit=500)
        assert (run.psum[:, :P] == codes.T).all()
