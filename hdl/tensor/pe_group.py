"""A group of processing elements that share one register of the moving operand."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.operand import Operand
from hdl.lib.tile import add_tile
from hdl.tensor.pe import Pe

GROUP = 4
"""Columns of a group = weights that a row takes in a cycle."""


class Wave(data.Struct):
    """What moves to the right through a row.

    active: the row takes part; swap: weights loaded last are used from this operand on.
    """

    operand: Operand
    active: 1
    swap: 1


class PeGroup(wiring.Component):
    """`GROUP` PEs of one row: the wave is registered once, used by all, and handed to the right
    neighbour.

    A tile.  `wave_out` is `wave_in` one cycle later; `sums_out` of a wave leaves `1 +
    multiply_stages + add_stages` cycles after `wave_in`, and `sums_in` that belongs to it enters
    `add_stages` cycles before.

    Members
    -------
    wave_in : In(Wave), wave_out : Out(Wave)
    weights : In(4 x Operand), load : In(4)
        Weight of each column and its enable.
    sums_in : In(128), sums_out : Out(128)
        Partial sums of the columns, binary32, column 0 lowest.
    """

    def __init__(self, *, multiply_stages, add_stages):
        self.tile_parameters = (multiply_stages, add_stages)
        self._stages = {"multiply_stages": multiply_stages, "add_stages": add_stages}
        super().__init__(
            {
                "wave_in": In(Wave),
                "wave_out": Out(Wave),
                "weights": In(data.ArrayLayout(Operand, GROUP)),
                "load": In(GROUP),
                "sums_in": In(32 * GROUP),
                "sums_out": Out(32 * GROUP),
            }
        )

    def elaborate(self, platform):
        m = Module()
        operand = Signal(Operand, reset_less=True)
        active = Signal(reset_less=True)
        # Only the swap tag changes state, so only it is reset.
        swap = Signal()
        m.d.sync += [
            operand.eq(self.wave_in.operand),
            active.eq(self.wave_in.active),
            swap.eq(self.wave_in.swap),
        ]
        m.d.comb += [
            self.wave_out.operand.eq(operand),
            self.wave_out.active.eq(active),
            self.wave_out.swap.eq(swap),
        ]
        for column in range(GROUP):
            pe = add_tile(m, platform, f"pe{column}", Pe(**self._stages))
            m.d.comb += [
                pe.weight.eq(self.weights[column]),
                pe.load.eq(self.load[column]),
                # The weight changes in step with the register above.
                pe.swap.eq(self.wave_in.swap),
                pe.moving.eq(operand),
                pe.active.eq(active),
                pe.sum_in.eq(self.sums_in.word_select(column, 32)),
                self.sums_out.word_select(column, 32).eq(pe.sum_out),
            ]
        return m
