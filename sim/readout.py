"""Readout: registers and dumps of a simulation become images."""

from dataclasses import dataclass, field

import numpy as np

from isa import address_map
from isa.address_map import (
    SEQUENCERS,
    Cause,
    State,
    dma_register,
    global_register,
    link_register,
    semaphore_address,
    sequencer_register,
)
from isa.geometry import PSUM_BANKS, REGISTERS, SEMAPHORES, WORD_BYTES
from isa.link import COUNTERS
from sim.image import DmaState, Image, SequencerState


class SimulationError(RuntimeError):
    """The simulation did not deliver a verdict; the message says why and where the log lies."""


@dataclass
class RtlResult:
    """What a job left: the image, cycles from START to idle, counters, whether the error line was
    up, and for each link port {name: value} of STATUS, BRIDGE_STATUS and `isa.link.COUNTERS`.
    """

    image: Image
    cycles: int
    tensor_columns: int
    tensor_loads: int
    error: bool
    links: list = field(default_factory=list)


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


def parse_results(config, directory, jobs, initial, hbm):
    """([RtlResult of each job], cycles of the whole simulation).

    SimulationError when the answer is not complete.
    """
    lines = (directory / "results.txt").read_text().splitlines()
    if not lines or not lines[-1].startswith("END "):
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
        elif word == "POLL_FAILED":
            raise SimulationError(f"{rest[0]} stayed {rest[1]}: a link did not come up")
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
    return results, int(lines[-1].split()[1])


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
        links=[
            {
                name: readings.words[link_register(port, name)]
                for name in ("STATUS", "BRIDGE_STATUS", *COUNTERS)
            }
            for port in range(config.links)
        ],
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
