"""Resolver: the word of stage 1, in which register numbers are replaced by values."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import one_hot_mux
from hdl.sequencer.layout import WORD_BITS, bind, operand_slots, register_slots
from hdl.sequencer.ports import REGISTER_BITS


class Resolver(wiring.Component):
    """Holds the word and substitutes one flagged field in each cycle with `step`.

    A value beyond its field becomes the largest one (of an offset, with its own low 2 bits), so that the
    checks of partition, alignment and range that follow come out as for the value itself; a count beyond 16
    bits sets the bit of its operand in `big`.

    Members
    -------
    load, i_word : In
        Take a new word; `flags` of it follow in the next cycle.
    flags, arm : In
        Note the flagged slots (of `register_slots`).
    step : In(1)
        Substitute the next one by `value`.
    index : Out, value : In(32)
        Register read port, combinational.
    left, last : Out(1)
        A field is still to be substituted; it is the last one.
    big : Out
        By operand of `operand_slots`.
    word : Out(1024)
    """

    def __init__(self, sequencer):
        self.slots = register_slots(sequencer)
        self.operands = operand_slots(sequencer)
        super().__init__({
            "load": In(1),
            "i_word": In(WORD_BITS),
            "flags": In(len(self.slots)),
            "arm": In(1),
            "step": In(1),
            "index": Out(REGISTER_BITS),
            "value": In(32),
            "left": Out(1),
            "last": Out(1),
            "big": Out(len(self.operands)),
            "word": Out(WORD_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        pending = Signal(len(self.slots))
        pick, rest = Signal.like(pending), Signal.like(pending)
        numbers = [self.word[s.low:s.low + REGISTER_BITS] for s in self.slots]
        m.d.comb += [
            rest.eq(pending & (pending - 1)),
            pick.eq(pending & ~rest),
            self.index.eq(one_hot_mux(pick, numbers)),
            self.left.eq(pending.any()),
            self.last.eq(~rest.any()),
        ]
        widths = sorted({s.width for s in self.slots if s.width < len(self.value)})
        self._beyond = {w: bind(m, f"beyond{w}", self.value[w:].any()) for w in widths}
        with m.If(self.step):
            m.d.sync += pending.eq(rest)
        for bit, slot in enumerate(self.slots):
            with m.If(self.step & pick[bit]):
                m.d.sync += self.word[slot.low:slot.low + slot.width].eq(self._fit(slot))
                if slot.name.startswith("count") and slot.owner in self.operands:
                    with m.If(self._beyond[slot.width]):
                        m.d.sync += self.big[self.operands.index(slot.owner)].eq(1)
        with m.If(self.arm):
            m.d.sync += pending.eq(self.flags)
        with m.If(self.load):
            m.d.sync += [self.word.eq(self.i_word), pending.eq(0), self.big.eq(0)]
        return m

    def _fit(self, slot):
        if slot.width == len(self.value):
            return self.value
        keep = 2 if slot.name == "offset" else 0
        top = self.value[keep:slot.width]
        return Cat(self.value[:keep], Mux(self._beyond[slot.width], Const(-1, len(top)), top))
