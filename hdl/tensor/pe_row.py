"""One row of the array: edge, weight bus, groups of processing elements."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.arith.decode import OperandFormat
from hdl.lib.tile import add_tile
from hdl.tensor.edge import LANE_BITS, MOVING_BITS, MovingEdge, WeightEdge
from hdl.tensor.pe_group import GROUP, PeGroup, wave_layout


def control_layout(groups, double_row=False):
    """What every row is told, `add_stages` cycles after the row above.

    swap: the moving element in this cycle is the first one of new weights.  moving_format: how the
    moving element is read; transpose: bits of the weights pass; double_row (only with the parameter
    of that name): the element is a pair.

    Weight beat: lane l of the bus, read as weight_format, goes to column 4 * group + (shift + l);
    `low` enables columns (by position in their group) of `group` itself, `high` those of the next
    group, which a beat that does not start at a group boundary reaches.
    """
    return data.StructLayout(
        {
            "swap": 1,
            "moving_format": OperandFormat,
            "transpose": 1,
            **({"double_row": 1} if double_row else {}),
            "weight_format": OperandFormat,
            "group": max(1, ceil_log2(groups)),
            "shift": 2,
            "low": GROUP,
            "high": GROUP,
        }
    )


class PeRow(wiring.Component):
    """One row of `groups` PE groups.  A tile.

    Group g sees a moving element `g` cycles after group 0, and `sums_out` of group g leaves `1 + g`
    cycles more than those of `Pe` after `moving`; `sums_in` enters `add_stages` cycles before.  A
    weight beat is stored in the cycle in which it is on the bus.  Weights that follow a swap may be
    on the bus from the cycle of the swap on, in order of columns; weights that a swap needs must
    come in earlier cycles.

    Members
    -------
    control_in : In(control_layout)
    control_out : Out(control_layout)
        For the row below: `control_in`, `add_stages` cycles later; zero after reset.
    moving : In(32), active : In(1)
        Raw element, or a pair of FP8 in the low 16 bits, and whether the row takes part in its
        column.
    weights : In(64)
        Four lanes of 16 bits, lane 0 lowest: raw elements, or pairs of FP8.  An element of 4 bytes
        takes the lanes 0 and 1 and counts as lane 0.
    sums_in, sums_out : 32 bits per column, binary32, column 0 lowest
    """

    def __init__(self, *, groups, multiply_stages, add_stages, double_row=False):
        self.tile_parameters = (groups, multiply_stages, add_stages, int(double_row))
        self.groups, self._add_stages, self._double_row = groups, add_stages, double_row
        self._parameters = {
            "multiply_stages": multiply_stages,
            "add_stages": add_stages,
            "double_row": double_row,
        }
        self._control = control_layout(groups, double_row)
        super().__init__(
            {
                "control_in": In(self._control),
                "control_out": Out(self._control),
                "moving": In(MOVING_BITS),
                "active": In(1),
                "weights": In(LANE_BITS * GROUP),
                "sums_in": In(32 * GROUP * groups),
                "sums_out": Out(32 * GROUP * groups),
            }
        )

    def elaborate(self, platform):
        m = Module()
        control = chain = self.control_in
        for stage in range(self._add_stages):
            register = Signal(self._control, name=f"control{stage}")
            m.d.sync += register.eq(chain)
            chain = register
        m.d.comb += self.control_out.eq(chain)

        # Every format ends here.
        m.submodules.moving_edge = edge = MovingEdge(double_row=self._double_row)
        m.submodules.weight_edge = weight_edge = WeightEdge(double_row=self._double_row)
        wave = Signal(wave_layout(self._double_row))
        m.d.comb += [
            edge.i.eq(self.moving),
            edge.format.eq(control.moving_format),
            edge.transpose.eq(control.transpose),
            edge.row_active.eq(self.active),
            wave.operands.eq(edge.operands),
            wave.active.eq(edge.active),
            wave.swap.eq(control.swap),
            weight_edge.lanes.eq(self.weights),
            weight_edge.format.eq(control.weight_format),
            weight_edge.shift.eq(control.shift),
        ]
        if self._double_row:
            m.d.comb += edge.pair.eq(control.double_row)

        hits = [Signal(name=f"hit{g}") for g in range(self.groups)]
        m.d.comb += [hit.eq(control.group == g) for g, hit in enumerate(hits)]
        sums = []
        for g, hit in enumerate(hits):
            group = add_tile(m, platform, f"group{g}", PeGroup(**self._parameters))
            load = Mux(hit, control.low, 0)
            if g:
                load = load | Mux(hits[g - 1], control.high, 0)
            m.d.comb += [
                group.wave_in.eq(wave),
                group.weights.eq(weight_edge.weights),
                group.load.eq(load),
                group.sums_in.eq(self.sums_in.word_select(g, 32 * GROUP)),
            ]
            wave = group.wave_out
            sums.append(group.sums_out)
        m.d.comb += self.sums_out.eq(Cat(*sums))
        return m
