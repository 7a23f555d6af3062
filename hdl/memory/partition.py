"""One partition of a memory: its banks and the routes between them and the ports."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import one_hot_mux
from hdl.lib.ram import BlockRam
from hdl.lib.tile import add_tile


class Partition(wiring.Component):
    """Tile: the banks of one partition.  All decisions are made outside, once for all partitions.

    Parameters
    ----------
    geometry : hdl.memory.bank_geometry.BankGeometry
    wide_reads, wide_writes : int
        Wide ports.

    Members
    -------
    r_enable, r_row : In
        Of each bank: read this row (`row` is an array over banks).
    load, bank : In
        One cycle later, of each wide read port: take the word of that bank.
    narrow_hit : In(banks)
        One cycle later: show this bank's word on `narrow`.
    w_enable, w_row, w_bytes, w_source : In
        Of each bank: write this row; `w_source` is one-hot over `w_data`, `w_narrow`, and what a
        derived tile adds.
    w_data, w_narrow : In
        Word of each wide write port; narrow word of each bank.
    wide : Out
        Word of each wide read port, held.
    narrow : Out
        Word of each bank, zero where `narrow_hit` is 0.
    """

    _own_sources = 0
    """Sources of a derived tile."""

    def __init__(self, geometry, *, wide_reads, wide_writes):
        self.geometry = g = geometry
        self.wide_reads, self.wide_writes = wide_reads, wide_writes
        self.tile_parameters = (g.banks, g.rows, g.data_bits, wide_reads, wide_writes)
        super().__init__(self._members())

    def _members(self):
        g = self.geometry
        return {
            "r_enable": In(g.banks),
            "r_row": In(data.ArrayLayout(g.row_bits, g.banks)),
            "load": In(self.wide_reads),
            "bank": In(data.ArrayLayout(range(g.banks), self.wide_reads)),
            "narrow_hit": In(g.banks),
            "w_enable": In(g.banks),
            "w_row": In(data.ArrayLayout(g.row_bits, g.banks)),
            "w_bytes": In(data.ArrayLayout(g.word_bytes, g.banks)),
            "w_source": In(data.ArrayLayout(self.wide_writes + 1 + self._own_sources, g.banks)),
            "w_data": In(data.ArrayLayout(g.data_bits, self.wide_writes)),
            "w_narrow": In(data.ArrayLayout(g.data_bits, g.banks)),
            "wide": Out(data.ArrayLayout(g.data_bits, self.wide_reads)),
            "narrow": Out(data.ArrayLayout(g.data_bits, g.banks)),
        }

    def elaborate(self, platform):
        m = Module()
        self._add_banks(m, platform)
        return m

    def _add_banks(self, m, platform, *own_sources):
        """Banks and read routes; returns the words that the banks show, side by side."""
        g = self.geometry
        wide = [self.w_data[i] for i in range(self.wide_writes)]
        words = Signal(g.banks * g.data_bits)
        shown = []
        for b in range(g.banks):
            ram = BlockRam(width=g.data_bits, depth=g.rows, granularity=8)
            add_tile(m, platform, f"bank{b}", ram)
            m.d.comb += [
                ram.r_en.eq(self.r_enable[b]), ram.r_addr.eq(self.r_row[b]),
                ram.w_en.eq(self.w_bytes[b] & self.w_enable[b].replicate(g.word_bytes)),
                ram.w_addr.eq(self.w_row[b]),
                ram.w_data.eq(one_hot_mux(
                    self.w_source[b], [*wide, self.w_narrow[b], *own_sources])),
                self.narrow[b].eq(ram.r_data & self.narrow_hit[b].replicate(g.data_bits)),
            ]
            shown.append(ram.r_data)
        m.d.comb += words.eq(Cat(shown))
        for i in range(self.wide_reads):
            with m.If(self.load[i]):
                m.d.sync += self.wide[i].eq(words.word_select(self.bank[i], g.data_bits))
        return words
