"""Tiles accumulate in PSUM before bias and activation, on the golden model and the whole chip.

The right values are worked out by hand, and so are those of the other order, which activates each
tile by itself: the two must differ, or the test would be blind.
"""

import ml_dtypes
import numpy as np
import pytest

from isa.builder import ProgramBuilder
from isa.dtypes import DType
from sim.device import tensor_of
from sim.golden import run_golden
from sim.script import Job, Timing
from verif.chip_runs import assert_equal, deep, shallow

FIRST = [[2, -1, 3, 0, 255, 0], [1, -1, 0, 1, 1, 2], [1, -1, 0, 0, 0, 0], [-1, 0, 1, 0, 0, 0]]
SECOND = [[-4, 6, 0, -3, 1, 0], [0, -1, 1, 0, 0, 0], [-1, 0, 2, 0, 0, -2], [0, 0, 1, 0, 0, 0]]
"""Moving tiles: with weights of 1 the sums of the columns are 3, -3, 4, 1, 256, 2 and -5, 5, 4, -3,
1, -2.
"""
BIAS = [[0], [1], [-2], [-256]]
"""257, the fifth sum, is not a number of BF16: with -256 added, 1 is left only of an FP32 sum."""

ACCUMULATED = {
    "relu": [
        [0, 2, 8, 0, 257, 0],
        [0, 3, 9, 0, 258, 1],
        [0, 0, 6, 0, 255, 0],
        [0, 0, 0, 0, 1, 0],
    ],
    "square": [
        [4, 4, 64, 4, 66049, 0],
        [1, 9, 81, 1, 66564, 1],
        [16, 0, 36, 16, 65025, 4],
        [66564, 64516, 61504, 66564, 1, 65536],
    ],
}
"""f(first + second + bias)."""
ACTIVATED_FIRST = {
    "relu": [
        [3, 5, 8, 1, 257, 2],
        [4, 6, 10, 2, 259, 3],
        [1, 3, 4, 0, 254, 0],
        [0, 0, 0, 0, 0, 0],
    ],
    "square": [
        [34, 34, 32, 10, 65537, 8],
        [32, 40, 50, 8, 66053, 10],
        [50, 34, 8, 26, 64517, 16],
        [132130, 130082, 127008, 132106, 65025, 131080],
    ],
}
"""f(first + bias) + f(second + bias)."""


def program(config, func):
    """Output `accumulated`: two tiles into one place of PSUM, then `func`; output `each`: `func` of
    either tile, then their sum.
    """
    b = ProgramBuilder(config)
    k, n = np.shape(FIRST)
    for name in ("loaded", "multiplied", "activated", "added"):
        b.semaphore(name)
    arrays = {
        "weights": np.ones((k, k), ml_dtypes.bfloat16),
        "first": np.array(FIRST, ml_dtypes.bfloat16),
        "second": np.array(SECOND, ml_dtypes.bfloat16),
        "bias": np.array(BIAS, np.float32),
    }
    tiles = {}
    for name, array in arrays.items():
        dtype = DType.FP32 if name == "bias" else DType.BF16
        tiles[name] = b.sbuf(name, array.shape, dtype)
        source = b.hbm_tensor(f"{name}_data", array.shape, dtype, "input", array)
        b.dma_copy(
            engine=0, via=b.sync, src=source, dst=tiles[name], update=("loaded", "increment")
        )

    total, *apart = (b.psum(name, (k, n)) for name in ("total", "apart0", "apart1"))
    b.tensor.load_stationary(src0=tiles["weights"], wait=("loaded", len(arrays)))
    moving = tiles["first"], tiles["second"]
    for step, tile in enumerate(moving):
        b.tensor.multiply_moving(src0=tile, dst=total, accumulate=step > 0)
    for tile, place in zip(moving, apart, strict=True):
        b.tensor.multiply_moving(src0=tile, dst=place)
    b.tensor.sem_update(update=("multiplied", "increment"))

    results = [b.sbuf(f"result{i}", (k, n), DType.FP32) for i in range(3)]
    b.scalar.sem_wait(wait=("multiplied", 1))
    for place, result in zip((total, *apart), results, strict=True):
        b.scalar.activation(src0=place, dst=result, func=func, bias=tiles["bias"].column(0))
    b.scalar.sem_update(update=("activated", "increment"))
    both = b.sbuf("both", (k, n), DType.FP32)
    b.vector.tensor_tensor(
        src0=results[1],
        src1=results[2],
        dst=both,
        op0="add",
        wait=("activated", 1),
        update=("added", "increment"),
    )
    b.sync.sem_wait(wait=("added", 1))
    for name, tile in (("accumulated", results[0]), ("each", both)):
        target = b.hbm_tensor(name, (k, n), DType.FP32, "output")
        b.dma_copy(engine=1, via=b.sync, src=tile, dst=target)
    return b.build()


def assert_by_hand(image, run, func):
    for name, expected in (("accumulated", ACCUMULATED), ("each", ACTIVATED_FIRST)):
        found = tensor_of(image, run.tensor(name))
        assert (found == np.array(expected[func], np.float32)).all(), (name, found)


def test_the_orders_differ():
    """Columns of one sign alone (third and fifth) do not tell the orders of relu apart."""
    for func in ACCUMULATED:
        differ = np.array(ACCUMULATED[func]) != ACTIVATED_FIRST[func]
        assert differ[0, [0, 1, 3, 5]].all()
    assert (np.sum(FIRST, 0) + np.sum(SECOND, 0)).tolist() == [-2, 2, 8, -2, 257, 0]


@pytest.mark.parametrize("func", ACCUMULATED)
def test_accumulate_then_activate(func):
    config = shallow("tiny")
    made = program(config, func)
    ((image, _),) = run_golden(config, [Job(made)])
    assert_by_hand(image, made, func)


@pytest.mark.parametrize("func", ACCUMULATED)
@pytest.mark.parametrize("timing", [Timing(), Timing(latency=70, jitter=31, stall=80)])
def test_accumulate_then_activate_on_the_chip(func, timing):
    for config in (shallow("tiny"), deep("tiny")):
        made = program(config, func)
        batch, _ = assert_equal(config, [Job(made)], timing=timing, seed=5)
        assert_by_hand(batch.results[0].image, made, func)
