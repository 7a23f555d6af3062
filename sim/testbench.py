"""The testbench round the chip, written for one configuration: HBM model, host, stall generator, memory dumps.

The host is a small machine in Verilog that executes a script from a file, so that Python sleeps while the chip works.
A script is a list of `Step`; answers and dumps are files that `sim.device` reads afterwards.
"""

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from isa.geometry import PSUM_BANKS

TOP = "celosia_tb"
PORTS = ("clk", "rst", "go", "done")
"""Ports of the testbench: `go` starts the script, `done` rises behind its last step."""

_HBM_MODEL = Path(__file__).parent / "models" / "hbm.sv"


class Op(IntEnum):
    """Steps of a host script: {op 32, address 64, data 64}."""

    END = 0
    WRITE = 1  # 32 bits of data to address
    READ = 2  # data = number of 16-byte beats from address on
    WAIT = 3  # until the chip is idle, at most data cycles
    LOAD = 4  # HBM beats from hbm_<data>.hex
    DUMP = 5  # memories to dump_<data>_*.hex; address = {last beat, first beat} of HBM, 32 bits each
    RESET = 6  # data cycles of reset
    STALL = 7  # data = probability of a stall in 1/256 for chip-internal streams; address = seed


@dataclass(frozen=True)
class Step:
    """One step of a host script."""

    op: Op
    address: int = 0
    data: int = 0

    def line(self):
        return f"{int(self.op):08x}{self.address:016x}{self.data:016x}"


def ram_paths(config):
    """{(memory, partition, bank): hierarchical name of its array} below the chip instance."""
    paths = {}
    for p in range(config.partitions):
        for bank in range(config.sbuf_banks):
            paths["sbuf", p, bank] = f"chip.core.sbuf.partition{p}.bank{bank}.memory"
        for bank in range(PSUM_BANKS):
            paths["psum", p, bank] = f"chip.core.psum.partition{p}.bank{bank}.memory"
    return paths


def sources(config, chip_text):
    """Verilog texts by file name of the testbench round the emitted chip `chip_text`."""
    return {"chip.sv": chip_text, "hbm.sv": _HBM_MODEL.read_text(), "testbench.sv": testbench(config)}


def testbench(config):
    """SystemVerilog of the testbench."""
    dumps = "\n".join(
        f'        $writememh({{name, "_{memory}_{p}_{bank}.hex"}}, {path});'
        for (memory, p, bank), path in ram_paths(config).items()
    )
    masters = "\n".join(_hbm_pins(port) for port in range(config.hbm_ports))
    return _TEXT.format(dumps=dumps, masters=masters, ports=config.hbm_ports, bytes=config.hbm_bytes)
