"""Runs programs on the RTL: one simulator process executes a list of jobs back to back, without
reset in between.

results = run_jobs(config, [Job(program)], simulator="verilator", timing=Timing(latency=40))
"""

import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from cocotb_tools.check_results import get_results

from hdl.verilog import chip_verilog
from isa import address_map
from isa.address_map import (
    CTRL_START,
    DMA_REGISTERS,
    GLOBAL_REGISTERS,
    SEQUENCER_REGISTERS,
    SEQUENCERS,
    Cause,
    State,
    dma_register,
    global_register,
    semaphore_address,
    sequencer_register,
)
from isa.geometry import PSUM_BANKS, REGISTERS, SEMAPHORES, WORD_BYTES
from sim.build import ROOT, build_model, runner
from sim.image import DmaState, Image, SequencerState
from sim.testbench import PORTS, TOP, Op, Step, hbm_beats, sources

RUNS = ROOT / "build" / "runs"
EMITTED = ROOT / "build" / "emitted"
CYCLE_LIMIT = 2_000_000
OVERHEAD_CYCLES = 200_000
"""Most that the host needs to set up a job and to read its registers."""


class SimulationError(RuntimeError):
    """The simulation did not deliver a verdict; the message says why and where the log lies."""


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


@dataclass
class RtlResult:
    """What a job left: the image, cycles from START to idle, counters, whether the error line was
    up.
    """

    image: Image
    cycles: int
    tensor_columns: int
    tensor_loads: int
    error: bool


@dataclass
class Batch:
    """Results of the jobs of one process, simulated cycles in it, wall seconds of the simulator."""

    results: list
    cycles: int
    seconds: float
    directory: Path


