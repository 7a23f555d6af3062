"""One partition's share of a Writer: narrowing, the merge buffer and the word to be written."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.float_to_integer import FloatToInteger
from hdl.arith.narrow import FloatNarrow, NarrowFormat
from hdl.arith.pipeline import bind
from hdl.arith.xorwow import Xorwow
from hdl.lib.element import SIZE_BITS
from hdl.lib.tile import add_tile
from hdl.memory.ports import SBUF_WORD_BITS
from isa.dtypes import DType
from isa.geometry import WORD_BYTES

NARROW_STAGES = 3
RANDOM_BITS = 32


class WriteLane(wiring.Component):
    """Tile: an element is narrowed in NARROW_STAGES cycles, then merged into `word` or the buffer.

    Members
    -------
    i : In(32)
        FP32 bits, or the word that is stored.
    en : In(1)
        Narrowing advances: `i` and all that belongs to it are taken.
    dtype, raw, saturate, stochastic : In
        Belong to i: what it becomes; `raw`: its low bytes as they are.
    step, load, get : In(1)
        Belong to i, while en is 1 : the generator of random words steps; its words move down by
        one, with i behind them, or, with `get`, its first word, which then takes the place of i.
    size : In(2), bytes : In(16)
        Of the element behind narrowing: 1 << size bytes, and where they go in the word.
    merge, push : In
        `merge`: put it into the buffer; `push`: put it into `word`, with what the buffer holds.
    word : Out(128)
    """

    tile_parameters = ()

    def __init__(self):
        super().__init__({
            "i": In(32), "en": In(1),
            "dtype": In(4), "raw": In(1), "saturate": In(1), "stochastic": In(1),
            "step": In(1), "load": In(1), "get": In(1),
            "size": In(SIZE_BITS), "bytes": In(WORD_BYTES), "merge": In(1), "push": In(1),
            "word": Out(SBUF_WORD_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        element = self._narrow(m, platform)
        # Byte n of a word can only be byte n % 4 of an element of 4 bytes, n % 2 of one of 2.
        shown = [element.word_select(n, 8) for n in range(4)]
        wide, some = self.size[1], bind(m, "some", self.size.any())
        spread = [
            shown[0],
            Mux(some, shown[1], shown[0]),
            Mux(wide, shown[2], shown[0]),
            Mux(wide, shown[3], Mux(some, shown[1], shown[0])),
        ]
        spread = bind(m, "spread", Cat(spread))
        buffer, merged = Signal(SBUF_WORD_BITS), Signal(SBUF_WORD_BITS)
        for byte in range(WORD_BYTES):
            place = slice(8 * byte, 8 * byte + 8)
            m.d.comb += merged[place].eq(
                Mux(self.bytes[byte], spread.word_select(byte % 4, 8), buffer[place]))
        with m.If(self.merge):
            m.d.sync += buffer.eq(merged)
        with m.If(self.push):
            m.d.sync += self.word.eq(merged)
        return m

    def _narrow(self, m, platform):
        """The element of NARROW_STAGES cycles ago, in the low bits."""
        i, dtype = self.i, self.dtype
        random = add_tile(m, platform, "random", Xorwow())
        floats = add_tile(m, platform, "floats", FloatNarrow(
            stages=NARROW_STAGES, enable=True, random_bits=RANDOM_BITS))
        integers = add_tile(m, platform, "integers", FloatToInteger(
            stages=NARROW_STAGES, enable=True))
        word = bind(m, "state_or_i", Mux(self.get, random.state[0], i))
        m.d.comb += [
            random.step.eq(self.step & self.en), random.load.eq(self.load & self.en),
            random.value.eq(word),
            floats.i.eq(i), floats.en.eq(self.en), floats.random.eq(random.word),
            # An instruction stores what the format has no code for in another way.
            floats.format.eq(NarrowFormat(dtype[:3])),
            floats.saturate.eq(self.saturate), floats.stochastic.eq(self.stochastic),
            integers.i.eq(i), integers.en.eq(self.en), integers.dtype.eq(dtype),
        ]
        held = word
        kinds = Cat(bind(m, "kept", self.raw | (dtype == DType.FP32)), dtype[3])
        for stage in range(NARROW_STAGES):
            following = Signal(32, name=f"held{stage}")
            following_kinds = Signal(2, name=f"kinds{stage}")
            with m.If(self.en):
                m.d.sync += [following.eq(held), following_kinds.eq(kinds)]
            held, kinds = following, following_kinds
        return bind(m, "element", Mux(kinds[0], held, Mux(kinds[1], integers.o, floats.o)))
