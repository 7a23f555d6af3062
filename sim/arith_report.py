"""`make arith-report`: what the arithmetic units cost and how fast they are.

    python -m sim.arith_report [--page | --bars] [unit | fmaxN ...]

Synthesises each unit of `sim.arith_units` with Yosys for Xilinx 7, places it, and the PE of 1 to 8
stages, on an ECP5 (`sim.fmax`), writes docs/arithmetic.json, and from it and the docstrings of the
units docs/arithmetic.md and docs/arithmetic-fmax.png.  With names only those are measured anew,
with --page nothing is.  With --bars the units that have bars are synthesised, and nothing is
written.  Exit status 1 when a figure misses its bar.
"""

import argparse
import inspect
import json
import re
import sys

from tqdm import tqdm

from hdl.emit import emit
from sim.arith_units import UNITS
from sim.build import ROOT
from sim.fmax import SEEDS, SPLITS, at_stages, fmax
from sim.report import synthesise, totals

DATA = ROOT / "docs" / "arithmetic.json"
PAGE = DATA.with_suffix(".md")
PLOT = DATA.with_name("arithmetic-fmax.png")
FUNCTIONS = DATA.with_name("functions.json")
OUT = ROOT / "build" / "arith"
KINDS = ("LUT", "FF", "DSP", "RAMB36", "RAMB18", "LUTRAM")
FMAX_BAR, FMAX_STAGES = 65.0, 8
"""MHz of a PE, at least, with this number of stages."""
_POINTS = {f"fmax{stages}": stages for stages in SPLITS}
_TABLES = ("exp", "log", "sqrt", "rsqrt", "reciprocal")


def measure(name):
    """{kind: count, "stages", "latency", "rate"} of a unit of `UNITS`, by Yosys alone."""
    unit = UNITS[name]
    label = _label(name)
    found = totals(synthesise(emit(unit.build(), label), label, OUT / label), label)
    figures = {kind: found[kind] for kind in KINDS}
    return figures | {"stages": unit.stages, "latency": unit.cycles, "rate": unit.rate}


def frequency(name):
    """MHz of a unit of `UNITS` between registers, its slowest placement."""
    unit = UNITS[name]
    return fmax(unit.build(), OUT / "fmax" / _label(name), loops=unit.loops)["MHz"]


def _label(name):
    return re.sub(r"\W+", "_", name.lower())


def misses(data):
    """Texts of the figures that miss their bars, of those that are in `data`."""
    texts = []
    for name, figures in data["units"].items():
        for kind, bar in UNITS[name].bars.items():
            if figures[kind] > bar:
                texts.append(f"{name}: {figures[kind]} {kind}, at most {bar} are allowed")
    for point in data["fmax"]:
        if point["stages"] == FMAX_STAGES and point["MHz"] < FMAX_BAR:
            texts.append(f"PE of {FMAX_STAGES} stages: {point['MHz']} MHz, at least {FMAX_BAR}")
    return texts


def page(data):
    """Text of docs/arithmetic.md."""
    head = """\
# Arithmetic units

Written by `make arith-report` (`python -m sim.arith_report --page` from the figures of
docs/arithmetic.json alone); do not edit. What every operation gives is defined in
[numerics](numerics.md); the units equal `golden/arith` bit for bit, and what is
[proved](formal.md) of them holds for every operand.

LUT6, flip-flops and DSP blocks by Yosys for Xilinx 7, with the stages that the preset `small` has
(RAM: block RAMs of 18 kbit). Latency: cycles from operands to result; rate: results a cycle; MHz:
on an ECP5, between registers. Errors are against the exact result.

| unit | computes | formats | error | LUT | bar | FF | DSP | RAM | stages | latency | rate | MHz |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""
    lines = []
    for name, f in data["units"].items():
        unit = UNITS[name]
        ram = 2 * f["RAMB36"] + f["RAMB18"]
        cells = (name, f"`{unit.formula}`", unit.formats, _error(unit), f["LUT"])
        cells += (unit.bars.get("LUT", ""), f["FF"], f["DSP"], ram)
        stages = f["stages"] if unit.latency is None else ""
        cells += (stages, f["latency"], f["rate"], f["MHz"])
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    text = head + "\n".join(lines) + "\n\n## Clock frequency of a PE\n\n"
    text += f"""\
On an ECP5 (LFE5U-85F-6) by Yosys and nextpnr, out of context, as in the table above; the sum goes
from PE to PE as in a column. Bar: {FMAX_BAR:g} MHz at {FMAX_STAGES} stages; seeds of the placer:
{", ".join(map(str, SEEDS))}; the slowest placement counts.
Faster devices are faster throughout; what the curve shows is what a stage is worth.

