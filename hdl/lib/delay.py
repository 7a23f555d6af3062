"""Delay lines: a value comes out a fixed number of cycles later."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile

_REGISTER_LIMIT = 2
"""Up to this many cycles registers are cheaper than a RAM and its pointer."""


class DelayLine(wiring.Component):
    """`o` is `i` as it was `cycles` cycles ago.

    Short delays are registers, long ones a distributed RAM with a running pointer, so that
    simulation and area grow with the width only.  Always advances.  After a reset the first
    `cycles` outputs are zero if `clean` (which costs registers), else what was there before.

    Members: `i`, `o`, both `width` bits.
    """

    def __init__(self, *, width, cycles, clean=False):
        if width < 1 or cycles < 0:
            raise ValueError(f"delay line of {width} bits and {cycles} cycles")
        self.width, self.cycles, self.clean = width, cycles, clean
        self.tile_parameters = (width, cycles, int(clean))
        super().__init__({"i": In(width), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        if self.cycles <= _REGISTER_LIMIT or self.clean:
            value = self.i
            for stage in range(self.cycles):
                register = Signal(self.width, name=f"stage{stage}", reset_less=not self.clean)
                m.d.sync += register.eq(value)
                value = register
            m.d.comb += self.o.eq(value)
            return m
        # RAM holds cycles - 1 values; the output register adds the last cycle.
        depth = self.cycles - 1
        pointer = Signal(ceil_log2(depth))
        ram = add_tile(m, platform, "ram", LutRam(width=self.width, depth=depth))
        m.d.comb += [
            ram.w_en.eq(1),
            ram.w_addr.eq(pointer),
            ram.w_data.eq(self.i),
            ram.r_addr.eq(pointer),
        ]
        m.d.sync += self.o.eq(ram.r_data)
        with m.If(pointer == depth - 1):
            m.d.sync += pointer.eq(0)
        with m.Else():
            m.d.sync += pointer.eq(pointer + 1)
        return m
