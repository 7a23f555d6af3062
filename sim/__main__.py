"""`make sim`: run programs on the RTL and on the golden model and compare the whole memory image.

    python -m sim [--simulator verilator|icarus] [--config small] [--seed 1] [--waves] [PROGRAM ...]

PROGRAM is a name of the library (gemm, odd_gemm, digits, conv), a program file (.celosia) or text
assembly (.casm); without one, the whole library runs.  link_pingpong runs on two chips, over each
condition of the channel between them, on `tiny` when no configuration is given.  Prints a table and
writes build/sim/report.json.  Exit status 0 only when every program ran to its end, was judged good
and left the image that the golden model leaves.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from celosia.programs.case import Case, PairCase
from celosia.programs.library import PAIR_PROGRAMS, PROGRAMS
from golden.schedule import Runaway
from isa.address_map import Sequencer
from isa.assembler import assemble
from isa.encoding import EncodeError, decode
from isa.geometry import PRESETS, Config, GeometryError, preset
from isa.instructions import BY_NAME
from isa.program import ProgramError
from isa.program_file import load
from sim import pair
from sim.build import ROOT, SIMULATORS, SimulatorMissing
from sim.device import GoldenDevice, RtlDevice, Status, run_case, tensor_of
from sim.image import Comparison, compare
from sim.readout import SimulationError

OUT = ROOT / "build" / "sim"


@dataclass
class Verdict:
    """What is known about one program behind its runs."""

    case: Case
    config: Config
    status: Status
    comparison: Comparison
    lines: list
    good: bool

    @property
    def name(self):
        return self.case.name

    def row(self):
        """Entry of report.json."""
        cycles, status = self.status.cycles, self.status
        assert status.simulated_cycles is not None and status.seconds, "a run on the RTL is timed"
        return {
            "name": self.case.name,
            "cycles": cycles,
            "bound_cycles": self.case.bound_cycles,
            "tensor_utilisation": self.case.macs / self.config.array**2 / cycles if cycles else 0.0,
            "match": self.comparison.match,
            "mismatches": self.comparison.count,
            "instructions": sum(s.retired for s in status.image.sequencers.values()),
            "simulated_cycles_per_second": status.simulated_cycles / status.seconds,
        }


def load_case(name, config, seed):
    """The Case of a library name, a program file or an assembly file."""
    for library in (PROGRAMS, PAIR_PROGRAMS):
        if name in library:
            return library[name](config, seed)
    path = Path(name)
    if not path.exists():
        known = ", ".join((*PROGRAMS, *PAIR_PROGRAMS))
        raise ProgramError(f"no program {name!r}", f"give a file or one of {known}")
    program = (
        assemble(path.read_text(), str(path), config)
        if path.suffix == ".casm"
        else load(path, config)
    )
    return Case(path.stem, program, *_work(program))


def config_of(name, given):
    """The Config that a program runs on; given: the name on the command line, or None."""
    if name in PAIR_PROGRAMS:
        config = preset(given or "tiny")
        return config if config.links else config.with_(links=1)
    return preset(given or "small")


def _work(program):
    """(multiply-accumulates, cycles) that the tensor stream of a straight program asks for; 0, 0
    when registers decide.
    """
    stream = program.stream(Sequencer.TENSOR)
    macs = cycles = columns = 0
    for word in stream.words if stream else ():
        try:
            instruction, fields = decode(word)
        except EncodeError:
            return 0, 0
        if not instruction.datapath:
            if instruction.name in ("loop", "branch"):
                return 0, 0
            continue
        if fields["src0.regs"]:
            return 0, 0
        elements = 1
        for i in range(4):
            elements *= fields[f"src0.count{i}"]
        if instruction is BY_NAME["load_stationary"]:
            columns = elements
        else:
            macs += fields["src0.partition_count"] * columns * elements
            cycles += max(elements, program.config.start_up_cycles)
    return macs, cycles


def judge(case, config, golden, rtl):
    """The Verdict of a case that ran on both."""
    comparison = compare(rtl.image, golden.image, case.program)
    lines, good = [], comparison.match
    for label, status in (("golden", golden), ("rtl", rtl)):
        lines += [f"{label}: {error}" for error in status.errors]
        good &= status.ok
        outputs = {t.name: tensor_of(status.image, t) for t in case.program.with_role("output")}
        try:
            lines += [f"{label}: {line}" for line in case.judge(outputs)]
        except AssertionError as error:
            lines.append(f"{label}: {error}")
            good = False
    if not comparison.match:
        lines += str(comparison).splitlines()
    return Verdict(case, config, rtl, comparison, lines, good)


def table(verdicts):
    """Text table of the verdicts."""
    head = ("program", "cycles", "bound", "utilisation", "verdict", "cycles/s")
    rows: list[tuple[str, ...]] = [head]
    for verdict in verdicts:
        row = verdict.row()
        rows.append(
            (
                verdict.name,
                f"{row['cycles']}",
                f"{row['bound_cycles']}",
                f"{row['tensor_utilisation']:.1%}",
                "equal" if verdict.good else "DIFFERENT" if not row["match"] else "FAILED",
                f"{row['simulated_cycles_per_second']:.0f}",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def main(arguments=None):
    options = _parser().parse_args(arguments)
    OUT.mkdir(parents=True, exist_ok=True)
    names = options.programs or list(PROGRAMS)
    report = {"config": options.config, "simulator": options.simulator, "programs": []}
    verdicts, failed = [], False
    try:
        configs = [config_of(name, options.config) for name in names]
        report["config"] = ", ".join(dict.fromkeys(config.name for config in configs))
        cases = [
            (load_case(name, config, options.seed), config)
            for name, config in zip(names, configs, strict=True)
        ]
        for case, config in tqdm(
            cases, unit="program", disable=not sys.stderr.isatty(), leave=False
        ):
            for verdict in _run(case, config, options):
                verdicts.append(verdict)
                report["programs"].append(verdict.row())
    except (
        SimulationError,
        SimulatorMissing,
        ProgramError,
        GeometryError,
        EncodeError,
        Runaway,
        ValueError,
        OSError,
    ) as error:
        print(f"error: {error}", file=sys.stderr)
        failed = True
    (OUT / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    if verdicts:
        print(table(verdicts))
        for verdict in verdicts:
            for line in verdict.lines:
                print(f"{verdict.name}: {line}")
            if options.waves:
                waves = _waves(verdict.name, verdict.config).relative_to(ROOT)
                print(f"{verdict.name}: waves in {waves}")
            if not verdict.good:
                print(f"{verdict.name}: again with make sim {_again(options, verdict)}")
    return int(failed or not verdicts or not all(verdict.good for verdict in verdicts))


def _run(case, config, options):
    """The verdicts of a case."""
    if isinstance(case, PairCase):
        waves = (lambda name: _waves(f"{case.name}, {name}", config)) if options.waves else None
        return pair.run(case, config, simulator=options.simulator, seed=options.seed, waves=waves)
    golden = run_case(GoldenDevice(config), case)
    waves = _waves(case.name, config) if options.waves else None
    rtl = run_case(
        RtlDevice(config, options.simulator, seed=options.seed, waves=waves, checks=False), case
    )
    return [judge(case, config, golden, rtl)]


def _waves(name, config):
    return OUT / f"{name.replace(', ', '-')}-{config.name}.fst"


def _again(options, verdict):
    name = verdict.case.name
    if name not in PROGRAMS and name not in PAIR_PROGRAMS:
        name = " ".join(options.programs)
    config = verdict.config.name
    return f"SIM={options.simulator} CONFIG={config} SEED={options.seed} PROGRAM={name}"


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m sim", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument(
        "programs",
        nargs="*",
        metavar="PROGRAM",
        help=f"{', '.join((*PROGRAMS, *PAIR_PROGRAMS))}, or a .celosia or .casm file",
    )
    parser.add_argument("--simulator", choices=SIMULATORS, default="verilator")
    parser.add_argument(
        "--config", help=f"one of {', '.join(PRESETS)}; small, for link_pingpong tiny"
    )
    parser.add_argument("--seed", type=int, default=1, help="of random data and of the simulation")
    parser.add_argument("--waves", action="store_true", help="record an FST per program")
    return parser


if __name__ == "__main__":
    sys.exit(main())
