"""The default programs on the RTL: whole image equal to the golden model, on several simulators,
depths and timings.
"""

import pytest

from celosia.programs.library import PROGRAMS
from sim.device import tensor_of
from sim.script import Timing
from verif.chip_runs import assert_equal, deep, library_jobs, shallow

TINY = tuple(name for name in PROGRAMS if name != "mlp_gelu")
"""What runs on an array of 4: the digits twice would take too long."""
SLOW = Timing(latency=150, jitter=63, rate=100, hbm_stall=60, stall=60, reorder=1)


def judged(cases, batch):
    for case, result in zip(cases, batch.results, strict=True):
        outputs = {t.name: tensor_of(result.image, t) for t in case.program.with_role("output")}
        case.judge(outputs)


@pytest.mark.smoke
@pytest.mark.parametrize("timing", [Timing(), SLOW], ids=["fast", "slow"])
@pytest.mark.parametrize("build", [shallow, deep])
def test_tiny_three_times_without_reset(build, timing):
    config = build("tiny")
    cases, jobs = library_jobs(config, TINY, repeat=3)
    batch, _ = assert_equal(config, jobs, timing=timing, seed=7)
    judged(cases, batch)


def test_small_library():
    config = shallow("small")
    cases, jobs = library_jobs(config)
    batch, _ = assert_equal(config, jobs)
    judged(cases, batch)
    for case, result in zip(cases, batch.results, strict=True):
        assert result.cycles >= case.macs / config.array**2


def test_gemm_keeps_the_tensor_engine_busy():
    """256^3 on `small`, first DMA to last: at least 90 % of the array's multiply-accumulates."""
    config = shallow("small")
    cases, jobs = library_jobs(config, ("gemm",))
    batch, _ = assert_equal(config, jobs)
    utilisation = cases[0].macs / config.array**2 / batch.results[0].cycles
    assert utilisation >= 0.90, f"{utilisation:.3f}"


@pytest.mark.icarus
@pytest.mark.smoke
def test_icarus_gives_the_same_and_no_unknown_bits():
    """Dumps with X are refused by sim.rtl, so a pass is an X check of every memory and register."""
    config = shallow("tiny")
    cases, jobs = library_jobs(config, ("odd_gemm",), repeat=2)
    batch, _ = assert_equal(config, jobs, simulator="icarus")
    reference, _ = assert_equal(config, jobs, simulator="verilator")
    judged(cases, batch)
    assert [r.cycles for r in batch.results] == [r.cycles for r in reference.results]


def test_same_seed_same_cycles():
    config = shallow("tiny")
    _, jobs = library_jobs(config, ("odd_gemm",))
    first, second, other = (
        assert_equal(config, jobs, timing=SLOW, seed=seed)[0].results[0].cycles
        for seed in (3, 3, 4)
    )
    assert first == second != other


def test_every_library_program_is_listed():
    matrices = ["gemm_fp8", "gemm_fp32", "gemm_mixed"]
    assert list(PROGRAMS) == ["gemm", "odd_gemm", "digits", "conv", *matrices, "mlp_gelu"]
