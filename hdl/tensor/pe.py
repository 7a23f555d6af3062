"""The processing element: a double-buffered weight, a multiplier and an adder."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32_add import Fp32Add
from hdl.arith.operand import Operand
from hdl.arith.pe_mac import PeMultiply

_ZERO = Operand.const({"zero": 1}).as_value()
"""The weight before the first load."""


class Pe(wiring.Component):
    """sum_out = sum_in + weight * moving, product flushed, sum rounded; sum_in + -0 while `active`
    is 0.

    `weight` goes into a shadow register when `load`; `swap` copies the shadow register into the
    weight in use, from the next cycle on.  With both in one cycle the old shadow becomes the weight
    and the new one the shadow. A tile.  The sum leaves `multiply_stages + add_stages` cycles after
    `moving` and `add_stages` cycles after `sum_in`, one a cycle.

    Members
    -------
    weight : In(Operand), load : In(1)
    swap : In(1)
    moving : In(Operand), active : In(1)
        Already registered by the group.
    sum_in : In(32), sum_out : Out(32)
        binary32.
    """

    def __init__(self, *, multiply_stages, add_stages):
        self.tile_parameters = (multiply_stages, add_stages)
        self._multiply_stages, self._add_stages = multiply_stages, add_stages
        super().__init__(
            {
                "weight": In(Operand),
                "load": In(1),
                "swap": In(1),
                "moving": In(Operand),
                "active": In(1),
                "sum_in": In(32),
                "sum_out": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # A DSP block takes in only registers that start at 0, so the zero flag is kept inverted.
        shadow = Signal(Operand.as_shape().size, reset_less=True)
        used = Signal.like(shadow)
        with m.If(self.load):
            m.d.sync += shadow.eq(self.weight.as_value() ^ _ZERO)
        with m.If(self.swap):
            m.d.sync += used.eq(shadow)

        m.submodules.multiply = multiply = PeMultiply(stages=self._multiply_stages)
        m.submodules.add = add = Fp32Add(stages=self._add_stages)
        m.d.comb += [
            multiply.a.eq(used ^ _ZERO),
            multiply.b.eq(self.moving),
            multiply.active.eq(self.active),
            add.a.eq(self.sum_in),
            add.b.eq(multiply.o),
            self.sum_out.eq(add.o),
        ]
        return m
