"""Verilog and a C++ main, compiled with Verilator to one program, cached by content."""

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

from sim.build import MAKE_VALUES, ROOT, verilator_binary

_BUILD = ROOT / "build" / "verilated"


def build(name, verilog, source, defines, *, control=""):
    """Path of the program that `source` (path of a C++ file with main) and module `name` make.

    The C++ includes "V<name>.h"; `defines` become macros.  Failed assertions stop the program.
    control: lines of a Verilator control file, e.g. what is public.
    """
    source = Path(source)
    facts = [verilog, source.read_text(), repr(sorted(defines.items())), repr(MAKE_VALUES)]
    facts.append(control)
    key = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:20]
    directory = _BUILD / f"{name}-{key}"
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / f"V{name}"
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "ready").exists():
            _compile(directory, name, verilog, source, defines, control)
            (directory / "ready").touch()
    return program


def _compile(directory, name, verilog, source, defines, control):
    design = directory / f"{name}.sv"
    design.write_text(verilog)
    (directory / "control.vlt").write_text(f"`verilator_config\n{control}")
    flags = " ".join(["-O2", *(f"-D{key}={value}" for key, value in defines.items())])
    verilate = [verilator_binary(), "--cc", "--exe", "--assert", "-Mdir", directory]
    verilate += ["--top-module", name, "--prefix", f"V{name}", "-Wno-fatal", "-Wno-lint"]
    verilate += ["--x-assign", "fast", "--x-initial", "fast", "--output-split", "20000"]
    _check([*verilate, "-CFLAGS", flags, directory / "control.vlt", design, source])
    _check(["make", "-C", directory, "-f", f"V{name}.mk", "-j2", *MAKE_VALUES, f"V{name}"])


def _check(command):
    done = subprocess.run(
        command, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")
