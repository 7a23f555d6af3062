"""Runs programs on the RTL: one simulator process executes a list of jobs back to back, without
reset in between.

results = run_jobs(config, [Job(program)], simulator="verilator", timing=Timing(latency=40))
results = run_chips(config, [[Job(near), Job(far)]], channels=[both(delay=20)])
"""

import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cocotb_tools.check_results import get_results

from hdl.verilog import chip_verilog
from isa.geometry import WORD_BYTES
from sim.build import ROOT, build_model, runner
from sim.readout import SimulationError, parse_results
from sim.script import prepare_chips, prepare_directory
from sim.testbench import PAIR, PORTS, TOP, hbm_beats, sources

EMITTED = ROOT / "build" / "emitted"
OVERHEAD_CYCLES = 200_000
"""Most that the host needs to set up a job and to read its registers."""


@dataclass
class Batch:
    """Results of the jobs of one process, simulated cycles in it, wall seconds of the simulator."""

    results: list
    cycles: int
    seconds: float
    directory: Path


def emitted(config, *, checks):
    """Verilog of the simulated chip (with stall input), cached by the sources that make it."""
    key = hashlib.sha256(repr((config, checks)).encode())
    for folder in ("hdl", "isa"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            key.update(path.read_bytes())
    EMITTED.mkdir(parents=True, exist_ok=True)
    path = EMITTED / f"{config.name}-{key.hexdigest()[:16]}.sv"
    if not path.exists():
        text = chip_verilog(config, checks=checks, stall=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(text)
        part.rename(path)
    return path.read_text()


def chip_model(config, *, simulator="verilator", waves=False, checks=True, chips=1, links=()):
    """The built model of the chip of `config`, or of several joined, with its testbench."""
    return build_model(
        simulator=simulator,
        sources=sources(config, emitted(config, checks=checks), chips=chips, links=links),
        top=TOP,
        public=PORTS,
        waves=waves,
        checks=checks,
    )


def run_jobs(
    config, jobs, *, simulator="verilator", seed=1, timing=None, waves=None, checks=True, keep=None
):
    """Run the jobs in order in one simulator process; memories start as zeros and persist between
    jobs.

    waves: path of the FST to write.  keep: folder that keeps script, results and dumps.  Returns a
    Batch.  SimulationError when a job exceeds its cycle limit, the simulator fails or gives no
    verdict.
    """
    model = chip_model(config, simulator=simulator, waves=waves is not None, checks=checks)
    directory, arguments, initial = prepare_directory(
        config, jobs, timing=timing, seed=seed, keep=keep
    )
    hbm = np.zeros(hbm_beats(config) * WORD_BYTES, dtype=np.uint8)
    limit = sum(job.cycle_limit + OVERHEAD_CYCLES for job in jobs)
    start = time.perf_counter()
    _simulate(model, directory, arguments, seed, limit, waves)
    seconds = time.perf_counter() - start
    results, cycles = parse_results(config, directory, jobs, initial, hbm)
    batch = Batch(results, cycles, seconds, directory)
    if not keep:
        shutil.rmtree(directory)
    return batch


def run_chips(
    config,
    rounds,
    *,
    links=PAIR,
    channels=(),
    simulator="verilator",
    seed=1,
    timing=None,
    waves=None,
    checks=True,
    keep=None,
):
    """As run_jobs, for joined chips, all of `config`: rounds of [Job of each chip], one after the
    other without reset; all chips of a round start together and it ends when all are idle.

    links: see `sim.testbench.PAIR`; channels: a `sim.channel.Channel` for each, perfect wires when
    left out.  `results` of the Batch: [[RtlResult of each chip] of each round].
    """
    jobs = [list(own) for own in zip(*rounds, strict=True)]
    model = chip_model(
        config,
        simulator=simulator,
        waves=waves is not None,
        checks=checks,
        chips=len(jobs),
        links=links,
    )
    directory, arguments, initial = prepare_chips(
        config, jobs, links=links, timing=timing, channels=channels, seed=seed, keep=keep
    )
    limit = sum(max(job.cycle_limit for job in jobs) + OVERHEAD_CYCLES for jobs in rounds)
    start = time.perf_counter()
    _simulate(model, directory, arguments, seed, limit, waves)
    seconds = time.perf_counter() - start
    found, cycles = [], 0
    for chip, own in enumerate(jobs):
        hbm = np.zeros(hbm_beats(config) * WORD_BYTES, dtype=np.uint8)
        results, total = parse_results(config, directory / f"chip{chip}", own, initial[chip], hbm)
        found.append(results)
        cycles = max(cycles, total)
    batch = Batch([list(row) for row in zip(*found, strict=True)], cycles, seconds, directory)
    if not keep:
        shutil.rmtree(directory)
    return batch


def _simulate(model, directory, arguments, seed, limit, waves):
    run = runner(model.simulator)
    results = directory / "verdict.xml"
    log = directory / "simulation.log"
    environment = {"CELOSIA_CYCLE_LIMIT": str(limit), "COCOTB_LOG_LEVEL": "WARNING"}
    # The verdict is read below, under pytest too.
    pytest_name = os.environ.pop("PYTEST_CURRENT_TEST", None)
    try:
        run.test(
            test_module="sim.entry",
            hdl_toplevel=model.top,
            hdl_toplevel_lang="verilog",
            build_dir=model.directory,
            test_dir=directory,
            results_xml=str(results),
            seed=seed,
            waves=waves is not None,
            extra_env=environment,
            plusargs=arguments,
            log_file=log,
            timescale=("1ns", "1ps"),
        )
    except SystemExit as stop:
        raise SimulationError(
            f"{model.simulator} stopped with {stop.code}; log in {log}\n{_tail(log)}"
        ) from stop
    finally:
        if pytest_name is not None:
            os.environ["PYTEST_CURRENT_TEST"] = pytest_name
    tests, failed = get_results(results)
    if tests != 1 or failed:
        raise SimulationError(
            f"{failed} of {tests} simulation tests failed; log in {log}\n{_tail(log)}"
        )
    if waves is not None:
        written = [*directory.glob("*.fst"), *model.directory.glob("*.fst")]
        found = max(written, key=os.path.getmtime, default=None)
        if found is None:
            raise SimulationError(f"{model.simulator} wrote no wave file into {directory}")
        Path(waves).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(found, waves)


def _tail(log, lines=15):
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""
