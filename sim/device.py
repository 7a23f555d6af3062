"""One device API for the golden model and the simulated RTL.

    device = open_device("verilator", preset("small"))     # or "icarus", "golden"
    device.load("program.celosia")
    device.write("x", array)
    status = device.run()
    y = device.read("y")

Each `run` starts from memories of zeros plus the program and the tensors written; `repeat` runs the
program several times without reset, memories persisting.  The state behind the last run is
`status.image`.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from golden.chip import GoldenChip
from isa.address_map import Cause, State
from isa.program import Program, tensor_bytes
from isa.program_file import load
from sim.build import SIMULATORS
from sim.golden import golden_image, run_golden_chips
from sim.image import Image
from sim.rtl import run_chips, run_jobs
from sim.script import CYCLE_LIMIT, Job, Timing

KINDS = ("golden", *SIMULATORS)


@dataclass
class Status:
    """Outcome of the last run: the image, errors in words, cycles (None on the golden model) and
    further counters.
    """

    image: Image
    errors: list
    cycles: int | None = None
    tensor_columns: int | None = None
    tensor_loads: int | None = None
    seconds: float | None = None
    simulated_cycles: int | None = None
    links: list = field(default_factory=list)
    """{name: value} of each link port, see `sim.readout.RtlResult` (RTL only)"""

    @property
    def ok(self):
        """Every sequencer that ran halted and nothing failed."""
        return not self.errors


class Device:
    """What both kinds of device share.  `config` is an isa.geometry.Config."""

    def __init__(self, config):
        self.config = config
        self.program = None
        self._inputs = {}
        self._status = None

    def load(self, program):
        """Take a program: a path of a program file or a Program.  ProgramError when it does not fit
        this chip.
        """
        if not isinstance(program, Program):
            program = load(Path(program), self.config)
        elif program.arch_hash != self.config.arch_hash:
            raise ValueError(
                f"program for configuration {program.config_name!r} ({program.arch_hash:#x}); "
                f"this chip is {self.config.name!r} ({self.config.arch_hash:#x})"
            )
        self.program, self._inputs, self._status = program, {}, None

    def write(self, name, array):
        """Set the HBM tensor `name` for the next run; ValueError when shape or dtype differ."""
        tensor_bytes(self._tensor(name), array)
        self._inputs[name] = array

    def read(self, name):
        """The tensor `name` as it was left by the last run: numpy array of its shape and dtype."""
        if self._status is None:
            raise ValueError(f"read({name!r}): the program has not run yet")
        return tensor_of(self._status.image, self._tensor(name))

    def run(self, *, repeat=1, cycle_limit=CYCLE_LIMIT):
        """Run the program `repeat` times without reset; returns the Status of the last run."""
        if self.program is None:
            raise ValueError("run: no program is loaded")
        self._status = self._run(repeat, cycle_limit)
        return self._status

    def _tensor(self, name):
        if self.program is None:
            raise ValueError(f"tensor {name!r}: no program is loaded")
        return self.program.tensor(name)

    def _run(self, repeat, cycle_limit):
        raise NotImplementedError


class GoldenDevice(Device):
    """The golden model, with its race checker."""

    def _run(self, repeat, cycle_limit):
        chip = GoldenChip(self.config, on_hazard="report")
        for _ in range(repeat):
            result = chip.run(self.program, self._inputs)
        return Status(golden_image(chip, result), result.errors())


class RtlDevice(Device):
    """The RTL in a simulator.  timing: of the memory model; waves: path of an FST to write."""

    def __init__(self, config, simulator, *, seed=1, timing=None, waves=None, checks=True):
        super().__init__(config)
        self._options = {
            "simulator": simulator,
            "seed": seed,
            "timing": timing or Timing(),
            "waves": waves,
            "checks": checks,
        }

    def _run(self, repeat, cycle_limit):
        batch = run_jobs(
            self.config,
            [Job(self.program, self._inputs, cycle_limit=cycle_limit)] * repeat,
            **self._options,
        )
        last = batch.results[-1]
        return Status(
            last.image,
            image_errors(self.program, last.image),
            last.cycles,
            last.tensor_columns,
            last.tensor_loads,
            batch.seconds,
            batch.cycles,
            last.links,
        )


def open_device(kind, config, **options):
    """A Device by name: golden, verilator or icarus; options of RtlDevice."""
    if kind == "golden":
        if options:
            raise ValueError(f"the golden model takes no option {', '.join(options)}")
        return GoldenDevice(config)
    if kind not in SIMULATORS:
        raise ValueError(f"no device {kind!r}; choose one of {', '.join(KINDS)}")
    return RtlDevice(config, kind, **options)


def run_pair(
    kind,
    config,
    programs,
    inputs=({}, {}),
    *,
    channel=None,
    cycle_limit=CYCLE_LIMIT,
    **options,
):
    """Run two Programs on two chips of `config`, whose ports 0 a link joins; returns the Status of
    each chip.

    kind: golden, verilator or icarus; inputs: {tensor name: array} for each; channel: a
    `sim.channel.Channel`, perfect wires when None; options: of RtlDevice.
    """
    jobs = [
        Job(program, dict(values), cycle_limit=cycle_limit)
        for program, values in zip(programs, inputs, strict=True)
    ]
    if kind == "golden":
        if options or channel:
            raise ValueError("the golden model takes no channel and no options")
        (found,) = run_golden_chips(config, [jobs], on_hazard="report")
        return [Status(image, result.errors()) for image, result in found]
    if kind not in SIMULATORS:
        raise ValueError(f"no device {kind!r}; choose one of {', '.join(KINDS)}")
    channels = (channel,) if channel else ()
    batch = run_chips(config, [jobs], channels=channels, simulator=kind, **options)
    return [
        Status(
            result.image,
            image_errors(program, result.image),
            result.cycles,
            result.tensor_columns,
            result.tensor_loads,
            batch.seconds,
            batch.cycles,
            result.links,
        )
        for program, result in zip(programs, batch.results[0], strict=True)
    ]


def tensor_of(image, tensor):
    """Elements of a Tensor in an Image, numpy array of its shape and dtype."""
    if tensor.space == "hbm":
        content = image.hbm[tensor.address : tensor.address + tensor.size_bytes]
    else:
        rows = slice(tensor.partition, tensor.partition + tensor.shape[0])
        content = getattr(image, tensor.space)[
            rows, tensor.address : tensor.address + tensor.row_bytes
        ]
    return np.ascontiguousarray(content).reshape(-1).view(tensor.dtype.numpy).reshape(tensor.shape)


def image_errors(program, image):
    """One line per failed sequencer, DMA engine and semaphore: engine, instruction, cause, what it
    waited for.
    """
    lines = []
    for sequencer, status in image.sequencers.items():
        if status.state != State.ERROR:
            continue
        stream = program.stream(sequencer)
        source = stream.line(status.pc) if stream else ""
        text = (
            f"{sequencer.text}[{status.pc}]{f' ({source})' if source else ''}: {status.cause.name}"
        )
        if status.cause == Cause.WAIT_TIMEOUT:
            names = {index: name for name, index in program.semaphores.items()}
            name = names.get(status.wait_semaphore)
            value = image.semaphores[status.wait_semaphore]
            shown = f" ({name})" if name else ""
            text += (
                f": waits for semaphore {status.wait_semaphore}{shown} >= {status.wait_value}, "
                f"it is {value}"
            )
        lines.append(text)
    for index, status in enumerate(image.dma):
        if status.cause:
            lines.append(
                f"dma{index}: cause {status.cause} at descriptor {status.error_address:#x}"
            )
    if image.semaphore_error:
        lines.append(f"semaphore {image.semaphore_error & 0xFF} overflowed")
    return lines


def run_case(device, case):
    """Load and run a `celosia.programs.case.Case`; returns its Status."""
    device.load(case.program)
    for name, array in case.inputs.items():
        device.write(name, array)
    return device.run()
