"""The golden tensor engine on bytes in memory: formats, parts, pairs, transpose."""

import ml_dtypes
import numpy as np
import pytest

from golden.access import Access
from golden.engines.tensor import TensorEngine
from golden.memory import Memories
from golden.operation import Operation
from isa.dtypes import DType
from isa.fields import Part, Space
from isa.geometry import preset

CONFIG = preset("tiny").with_(double_row=1)
P = CONFIG.partitions


class Machine:
    """A tensor engine with memories; operands start at a byte of SBUF, results at PSUM 0."""

    def __init__(self):
        self.memories = Memories(CONFIG)
        self.engine = TensorEngine(self.memories)

    def put(self, byte, values):
        raw = np.ascontiguousarray(values).view(np.uint8)
        self.memories.sbuf.bytes[: len(raw), byte : byte + raw.shape[1]] = raw

    def run(self, name, byte, shape, dtype, *, m=0, **options):
        options = {"part": Part.FULL, "double_row": 0, "transpose": 0, "accumulate": 0} | options
        pairs = bool(options["double_row"])
        dims = ((1, 1), (1, 1), (1, 1), (1, shape[1]))
        source = Access(Space.SBUF, dtype, 0, shape[0], byte, dims, pairs)
        result = Access(Space.PSUM, DType.FP32, 0, m, 0, dims) if m else None
        operation = Operation(name, source, None, result, None, None, options, False)
        getattr(self.engine, name)(operation)

    def result(self, m, n):
        return np.ascontiguousarray(self.memories.psum.bytes[:m, : 4 * n]).view(np.float32)


@pytest.mark.parametrize(
    "dtype", [DType.BF16, DType.FP16, DType.FP8_E5M2, DType.FP8_E4M3, DType.FP8_E3M4]
)
def test_mixed_formats(dtype):
    """Weights of one format, moving elements in TF32: small integers are exact."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(-7, 8, (P, 3)), rng.integers(-7, 8, (P, 5))
    machine = Machine()
    machine.put(8, a.astype(np.float32).astype(dtype.numpy))
    machine.put(64, b.astype(np.float32))
    machine.run("load_stationary", 8, (P, 3), dtype)
    assert machine.engine.shape == (P, 3, 0, 0)
    machine.run("multiply_moving", 64, (P, 5), DType.TF32, m=3)
    assert (machine.result(3, 5) == np.einsum("km,kn->mn", a, b)).all()
    machine.run("multiply_moving", 64, (P, 5), DType.TF32, m=3, accumulate=1)
    assert (machine.result(3, 5) == 2 * np.einsum("km,kn->mn", a, b)).all()


def test_halves_of_fp32():
    machine = Machine()
    value = np.full((1, 1), 1 + 2.0**-20, np.float32)
    machine.put(0, value)
    machine.put(64, np.array([[1, 2]], np.float32))
    for part, expected in ((Part.HIGH, 1), (Part.LOW, 2.0**-20), (Part.HIGH_FINITE, 1)):
        machine.run("load_stationary", 0, (1, 1), DType.FP32, part=part)
        machine.run("multiply_moving", 64, (1, 2), DType.FP32, m=1, part=Part.HIGH)
        assert (machine.result(1, 2) == [[expected, 2 * expected]]).all()


def test_the_first_of_a_pair_lies_first():
    """Products of first with first and second with second, no other."""
    machine = Machine()
    form = ml_dtypes.float8_e4m3fn
    machine.put(0, np.array([[1, 2, 3, 4]], np.float32).astype(form))
    machine.put(64, np.array([[1, 16]], np.float32).astype(form))
    machine.run("load_stationary", 0, (1, 2), DType.FP8_E4M3FN, double_row=1)
    assert machine.engine.shape == (1, 2, 1, 0)
    machine.run("multiply_moving", 64, (1, 1), DType.FP8_E4M3FN, m=2, double_row=1)
    assert (machine.result(2, 1) == [[1 + 32], [3 + 64]]).all()


def test_transposed_integers_are_extended_with_zeros():
    machine = Machine()
    machine.put(0, np.array([[-1, 2], [3, -128]], np.int8))
    machine.put(64, np.eye(2, dtype=np.float16))
    machine.run("load_stationary", 0, (2, 2), DType.INT8, transpose=1)
    assert machine.engine.shape == (2, 2, 0, 1)
    machine.run("multiply_moving", 64, (2, 2), DType.FP16, m=2, transpose=1)
    assert (machine.result(2, 2).view(np.uint32) == [[0xFF, 3], [2, 0x80]]).all()


def test_a_load_keeps_a_copy_and_start_forgets_it():
    machine = Machine()
    for transpose in (0, 1):
        machine.put(0, np.array([[2]], np.float16))
        machine.put(64, np.array([[3]], np.float16))
        machine.run("load_stationary", 0, (1, 1), DType.FP16, transpose=transpose)
        machine.put(0, np.array([[9]], np.float16))
        machine.run("multiply_moving", 64, (1, 1), DType.FP16, m=1, transpose=transpose)
        got = machine.result(1, 1)
        assert (got.view(np.uint32) == 0x4000).all() if transpose else (got == 6).all()
    machine.engine.start()
    assert machine.engine.shape is None
