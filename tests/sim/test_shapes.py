"""24 odd matrix shapes against stall probabilities 0, 20, 50 and 90 % on every memory channel and
internal stream.

Shapes M, N, K with N the reduction: the regression list of an open matrix accelerator whose defects
were all in tails (cases S1 to S6, H26).
"""

import pytest

from celosia.programs.gemm import build_sizes
from sim.device import tensor_of
from sim.script import Job, Timing
from verif.chip_runs import assert_equal, shallow

SHAPES = (
    (96, 96, 96),
    (128, 128, 128),
    (48, 48, 48),
    (12, 16, 16),
    (24, 16, 16),
    (48, 32, 32),
    (30, 32, 17),
    (24, 32, 1),
    (31, 32, 16),
    (17, 32, 16),
    (31, 32, 31),
    (17, 32, 3),
    (5, 32, 17),
    (5, 32, 3),
    (36, 31, 32),
    (12, 31, 16),
    (23, 31, 31),
    (24, 17, 32),
    (24, 20, 32),
    (23, 17, 33),
    (23, 20, 33),
    (3, 11, 32),
    (17, 13, 16),
    (17, 13, 17),
)


@pytest.mark.parametrize("percent", [0, 20, 50, 90])
def test_shapes_under_stalls(percent):
    config = shallow("small")
    cases = [
        build_sizes(config, m, k, n, seed, f"gemm_{m}_{n}_{k}")
        for seed, (m, k, n) in enumerate(SHAPES)
    ]
    stall = 256 * percent // 100
    batch, _ = assert_equal(
        config,
        [Job(case.program) for case in cases],
        timing=Timing(stall=stall, hbm_stall=stall, jitter=15, reorder=percent > 0),
        seed=percent + 1,
    )
    for case, result in zip(cases, batch.results, strict=True):
        case.judge({"out": tensor_of(result.image, case.program.tensor("out"))})


def test_shape_list_is_complete():
    assert len(set(SHAPES)) == 24
