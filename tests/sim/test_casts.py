"""Copies between all dtypes, fills and generators of random words on the whole chip."""

import numpy as np
import pytest

from isa.builder import ProgramBuilder
from isa.dtypes import NARROW, DType
from sim.device import tensor_of
from sim.script import Job, Timing
from verif.chip_runs import assert_equal, shallow
from verif.vectors import FP32, corner_codes

COLUMNS = 128
VARIANTS = ({}, {"sat": 1}, {"stochastic": 1}, {"sat": 1, "stochastic": 1})
SLOW = Timing(latency=70, jitter=31, stall=80)


def codes(dtype, shape):
    """All codes of one byte; else corners and random ones, for floats many near each other."""
    rng = np.random.default_rng(int(dtype))
    if dtype.itemsize == 1:
        return np.arange(np.prod(shape)).astype(np.uint8).reshape(shape)
    kind = np.dtype(f"u{dtype.itemsize}")
    found = rng.integers(0, 1 << (8 * dtype.itemsize), shape).astype(kind)
    numbers = (rng.normal(0, 1, shape) * 2.0 ** rng.integers(-20, 20, shape)).astype(np.float32)
    some = rng.random(shape) < 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        found[some] = numbers[some].astype(dtype.numpy).view(kind)
    if dtype.itemsize == 4:
        corners = corner_codes(FP32)
        found.reshape(-1)[: corners.size] = corners
    return found


def bf16_nans(shape):
    """All 254 codes of NaN, and infinities."""
    found = np.array([0x7F80 + n for n in range(128)] + [0xFF80 + n for n in range(128)])
    return np.resize(found, shape).astype(np.uint16)


class Casts:
    """A program that copies x to tensors `out_<dtype>_<variant>`."""

    def __init__(self, config, dtype, data):
        shape = data.shape
        b = ProgramBuilder(config)
        for name in ("loaded", "done"):
            b.semaphore(name)
        x = b.sbuf("x", shape, dtype)
        source = b.hbm_tensor("data", shape, dtype, "input", data.view(dtype.numpy))
        b.dma_copy(engine=0, via=b.sync, src=source, dst=x, update=("loaded", "increment"))
        b.vector.sem_wait(wait=("loaded", 1))
        copies = []
        for target in DType:
            variants = VARIANTS if target in NARROW and target != dtype else VARIANTS[:1]
            for number, options in enumerate(variants):
                name = f"{target.text}_{number}"
                tile = b.sbuf(name, shape, target)
                b.vector.tensor_copy(src0=x, dst=tile, **options)
                copies.append((tile, b.hbm_tensor(f"out_{name}", shape, target, "output"), None))
        b.vector.sem_update(update=("done", "increment"))
        b.sync.sem_wait(wait=("done", 1))
        b.dma_batch(copies, engine=0, via=b.sync)
        self.program = b.build()


@pytest.mark.parametrize("timing", [Timing(), SLOW], ids=["fast", "slow"])
def test_copies_between_all_dtypes(timing):
    config = shallow("tiny")
    jobs = [Job(Casts(config, d, codes(d, (4, COLUMNS))).program) for d in DType]
    assert_equal(config, jobs, timing=timing, seed=3)


def test_bf16_codes_of_nan_survive_copies_and_become_canonical_in_casts():
    config = shallow("tiny")
    data = bf16_nans((4, COLUMNS))
    program = Casts(config, DType.BF16, data).program
    batch, _ = assert_equal(config, [Job(program)])
    image = batch.results[0].image
    copied = tensor_of(image, program.tensor("out_bf16_0")).view(np.uint16)
    assert (copied == data).all()
    nan = (data & 0x7F) != 0
    fp16 = tensor_of(image, program.tensor("out_fp16_0")).view(np.uint16)
    assert set(fp16[nan].tolist()) == {0x7E00}
    assert set(fp16[~nan].tolist()) == {0x7C00, 0xFC00}
    fp32 = tensor_of(image, program.tensor("out_fp32_0")).view(np.uint32)
    assert (fp32 == data.astype(np.uint32) << 16).all()
    for dtype in (DType.INT8, DType.UINT16, DType.INT32):
        assert (tensor_of(image, program.tensor(f"out_{dtype.text}_0"))[nan] == 0).all()


def fills(config):
    """Fills of every dtype and rounding; states of both engines taken, put back and drawn again."""
    b = ProgramBuilder(config)
    for name in ("vector", "scalar"):
        b.semaphore(name)
    rows, copies = config.partitions, []

    def out(name, shape, dtype):
        tile = b.sbuf(name, shape, dtype)
        copies.append((tile, b.hbm_tensor(f"out_{name}", shape, dtype, "output"), None))
        return tile

    for dtype in DType:
        for number, options in enumerate(VARIANTS if dtype in NARROW else VARIANTS[:1]):
            tile = out(f"{dtype.text}_{number}", (rows, 3, 16), dtype)
            for place, value in enumerate((1 / 3, -1e30, 260.5)):
                b.vector.memset(dst=tile[:, place], imm0=value, **options)
    ones = b.sbuf("ones", (rows, 40), DType.FP32)
    b.vector.memset(dst=ones, imm0=1 + 2**-9)
    b.vector.sem_update(update=("vector", "increment"))
    b.scalar.sem_wait(wait=("vector", 1))
    for stream, name in ((b.vector, "v"), (b.scalar, "s")):
        state, first, second = (
            out(f"state_{name}", (rows, 6), DType.UINT32),
            out(f"first_{name}", (rows, 40), DType.BF16),
            out(f"second_{name}", (rows, 40), DType.BF16),
        )
        for number, dst in enumerate((first, second)):
            if number:
                stream.rand_set_state(src0=state)
            else:
                stream.rand_get_state(dst=state)
            if name == "v":
                stream.tensor_copy(src0=ones, dst=dst, stochastic=1)
            else:
                stream.activation(src0=ones, dst=dst, func="copy", stochastic=1)
    for name in ("vector", "scalar"):
        getattr(b, name).sem_update(update=(name, "increment"))
    b.sync.sem_wait(wait=("vector", 2))
    b.sync.sem_wait(wait=("scalar", 1))
    b.dma_batch(copies, engine=0, via=b.sync)
    return b.build()


def test_fills_and_states_of_the_generators():
    config = shallow("tiny")
    program = fills(config)
    batch, _ = assert_equal(config, [Job(program)])
    image = batch.results[0].image
    for name in ("v", "s"):
        first, second = (
            tensor_of(image, program.tensor(f"out_{which}_{name}")).view(np.uint16)
            for which in ("first", "second")
        )
        assert (first == second).all()
        assert set(first.reshape(-1).tolist()) == {0x3F80, 0x3F81}
