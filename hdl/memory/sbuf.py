"""SBUF: the partitioned memory of all engines."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl.memory.bank_geometry import sbuf_geometry
from hdl.memory.ports import SbufNarrow, SbufRead, SbufWrite
from hdl.memory.routes import (
    add_groups,
    add_read_control,
    add_write_control,
    connect_narrow_data,
)


class Sbuf(wiring.Component):
    """`config.sbuf_words` words of 16 bytes in each partition, in interleaved banks.

    Bank = word % banks.  Each bank serves one read and one write a cycle, for all partitions, so
    every port moves a word a cycle as long as the ports use different banks; a request that is not
    granted waits (round robin).  A read and a write of one word in the same cycle: the read gives
    the old word.

    Parameters
    ----------
    config : isa.geometry.Config
    reads, writes, narrows : int
        Ports, at least one of each.

    Members
    -------
    read0 .., write0 .., narrow0 .. : In
        SbufRead, SbufWrite, SbufNarrow; also as lists `read`, `write`, `narrow`.
    deny : In(2 * banks)
        Simulation only, default 0: bit b takes the read grant of bank b away in this cycle, bit
        banks + b its write grant.
    """

    def __init__(self, config, reads, writes, narrows):
        if min(reads, writes, narrows) < 1:
            raise ValueError(f"Sbuf with {reads} read, {writes} write and {narrows} narrow ports: "
                             "at least one of each")
        self.config, self.geometry = config, sbuf_geometry(config)
        members = {f"read{i}": In(SbufRead(config)) for i in range(reads)}
        members |= {f"write{i}": In(SbufWrite(config)) for i in range(writes)}
        members |= {f"narrow{i}": In(SbufNarrow(config)) for i in range(narrows)}
        members["deny"] = In(2 * self.geometry.banks)
        super().__init__(members)
        self.read = [getattr(self, f"read{i}") for i in range(reads)]
        self.write = [getattr(self, f"write{i}") for i in range(writes)]
        self.narrow = [getattr(self, f"narrow{i}") for i in range(narrows)]

    def elaborate(self, platform):
        m = Module()
        g = self.geometry
        read = add_read_control(m, platform, g, self.read, self.narrow)
        write = add_write_control(m, platform, g, self.write, self.narrow)
        m.d.comb += [read.block.eq(self.deny[:g.banks]), write.block.eq(self.deny[g.banks:])]
        groups = add_groups(
            m, platform, g, read, self.read, self.write,
            masks={
                "r_enable": [read.enable[b] for b in range(g.banks)],
                "w_enable": [write.partitions[b] for b in range(g.banks)],
            },
            shared={
                "r_row": read.row, "w_row": write.row, "w_bytes": write.bytes,
                "w_source": write.source, "w_narrow": write.data,
            })
        connect_narrow_data(m, g, groups, read, self.narrow)
        return m
