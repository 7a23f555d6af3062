"""The random words of stochastic rounding: one lane of XORWOW."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

WORDS = 6
"""Words of state: x, y, z, w, v, d, in this order from word 0."""

RESET_STATE = (123456789, 362436069, 521288629, 88675123, 5783321, 6615241)
"""The state after a reset: that of the program in Marsaglia's paper."""

_BITS = 32
_WEYL = 362437


class Xorwow(wiring.Component):
    """One lane of XORWOW, words of 32 bits: a word a cycle, latency 0.

    Source: G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8 (14), 2003, section 3.

    A step, modulo 2^32:

        t = x ^ (x >> 2);  x, y, z, w = y, z, w, v;  v = v ^ (v << 4) ^ t ^ (t << 1)
        d = d + 362437

    `word` is what the step gives, v + d after it. It follows the state combinationally, so it is
    there in the cycle in which `step` is 1. Without `step` and `load` the state stays. A reset
    gives `RESET_STATE`; a loaded x, y, z, w and v must not all be zero, from which nothing random
    comes. Equals `golden.arith.xorwow.Xorwow`.

    Members
    -------
    step : In(1)
        Take `word` and advance.
    load : In(1)
        Instead of a step, move every word of the state down by one, `value` behind them: six
        loads in the order of the words replace the state.
    value : In(32)
    word : Out(32)
    state : Out(32), 6 times
        All words, to be saved.
    """

    tile_parameters = ()
    latency = 0

    def __init__(self):
        super().__init__(
            {
                "step": In(1),
                "load": In(1),
                "value": In(_BITS),
                "word": Out(_BITS),
                "state": Out(_BITS).array(WORDS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = [
            Signal(_BITS, name=name, init=value)
            for name, value in zip("xyzwvd", RESET_STATE, strict=True)
        ]
        x, y, z, w, v, d = words
        t, new_v, new_d = (Signal(_BITS, name=name) for name in ("t", "new_v", "new_d"))
        m.d.comb += [
            t.eq(x ^ x[2:]),
            new_v.eq(v ^ Cat(Const(0, 4), v) ^ t ^ Cat(Const(0, 1), t)),
            new_d.eq(d + _WEYL),
            self.word.eq(new_v + new_d),
        ]
        # A load moves x to w as a step does, so that they need no multiplexer.
        following = (y, z, w, v, Mux(self.load, d, new_v), Mux(self.load, self.value, new_d))
        for number, (word, value) in enumerate(zip(words, following, strict=True)):
            m.d.sync += word.eq(Mux(self.step | self.load, value, word))
            m.d.comb += self.state[number].eq(word)
        return m
