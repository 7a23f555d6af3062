"""The part of a memory's read side that all partitions share: grants, addresses, routes."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import one_hot_mux
from hdl.memory.bank_arbiter import BankArbiter


class ReadControl(wiring.Component):
    """Grants wide and narrow read requests and tells the partitions what to do.

    Times are cycles after the one in which a request is taken: 0 the banks get the row, 1 their
    data is there, 2 (wide) / 3 (narrow) it is in the register of the port.

    Members
    -------
    wide_valid, wide_word, wide_ready, wide_done : In, In, Out, Out
        One bit or word index per wide port; `done` at time 2.
    narrow_valid, narrow_partition, narrow_word, narrow_ready, narrow_done : In .. Out
        The same for narrow ports; `done` at time 3.
    block : In(banks)
        Banks that cannot be read in this cycle.
    enable, row : Out
        Time 0, of each bank: bit per partition that reads, and the row.
    wide_load, wide_bank : Out
        Time 1, of each wide port: take data from that bank.
    narrow_hit : Out
        Time 1, of each bank: bit of the partition that a narrow port reads.
    narrow_load : Out(banks)
        Time 1: bit of each bank read by a narrow port.
    narrow_port_load, narrow_bank : Out
        Time 2, of each narrow port: take data from that bank.
    """

    def __init__(self, geometry, *, wides, narrows):
        self.geometry, self.wides, self.narrows = geometry, wides, narrows
        g = geometry
        super().__init__({
            "wide_valid": In(wides),
            "wide_word": In(data.ArrayLayout(g.word_bits, wides)),
            "wide_ready": Out(wides),
            "wide_done": Out(wides),
            "narrow_valid": In(narrows),
            "narrow_partition": In(data.ArrayLayout(range(g.partitions), narrows)),
            "narrow_word": In(data.ArrayLayout(g.word_bits, narrows)),
            "narrow_ready": Out(narrows),
            "narrow_done": Out(narrows),
            "block": In(g.banks),
            "enable": Out(data.ArrayLayout(g.partitions, g.banks)),
            "row": Out(data.ArrayLayout(g.row_bits, g.banks)),
            "wide_load": Out(wides),
            "wide_bank": Out(data.ArrayLayout(range(g.banks), wides)),
            "narrow_hit": Out(data.ArrayLayout(g.partitions, g.banks)),
            "narrow_load": Out(g.banks),
            "narrow_port_load": Out(narrows),
            "narrow_bank": Out(data.ArrayLayout(range(g.banks), narrows)),
        })

    def elaborate(self, platform):
        m = Module()
        g, wides, narrows = self.geometry, self.wides, self.narrows
        words = ([self.wide_word[i] for i in range(wides)]
                 + [self.narrow_word[i] for i in range(narrows)])
        m.submodules.arbiter = arbiter = BankArbiter(banks=g.banks, requesters=wides + narrows)
        m.d.comb += [
            arbiter.valid.eq(Cat(self.wide_valid, self.narrow_valid)),
            arbiter.block.eq(self.block),
            *(arbiter.bank[i].eq(g.bank(word)) for i, word in enumerate(words)),
            Cat(self.wide_ready, self.narrow_ready).eq(arbiter.ready),
        ]
        hits = [Signal(g.partitions, name=f"narrow{i}_hit") for i in range(narrows)]
        m.d.comb += [hit.eq(1 << self.narrow_partition[i]) for i, hit in enumerate(hits)]
        for b in range(g.banks):
            grant = arbiter.grant[b]
            hit = Signal(g.partitions, name=f"bank{b}_hit")
            m.d.comb += [
                self.row[b].eq(one_hot_mux(grant, [g.row(word) for word in words])),
                hit.eq(one_hot_mux(grant[wides:], hits)),
                self.enable[b].eq(grant[:wides].any().replicate(g.partitions) | hit),
            ]
            m.d.sync += [
                self.narrow_hit[b].eq(hit),
                self.narrow_load[b].eq(grant[wides:].any()),
            ]
        m.d.sync += [
            self.wide_load.eq(self.wide_ready),
            self.wide_done.eq(self.wide_load),
            *(self.wide_bank[i].eq(arbiter.bank[i]) for i in range(wides)),
        ]
        narrow_first = Signal(narrows)
        narrow_first_bank = Signal(self.narrow_bank.shape())
        m.d.sync += [
            narrow_first.eq(self.narrow_ready),
            *(narrow_first_bank[i].eq(arbiter.bank[wides + i]) for i in range(narrows)),
            self.narrow_port_load.eq(narrow_first),
            self.narrow_bank.eq(narrow_first_bank),
            self.narrow_done.eq(self.narrow_port_load),
        ]
        return m
