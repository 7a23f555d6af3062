"""channel.sv by itself: `sim/models/channel_bench.py` on both simulators."""

import os
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results

import sim
from sim.build import build_model, runner
from sim.channel import RANDOM, both, inputs
from sim.models import channel_bench

LANES = 4
SOURCE = Path(sim.__file__).parent / "models" / "channel.sv"
COUNTERS = ("errors", "drops", "skips_dropped", "skips_repeated", "overflows")
PUBLIC = (
    "clk",
    "rst",
    *(f"{side}_{name}" for side in "ab" for name in ("tx_data", "tx_enable", "tx_ready")),
    *(f"{side}_{name}" for side in "ab" for name in ("rx_data", "rx_valid", "rx_slip")),
    *(f"{way}_{name}" for way in ("ab", "ba") for name in (*inputs(LANES), *COUNTERS)),
)
TESTS = 12


@pytest.mark.parametrize(
    "simulator", ["verilator", pytest.param("icarus", marks=pytest.mark.icarus)]
)
def test_channel(simulator, tmp_path, monkeypatch):
    model = build_model(
        simulator=simulator,
        sources={"channel.sv": SOURCE.read_text()},
        top="channel",
        public=PUBLIC,
    )
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    results, log = tmp_path / "verdict.xml", tmp_path / "log"
    runner(simulator).test(
        test_module=channel_bench.__name__,
        hdl_toplevel=model.top,
        hdl_toplevel_lang="verilog",
        build_dir=model.directory,
        test_dir=tmp_path,
        results_xml=str(results),
        seed=int(os.environ.get("SEED", "1")),
        extra_env={"COCOTB_LOG_LEVEL": "WARNING"},
        log_file=log,
        timescale=("1ns", "1ps"),
    )
    tests, failed = get_results(results)
    assert (tests, failed) == (TESTS, 0), log.read_text()[-4000:]


def test_plusargs_pack_the_lanes():
    arguments = both(delay=17, skew=(1, 2), invert=(1, 0, 1), error_rate=RANDOM - 1).plusargs(3, 9)
    assert len(arguments) == 2 * len(inputs(LANES))
    for text in ("ab_delay=11", "ba_skew=20001", "ab_invert=5", "ba_error_rate=ffffffff"):
        assert f"+channel3_{text}" in arguments
    assert "+channel3_ab_seed=c" in arguments
