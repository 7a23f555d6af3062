"""PSUM: the accumulators of the tensor engine, readable and writable by all engines."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl.lib.check import check, checks_enabled
from hdl.lib.delay import DelayLine
from hdl.memory.bank_geometry import psum_geometry
from hdl.memory.partition import source_bits
from hdl.memory.ports import PsumAccumulate, PsumNarrow, PsumRead, PsumWrite
from hdl.memory.routes import (
    add_groups,
    add_read_control,
    add_write_control,
    connect_narrow_data,
)


class Psum(wiring.Component):
    """PSUM_BANKS banks of 4-byte words in each partition, with an FP32 adder in front of them.

    Bank = upper bits of the word index.  Each bank serves one read and one write a cycle, for all
    partitions.  The accumulate port wins its bank whenever it needs it: its read in the cycle an
    accumulating element arrives, its write `psum_add_stages` + 2 cycles later; the others wait, by
    round robin.  A read and a write of one word in the same cycle: the read gives the old word.

    Parameters
    ----------
    config : isa.geometry.Config
    reads, writes, narrows : int
        Ports, at least one of each.

    Members
    -------
    accumulate : In(PsumAccumulate)
    read0 .., write0 .., narrow0 .. : In
        PsumRead, PsumWrite, PsumNarrow; also as lists `read`, `write`, `narrow`.
    deny : In(2 * PSUM_BANKS)
        Simulation only, default 0: bit b takes the read grant of bank b away in this cycle, bit
        PSUM_BANKS + b its write grant; the accumulate port is not touched.
    """

    def __init__(self, config, reads, writes, narrows):
        if min(reads, writes, narrows) < 1:
            raise ValueError(f"Psum with {reads} read, {writes} write and {narrows} narrow ports: "
                             "at least one of each")
        self.config, self.geometry = config, psum_geometry(config)
        members = {"accumulate": In(PsumAccumulate(config))}
        members |= {f"read{i}": In(PsumRead(config)) for i in range(reads)}
        members |= {f"write{i}": In(PsumWrite(config)) for i in range(writes)}
        members |= {f"narrow{i}": In(PsumNarrow(config)) for i in range(narrows)}
        members["deny"] = In(2 * self.geometry.banks)
        super().__init__(members)
        self.read = [getattr(self, f"read{i}") for i in range(reads)]
        self.write = [getattr(self, f"write{i}") for i in range(writes)]
        self.narrow = [getattr(self, f"narrow{i}") for i in range(narrows)]

    def elaborate(self, platform):
        m = Module()
        g, port = self.geometry, self.accumulate
        banks = range(g.banks)
        read = add_read_control(m, platform, g, self.read, self.narrow)
        write = add_write_control(m, platform, g, self.write, self.narrow)

        self._check_distance(m, platform)

        # Time 0: the old word is read.
        sum_reads = Signal(g.banks)
        m.d.comb += sum_reads.eq(
            Cat(port.valid & port.accumulate & (g.bank(port.word) == b) for b in banks))
        # Time 1: it is there and meets what is added.
        sum_data, sum_old = Signal.like(port.data, reset_less=True), Signal()
        sum_bank = Signal(g.bank_bits)
        m.d.sync += [
            sum_data.eq(port.data), sum_old.eq(port.accumulate), sum_bank.eq(g.bank(port.word))]

        # Time 2 + stages: the sum is written.  One cycle later every read sees it.
        cycles = self.config.psum_add_stages + 2
        places = Cat(port.word, port.partitions)
        m.submodules.valid_delay = valid = DelayLine(width=1, cycles=cycles, clean=True)
        m.submodules.place_delay = place = DelayLine(width=len(places), cycles=cycles)
        m.submodules.tag_delay = tag = DelayLine(
            width=len(port.tag), cycles=cycles + 1, clean=True)
        m.d.comb += [
            valid.i.eq(port.valid), place.i.eq(places),
            tag.i.eq(port.tag & port.valid.replicate(len(port.tag))),
            port.done_tag.eq(tag.o), port.done.eq(tag.o != 0),
        ]
        word, sum_partitions = place.o[:g.word_bits], place.o[g.word_bits:]
        sum_writes = Signal(g.banks)
        m.d.comb += sum_writes.eq(Cat(valid.o & (g.bank(word) == b) for b in banks))
        by_sum = Const(len(self.write) + 1, source_bits(len(self.write), 1))
        all_bytes = (1 << g.word_bytes) - 1
        m.d.comb += [
            read.block.eq(self.deny[:g.banks] | sum_reads),
            write.block.eq(self.deny[g.banks:] | sum_writes),
        ]

        # What the partitions share is computed once.
        def shared(name, values):
            bus = Signal(len(Cat(values)), name=name)
            m.d.comb += bus.eq(Cat(values))
            return bus

        def mask(name, value):
            bus = Signal(g.partitions, name=name)
            m.d.comb += bus.eq(value)
            return bus

        groups = add_groups(
            m, platform, g, read, self.read, self.write,
            masks={
                "r_enable": [
                    mask(f"r_enable{b}", Mux(sum_reads[b], port.partitions, read.enable[b]))
                    for b in banks],
                "w_enable": [
                    mask(f"w_enable{b}", Mux(sum_writes[b], sum_partitions, write.partitions[b]))
                    for b in banks],
            },
            shared={
                "r_row": shared("r_row", [
                    Mux(sum_reads[b], g.row(port.word), read.row[b]) for b in banks]),
                "w_row": shared("w_row", [
                    Mux(sum_writes[b], g.row(word), write.row[b]) for b in banks]),
                "w_bytes": shared("w_bytes", [
                    Mux(sum_writes[b], all_bytes, write.bytes[b]) for b in banks]),
                "w_source": shared("w_source", [
                    Mux(sum_writes[b], by_sum, write.source[b]) for b in banks]),
                "w_narrow": write.data, "sum_old": sum_old, "sum_bank": sum_bank,
            },
            add_stages=self.config.psum_add_stages, sum_data=sum_data)
        connect_narrow_data(m, g, groups, read, self.narrow)
        return m

    def _check_distance(self, m, platform):
        """The producer keeps an accumulation away from earlier elements on the same word."""
        if not checks_enabled(platform):
            return
        port = self.accumulate
        valid, word = port.valid, port.word
        close = []
        for distance in range(1, self.config.psum_accumulate_cycles):
            earlier_valid = Signal(name=f"valid_{distance}_ago")
            earlier_word = Signal(len(word), name=f"word_{distance}_ago")
            m.d.sync += [earlier_valid.eq(valid), earlier_word.eq(word)]
            valid, word = earlier_valid, earlier_word
            close.append(valid & (word == port.word))
        check(m, platform, ~(port.valid & port.accumulate & Cat(close).any()),
              "psum: accumulation too close to an element on the same word")
