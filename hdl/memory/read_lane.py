"""One partition's share of a Reader: its line buffer and the choice of the element."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.ram import LutRam
from hdl.lib.select import select_value
from hdl.lib.tile import add_tile
from hdl.memory.ports import PSUM_WORD_BITS, SBUF_WORD_BITS

LINES = 4
"""Words that a reader holds or has asked for: a word every cycle needs one for each cycle from the
request over the memory (2) and the buffer (1) to the release (1)."""
ELEMENT_BITS = 32
QUAD_BITS = 64


class ReadLane(wiring.Component):
    """Tile: LINES words in distributed RAM, and the element of one of them, combinationally.

    Parameters
    ----------
    psum : bool
        Words may come from PSUM too (low bits of a line).
    lanes4 : bool
        The element is 64 bits: 4 BF16 (`quad`), or one in the low 16 bits.

    Members
    -------
    sbuf, psum : In
        Words that arrive; `from_psum` tells which.
    w_en, w_line, r_line : In
    half, bf16, quad : In
        Place in units of 2 bytes and kind of the element.
    o : Out
        32 bits, BF16 in the upper half over zeros; 64 bits with `lanes4`.
    """

    def __init__(self, *, psum, lanes4):
        self.has_psum, self.lanes4 = psum, lanes4
        self.tile_parameters = (int(psum), int(lanes4))
        members = {
            "sbuf": In(SBUF_WORD_BITS),
            "w_en": In(1),
            "w_line": In(range(LINES)),
            "r_line": In(range(LINES)),
            "half": In(3),
            "o": Out(QUAD_BITS if lanes4 else ELEMENT_BITS),
        }
        if psum:
            members |= {"psum": In(PSUM_WORD_BITS), "from_psum": In(1)}
        members |= {"quad": In(1)} if lanes4 else {"bf16": In(1)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        lines = add_tile(m, platform, "lines", LutRam(width=SBUF_WORD_BITS, depth=LINES))
        line = Signal(SBUF_WORD_BITS)
        m.d.comb += [
            lines.w_en.eq(self.w_en), lines.w_addr.eq(self.w_line), lines.r_addr.eq(self.r_line),
            lines.w_data.eq(self.sbuf), line.eq(lines.r_data),
        ]
        if self.has_psum:
            low = Mux(self.from_psum, self.psum, self.sbuf[:PSUM_WORD_BITS])
            m.d.comb += lines.w_data.eq(Cat(low, self.sbuf[PSUM_WORD_BITS:]))
        word32, half16 = Signal(32), Signal(16)
        m.d.comb += half16.eq(Mux(self.half[0], word32[16:], word32[:16]))
        if self.lanes4:
            word64 = Signal(QUAD_BITS)
            m.d.comb += [
                word64.eq(Mux(self.half[2], line[QUAD_BITS:], line[:QUAD_BITS])),
                word32.eq(Mux(self.half[1], word64[32:], word64[:32])),
                self.o.eq(Mux(self.quad, word64, half16)),
            ]
        else:
            m.d.comb += [
                word32.eq(select_value(
                    self.half[1:], [line.word_select(i, 32) for i in range(4)])),
                self.o.eq(Mux(self.bf16, Cat(Const(0, 16), half16), word32)),
            ]
        return m
