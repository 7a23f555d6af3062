"""Errors put on the lanes on purpose: the registers INJECT_*."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.link import WORD_BITS

BURST_BITS = 6
RATE_BITS = 32


class Inject(wiring.Component):
    """Changes the symbols of a step; combinational from `i` to `o`.

    Members
    -------
    i, o : symbols of all lanes, lane 0 lowest.
    step : the symbols are taken in this cycle.
    rate : a step gets an error if a random number of 32 bits is below; 0: none.
    burst : bits of the error from a random bit of the step on, upwards, cut at the step's end; 0
        counts as 1.
    stuck : bit i: lane i sends zeros, bit 16 + i: ones (which win).
    drop, drop_count : pulse of `drop`: the next `drop_count` steps are zeros on all lanes.
    clear : ends a drop.  The random numbers run on, so that another try of the link meets others.

    A change of `rate` acts one step later.
    """

    def __init__(self, link):
        self.link = link
        bits = 8 * link.beat_bytes
        super().__init__(
            {
                "i": In(bits),
                "o": Out(bits),
                "step": In(1),
                "rate": In(RATE_BITS),
                "burst": In(BURST_BITS),
                "stuck": In(32),
                "drop": In(1),
                "drop_count": In(32),
                "clear": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits, lanes, symbol_bits = len(self.i), self.link.lanes, self.link.symbol_bits

        # xorshift64 (Marsaglia 2003, shifts 13, 7, 17): the upper half is compared, the lower
        # half, independent of it, says where.
        state = Signal(64, init=0x9E37_79B9_7F4A_7C15)
        first, second, third = Signal(64), Signal(64), Signal(64)
        m.d.comb += [
            first.eq(state ^ Cat(Const(0, 13), state)),
            second.eq(first ^ first[7:]),
            third.eq(second ^ Cat(Const(0, 17), second)),
        ]
        hit, position = Signal(), Signal(range(bits))
        with m.If(self.step):
            m.d.sync += hit.eq(state[32:] < self.rate)
            with m.If(self.rate != 0):
                m.d.sync += [state.eq(third), position.eq(state)]

        pattern = Signal((1 << BURST_BITS) - 1)
        shifted = Signal(3 * WORD_BITS)
        for bit in range(len(pattern)):
            wanted = self.burst > bit
            m.d.comb += pattern[bit].eq(hit & (wanted if bit else Const(1)))
        bit_bits = WORD_BITS.bit_length() - 1
        m.d.comb += shifted.eq(pattern << position[:bit_bits])
        word = position[bit_bits:]

        left = Signal(32)
        with m.If(self.drop):
            m.d.sync += left.eq(self.drop_count)
        with m.Elif(self.clear):
            m.d.sync += left.eq(0)
        with m.Elif(self.step & (left != 0)):
            m.d.sync += left.eq(left - 1)

        changed = Signal(bits)
        for index in range(bits // WORD_BITS):
            flips = Const(0, WORD_BITS)
            for ahead in range(min(3, index + 1)):
                flips = Mux(word == index - ahead, shifted.word_select(ahead, WORD_BITS), flips)
            m.d.comb += changed.word_select(index, WORD_BITS).eq(
                self.i.word_select(index, WORD_BITS) ^ flips
            )
        for lane in range(lanes):
            zeros, ones = self.stuck[lane], self.stuck[16 + lane]
            symbol = changed.word_select(lane, symbol_bits)
            m.d.comb += self.o.word_select(lane, symbol_bits).eq(
                Mux(ones, (1 << symbol_bits) - 1, Mux(zeros | (left != 0), 0, symbol))
            )
        return m
