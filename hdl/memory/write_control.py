"""What all partitions share of a memory's write side: grants, addresses, masks, sources."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.arbiter import one_hot_index, one_hot_mux
from hdl.memory.bank_arbiter import BankArbiter


class WriteControl(wiring.Component):
    """Grants wide and narrow writes; a granted write is done in the same cycle.  Combinational.

    Members
    -------
    wide_valid, wide_word, wide_partitions, wide_bytes, wide_ready : In .. Out
        Of each wide port.
    narrow_valid, narrow_partition, narrow_word, narrow_bytes, narrow_data, narrow_ready : In .. Out
        Of each narrow port.
    block : In(banks)
        Banks that cannot be written in this cycle.
    row, partitions, bytes : Out
        Of each bank: where it is written.
    source : Out
        Of each bank: the number of the wide port whose data it takes, or, after them, narrow data.
    data : Out
        Of each bank: the narrow data.
    """

    def __init__(self, geometry, *, wides, narrows):
        self.geometry, self.wides, self.narrows = geometry, wides, narrows
        g = geometry
        super().__init__({
            "wide_valid": In(wides),
            "wide_word": In(data.ArrayLayout(g.word_bits, wides)),
            "wide_partitions": In(data.ArrayLayout(g.partitions, wides)),
            "wide_bytes": In(data.ArrayLayout(g.word_bytes, wides)),
            "wide_ready": Out(wides),
            "narrow_valid": In(narrows),
            "narrow_partition": In(data.ArrayLayout(range(g.partitions), narrows)),
            "narrow_word": In(data.ArrayLayout(g.word_bits, narrows)),
            "narrow_bytes": In(data.ArrayLayout(g.word_bytes, narrows)),
            "narrow_data": In(data.ArrayLayout(g.data_bits, narrows)),
            "narrow_ready": Out(narrows),
            "block": In(g.banks),
            "row": Out(data.ArrayLayout(g.row_bits, g.banks)),
            "partitions": Out(data.ArrayLayout(g.partitions, g.banks)),
            "bytes": Out(data.ArrayLayout(g.word_bytes, g.banks)),
            "source": Out(data.ArrayLayout(ceil_log2(wides + 1), g.banks)),
            "data": Out(data.ArrayLayout(g.data_bits, g.banks)),
        })

    def elaborate(self, platform):
        m = Module()
        g, wides, narrows = self.geometry, self.wides, self.narrows
        m.submodules.arbiter = arbiter = BankArbiter(banks=g.banks, requesters=wides + narrows)
        hits = [Signal(g.partitions, name=f"narrow{i}_hit") for i in range(narrows)]
        m.d.comb += [hit.eq(1 << self.narrow_partition[i]) for i, hit in enumerate(hits)]

        def of_all(wide, narrow):
            return [wide[i] for i in range(wides)] + [narrow[i] for i in range(narrows)]

        words = of_all(self.wide_word, self.narrow_word)
        masks = of_all(self.wide_partitions, hits)
        byte_masks = of_all(self.wide_bytes, self.narrow_bytes)
        m.d.comb += [
            arbiter.valid.eq(Cat(self.wide_valid, self.narrow_valid)),
            arbiter.block.eq(self.block),
            *(arbiter.bank[i].eq(g.bank(word)) for i, word in enumerate(words)),
            Cat(self.wide_ready, self.narrow_ready).eq(arbiter.ready),
        ]
        narrow_data = [self.narrow_data[i] for i in range(narrows)]
        for b in range(g.banks):
            grant = arbiter.grant[b]
            m.d.comb += [
                self.row[b].eq(one_hot_mux(grant, [g.row(word) for word in words])),
                self.partitions[b].eq(one_hot_mux(grant, masks)),
                self.bytes[b].eq(one_hot_mux(grant, byte_masks)),
                self.source[b].eq(one_hot_index(
                    Cat(grant[:wides], grant[wides:].any()), wides + 1)),
                self.data[b].eq(one_hot_mux(grant[wides:], narrow_data)),
            ]
        return m
