"""The additive scrambler of a lane, a symbol at a time.

A shift register that is stepped once a bit is run ahead by whole symbols: with lags a > b the
sequence x[t] = x[t - a] ^ x[t - b] gives b new bits at once from the a bits before.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.link import SCRAMBLER_TAPS, lane_seed

STATE_BITS = SCRAMBLER_TAPS[0]


def run_ahead(m, window, lag, count, name):
    """`count` further bits of the sequence x[t] = x[t - len(window)] ^ x[t - lag].

    window: the bits before, oldest first.  Result: `window` and the new bits behind it.
    """
    reach = len(window)
    bits = window
    while len(bits) < reach + count:
        end = len(bits)
        width = min(lag, reach + count - end)
        part = Signal(width, name=f"{name}{end}")
        m.d.comb += part.eq(
            bits[end - reach : end - reach + width] ^ bits[end - lag : end - lag + width]
        )
        bits = Cat(bits, part)
    return bits


def seed_window(lane):
    """`lane_seed` as the window of the next 23 bits: the register's bit 22 comes out first."""
    seed = lane_seed(lane)
    return sum((seed >> STATE_BITS - 1 - bit & 1) << bit for bit in range(STATE_BITS))


class Scrambler(wiring.Component):
    """Scrambling bits of a lane, symbol by symbol; for both directions.

    Members: `load`: the next symbol is the first one, from `seed` (`seed_window` of the lane);
    `step`: this symbol has been used; `mask`: bits to be XORed onto this symbol.
    """

    def __init__(self, *, symbol_bits):
        self.symbol_bits = symbol_bits
        self.tile_parameters = (symbol_bits,)
        super().__init__(
            {
                "load": In(1),
                "seed": In(STATE_BITS),
                "step": In(1),
                "mask": Out(symbol_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        window = Signal(STATE_BITS, init=1)
        bits = run_ahead(m, window, SCRAMBLER_TAPS[1], self.symbol_bits, "bits")
        m.d.comb += self.mask.eq(bits[: self.symbol_bits])
        with m.If(self.load):
            m.d.sync += window.eq(self.seed)
        with m.Elif(self.step):
            m.d.sync += window.eq(bits[self.symbol_bits :])
        return m
