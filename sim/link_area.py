"""Area of one link: `python -m sim.link_area` synthesises `hdl.link.port.LinkCore` (the port
without its VC buffers) with Yosys for Xilinx 7 and prints what it takes, by part.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from hdl.emit import emit
from hdl.link.port import LinkCore
from isa.link import LinkConfig, LinkError
from sim.build import ROOT
from sim.report import mapping_errors, synthesise, table, totals

TOP = "link_core"
FLIP_FLOP_LIMIT = 18_000
"""Flip-flops that a link of 64 B and 8 lanes may take: the OpenCAPI 3.0 DLX takes 17.8 k."""


def link_area(link=None, *, folder=None):
    """{"flip_flops", "luts", "ramb"} of LinkCore, "parts": [(part, {kind: count})] and "errors":
    memories that did not become what they were written for.

    link: LinkConfig, default 64 B a beat on 8 lanes.  ramb: block RAMs of 36 kbit; one of 18 kbit
    counts a half.
    """
    link = link or LinkConfig()
    folder = folder or Path(ROOT) / "build" / "link_area" / f"{link.beat_bytes}x{link.lanes}"
    modules = synthesise(emit(LinkCore(link), TOP), TOP, folder)
    whole = totals(modules, TOP)
    parts = []
    for cell in sorted(modules[TOP]):
        name = cell.lstrip("\\")
        if name in modules:
            label = re.sub(rf"^{TOP}\.", "", name)
            parts.append((label, totals(modules, name)))
    return {
        "flip_flops": whole["FF"],
        "luts": whole["LUT"],
        "ramb": whole["RAMB36"] + whole["RAMB18"] / 2,
        "parts": [*parts, (TOP, whole)],
        "errors": mapping_errors(modules),
    }


def main(arguments=None):
    """Command line; exit status 1 when a memory is mapped wrongly or the link is too large."""
    parser = argparse.ArgumentParser(prog="python -m sim.link_area", description="Area of a link.")
    parser.add_argument("--beat-bytes", type=int, default=64)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="only the figures, as JSON")
    options = parser.parse_args(arguments)
    try:
        link = LinkConfig(beat_bytes=options.beat_bytes, lanes=options.lanes)
    except LinkError as error:
        parser.error(str(error))
    area = link_area(link)
    if options.json:
        print(json.dumps({key: area[key] for key in ("flip_flops", "luts", "ramb")}))
    else:
        print(table(area["parts"]))
        print(f"{area['flip_flops']} flip-flops, {area['luts']} LUTs, {area['ramb']} block RAMs")
    errors = list(area["errors"])
    if area["flip_flops"] >= FLIP_FLOP_LIMIT:
        errors.append(f"{area['flip_flops']} flip-flops, the limit is {FLIP_FLOP_LIMIT}")
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
