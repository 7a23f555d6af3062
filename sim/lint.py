"""Verilator lint of the emitted Verilog, all warnings on; sim/waivers.vlt has waivers with reasons.

python -m sim.lint --config small
"""

import argparse
import os
import re
import subprocess
import sys

from hdl.verilog import TOP, chip_verilog
from isa.geometry import PRESETS, GeometryError, preset
from sim.build import ROOT, verilator_binary

WAIVERS = ROOT / "sim" / "waivers.vlt"
_FLAT_EDGE = 32
"""Arrays up to this edge are linted flat."""


def lint(verilog, folder, waivers=WAIVERS, top=TOP):
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
        top,
        str(waivers),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    found = [line for line in done.stderr.splitlines() if line.startswith(("%Warning", "%Error"))]
    if done.returncode and not found:
        found = [f"Verilator ended with {done.returncode}", *done.stderr.splitlines()[-3:]]
    return found


_TILE = re.compile(r"(?:perow|partitiongroup)_")
_MODULE = re.compile(r"^(?=(?:\(\*[^\n]*\*\)\n)*module )", re.MULTILINE)
_PORT = re.compile(r"^ *(input|output) (\[[^\]]+\] )?(\\?\S+?) ?;", re.MULTILINE)


def lint_by_tile(verilog, folder):
    """As `lint`, tile by tile: the large tiles alone, then the chip with stubs in their place.

    Every module is linted with the parameters that it has, but the 128 x 128 array is not
    flattened, which would take Verilator longer than anybody waits.
    """
    modules = {}
    for part in _MODULE.split(verilog):
        found = re.search(r"^module (\\?\S+?) ?\(", part, re.MULTILINE)
        if found:
            modules[found.group(1)] = part
    tiles = [name for name in modules if _TILE.match(name)]
    messages = []
    for name in tiles:
        messages += lint(verilog, folder, top=name)
    stubbed = "".join(_stub(text) if name in tiles else text for name, text in modules.items())
    return messages + lint(stubbed, folder)


def _stub(module):
    lines = [module[: module.index(");") + 2]]
    for direction, width, name in _PORT.findall(module):
        lines.append(f"  {direction} {width}{name} ;")
        if direction == "output":
            lines.append(f"  assign {name} = '0;")
    return "\n".join([*lines, "endmodule\n"])


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
    check = lint if config.array <= _FLAT_EDGE else lint_by_tile
    found = check(chip_verilog(config), ROOT / "build" / "lint" / config.name)
    for line in found[:50]:
        print(line)
    print(f"{config.name}: {len(found)} warnings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
