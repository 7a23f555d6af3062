"""Resolver: values of the fields that may come from a register."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import one_hot_mux
from hdl.sequencer.layout import (
    WORD_BITS,
    bind,
    operand_slots,
    register_slots,
    resolved_layout,
)
from hdl.sequencer.ports import REGISTER_BITS


class Resolver(wiring.Component):
    """Copies the fields of `register_slots` out of the word, then puts the value of a register into
    one flagged field in each cycle with `step`.

    A value beyond its field becomes the largest one (of an offset, with its own low 2 bits), so
    that the checks of partition, alignment and range that follow come out as for the value itself;
    a count beyond 16 bits sets the bit of its operand in `big`.

    Members
    -------
    word : In(1024)
        Constant from `arm` to the last `step`.
    flags, arm : In
        In the cycle of `arm` the fields are copied and the flagged ones noted.
    step : In(1)
        Substitute the next one by `value`.
    index : Out, value : In(32)
        Register read port, combinational.
    last : Out(1)
        No more than one field is still to be substituted.
    big : Out
        By operand of `operand_slots`.
    fields : Out of `resolved_layout`
    """

    def __init__(self, sequencer):
        self.slots = register_slots(sequencer)
        self.operands = operand_slots(sequencer)
        super().__init__(
            {
                "word": In(WORD_BITS),
                "flags": In(len(self.slots)),
                "arm": In(1),
                "step": In(1),
                "index": Out(REGISTER_BITS),
                "value": In(32),
                "last": Out(1),
                "big": Out(len(self.operands)),
                "fields": Out(resolved_layout(sequencer)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        pending = Signal(len(self.slots))
        pick, rest = Signal.like(pending), Signal.like(pending)
        numbers = [self.word[s.low : s.low + REGISTER_BITS] for s in self.slots]
        m.d.comb += [
            rest.eq(pending & (pending - 1)),
            pick.eq(Mux(self.step, pending & ~rest, 0)),
            self.index.eq(one_hot_mux(pick, numbers)),
            self.last.eq(~rest.any()),
        ]
        with m.If(self.arm):
            m.d.sync += pending.eq(self.flags)
        with m.Elif(self.step):
            m.d.sync += pending.eq(rest)

        widths = sorted({s.width for s in self.slots if s.width < len(self.value)})
        beyond = {w: bind(m, f"beyond{w}", self.value[w:].any()) for w in widths}
        big = {operand: [] for operand in self.operands}
        # A register of its own for each field: parts of one wide register simulate slowly.
        registers = []
        for bit, slot in enumerate(self.slots):
            register = Signal(slot.width, name=slot.key)
            registers.append(register)
            with m.If(self.arm):
                m.d.sync += register.eq(self.word[slot.low : slot.low + slot.width])
            with m.Elif(pick[bit]):
                m.d.sync += register.eq(self._fit(slot, beyond))
            if slot.owner in big and slot.name.startswith("count"):
                big[slot.owner].append(pick[bit])
        m.d.comb += self.fields.eq(Cat(registers))
        for i, picks in enumerate(big.values()):
            with m.If(self.arm):
                m.d.sync += self.big[i].eq(0)
            with m.Elif(Cat(picks).any() & beyond[16]):
                m.d.sync += self.big[i].eq(1)
        return m

    def _fit(self, slot, beyond):
        if slot.width == len(self.value):
            return self.value
        keep = 2 if slot.name == "offset" else 0
        top = self.value[keep : slot.width]
        return Cat(self.value[:keep], Mux(beyond[slot.width], Const(-1, len(top)), top))
