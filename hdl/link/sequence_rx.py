"""Order of payload flits at the receiver, and when to ask for them again."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.link import ATTEMPTS, SEQUENCE_BITS

RTT_BITS = 16
REPEAT_MARGIN = 64


class SequenceCheck(wiring.Component):
    """Accepts each payload flit once and in order; keeps the owed NAK.

    Numbers are modulo 2 ** `sequence_bits`.  Verdicts are combinational in the cycle of
    `flit_valid`; state moves at the clock edge behind it.

    Members
    -------
    clear : In, pulse: as after reset.
    enable : In: receiving.  While it is low nothing is accepted and no NAK is owed; when it rises
        the receiver waits for a REPLAY flit, which comes by itself.
    flit_valid, payload, sequence, is_replay : In: a good flit of the right epoch that keeps the
        rules of the slot; `is_replay`: of type REPLAY.
    lost : In, pulse: a flit with a wrong CRC: what follows cannot be told.
    rtt : In: round trip in cycles.
    nak_taken : In, pulse: the owed NAK has gone into a slot.
    expected : Out: number of the next payload flit.
    accept : Out: this payload flit is the expected one.
    duplicate : Out: this payload flit was accepted before (by half the number space).
    gap : Out: flits in front of this one are missing, found for the first time.
    bad_sequence : Out: exactly half the number space away: neither.
    waiting : Out: payload is dropped until a REPLAY flit comes.
    nak : Out: a NAK is owed.
    nak_repeat : Out, pulse: it is owed again: still waiting 2 x rtt + `repeat_margin` cycles later.
    nak_limit : Out, pulse, with the `attempts`-th repeat without accepted payload or ended wait.
    progress : Out, pulse: a payload flit is accepted.
    """

    def __init__(self, sequence_bits=SEQUENCE_BITS, attempts=ATTEMPTS, repeat_margin=REPEAT_MARGIN):
        if sequence_bits < 2 or attempts < 2 or repeat_margin < 0:
            raise ValueError(
                f"{sequence_bits} bits, {attempts} attempts, margin {repeat_margin}: at least 2, "
                "2, 0"
            )
        self.sequence_bits, self.attempts = sequence_bits, attempts
        self.repeat_margin = repeat_margin
        super().__init__(
            {
                "clear": In(1),
                "enable": In(1),
                "flit_valid": In(1),
                "payload": In(1),
                "sequence": In(sequence_bits),
                "is_replay": In(1),
                "lost": In(1),
                "rtt": In(RTT_BITS),
                "nak_taken": In(1),
                "expected": Out(sequence_bits),
                "accept": Out(1),
                "duplicate": Out(1),
                "gap": Out(1),
                "bad_sequence": Out(1),
                "waiting": Out(1, init=1),
                "nak": Out(1),
                "nak_repeat": Out(1),
                "nak_limit": Out(1),
                "progress": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.sequence_bits
        half = 1 << (bits - 1)

        # A flit without payload names the number before: the next one is compared
        distance, position = Signal(bits), Signal(bits)
        flit, ahead, resumed, missing = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            flit.eq(self.flit_valid & self.enable),
            position.eq(self.sequence + ~self.payload),
            distance.eq(position - self.expected),
            ahead.eq((distance != 0) & (distance < half)),
            self.accept.eq(flit & self.payload & (distance == 0) & ~self.waiting),
            self.duplicate.eq(flit & self.payload & (distance > half)),
            self.bad_sequence.eq(flit & (distance == half)),
            missing.eq(flit & ahead & (~self.waiting | self.is_replay)),
            self.gap.eq(missing),
            resumed.eq(flit & self.is_replay & ((distance == 0) | (distance > half))),
            self.progress.eq(self.accept),
        ]
        m.d.sync += self.expected.eq(self.expected + self.accept)

        # Waiting, and the NAK that goes with it
        timer = Signal(range(2 * ((1 << RTT_BITS) - 1) + self.repeat_margin + 1))
        repeats = Signal(range(self.attempts))
        ask, due, last = Signal(), Signal(), Signal()
        m.d.comb += [
            ask.eq(missing | (self.lost & self.enable & ~self.waiting)),
            due.eq(timer >= (self.rtt << 1) + self.repeat_margin),
            last.eq(repeats == self.attempts - 1),
            self.nak_repeat.eq(self.enable & self.waiting & due & ~resumed & ~ask),
            self.nak_limit.eq(self.nak_repeat & last),
        ]
        with m.If(~self.enable | resumed | ask | self.nak_repeat | ~self.waiting):
            m.d.sync += timer.eq(0)
        with m.Else():
            m.d.sync += timer.eq(timer + 1)
        with m.If(~self.enable | resumed | self.accept | self.nak_limit):
            m.d.sync += repeats.eq(0)
        with m.Elif(self.nak_repeat):
            m.d.sync += repeats.eq(repeats + 1)
        with m.If(ask):
            m.d.sync += self.waiting.eq(1)
        with m.Elif(resumed):
            m.d.sync += self.waiting.eq(0)
        with m.If(ask | self.nak_repeat):
            m.d.sync += self.nak.eq(1)
        with m.Elif(self.nak_taken):
            m.d.sync += self.nak.eq(0)

        with m.If(~self.enable | self.clear):
            m.d.sync += [self.waiting.eq(1), self.nak.eq(0)]
        with m.If(self.clear):
            m.d.sync += [self.expected.eq(0), timer.eq(0), repeats.eq(0)]
        return m
