"""PRBS-31 of ITU-T O.150: x^31 + x^28 + 1, inverted, a symbol at a time."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.scrambler import run_ahead

REACH, LAG = 31, 28


def prbs_seed(lane):
    """Register contents of a lane, never 0: lanes send different places of the sequence."""
    return (0x7FFFFFFF - lane * 0x01234567) & 0x7FFFFFFF | 1


class PrbsGenerator(wiring.Component):
    """Sequence of a lane.

    Members: `load`: the next symbol is the first one behind `seed`; `step`: this symbol has been
    used; `symbol`.
    """

    def __init__(self, *, symbol_bits):
        self.symbol_bits = symbol_bits
        self.tile_parameters = (symbol_bits,)
        super().__init__(
            {"load": In(1), "seed": In(REACH), "step": In(1), "symbol": Out(symbol_bits)}
        )

    def elaborate(self, platform):
        m = Module()
        window = Signal(REACH, init=1)
        bits = run_ahead(m, window, LAG, self.symbol_bits, "bits")
        m.d.comb += self.symbol.eq(~bits[REACH:])
        with m.If(self.load):
            m.d.sync += window.eq(self.seed)
        with m.Elif(self.step):
            m.d.sync += window.eq(bits[self.symbol_bits :])
        return m


class PrbsChecker(wiring.Component):
    """Self-synchronising check of a lane: each bit against the bits 31 and 28 before it.

    Symbol boundary and polarity do not matter.  A wrong bit is seen in its own symbol and, as a
    reference, 28 and 31 bits later: it costs one or two wrong symbols.  A line that stands still
    is wrong (the sequence has no run of 32).

    Members: `enable`, low: forget; `valid`, `symbol`; `error`: this symbol is wrong
    (combinational), from the second symbol on.
    """

    def __init__(self, *, symbol_bits):
        if symbol_bits <= REACH:
            raise ValueError(f"PRBS checker for symbols of {symbol_bits} bits: needs 32 or more")
        self.symbol_bits = symbol_bits
        self.tile_parameters = (symbol_bits,)
        super().__init__(
            {"enable": In(1), "valid": In(1), "symbol": In(symbol_bits), "error": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        width = self.symbol_bits
        before = Signal(REACH, reset_less=True)
        primed = Signal()
        differs = Signal(width)
        wrong = Signal()
        bits = Cat(before, self.symbol)
        m.d.comb += [
            differs.eq(bits[REACH:] ^ bits[:width] ^ bits[REACH - LAG : REACH - LAG + width]),
            wrong.eq(
                (differs.any() & ~differs.all()) | self.symbol.all() | ~self.symbol.any(),
            ),
            self.error.eq(self.enable & self.valid & primed & wrong),
        ]
        with m.If(~self.enable):
            m.d.sync += primed.eq(0)
        with m.Elif(self.valid):
            m.d.sync += [primed.eq(1), before.eq(self.symbol[width - REACH :])]
        return m
