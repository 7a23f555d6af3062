"""The left and the weight edge of a row: raw elements of any format become operands."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.decode import FloatDecode, OperandFormat
from hdl.arith.operand import PASS, Operand
from hdl.lib.tile import add_tile
from hdl.tensor.pe import rows_of
from hdl.tensor.pe_group import GROUP, weights_layout

MOVING_BITS = 32
LANE_BITS = 16
"""Bits of a lane of the weight bus."""
_BYTE = slice(8, 16)
"""The second FP8 of a pair."""


class MovingEdge(wiring.Component):
    """The moving operands of a row, combinationally.

    With `transpose` an element that is not zero becomes `PASS`, and one that is zero takes no part.

    Members
    -------
    i : In(32), format : In(OperandFormat)
        Raw element, or a pair of FP8 in the low 16 bits.
    transpose, row_active : In(1)
    pair : In(1), only with `double_row`
        The element is a pair; without, the second operand takes no part.
    operands : Out(rows x Operand), active : Out(rows)
    """

    def __init__(self, *, double_row=False):
        self._rows = rows_of(double_row)
        members = {"pair": In(1)} if double_row else {}
        super().__init__(
            {
                "i": In(MOVING_BITS),
                "format": In(OperandFormat),
                "transpose": In(1),
                "row_active": In(1),
                **members,
                "operands": Out(data.ArrayLayout(Operand, self._rows)),
                "active": Out(self._rows),
            }
        )

    def elaborate(self, platform):
        m = Module()
        decode = add_tile(m, platform, "decode0", FloatDecode(width=MOVING_BITS))
        some = Signal()
        m.d.comb += [
            decode.i.eq(self.i),
            decode.format.eq(self.format),
            some.eq(~decode.o.zero),
            self.operands[0].eq(Mux(self.transpose & some, PASS.as_value(), decode.o.as_value())),
            self.active[0].eq(self.row_active & (some | ~self.transpose)),
        ]
        if self._rows == 2:
            decode = add_tile(m, platform, "decode1", FloatDecode(width=LANE_BITS))
            m.d.comb += [
                decode.i.eq(self.i[_BYTE]),
                decode.format.eq(self.format),
                self.operands[1].eq(decode.o),
                self.active[1].eq(self.row_active & self.pair),
            ]
        return m


class WeightEdge(wiring.Component):
    """The weights of a beat, turned to the columns that they are for, combinationally.

    Lanes are decoded first: only lane 0 may hold an element of 4 bytes.

    Members
    -------
    lanes : In(64), format : In(OperandFormat)
        Four raw elements of at most 16 bits, or pairs of FP8, lane 0 lowest; or one of 32 bits.
    shift : In(2)
        Position of lane 0 in its group; lane l goes to (shift + l) mod 4.
    weights : Out(weights_layout)
    """

    def __init__(self, *, double_row=False):
        self._rows = rows_of(double_row)
        super().__init__(
            {
                "lanes": In(LANE_BITS * GROUP),
                "format": In(OperandFormat),
                "shift": In(2),
                "weights": Out(weights_layout(double_row)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        decoded = []
        for lane in range(GROUP):
            word = self.lanes[LANE_BITS * lane :]
            operands = []
            for row in range(self._rows):
                width = LANE_BITS if lane or row else MOVING_BITS
                decode = add_tile(m, platform, f"decode{lane}_{row}", FloatDecode(width=width))
                m.d.comb += [
                    decode.i.eq(word[_BYTE] if row else word[:width]),
                    decode.format.eq(self.format),
                ]
                operands.append(decode.o.as_value())
            decoded.append(Cat(*operands))
        bits = len(decoded[0])
        turned = Cat(*decoded)
        for level in range(2):
            source = Signal(len(turned), name=f"by{level}")
            m.d.comb += source.eq(turned)
            turned = Mux(self.shift[level], source.rotate_left(bits << level), source)
        m.d.comb += self.weights.as_value().eq(turned)
        return m
