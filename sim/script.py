"""Host scripts: what the testbench does for a list of jobs, and the files that it reads."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from isa.address_map import (
    CTRL_START,
    DMA_REGISTERS,
    GLOBAL_REGISTERS,
    SEQUENCER_REGISTERS,
    SEQUENCERS,
    dma_register,
    global_register,
    link_register,
    semaphore_address,
    sequencer_register,
)
from isa.geometry import REGISTERS, SEMAPHORES, WORD_BYTES
from isa.link import COUNTERS, Control, LinkState
from isa.windows import window_registers
from sim.build import ROOT
from sim.testbench import Op, Step, hbm_beats

RUNS = ROOT / "build" / "runs"
CYCLE_LIMIT = 2_000_000
_ACTIVE = 15 << 32 | LinkState.ACTIVE


@dataclass(frozen=True)
class Timing:
    """Timing of memory and random stalls: none of it may change a result.

    latency, jitter: cycles of the HBM model; rate: its beats per 256 cycles and port; hbm_stall,
    stall: probability in 1/256 of holding back an HBM channel / a stream inside the chip in a
    cycle; reorder: HBM answers different ids in random order.
    """

    latency: int = 40
    jitter: int = 0
    rate: int = 256
    hbm_stall: int = 0
    stall: int = 0
    reorder: int = 0

    def plusargs(self, seed):
        values = {**self.__dict__, "seed": seed}
        return [f"+{name}={value}" for name, value in values.items()]


@dataclass
class Job:
    """A program with data for its input tensors, the wait limit of the watchdog and the cycle limit
    of the run.
    """

    program: object
    inputs: dict = field(default_factory=dict)
    watchdog: int = 1 << 20
    cycle_limit: int = CYCLE_LIMIT


def prepare_directory(config, jobs, *, timing=None, seed=1, keep=None):
    """Write script and HBM contents of the jobs; returns (folder, plusargs, [[(address, bytes)] of
    each job]).
    """
    directory = _folder(config, keep)
    initial = write_script(config, jobs, directory)
    return directory, _plusargs(directory, timing, seed), initial


def prepare_chips(config, jobs, *, links, timing=None, channels=(), seed=1, keep=None):
    """As prepare_directory for joined chips: [jobs of each chip], their links (see
    `sim.testbench.PAIR`), and a `sim.channel.Channel` for each; returns (folder, plusargs, [initial
    contents of each chip]).
    """
    directory = _folder(config, keep)
    initial = []
    for chip, own in enumerate(jobs):
        folder = directory / f"chip{chip}"
        folder.mkdir(exist_ok=True)
        ports = [port for ends in links for end, port in ends if end == chip]
        initial.append(write_script(config, own, folder, joined=True, ports=ports))
    arguments = _plusargs(directory, timing, seed)
    for index, channel in enumerate(channels):
        arguments += channel.plusargs(index, seed)
    return directory, arguments, initial


def _folder(config, keep):
    RUNS.mkdir(parents=True, exist_ok=True)
    directory = Path(keep) if keep else Path(tempfile.mkdtemp(prefix=f"{config.name}-", dir=RUNS))
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _plusargs(directory, timing, seed):
    return [f"+dir={directory}", *(timing or Timing()).plusargs(seed)]


def write_script(config, jobs, directory, *, joined=False, ports=()):
    """Script and HBM contents of one chip's jobs into a folder; returns the contents.

    joined: with the hosts of other chips, START and the end of a run happen together.  ports: the
    links that have to be up before the first job.
    """
    initial = []
    # Until both ends are ACTIVE an end that gives up makes the other one lose what it has sent.
    steps = [Step(Op.POLL, link_register(port, "STATUS"), _ACTIVE) for port in ports]
    for index, job in enumerate(jobs):
        image = job.program.hbm_image(job.inputs)
        initial.append(image)
        _write_hex(directory / f"hbm_{index}.hex", image, hbm_beats(config) * WORD_BYTES)
        steps += _job_steps(config, index, job, joined)
    steps.append(Step(Op.END))
    (directory / "script.hex").write_text("\n".join(step.line() for step in steps) + "\n")
    return initial


def _write_hex(path, image, size):
    """Regions as 16-byte words for $readmemh; neighbours that share a word are merged."""
    words = {}
    for address, content in image:
        if address + len(content) > size:
            raise ValueError(
                f"program needs HBM up to {address + len(content):#x}, "
                f"simulated HBM ends at {size:#x}"
            )
        low, high = address // WORD_BYTES, -(-(address + len(content)) // WORD_BYTES)
        block = np.zeros((high - low) * WORD_BYTES, dtype=np.uint8)
        offset = address - low * WORD_BYTES
        block[offset : offset + len(content)] = np.frombuffer(content, dtype=np.uint8)
        for word in (low, high - 1):
            if word in words:
                index = slice((word - low) * WORD_BYTES, (word - low + 1) * WORD_BYTES)
                block[index] |= words[word]
        for word in {low, high - 1}:
            words[word] = block[(word - low) * WORD_BYTES : (word - low + 1) * WORD_BYTES]
        words[low, high] = block
    lines = []
    for key, block in words.items():
        if isinstance(key, tuple):
            lines.append(f"@{key[0]:x}")
            text = block.reshape(-1, WORD_BYTES)[:, ::-1].tobytes().hex()
            lines += [text[i : i + 2 * WORD_BYTES] for i in range(0, len(text), 2 * WORD_BYTES)]
    path.write_text("\n".join(lines) + "\n")


def _register_span(registers):
    """16-byte beats that cover a block of registers, GPR window apart."""
    end = max(register.offset for register in registers if register.name != "GPR") + 4
    return -(-end // WORD_BYTES)


def _job_steps(config, index, job, joined):
    barrier = [Step(Op.BARRIER)] if joined else []
    launch = job.program.launch()
    steps = [Step(Op.LOAD, 0, index), Step(Op.WRITE, global_register("WATCHDOG"), job.watchdog)]
    for sequencer in SEQUENCERS:
        address, length = launch.get(sequencer, (0, 0))
        for name, value in (
            ("STREAM_LO", address & 0xFFFFFFFF),
            ("STREAM_HI", address >> 32),
            ("LENGTH", length),
        ):
            steps.append(Step(Op.WRITE, sequencer_register(sequencer, name), value))
    for address, value in window_registers(config, job.program.windows):
        steps.append(Step(Op.WRITE, address, value))
    steps += barrier
    steps.append(Step(Op.WRITE, global_register("CTRL"), CTRL_START))
    steps.append(Step(Op.WAIT, 0, job.cycle_limit))
    steps += barrier  # an idle chip may still be written to by its peer
    steps.append(Step(Op.READ, global_register("ID"), _register_span(GLOBAL_REGISTERS)))
    for sequencer in SEQUENCERS:
        steps.append(
            Step(
                Op.READ,
                sequencer_register(sequencer, "STREAM_LO"),
                _register_span(SEQUENCER_REGISTERS),
            )
        )
        steps.append(
            Step(Op.READ, sequencer_register(sequencer, "GPR"), REGISTERS * 4 // WORD_BYTES)
        )
    for engine in range(config.dma_engines):
        steps.append(Step(Op.READ, dma_register(engine, "STATUS"), _register_span(DMA_REGISTERS)))
    steps.append(Step(Op.READ, semaphore_address(0), SEMAPHORES * 4 // WORD_BYTES))
    for port in range(config.links):
        steps += _link_steps(port)
    steps.append(Step(Op.DUMP, 0, index))
    return steps


def _link_steps(port):
    """Registers and counters of a link port, as they are behind the job."""
    start, counters = link_register(port, "CONTROL"), link_register(port, COUNTERS[0])
    snapshot = Control.ENABLE | Control.AUTO_RESTART | Control.SNAPSHOT
    return [
        Step(Op.WRITE, start, snapshot),
        Step(Op.READ, start, 2),
        Step(Op.READ, link_register(port, "BRIDGE_STATUS"), 1),
        Step(Op.READ, counters, -(-4 * len(COUNTERS) // WORD_BYTES)),
    ]
