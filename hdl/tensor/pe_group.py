"""A group of processing elements that share one register of the moving operand."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.operand import Operand
from hdl.lib.tile import add_tile
from hdl.tensor.pe import Pe, rows_of

GROUP = 4
"""Columns of a group = weights that a row takes in a cycle."""


def wave_layout(double_row):
    """What moves to the right through a row.

    operands: one, with `double_row` two; active: they take part; swap: weights loaded last are used
    from these operands on.
    """
    rows = rows_of(double_row)
    return data.StructLayout(
        {"operands": data.ArrayLayout(Operand, rows), "active": rows, "swap": 1}
    )


def weights_layout(double_row):
    """Weights of a group: column, row."""
    return data.ArrayLayout(data.ArrayLayout(Operand, rows_of(double_row)), GROUP)


class PeGroup(wiring.Component):
    """`GROUP` PEs of one row: the wave is registered once, used by all, and handed to the right
    neighbour.

    A tile.  `wave_out` is `wave_in` one cycle later; `sums_out` of a wave leaves one cycle more
    than those of `Pe` after `wave_in`, and `sums_in` that belongs to it enters `add_stages` cycles
    before.

    Members
    -------
    wave_in : In(wave_layout), wave_out : Out(wave_layout)
    weights : In(weights_layout), load : In(4)
        Weights of each column and their enable.
    sums_in : In(128), sums_out : Out(128)
        Partial sums of the columns, binary32, column 0 lowest.
    """

    def __init__(self, *, multiply_stages, add_stages, double_row=False):
        self.tile_parameters = (multiply_stages, add_stages, int(double_row))
        self._parameters = {
            "multiply_stages": multiply_stages,
            "add_stages": add_stages,
            "double_row": double_row,
        }
        self._wave = wave_layout(double_row)
        super().__init__(
            {
                "wave_in": In(self._wave),
                "wave_out": Out(self._wave),
                "weights": In(weights_layout(double_row)),
                "load": In(GROUP),
                "sums_in": In(32 * GROUP),
                "sums_out": Out(32 * GROUP),
            }
        )

    def elaborate(self, platform):
        m = Module()
        operands = Signal(self._wave["operands"].shape, reset_less=True)
        active = Signal(self._wave["active"].shape, reset_less=True)
        # Only the swap tag changes state, so only it is reset.
        swap = Signal()
        m.d.sync += [
            operands.eq(self.wave_in.operands),
            active.eq(self.wave_in.active),
            swap.eq(self.wave_in.swap),
        ]
        m.d.comb += [
            self.wave_out.operands.eq(operands),
            self.wave_out.active.eq(active),
            self.wave_out.swap.eq(swap),
        ]
        for column in range(GROUP):
            pe = add_tile(m, platform, f"pe{column}", Pe(**self._parameters))
            m.d.comb += [
                pe.weight.eq(self.weights[column]),
                pe.load.eq(self.load[column]),
                # The weight changes in step with the register above.
                pe.swap.eq(self.wave_in.swap),
                pe.moving.eq(operands),
                pe.active.eq(active),
                pe.sum_in.eq(self.sums_in.word_select(column, 32)),
                self.sums_out.word_select(column, 32).eq(pe.sum_out),
            ]
        return m
