"""Neighbouring partitions of a memory in one tile: what they share is wired once per group."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.select import or_tree
from hdl.lib.tile import add_tile
from hdl.memory.partition import Partition
from hdl.memory.psum_partition import PsumPartition

_GROUP = 16
"""Partitions of a group, for large memories."""
_SHARED = ("r_row", "load", "bank", "w_row", "w_bytes", "w_source", "w_narrow")
_SHARED_SUM = ("sum_old", "sum_bank")
_MASKS = ("r_enable", "narrow_hit", "w_enable")


class PartitionGroup(wiring.Component):
    """Tile: `size` partitions.

    Members are those of the partition; `r_enable`, `narrow_hit` and `w_enable` have a bit per
    partition for each bank, `w_data`, `wide` and `sum_data` a word per partition for each port, the
    first partition in the low bits, and `narrow` is what the one partition hit shows.

    Parameters
    ----------
    geometry, wide_reads, wide_writes
        Of the partition.
    add_stages : int or None
        PSUM, with these stages in its adder; None: SBUF.
    """

    def __init__(self, geometry, *, wide_reads, wide_writes, add_stages=None):
        self.geometry = g = geometry
        self.size = size = self.size_of(g)
        self.wide_reads, self.wide_writes, self.add_stages = wide_reads, wide_writes, add_stages
        partition = self._make_partition()
        self.tile_parameters = (size, *partition.tile_parameters)
        members = {name: partition.signature.members[name] for name in _SHARED}
        members |= {name: In(data.ArrayLayout(size, g.banks)) for name in _MASKS}
        members |= {
            "w_data": In(data.ArrayLayout(size * g.data_bits, wide_writes)),
            "wide": Out(data.ArrayLayout(size * g.data_bits, wide_reads)),
            "narrow": partition.signature.members["narrow"],
        }
        self._shared = _SHARED
        if add_stages is not None:
            self._shared += _SHARED_SUM
            members |= {name: partition.signature.members[name] for name in _SHARED_SUM}
            members["sum_data"] = In(size * g.data_bits)
        super().__init__(members)

    @staticmethod
    def size_of(geometry):
        """Partitions of a group in a memory of that geometry."""
        return min(_GROUP, geometry.partitions)

    def _make_partition(self):
        ports = {"wide_reads": self.wide_reads, "wide_writes": self.wide_writes}
        if self.add_stages is None:
            partition = Partition(self.geometry, **ports)
        else:
            partition = PsumPartition(self.geometry, **ports, add_stages=self.add_stages)
        partition._MustUse__used = True  # noqa: SLF001  may serve for its signature only
        return partition

    def elaborate(self, platform):
        m = Module()
        g, bits = self.geometry, self.geometry.data_bits
        partitions = []
        for p in range(self.size):
            partition = self._make_partition()
            add_tile(m, platform, f"partition{p}", partition)
            m.d.comb += [getattr(partition, name).eq(getattr(self, name)) for name in self._shared]
            m.d.comb += [
                getattr(partition, name).eq(Cat(getattr(self, name)[b][p] for b in range(g.banks)))
                for name in _MASKS]
            m.d.comb += [
                *(partition.w_data[i].eq(self.w_data[i].word_select(p, bits))
                  for i in range(self.wide_writes)),
                *(self.wide[i].word_select(p, bits).eq(partition.wide[i])
                  for i in range(self.wide_reads)),
            ]
            if self.add_stages is not None:
                m.d.comb += partition.sum_data.eq(self.sum_data.word_select(p, bits))
            partitions.append(partition)
        m.d.comb += self.narrow.eq(or_tree([p.narrow.as_value() for p in partitions]))
        return m
