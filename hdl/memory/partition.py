"""One partition of a memory: its banks and the routes between them and the ports."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.ram import BlockRam
from hdl.lib.select import select_value
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
        Of each bank: write this row; `w_source` numbers `w_data`, then `w_narrow`, then what a
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
            "w_source": In(data.ArrayLayout(
                source_bits(self.wide_writes, self._own_sources), g.banks)),
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
        """Banks and read routes; returns the words that the banks show."""
        g = self.geometry
        wide = [self.w_data[i] for i in range(self.wide_writes)]
        words = []
        for b in range(g.banks):
            ram = BlockRam(width=g.data_bits, depth=g.rows, granularity=8)
            add_tile(m, platform, f"bank{b}", ram)
            m.d.comb += [
                ram.r_en.eq(self.r_enable[b]), ram.r_addr.eq(self.r_row[b]),
                ram.w_en.eq(Mux(self.w_enable[b], self.w_bytes[b], 0)),
                ram.w_addr.eq(self.w_row[b]),
                ram.w_data.eq(select_value(
                    self.w_source[b], [*wide, self.w_narrow[b], *own_sources])),
                self.narrow[b].eq(Mux(self.narrow_hit[b], ram.r_data, 0)),
            ]
            words.append(ram.r_data)
        for i in range(self.wide_reads):
            word = Signal(g.data_bits, name=f"wide{i}", reset_less=True)
            with m.If(self.load[i]):
                m.d.sync += word.eq(select_value(self.bank[i], words))
            m.d.comb += self.wide[i].eq(word)
        return words


def source_bits(wide_writes, own_sources=0):
    """Width of the number of a write's source."""
    return ceil_log2(wide_writes + 1 + own_sources)
