"""RegisterFile: the 64 general registers of a sequencer."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from hdl.sequencer.layout import bind
from hdl.sequencer.ports import REGISTER_BITS
from isa.geometry import REGISTERS


class RegisterFile(wiring.Component):
    """`reads` combinational read ports and one write port, in distributed RAM (a copy for each read
    port).

    Members: `w_en`, `w_index`, `w_value`; `index0`, `value0`, `index1`, ...; `clear` pulse: all
    registers become 0 in the next 64 cycles, in which `clearing` is high and nothing may be
    written.
    """

    def __init__(self, *, reads):
        if reads < 1:
            raise ValueError(f"a register file needs at least one read port, not {reads}")
        self.reads = reads
        members = {
            "w_en": In(1),
            "w_index": In(REGISTER_BITS),
            "w_value": In(32),
            "clear": In(1),
            "clearing": Out(1),
        }
        for i in range(reads):
            members |= {f"index{i}": In(REGISTER_BITS), f"value{i}": Out(32)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        sweep = Signal(REGISTER_BITS)
        with m.If(self.clear):
            m.d.sync += [self.clearing.eq(1), sweep.eq(0)]
        with m.Elif(self.clearing):
            m.d.sync += [sweep.eq(sweep + 1), self.clearing.eq(sweep != REGISTERS - 1)]
        index = bind(m, "index", Mux(self.clearing, sweep, self.w_index))
        value = bind(m, "value", Mux(self.clearing, 0, self.w_value))
        enable = bind(m, "enable", self.clearing | self.w_en)
        for i in range(self.reads):
            ram = add_tile(m, platform, f"copy{i}", LutRam(width=32, depth=REGISTERS))
            m.d.comb += [
                ram.w_en.eq(enable),
                ram.w_addr.eq(index),
                ram.w_data.eq(value),
                ram.r_addr.eq(getattr(self, f"index{i}")),
                getattr(self, f"value{i}").eq(ram.r_data),
            ]
        return m
