"""Verilator lint of the emitted Verilog, all warnings on; sim/waivers.vlt has waivers with reasons.

python -m sim.lint --config small
"""

import argparse
import os
import subprocess
import sys

from hdl.verilog import TOP, chip_verilog
from isa.geometry import PRESETS, GeometryError, preset
from sim.build import ROOT, verilator_binary

WAIVERS = ROOT / "sim" / "waivers.vlt"


def lint(verilog, folder, waivers=WAIVERS):
    """Lint messages of Verilator for a text, [] when it is clean."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{TOP}.sv"
    source.write_text(verilog)
    command = [
        verilator_binary(),
        "--lint-only",
        "-Wall",
        "-Wno-fatal",
        "--top-module",
        TOP,
        str(waivers),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    found = [line for line in done.stderr.splitlines() if line.startswith(("%Warning", "%Error"))]
    if done.returncode and not found:
        found = [f"Verilator ended with {done.returncode}", *done.stderr.splitlines()[-3:]]
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m sim.lint", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--config", default="small", help=f"one of {', '.join(PRESETS)}")
    options = parser.parse_args(arguments)
    try:
        config = preset(options.config)
    except GeometryError as error:
        parser.error(str(error))
    found = lint(chip_verilog(config), ROOT / "build" / "lint" / config.name)
    for line in found[:50]:
        print(line)
    print(f"{config.name}: {len(found)} warnings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
