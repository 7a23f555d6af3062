"""A processing element with its decoders, for streaming: every cycle new weights and element."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.decode import FloatDecode, OperandFormat
from hdl.tensor.edge import MovingEdge
from hdl.tensor.pe import Pe

_SWAP_CYCLES = 2
"""From the weight at its input to its use."""


class PeStream(wiring.Component):
    """o = c + a * b as one element of the tensor array computes it, decoders included.

    Members: `a`, `b` raw elements (pairs of FP8 in the low 16 bits), `format_a`, `format_b`,
    `transpose`, `pair` (ignored without double_row), `active`, `c`, `o`. All inputs of a cycle
    belong together.

    Attributes
    ----------
    latency : int
        2 + multiply_stages + add_stages, and with double_row add_stages more.
    """

    def __init__(self, *, multiply_stages, add_stages, double_row=0):
        self._double_row = double_row
        self._pe = Pe(
            multiply_stages=multiply_stages, add_stages=add_stages, double_row=bool(double_row)
        )
        self._before_sum = _SWAP_CYCLES + multiply_stages + add_stages * double_row
        self.latency = self._before_sum + add_stages
        formats = {"format_a": In(OperandFormat), "format_b": In(OperandFormat)}
        flags = {"transpose": In(1), "pair": In(1), "active": In(1)}
        super().__init__({"a": In(32), "b": In(32), "c": In(32), **formats, **flags, "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.pe = pe = self._pe
        m.submodules.moving = moving = MovingEdge(double_row=bool(self._double_row))
        m.d.comb += [
            moving.i.eq(self.b),
            moving.format.eq(self.format_b),
            moving.transpose.eq(self.transpose),
            moving.row_active.eq(self.active),
            pe.load.eq(1),
            pe.swap.eq(1),
        ]
        for row in range(1 + self._double_row):
            m.submodules[f"weight{row}"] = weight = FloatDecode(width=16 if row else 32)
            m.d.comb += [
                weight.i.eq(self.a[8:16] if row else self.a),
                weight.format.eq(self.format_a),
                pe.weight[row].eq(weight.o),
            ]
        if self._double_row:
            m.d.comb += moving.pair.eq(self.pair)
        operands = _late(m, "moving", Cat(moving.operands.as_value(), moving.active), _SWAP_CYCLES)
        m.d.comb += [
            Cat(pe.moving.as_value(), pe.active).eq(operands),
            pe.sum_in.eq(_late(m, "c", self.c, self._before_sum)),
            self.o.eq(pe.sum_out),
        ]
        return m


def _late(m, name, value, cycles):
    for cycle in range(cycles):
        later = Signal(len(value), name=f"{name}_{cycle}")
        m.d.sync += later.eq(value)
        value = later
    return value
