"""One partition's share of a Reader: its line buffer and the choice of the element."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.element import SIZE_BITS
from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from hdl.memory.ports import PSUM_WORD_BITS, SBUF_WORD_BITS
from isa.geometry import WORD_BYTES

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
        The element is 64 bits: 4 elements of 1 or 2 bytes (`quad`), each in 16 bits, or one.
    signs : bool
        With `signed`.

    Members
    -------
    sbuf, psum : In
        Words that arrive; `from_psum` tells which.
    w_en, w_line, r_line : In
    place, size, quad : In
        First byte and size of the element: 1 << size bytes, of each of four where `quad` is 1.
    signed : In(1)
        Extend the element by its sign.
    o : Out
        The element, extended with zeros; 32 bits, 64 with `lanes4`.
    """

    def __init__(self, *, psum, lanes4, signs):
        self.has_psum, self.lanes4, self.signs = psum, lanes4, signs
        self.tile_parameters = (int(psum), int(lanes4), int(signs))
        members = {
            "sbuf": In(SBUF_WORD_BITS),
            "w_en": In(1),
            "w_line": In(range(LINES)),
            "r_line": In(range(LINES)),
            "place": In(range(WORD_BYTES)),
            "size": In(SIZE_BITS),
            "o": Out(QUAD_BITS if lanes4 else ELEMENT_BITS),
        }
        if psum:
            members |= {"psum": In(PSUM_WORD_BITS), "from_psum": In(1)}
        if lanes4:
            members |= {"quad": In(1)}
        if signs:
            members |= {"signed": In(1)}
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
        word64, word32, half, byte = Signal(64), Signal(32), Signal(16), Signal(8)
        m.d.comb += [
            word64.eq(Mux(self.place[3], line[64:], line[:64])),
            word32.eq(Mux(self.place[2], word64[32:], word64[:32])),
            half.eq(Mux(self.place[1], word32[16:], word32[:16])),
            byte.eq(Mux(self.place[0], half[8:], half[:8])),
        ]
        sign = Signal()
        if self.signs:
            m.d.comb += sign.eq(self.signed & Mux(self.size[0], half[-1], byte[-1]))
        element = Signal(ELEMENT_BITS)
        upper = Mux(self.size[1], word32[16:], sign.replicate(16))
        second = Mux(self.size.any(), half[8:], sign.replicate(8))
        first = Mux(self.size.any(), half[:8], byte)
        m.d.comb += element.eq(Cat(first, second, upper))
        if self.lanes4:
            spread = Cat(Cat(word32.word_select(i, 8), Const(0, 8)) for i in range(4))
            four = Mux(self.size[0], word64, spread)
            m.d.comb += self.o.eq(Mux(self.quad, four, element))
        else:
            m.d.comb += self.o.eq(element)
        return m
