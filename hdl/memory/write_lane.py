"""One partition's share of a Writer: narrowing, the merge buffer and the word to be written."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.bf16_narrow import Bf16Narrow
from hdl.memory.ports import SBUF_WORD_BITS
from hdl.memory.word_stream import HALVES


class WriteLane(wiring.Component):
    """Tile: an element (cycle 0) is narrowed, and merged in cycle 1 into `word` or the buffer.

    Members
    -------
    i, bf16, raw, load : In
        Element in FP32 bits; becomes BF16 (`raw`: its upper half as it is); `load` takes it.
    halves : In(8)
        2-byte places that the loaded element takes.
    merge, push : In
        `merge`: put it into the buffer; `push`: put it into `word`, with what the buffer holds.
    word : Out(128)
    """

    tile_parameters = ()

    def __init__(self):
        super().__init__({
            "i": In(32), "bf16": In(1), "raw": In(1), "load": In(1),
            "halves": In(HALVES), "merge": In(1), "push": In(1),
            "word": Out(SBUF_WORD_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.narrow = narrow = Bf16Narrow(stages=0)
        upper, low, high = Signal(16), Signal(16), Signal(16)
        m.d.comb += [
            narrow.i.eq(self.i),
            upper.eq(Mux(self.bf16 & ~self.raw, narrow.o, self.i[16:])),
        ]
        with m.If(self.load):
            m.d.sync += [high.eq(upper), low.eq(Mux(self.bf16, upper, self.i[:16]))]
        buffer, merged = Signal(SBUF_WORD_BITS), Signal(SBUF_WORD_BITS)
        for half in range(HALVES):
            place = slice(16 * half, 16 * half + 16)
            element = high if half % 2 else low
            m.d.comb += merged[place].eq(Mux(self.halves[half], element, buffer[place]))
        with m.If(self.merge):
            m.d.sync += buffer.eq(merged)
        with m.If(self.push):
            m.d.sync += self.word.eq(merged)
        return m
