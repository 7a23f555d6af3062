"""The processing element: double-buffered weights, a multiplier each, and an adder."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32_add import Fp32Add
from hdl.arith.operand import Operand
from hdl.arith.pe_mac import PeMultiply

_ZERO = Operand.const({"zero": 1}).as_value().value
"""The weight before the first load."""


def rows_of(double_row):
    """Operands of each kind in a PE."""
    return 2 if double_row else 1


class Pe(wiring.Component):
    """sum_out = sum_in + weight * moving, product flushed, sum rounded; sum_in + -0 while `active`
    is 0.  With `double_row` there are two products, and their rounded sum is what is added.

    `weight` goes into a shadow register when `load`; `swap` copies the shadow register into the
    weight in use, from the next cycle on.  With both in one cycle the old shadow becomes the weight
    and the new one the shadow. A tile.  The sum leaves `multiply_stages + pair_stages + add_stages`
    cycles after `moving` and `add_stages` cycles after `sum_in`, one a cycle.

    Formats: `Operand` for weight and moving, binary32 for sums. Sources: IEEE 754-2019, 5.4.1;
    Kung, Leiserson: Systolic arrays (for VLSI), 1978; the flush is docs/numerics.md's.

    Parameters
    ----------
    multiply_stages, add_stages : int
        Registers in a multiplier, in an adder.
    double_row : bool
        Two rows share the PE; pair_stages is add_stages, and 0 without.

    Members
    -------
    weight : In(rows x Operand), load : In(1)
    swap : In(1)
    moving : In(rows x Operand), active : In(rows)
        Already registered by the group.
    sum_in : In(32), sum_out : Out(32)
        binary32.
    """

    def __init__(self, *, multiply_stages, add_stages, double_row=False):
        self.tile_parameters = (multiply_stages, add_stages, int(double_row))
        self._multiply_stages, self._add_stages = multiply_stages, add_stages
        self._rows = rows_of(double_row)
        operands = data.ArrayLayout(Operand, self._rows)
        super().__init__(
            {
                "weight": In(operands),
                "load": In(1),
                "swap": In(1),
                "moving": In(operands),
                "active": In(self._rows),
                "sum_in": In(32),
                "sum_out": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        products = []
        for row in range(self._rows):
            # A DSP block takes in only registers that start at 0, so the zero flag is kept
            # inverted.
            width = Operand.as_shape().size
            shadow = Signal(width, name=f"shadow{row}", reset_less=True)
            used = Signal(width, name=f"used{row}")
            with m.If(self.load):
                m.d.sync += shadow.eq(self.weight[row].as_value() ^ _ZERO)
            with m.If(self.swap):
                m.d.sync += used.eq(shadow)
            m.submodules[f"multiply{row}"] = multiply = PeMultiply(stages=self._multiply_stages)
            m.d.comb += [
                multiply.a.eq(used ^ _ZERO),
                multiply.b.eq(self.moving[row]),
                multiply.active.eq(self.active[row]),
            ]
            products.append(multiply.o)

        term = products[0]
        if self._rows == 2:
            # A second row that is not in use gives -0, and p + -0 is p, whatever p is.
            m.submodules.pair = pair = Fp32Add(stages=self._add_stages)
            m.d.comb += [pair.a.eq(products[0]), pair.b.eq(products[1])]
            term = pair.o
        m.submodules.add = add = Fp32Add(stages=self._add_stages)
        m.d.comb += [add.a.eq(self.sum_in), add.b.eq(term), self.sum_out.eq(add.o)]
        return m
