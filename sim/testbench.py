"""The testbench round one chip or several joined by links, written for one configuration.

Each chip has an HBM model, a stall generator, memory dumps and a host (`sim/models/host.sv`): a
small machine that executes a script from a file, so that Python sleeps while the chips work.  A
script is a list of `Step`; answers and dumps are files that `sim.readout` reads afterwards.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from hdl.chip.chip import HBM_ID_BITS
from hdl.chip.core import stall_bits
from hdl.memory.bank_geometry import psum_geometry, sbuf_geometry
from hdl.memory.partition_group import PartitionGroup
from isa.geometry import WORD_BYTES
from sim.channel import inputs

TOP = "celosia_tb"
PORTS = ("clk", "rst", "go", "done")
"""Ports of the testbench: `go` starts the scripts, `done` rises when the last one is at its end."""

PAIR = (((0, 0), (1, 0)),)
"""Links of two chips, joined at port 0: ((chip, port), (chip, port)) each."""

SIMULATED_HBM_BYTES = 64 << 20

_MODELS = Path(__file__).parent / "models"


class Op(IntEnum):
    """Steps of a host script: {op 32, address 64, data 64}."""

    END = 0
    WRITE = 1  # 32 bits of data to address
    READ = 2  # data = number of 16-byte beats from address on
    WAIT = 3  # until the chip is idle, at most data cycles
    LOAD = 4  # HBM beats from hbm_<data>.hex
    DUMP = 5  # memories to dump_<data>_*.hex; address = {last, first beat} of HBM, 32 bits each
    RESET = 6  # data cycles of reset
    STALL = 7  # data = probability of a stall in 1/256 for chip-internal streams; address = seed
    BARRIER = 8  # until the hosts of all chips are at one
    POLL = 9  # until the 32 bits at address are data[31:0] in the bits of data[63:32]


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
    for name, geometry in (("sbuf", sbuf_geometry(config)), ("psum", psum_geometry(config))):
        size = PartitionGroup.size_of(geometry)
        for p in range(config.partitions):
            for bank in range(geometry.banks):
                paths[name, p, bank] = (
                    f"chip.core.{name}.group{p // size}.partition{p % size}.bank{bank}.memory"
                )
    return paths


def sources(config, chip_text, *, chips=1, links=()):
    """Verilog texts by file name of the testbench round the emitted chip `chip_text`.

    chips: how many, all alike; links: see PAIR.
    """
    found = {
        "chip.sv": chip_text,
        "hbm.sv": (_MODELS / "hbm.sv").read_text(),
        "host.sv": host(config),
        "testbench.sv": testbench(config, chips, links),
    }
    if links:
        found["channel.sv"] = (_MODELS / "channel.sv").read_text()
    return found


def host(config):
    """SystemVerilog of a chip with its host and its memory."""
    wires, chip, model = _hbm_pins(config)
    pins = _link_pins(config)
    dumps = [
        f'$writememh({{name, "_{memory}_{p}_{bank}.hex"}}, {path});'
        for (memory, p, bank), path in ram_paths(config).items()
    ]
    text = (_MODELS / "host.sv").read_text()
    for place, lines in {
        "ports": [f"{kind} wire [{width - 1}:0] {name}," for name, kind, width in pins],
        "wires": wires,
        "chip": [f".{name}({name})," for name, _, _ in pins] + _listed(chip),
        "model": _listed(model),
        "dumps": dumps,
    }.items():
        text = re.sub(
            f"^( *)//@{place}$",
            lambda at, lines=lines: "\n".join(at[1] + line for line in lines),
            text,
            flags=re.MULTILINE,
        )
    return text


def testbench(config, chips=1, links=()):
    """SystemVerilog of the top module."""
    parts, joined = [], {end: index for index, ends in enumerate(links) for end in ends}
    for chip in range(chips):
        pins = []
        for port in range(config.links):
            parts += _port_wires(config, chip, port, connected=(chip, port) in joined)
            pins += [
                f".link{port}_{name}(chip{chip}_link{port}_{name})" for name in _phy(config.link)
            ]
        pins += [f".{name}({name})" for name in ("clk", "rst", "go", "meet")]
        pins += [f".waiting(waiting[{chip}])", f".done(finished[{chip}])", ".busy()"]
        parts += [
            f"host #(.INDEX({chip}), .FOLDERS({int(chips > 1)}), .HBM_PORTS({config.hbm_ports}),",
            f"    .ID_BITS({HBM_ID_BITS}), .HBM_BYTES({hbm_beats(config) * WORD_BYTES}),",
            f"    .STALLS({stall_bits(config)})) chip{chip} (",
            *(f"    {line}" for line in _listed(pins)),
            ");",
        ]
    for index, ends in enumerate(links):
        parts += _channel(config, index, ends)
    body = "\n    ".join(parts)
    return _TEXT.format(chips=chips, body=body)


def hbm_beats(config):
    """16-byte beats of simulated HBM: all of it, but never more than 64 MiB."""
    return min(config.hbm_bytes, SIMULATED_HBM_BYTES) // WORD_BYTES


def _hbm_pins(config):
    """(wires, chip connections, model connections) of the HBM ports, lists of lines; models take
    the ports concatenated.
    """
    ids = HBM_ID_BITS
    widths = {
        "arid": ids,
        "araddr": 64,
        "arlen": 8,
        "arvalid": 1,
        "arready": 1,
        "rid": ids,
        "rdata": 128,
        "rresp": 2,
        "rlast": 1,
        "rvalid": 1,
        "rready": 1,
        "awid": ids,
        "awaddr": 64,
        "awlen": 8,
        "awvalid": 1,
        "awready": 1,
        "wdata": 128,
        "wstrb": 16,
        "wlast": 1,
        "wvalid": 1,
        "wready": 1,
        "bid": ids,
        "bresp": 2,
        "bvalid": 1,
        "bready": 1,
    }
    ports = config.hbm_ports
    wires = [f"wire [{ports * width - 1}:0] hbm_{name};" for name, width in widths.items()]
    chip = [
        f".m_axi_hbm{port}_{name}(hbm_{name}[{port * width} +: {width}])"
        for port in range(ports)
        for name, width in widths.items()
    ]
    model = [f".{name}(hbm_{name})" for name in widths]
    return wires, chip, model


def _phy(link):
    """{member of PhyPort: (direction at the chip, width)}."""
    width = link.lanes * link.symbol_bits
    return {
        "tx_data": ("output", width),
        "tx_enable": ("output", link.lanes),
        "tx_ready": ("input", 1),
        "rx_data": ("input", width),
        "rx_valid": ("input", link.lanes),
        "rx_slip": ("output", link.lanes),
    }


def _link_pins(config):
    """[(pin, direction, width)] of all link ports."""
    return [
        (f"link{port}_{name}", direction, width)
        for port in range(config.links)
        for name, (direction, width) in _phy(config.link).items()
    ]


def _port_wires(config, chip, port, *, connected):
    """Wires of a link port; without a channel nothing ever comes."""
    lines = []
    for name, (direction, width) in _phy(config.link).items():
        quiet = "" if connected or direction == "output" else f" = {int(name == 'tx_ready')}"
        lines.append(f"wire [{width - 1}:0] chip{chip}_link{port}_{name}{quiet};")
    return lines


def _channel(config, index, ends):
    """A channel with its settings, which come from plusargs."""
    link = config.link
    lines, pins = [], [".clk(clk)", ".rst(rst)"]
    for side, (chip, port) in zip("ab", ends, strict=True):
        pins += [f".{side}_{name}(chip{chip}_link{port}_{name})" for name in _phy(link)]
    reads = []
    for direction in ("ab", "ba"):
        for name, width in inputs(link.lanes).items():
            setting = f"channel{index}_{direction}_{name}"
            lines.append(f"reg [{width - 1}:0] {setting};")
            pins.append(f".{direction}_{name}({setting})")
            reads.append(f'if (!$value$plusargs("{setting}=%h", {setting})) {setting} = 0;')
    return [
        *lines,
        "initial begin",
        *(f"    {line}" for line in reads),
        "end",
        f"channel #(.LANES({link.lanes}), .SYMBOL_BITS({link.symbol_bits})) channel{index} (",
        *(f"    {line}" for line in _listed(pins)),
        ");",
    ]


def _listed(items):
    """Lines with commas between them."""
    return [f"{item}," for item in items[:-1]] + items[-1:]


_TEXT = """// Written by sim.testbench for one configuration.
module celosia_tb (
    input wire clk,
    input wire rst,
    input wire go,
    output wire done
);
    wire [{chips}-1:0] finished, waiting;
    wire meet = &waiting;
    assign done = &finished;
    {body}
endmodule
"""
