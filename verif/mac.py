"""A processing element in one piece, for streaming: decoders, multiplier, adder."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.decode import FloatDecode, OperandFormat
from hdl.arith.fp32_add import Fp32Add
from hdl.arith.pe_mac import PeMultiply


class Bf16Product(wiring.Component):
    """o = the product of two BF16 codes as a processing element forms it.

    Members: `a`, `b` BF16 codes, `active`; `o` binary32. Latency `stages`.
    """

    def __init__(self, *, stages=0):
        self.latency = stages
        super().__init__({"a": In(16), "b": In(16), "active": In(1), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.decode_a = decode_a = FloatDecode(width=16)
        m.submodules.decode_b = decode_b = FloatDecode(width=16)
        m.submodules.multiply = multiply = PeMultiply(stages=self.latency)
        m.d.comb += [
            decode_a.i.eq(self.a),
            decode_a.format.eq(OperandFormat.BF16),
            decode_b.format.eq(OperandFormat.BF16),
            decode_b.i.eq(self.b),
            multiply.a.eq(decode_a.o),
            multiply.b.eq(decode_b.o),
            multiply.active.eq(self.active),
            self.o.eq(multiply.o),
        ]
        return m


class Bf16Mac(wiring.Component):
    """o = c + a * b as one row of a column of the tensor array computes it.

    Members: `a`, `b` BF16 codes, `c` binary32, `active`; `o` binary32. All inputs belong to the
    same cycle. Latency `multiply_stages + add_stages`.
    """

    def __init__(self, *, multiply_stages=0, add_stages=0):
        self.multiply_stages = multiply_stages
        self.add_stages = add_stages
        self.latency = multiply_stages + add_stages
        members = {"a": In(16), "b": In(16), "c": In(32), "active": In(1), "o": Out(32)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.product = product = Bf16Product(stages=self.multiply_stages)
        m.submodules.add = add = Fp32Add(stages=self.add_stages)
        c = self.c
        for step in range(self.multiply_stages):
            later = Signal(32, name=f"c_{step}")
            m.d.sync += later.eq(c)
            c = later
        m.d.comb += [
            product.a.eq(self.a),
            product.b.eq(self.b),
            product.active.eq(self.active),
            add.a.eq(c),
            add.b.eq(product.o),
            self.o.eq(add.o),
        ]
        return m