| stages | multiplier | adder | MHz | LUT4 | FF |
|---|---|---|---|---|---|
"""
    keys = ("stages", "multiply", "add", "MHz", "LUT4", "FF")
    for point in data["fmax"]:
        text += "| " + " | ".join(str(point[key]) for key in keys) + " |\n"
    text += f"\n![MHz over stages]({PLOT.name})\n\n## What the units promise\n"
    told = set()
    for name, unit in UNITS.items():
        part = unit.part
        if part not in told:
            told.add(part)
            where = f"../{part.__module__.replace('.', '/')}.py"
            text += f"\n### [`{part.__name__}`]({where}): {name}\n\n{promise(part)}\n"
    return text


def promise(part):
    """A docstring up to its list of parameters or members."""
    text = inspect.getdoc(part) or ""
    return re.split(r"\n(?:Parameters|Members|Attributes)\n-+\n", text)[0].strip()


def _error(unit):
    if unit.error != "{functions}":
        return unit.error
    found = json.loads(FUNCTIONS.read_text())
    worst = []
    for name in _TABLES:
        facts = found[name]["fp32"]
        # Beside a zero of the function ulps say nothing.
        beside_zero = facts["worst"] > 100
        error = f"{facts['absolute']:.1e} absolute" if beside_zero else f"{facts['worst']:.2f} ulp"
        worst.append(f"{name} {error}")
    return ", ".join(worst) + " ([functions](functions.md))"


def plot(points, path):
    """MHz over stages."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    stages, rates = zip(*((point["stages"], point["MHz"]) for point in points), strict=True)
    axes.plot(stages, rates, "o-")
    for point in points:
        text = f"{point['multiply']} + {point['add']}"
        at = (point["stages"], point["MHz"])
        axes.annotate(text, at, xytext=(0, -14), textcoords="offset points", ha="center")
    axes.axhline(
        FMAX_BAR,
        color="gray",
        linestyle="--",
        label=f"bar at {FMAX_STAGES} stages: {FMAX_BAR:g} MHz",
    )
    axes.set_xlabel("register stages of a PE (multiplier + adder)")
    axes.set_ylabel("MHz")
    axes.set_ylim(0)
    axes.set_title("Processing element on an ECP5, speed grade 6")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _remeasure(name):
    """Put figures into docs/arithmetic.json, in the order of UNITS and SPLITS."""
    if name in _POINTS:
        figures = at_stages(_POINTS[name], OUT / "fmax")
    else:
        figures = measure(name) | {"MHz": frequency(name)}
    data = json.loads(DATA.read_text()) if DATA.exists() else {"units": {}, "fmax": []}
    if name in _POINTS:
        kept = [other for other in data["fmax"] if other["stages"] != figures["stages"]]
        data["fmax"] = sorted([*kept, figures], key=lambda point: point["stages"])
    else:
        units = data["units"] | {name: figures}
        data["units"] = {name: units[name] for name in UNITS if name in units}
    DATA.write_text(json.dumps(data, indent=1) + "\n")


def _told(missed):
    """Prints what is missed; the exit status."""
    for text in missed:
        print(f"error: {text}", file=sys.stderr)
    return int(bool(missed))


def _measure_bars():
    """Synthesises and prints the units with bars; gives the exit status."""
    found = {}
    for name, unit in UNITS.items():
        if unit.bars:
            found[name] = measure(name)
            cells = (f"{found[name][kind]} {kind} of {bar}" for kind, bar in unit.bars.items())
            print(f"{name:18}{', '.join(cells)}", flush=True)
    return _told(misses({"units": found, "fmax": []}))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m sim.arith_report", description="Figures.")
    known = [*UNITS, *_POINTS]
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    parser.add_argument("--bars", action="store_true", help="only synthesise units with bars")
    parser.add_argument("names", nargs="*", metavar="unit", help=f"of {', '.join(known)}")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in known:
            parser.error(f"no unit {name!r}; there are {', '.join(known)}")
    if options.bars:
        return _measure_bars()
    if not options.page:
        for name in tqdm(options.names or known, disable=not sys.stderr.isatty(), leave=False):
            _remeasure(name)
    data = json.loads(DATA.read_text())
    if data["fmax"]:
        plot(data["fmax"], PLOT)
    PAGE.write_text(page(data))
    for name, figures in data["units"].items():
        print(f"{name:18}" + "".join(f"{kind:>8} {figures[kind]:>4}" for kind in KINDS[:3]))
    for point in data["fmax"]:
        print(f"PE of {point['stages']} stages: {point['MHz']} MHz")
    return _told(misses(data))


if __name__ == "__main__":
    sys.exit(main())