def emitted(config, *, checks):
    """Verilog of the simulated chip (with stall input), cached by the sources that make it."""
    key = hashlib.sha256(repr((config, checks)).encode())
    for folder in ("hdl", "isa"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            key.update(path.read_bytes())
    EMITTED.mkdir(parents=True, exist_ok=True)
    path = EMITTED / f"{config.name}-{key.hexdigest()[:16]}.sv"
    if not path.exists():
        text = chip_verilog(config, checks=checks, stall=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(text)
        part.rename(path)
    return path.read_text()


def chip_model(config, *, simulator="verilator", waves=False, checks=True):
    """The built model of the chip of `config` with its testbench."""
    return build_model(
        simulator=simulator,
        sources=sources(config, emitted(config, checks=checks)),
        top=TOP,
        public=PORTS,
        waves=waves,
        checks=checks,
    )


def run_jobs(
    config, jobs, *, simulator="verilator", seed=1, timing=None, waves=None, checks=True, keep=None
):
    """Run the jobs in order in one simulator process; memories start as zeros and persist between
    jobs.

    waves: path of the FST to write.  keep: folder that keeps script, results and dumps.  Returns a
    Batch.  SimulationError when a job exceeds its cycle limit, the simulator fails or gives no
    verdict.
    """
    model = chip_model(config, simulator=simulator, waves=waves is not None, checks=checks)
    timing = timing or Timing()
    directory, arguments, initial = prepare_directory(
        config, jobs, timing=timing, seed=seed, keep=keep
    )
    hbm = np.zeros(hbm_beats(config) * WORD_BYTES, dtype=np.uint8)
    limit = sum(job.cycle_limit + OVERHEAD_CYCLES for job in jobs)
    start = time.perf_counter()
    _simulate(model, directory, arguments, seed, limit, waves)
    seconds = time.perf_counter() - start
    results = _parse(config, directory, jobs, initial, hbm)
    batch = Batch(results, sum(result.cycles for result in results), seconds, directory)
    if not keep:
        shutil.rmtree(directory)
    return batch


def prepare_directory(config, jobs, *, timing=None, seed=1, keep=None):
    """Write script and HBM contents of the jobs; returns (folder, plusargs, [[(address, bytes)] of
    each job]).
    """
    RUNS.mkdir(parents=True, exist_ok=True)
    directory = Path(keep) if keep else Path(tempfile.mkdtemp(prefix=f"{config.name}-", dir=RUNS))
    directory.mkdir(parents=True, exist_ok=True)
    initial, steps = [], []
    for index, job in enumerate(jobs):
        image = job.program.hbm_image(job.inputs)
        initial.append(image)
        _write_hex(directory / f"hbm_{index}.hex", image, hbm_beats(config) * WORD_BYTES)
        steps += _job_steps(config, index, job)
    steps.append(Step(Op.END))
    (directory / "script.hex").write_text("\n".join(step.line() for step in steps) + "\n")
    return directory, [f"+dir={directory}", *(timing or Timing()).plusargs(seed)], initial


def _simulate(model, directory, arguments, seed, limit, waves):
    run = runner(model.simulator)
    results = directory / "verdict.xml"
    log = directory / "simulation.log"
    environment = {"CELOSIA_CYCLE_LIMIT": str(limit), "COCOTB_LOG_LEVEL": "WARNING"}
    # The verdict is read below, under pytest too.
    pytest_name = os.environ.pop("PYTEST_CURRENT_TEST", None)
    try:
        run.test(
            test_module="sim.entry",
            hdl_toplevel=model.top,
            hdl_toplevel_lang="verilog",
            build_dir=model.directory,
            test_dir=directory,
            results_xml=str(results),
            seed=seed,
            waves=waves is not None,
            extra_env=environment,
            plusargs=arguments,
            log_file=log,
            timescale=("1ns", "1ps"),
        )
    except SystemExit as stop:
        raise SimulationError(
            f"{model.simulator} stopped with {stop.code}; log in {log}\n{_tail(log)}"
        ) from stop
    finally:
        if pytest_name is not None:
            os.environ["PYTEST_CURRENT_TEST"] = pytest_name
    tests, failed = get_results(results)
    if tests != 1 or failed:
        raise SimulationError(
            f"{failed} of {tests} simulation tests failed; log in {log}\n{_tail(log)}"
        )
    if waves is not None:
        written = [*directory.glob("*.fst"), *model.directory.glob("*.fst")]
        found = max(written, key=os.path.getmtime, default=None)
        if found is None:
            raise SimulationError(f"{model.simulator} wrote no wave file into {directory}")
        Path(waves).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(found, waves)


def _tail(log, lines=15):
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


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


def _job_steps(config, index, job):
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
    steps.append(Step(Op.WRITE, global_register("CTRL"), CTRL_START))
    steps.append(Step(Op.WAIT, 0, job.cycle_limit))
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
    steps.append(Step(Op.DUMP, 0, index))
    return steps


class _Readings:
    """32-bit words by address from the R lines of one job."""

    def __init__(self):
        self.words = {}

    def add(self, address, response, text):
        if response != 0:
            raise SimulationError(
                f"host read of {address:#x} answered with AXI response {response}"
            )
        beat = bytes.fromhex(text)[::-1]
        for offset in range(0, WORD_BYTES, 4):
            self.words[address + offset] = int.from_bytes(beat[offset : offset + 4], "little")

    def block(self, address, count):
        return np.array([self.words[address + 4 * i] for i in range(count)], dtype=np.uint32)


def _parse(config, directory, jobs, initial, hbm):
    lines = (directory / "results.txt").read_text().splitlines()
    if not lines or lines[-1] != "END":
        raise SimulationError(f"the host script broke off: {lines[-1] if lines else 'no output'}")
    results = []
    readings = _Readings()
    waited: list[int] | None = None
    for line in lines:
        word, *rest = line.split()
        if word == "R":
            readings.add(int(rest[0], 16), int(rest[1]), rest[2])
        elif word == "WAIT":
            waited = [int(text) for text in rest]
        elif word == "WRITE_ERROR":
            raise SimulationError(f"host write to {rest[0]} answered with AXI response {rest[1]}")
        elif word == "HBM":
            job = jobs[len(results)]
            if waited is None:
                raise SimulationError("the host script dumped memories without waiting for the run")
            if waited[1]:
                raise SimulationError(
                    f"job {len(results)} was still busy after {waited[0]} cycles, its limit\n"
                    f"{_stuck(readings)}"
                )
            for address, content in initial[len(results)]:
                hbm[address : address + len(content)] = np.frombuffer(content, dtype=np.uint8)
            results.append(
                _result(
                    config,
                    directory,
                    len(results),
                    readings,
                    waited,
                    (int(rest[0]), int(rest[1])),
                    hbm,
                    job,
                )
            )
            readings = _Readings()
    if len(results) != len(jobs):
        raise SimulationError(f"{len(jobs)} jobs gave {len(results)} results")
    return results


def _stuck(readings):
    """Who waits for what, from the registers."""
    lines = []
    for sequencer, state in _sequencers(readings).items():
        lines.append(
            f"{sequencer.text}: {state.state.name} at instruction {state.pc}"
            + (
                f", waits for semaphore {state.wait_semaphore} >= {state.wait_value}"
                if state.state == State.WAITING
                else ""
            )
        )
    return "\n".join(lines)


def _signed(value):
    return int(np.int32(np.uint32(value)))


def _sequencers(readings):
    found = {}
    for sequencer in SEQUENCERS:

        def get(name, sequencer=sequencer):
            return readings.words[sequencer_register(sequencer, name)]

        status = get("STATUS")
        found[sequencer] = SequencerState(
            state=State(status & 7),
            cause=Cause(status >> 8 & 0xFF),
            pc=get("PC"),
            wait_semaphore=get("WAIT_SEMAPHORE"),
            wait_value=_signed(get("WAIT_VALUE")),
            retired=get("RETIRED"),
            notify_value=get("NOTIFY_VALUE"),
            notify_count=get("NOTIFY_COUNT"),
            registers=readings.block(sequencer_register(sequencer, "GPR"), REGISTERS),
        )
    return found


def _result(config, directory, index, readings, waited, written, hbm, job):
    low, high = written
    if low <= high:
        block = _read_hex(directory / f"dump_{index}_hbm.hex", WORD_BYTES)
        hbm[low * WORD_BYTES : (high + 1) * WORD_BYTES] = block.reshape(-1)
    dma = []
    for engine in range(config.dma_engines):

        def get(name, engine=engine):
            return readings.words[dma_register(engine, name)]

        dma.append(
            DmaState(
                get("STATUS") >> 8 & 0xFF,
                get("ERROR_LO") | get("ERROR_HI") << 32,
                get("DESCRIPTORS"),
                get("BYTES_LO"),
            )
        )
    image = Image(
        hbm=hbm.copy(),
        sbuf=_sbuf(config, directory, index),
        psum=_psum(config, directory, index),
        semaphores=readings.block(semaphore_address(0), SEMAPHORES).view(np.int32),
        sequencers=_sequencers(readings),
        dma=dma,
        semaphore_error=readings.words[global_register("SEMAPHORE_ERROR")],
    )
    _check_identity(config, readings)
    return RtlResult(
        image=image,
        cycles=readings.words[global_register("CYCLES")],
        tensor_columns=readings.words[global_register("TENSOR_COLUMNS")],
        tensor_loads=readings.words[global_register("TENSOR_LOADS")],
        error=bool(waited[2]),
    )


def _check_identity(config, readings):
    device = readings.words[global_register("ID")]
    digest = (
        readings.words[global_register("CONFIG_HASH_LO")]
        | readings.words[global_register("CONFIG_HASH_HI")] << 32
    )
    if device != address_map.DEVICE_ID or digest != config.arch_hash:
        raise SimulationError(
            f"the chip says id {device:#x}, configuration {digest:#x}; "
            f"expected {config.name} {config.arch_hash:#x}"
        )


def _read_hex(path, word_bytes):
    """Words of a $writememh dump as uint8 [words, word_bytes]."""
    words = [
        line for line in path.read_text().split("\n") if line and not line.startswith(("//", "@"))
    ]
    text = "".join(words)
    if "x" in text.lower():
        raise SimulationError(f"{path.name} holds unknown bits")
    return np.frombuffer(bytes.fromhex(text), dtype=np.uint8).reshape(-1, word_bytes)[:, ::-1]


def _sbuf(config, directory, index):
    """uint8 [partitions, sbuf_bytes]: word w of a row is word w // banks of bank w % banks."""
    image = np.empty(
        (config.partitions, config.sbuf_words // config.sbuf_banks, config.sbuf_banks, WORD_BYTES),
        dtype=np.uint8,
    )
    for p in range(config.partitions):
        for bank in range(config.sbuf_banks):
            image[p, :, bank] = _read_hex(
                directory / f"dump_{index}_sbuf_{p}_{bank}.hex", WORD_BYTES
            )
    return image.reshape(config.partitions, config.sbuf_bytes)


def _psum(config, directory, index):
    """uint8 [partitions, psum_bytes]."""
    image = np.empty((config.partitions, PSUM_BANKS, config.psum_bank_bytes), dtype=np.uint8)
    for p in range(config.partitions):
        for bank in range(PSUM_BANKS):
            image[p, bank] = _read_hex(directory / f"dump_{index}_psum_{p}_{bank}.hex", 4).reshape(
                -1
            )
    return image.reshape(config.partitions, config.psum_bytes)
