"""One partition of PSUM: its banks and the adder that accumulates into them."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In

from hdl.arith.fp32_add import Fp32Add
from hdl.lib.select import select_value
from hdl.memory.partition import Partition
from hdl.memory.ports import PSUM_WORD_BITS

_MINUS_ZERO = Const(0x8000_0000, PSUM_WORD_BITS)


class PsumPartition(Partition):
    """Tile: Partition whose banks can also be written with the sum of the accumulate port.

    Times after an element arrived: 0 its bank reads the old word, 1 that is there, 2 it stands in
    front of the adder, 2 + `add_stages` the sum is written (highest number of `w_source`).

    Members
    -------
    sum_data, sum_old, sum_bank : In
        Time 1: what is added, to the old word of that bank or (`sum_old` = 0) to nothing.
    and those of Partition.
    """

    _own_sources = 1

    def __init__(self, geometry, *, wide_reads, wide_writes, add_stages):
        self.add_stages = add_stages
        super().__init__(geometry, wide_reads=wide_reads, wide_writes=wide_writes)
        self.tile_parameters = (*self.tile_parameters, add_stages)

    def _members(self):
        return super()._members() | {
            "sum_data": In(PSUM_WORD_BITS),
            "sum_old": In(1),
            "sum_bank": In(range(self.geometry.banks)),
        }

    def elaborate(self, platform):
        m = Module()
        m.submodules.add = add = Fp32Add(stages=self.add_stages)
        words = self._add_banks(m, platform, add.o)
        a, b = Signal(PSUM_WORD_BITS, reset_less=True), Signal(PSUM_WORD_BITS, reset_less=True)
        old = select_value(self.sum_bank, words)
        # Adding -0 leaves every number as it is, both zeros included.
        m.d.sync += [a.eq(self.sum_data), b.eq(Mux(self.sum_old, old, _MINUS_ZERO))]
        m.d.comb += [add.a.eq(a), add.b.eq(b)]
        return m
