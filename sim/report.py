"""`make report`: synthesise with Yosys for Xilinx 7 and print LUT, FF, DSP and RAM by unit.

    python -m sim.report --config small

The hierarchy is kept, so a tile is synthesised once and counted as often as it is used.  The report
fails when a memory does not map to the primitive that it was written for: BlockRam to RAMB, LutRam
to distributed RAM, neither to flip-flops.  Writes build/report/CONFIG.json.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from hdl.verilog import TOP, chip_verilog
from isa.geometry import PRESETS, GeometryError, preset
from sim.build import ROOT

_MAP_LUTS = (
    "opt_expr -mux_undef -noclkinv",
    "abc -luts 2:2,3,6:5",
    "clean",
    "xilinx_srl -fixed -minlen 3",
    "techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6",
    "xilinx_dffopt",
    "opt_lut_ins -tech xilinx",
    "clean",
)
"""The map_luts step of synth_xilinx with `abc`: its `abc9` fails an assertion on our larger modules
(Yosys 0.70).
"""

_YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""
"""Runs passes in a process of their own: an error of Yosys ends the process."""

KINDS = {
    "LUT": re.compile(r"LUT[1-6]$"),
    "FF": re.compile(r"FD[RSCP]E(_1)?$"),
    "DSP": re.compile(r"DSP48E1$"),
    "RAMB36": re.compile(r"RAMB36E1$"),
    "RAMB18": re.compile(r"RAMB18E1$"),
    "LUTRAM": re.compile(r"RAM(32|64|128|256)(M|X1[SD])$"),
    "SRL": re.compile(r"SRL"),
    "CARRY4": re.compile(r"CARRY4$"),
}


def synthesise(verilog, top, folder):
    """Module statistics of Yosys: {module: {cell type: count}}, hierarchy kept."""
    folder.mkdir(parents=True, exist_ok=True)
    source, stat, log = folder / f"{top}.sv", folder / f"{top}.stat.json", folder / f"{top}.log"
    source.write_text(verilog)
    commands = (
        f"read_verilog -sv {source}",
        f"synth_xilinx -family xc7 -top {top} -run begin:map_luts",
        *_MAP_LUTS,
        f"tee -q -o {stat} stat -json",
    )
    with open(log, "w") as output:
        done = subprocess.run(
            [sys.executable, "-c", _YOSYS, *commands],
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"Yosys ended with {done.returncode}, log in {log}")
    modules = json.loads(stat.read_text())["modules"]
    return {name.lstrip("\\"): facts["num_cells_by_type"] for name, facts in modules.items()}


def totals(modules, name, cache=None):
    """{kind: count} of a module with everything below it."""
    cache = {} if cache is None else cache
    if name not in cache:
        found = dict.fromkeys(KINDS, 0)
        for cell, count in modules.get(name, {}).items():
            cell = cell.lstrip("\\")
            if cell in modules:
                for kind, below in totals(modules, cell, cache).items():
                    found[kind] += count * below
            for kind, pattern in KINDS.items():
                if pattern.match(cell):
                    found[kind] += count
        cache[name] = found
    return cache[name]


def mapping_errors(modules):
    """Memories that did not become the primitive that they were written for."""
    errors = []
    for name in modules:
        own = totals(modules, name)
        if name.startswith("blockram_") and own["RAMB36"] + own["RAMB18"] == 0:
            errors.append(f"{name} is block RAM by design and maps to {own}")
        if name.startswith("lutram_") and (own["FF"] or own["LUTRAM"] == 0):
            errors.append(f"{name} is distributed RAM by design and maps to {own}")
    return errors


def units(modules, top=TOP):
    """[(unit, {kind: count})]: the parts of the chip and of the core, then the whole chip."""
    rows = []
    for parent in (f"{top}.core", top):
        for cell, count in sorted(modules.get(parent, {}).items()):
            cell = cell.lstrip("\\")
            if cell in modules and cell != f"{top}.core":
                label = cell.removeprefix(f"{top}.").removeprefix("core.")
                found = {kind: count * n for kind, n in totals(modules, cell).items()}
                if any(found.values()):
                    rows.append(
                        (label.split("_")[0] if label.startswith("dmaengine") else label, found)
                    )
    rows.append(("chip", totals(modules, top)))
    return rows


def table(rows):
    """Text table of `units`."""
    width = max(len(label) for label, _ in rows) + 2
    lines = ["unit".ljust(width) + "".join(kind.rjust(9) for kind in KINDS)]
    lines += [
        label.ljust(width) + "".join(f"{found[kind]:9d}" for kind in KINDS) for label, found in rows
    ]
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m sim.report", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--config", default="small", help=f"one of {', '.join(PRESETS)}")
    options = parser.parse_args(arguments)
    try:
        config = preset(options.config)
    except GeometryError as error:
        parser.error(str(error))
    folder = Path(ROOT) / "build" / "report" / config.name
    modules = synthesise(chip_verilog(config), TOP, folder)
    rows = units(modules)
    print(table(rows))
    (folder.parent / f"{config.name}.json").write_text(json.dumps(dict(rows), indent=1) + "\n")
    errors = mapping_errors(modules)
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
