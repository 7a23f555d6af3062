"""Activations of every function in a program of the whole chip, against the golden model."""

import numpy as np

from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.fields import Function
from sim.script import Job, Timing
from verif.chip_runs import assert_equal, deep, shallow
from verif.vectors import FP32, random_codes

COLUMNS = 37
SLOW = Timing(latency=90, jitter=31, stall=80)
ARGUMENTS = ({}, {"scale": 0.75, "bias": -0.5}, {"imm2": 0.125})


def program(config, seed):
    """x -> every function -> y; chains in place and through PSUM and BF16; a state put back."""
    rng = np.random.default_rng(seed)
    edge, count = config.array, len(Function)
    data = rng.normal(0, 3, (edge, COLUMNS)).astype(np.float32)
    data[:, ::5] = random_codes(FP32, rng, data[:, ::5].size).view(np.float32).reshape(edge, -1)
    b = ProgramBuilder(config)
    x = b.sbuf("x", data.shape, DType.FP32)
    y = b.sbuf("y", (edge, count, COLUMNS), DType.BF16)
    scale = b.sbuf("scale", (edge, 1), DType.FP32)
    state = b.sbuf("state", (edge, 6), DType.UINT32)
    z = b.psum("z", data.shape, bank=1)
    out = b.hbm_tensor("out", (edge, count, COLUMNS), DType.BF16, "output")
    for name in ("loaded", "done"):
        b.semaphore(name)
    columns = rng.normal(0, 1, (edge, 1)).astype(np.float32)
    b.dma_batch(
        [
            (b.hbm_tensor("s", columns.shape, DType.FP32, "input", columns), scale, None),
            (
                b.hbm_tensor("data", data.shape, DType.FP32, "input", data),
                x,
                ("loaded", "increment"),
            ),
        ],
        engine=0,
        via=b.sync,
    )
    b.scalar.sem_wait(wait=("loaded", 1))
    b.scalar.rand_get_state(dst=state)
    for index, function in enumerate(Function):
        options = ARGUMENTS[index % len(ARGUMENTS)]
        b.scalar.activation(src0=x, dst=y[:, index], func=function, stochastic=index % 2, **options)
    b.scalar.rand_set_state(src0=state)
    for function in (Function.TANH, Function.COPY, Function.EXP, Function.SOFTPLUS):
        b.scalar.activation(src0=x, dst=z, func=function, scale=scale.column(0))
        b.scalar.activation(src0=z, dst=x, func=Function.SILU)
        b.scalar.activation(src0=x, dst=y[:, 3], func=Function.GELU, stochastic=1)
        b.scalar.activation(src0=z, dst=z, func=function, bias=scale.column(0))
    b.scalar.sem_update(update=("done", "increment"))
    b.sync.sem_wait(wait=("done", 1))
    b.dma_copy(engine=0, via=b.sync, src=y, dst=out)
    return b.build()


def test_every_function_on_the_chip():
    """Results do not depend on pipeline depth and stalls either."""
    for config in (shallow("tiny"), deep("tiny")):
        jobs = [Job(program(config, seed), {}) for seed in (1, 2)]
        assert_equal(config, jobs)
        assert_equal(config, jobs, timing=SLOW, seed=5)
