"""Session and epoch: what tells one life of a link's state from the next."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

_TAPS = (32, 22, 2, 1)
"""x^32 + x^22 + x^2 + x + 1, primitive."""
_SEED = 0x6E6C_696E


class Session(wiring.Component):
    """Random number and count of initialisations.

    A 32-bit LFSR steps in every cycle.  It and the epoch are not cleared by a chip reset, so that
    the session behind a reset differs from the one before; only power-up finds the same sequence,
    for which there is `entropy`.

    Members
    -------
    entropy : In(32)
        XORed onto the number.
    renew : In(1)
        Pulse; new `session` and `epoch` one cycle later.
    session : Out(32)
    epoch : Out(2)
    """

    def __init__(self):
        super().__init__({"entropy": In(32), "renew": In(1), "session": Out(32), "epoch": Out(2)})

    def elaborate(self, platform):
        m = Module()
        state = Signal(32, init=_SEED, reset_less=True)
        epoch = Signal(2, reset_less=True)
        bit = Signal()
        m.d.comb += [
            bit.eq(Cat(state[tap - 1] for tap in _TAPS).xor()),
            self.epoch.eq(epoch),
        ]
        m.d.sync += state.eq(Cat(bit, state[:-1]))
        with m.If(self.renew):
            m.d.sync += [self.session.eq(state ^ self.entropy), epoch.eq(epoch + 1)]
        return m
