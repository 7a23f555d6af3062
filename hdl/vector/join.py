"""Joins the partial results of reductions in ALU1 while ALU0 takes the next groups.

The last (up to 8) elements of a group leave ALU0 as final partials 0..7. Neighbours become a pair;
a partial without neighbour is paired with the identity, which changes nothing: partials are never
-0. Sums are numbered by the tree ((0+1)+(2+3))+((4+5)+(6+7)): level 1 has index 0..3, level 2
index 0..1. A sum whose partner does not exist goes up a level as it is; otherwise the first of two
waits in the node memory and the second goes back into ALU1 at once, before the pairs that wait. A
group of G elements costs at most min(G, 8) additions here, so ALU1 always keeps up with ALU0.

All groups in flight have the same size, therefore their results come in their order.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.check import check
from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from hdl.vector.lane import NODE_BITS, PAIRS

GROUP_BITS = 2
"""Groups are told apart modulo 4: sums of at most 2 wait at one node (with 6 stages)."""


class _Sum(data.Struct):
    """What ALU1 is adding: level 1 or 2, or 3 for a result; index in the level; group."""

    valid: 1
    level: 2
    index: 2
    group: GROUP_BITS


class Join(wiring.Component):
    """Control of the join; the data is in the lanes.

    Members
    -------
    partials : In(4)
        Partials of a group, 1..8; constant while anything is in flight.
    pair : In(1), index : In(2), group : In(2)
        A pair (partials 2 * index and 2 * index + 1) leaves ALU0 and is stored at `pair_at`.
    pair_at, pair_from : Out(3)
        Places of the pair that comes and of the one that waits longest.
    use_pair, use_node : Out(1)
        ALU1 takes the waiting pair, or its own output with node `node`.
    node : Out(4), node_write : Out(1)
        The output of ALU1 waits, or its partner is, at `node`.
    result : Out(1)
        The output of ALU1 is the result of a group.
    """

    def __init__(self, *, stages):
        self.stages = stages
        bits = (PAIRS - 1).bit_length()
        super().__init__({
            "partials": In(4),
            "pair": In(1), "index": In(2), "group": In(GROUP_BITS),
            "pair_at": Out(bits), "pair_from": Out(bits),
            "use_pair": Out(1), "use_node": Out(1),
            "node": Out(NODE_BITS), "node_write": Out(1),
            "result": Out(1),
        })

    def elaborate(self, platform):
        m = Module()

        # What leaves ALU1: up a level where there is no partner.
        came = Signal(_Sum)
        lonely, level, index, top = Signal(), Signal(2), Signal(2), Signal()
        m.d.comb += [
            lonely.eq((came.level == 1) & (Cat(0, came.index ^ 1) >= self.partials)),
            level.eq(came.level + lonely),
            index.eq(Mux(lonely, came.index >> 1, came.index)),
            top.eq((level == 3) | ((level == 2) & (self.partials <= 4))),
        ]
        kind, wide_index = Signal(2), Signal()
        waiting = Signal(1 << NODE_BITS)
        meets = Signal()
        m.d.comb += [
            # Nodes 0 and 1 join level 1, node 2 joins level 2.
            kind.eq(Mux(level == 2, 2, index >> 1)),
            wide_index.eq(index >> 1),
            self.node.eq(Cat(kind, came.group)),
            meets.eq(waiting.bit_select(self.node, 1)),
            self.result.eq(came.valid & top),
            self.use_node.eq(came.valid & ~top & meets),
            self.node_write.eq(came.valid & ~top & ~meets),
        ]
        with m.If(came.valid & ~top):
            m.d.sync += waiting.bit_select(self.node, 1).eq(~meets)

        # Pairs that wait, oldest first.  Pairs and nodes together need ALU1 less often than
        # elements come, so there is no back-pressure.
        count = Signal(range(PAIRS + 1))
        names = add_tile(m, platform, "names", LutRam(width=2 + GROUP_BITS, depth=PAIRS))
        m.d.comb += [
            names.w_en.eq(self.pair), names.w_addr.eq(self.pair_at),
            names.w_data.eq(Cat(self.index, self.group)), names.r_addr.eq(self.pair_from),
            self.use_pair.eq((count != 0) & ~self.use_node),
        ]
        m.d.sync += [
            self.pair_at.eq(self.pair_at + self.pair),
            self.pair_from.eq(self.pair_from + self.use_pair),
            count.eq(count + self.pair - self.use_pair),
        ]
        check(m, platform, ~self.pair | (count != PAIRS), "join: a pair without room")

        goes = Signal(_Sum)
        with m.If(self.use_node):
            m.d.comb += [goes.level.eq(level + 1), goes.index.eq(wide_index),
                         goes.group.eq(came.group)]
        with m.Else():
            m.d.comb += [goes.level.eq(1), Cat(goes.index, goes.group).eq(names.r_data)]
        m.d.comb += goes.valid.eq(self.use_node | self.use_pair)
        for stage in range(self.stages):
            register = Signal(_Sum, name=f"sum{stage}")
            m.d.sync += register.eq(goes)
            goes = register
        m.d.comb += came.eq(goes)
        return m
