"""One row of the array: edge decoders, weight bus, groups of processing elements."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.arith.bf16_decode import Bf16Decode
from hdl.arith.operand import Operand
from hdl.lib.tile import add_tile
from hdl.tensor.pe_group import GROUP, PeGroup, Wave


def control_layout(groups):
    """What every row is told, `add_stages` cycles after the row above.

    swap: the moving element in this cycle is the first one of new weights. Weight beat: lane l of
    the bus goes to column 4 * group + (shift + l); `low` enables columns (by position in their
    group) of `group` itself, `high` those of the next group, which a beat that does not start at a
    group boundary reaches.
    """
    return data.StructLayout(
        {
            "swap": 1,
            "group": max(1, ceil_log2(groups)),
            "shift": 2,
            "low": GROUP,
            "high": GROUP,
        }
    )


class PeRow(wiring.Component):
    """One row of `groups` PE groups.  A tile.

    Group g sees a moving element `g` cycles after group 0, and `sums_out` of group g leaves `1 +
    multiply_stages + add_stages + g` cycles after `moving`; `sums_in` enters `add_stages` cycles
    before.  A weight beat is stored in the cycle in which it is on the bus.  Weights that follow a
    swap may be on the bus from the cycle of the swap on, in order of columns; weights that a swap
    needs must come in earlier cycles.

    Members
    -------
    control_in : In(control_layout)
    control_out : Out(control_layout)
        For the row below: `control_in`, `add_stages` cycles later; zero after reset.
    moving : In(16), active : In(1)
        BF16 element, and whether the row takes part in its column.
    weights : In(64)
        Four BF16 weights, lane 0 lowest.
    sums_in, sums_out : 32 bits per column, binary32, column 0 lowest
    """

    def __init__(self, *, groups, multiply_stages, add_stages):
        self.tile_parameters = (groups, multiply_stages, add_stages)
        self.groups, self._add_stages = groups, add_stages
        self._stages = {"multiply_stages": multiply_stages, "add_stages": add_stages}
        layout = control_layout(groups)
        super().__init__(
            {
                "control_in": In(layout),
                "control_out": Out(layout),
                "moving": In(16),
                "active": In(1),
                "weights": In(16 * GROUP),
                "sums_in": In(32 * GROUP * groups),
                "sums_out": Out(32 * GROUP * groups),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chain = self.control_in
        for stage in range(self._add_stages):
            register = Signal(control_layout(self.groups), name=f"control{stage}")
            m.d.sync += register.eq(chain)
            chain = register
        m.d.comb += self.control_out.eq(chain)

        # Edge decoders: every format ends here.
        m.submodules.decode_moving = decode = Bf16Decode()
        wave = Signal(Wave)
        m.d.comb += [
            decode.i.eq(self.moving),
            wave.operand.eq(decode.o),
            wave.active.eq(self.active),
            wave.swap.eq(self.control_in.swap),
        ]
        weights = Signal(data.ArrayLayout(Operand, GROUP))
        shift = self.control_in.shift
        for position in range(GROUP):
            lane = Signal(2, name=f"lane{position}")
            m.submodules[f"decode_weight{position}"] = decode = Bf16Decode()
            m.d.comb += [
                lane.eq(position - shift),
                decode.i.eq(self.weights.word_select(lane, 16)),
                weights[position].eq(decode.o),
            ]

        hits = [Signal(name=f"hit{g}") for g in range(self.groups)]
        m.d.comb += [hit.eq(self.control_in.group == g) for g, hit in enumerate(hits)]
        sums = []
        for g, hit in enumerate(hits):
            group = add_tile(m, platform, f"group{g}", PeGroup(**self._stages))
            load = Mux(hit, self.control_in.low, 0)
            if g:
                load = load | Mux(hits[g - 1], self.control_in.high, 0)
            m.d.comb += [
                group.wave_in.eq(wave),
                group.weights.eq(weights),
                group.load.eq(load),
                group.sums_in.eq(self.sums_in.word_select(g, 32 * GROUP)),
            ]
            wave = group.wave_out
            sums.append(group.sums_out)
        m.d.comb += self.sums_out.eq(Cat(*sums))
        return m
