"""Decoder: the checks of a word that need no register value, and what kind of instruction it is."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.sequencer.layout import (
    IMMEDIATES,
    WORD_BITS,
    column_slots,
    instructions_of,
    operand_slots,
    register_slots,
    uses,
    word_layout,
)
from hdl.sequencer.ports import CAUSE_BITS, REGISTER_BITS
from isa.address_map import Cause
from isa.dtypes import SUPPORTED
from isa.fields import OPTIONS, Condition, RegOp, Space, Update
from isa.geometry import ISA_VERSION

FLOW = ("branch", "loop", "halt")
"""Instructions after which the next one is not known before they have executed."""


def any_of(conditions):
    """OR of one-bit values; 0 when there are none."""
    return reduce(or_, conditions, Const(0, 1))


def one_of(value, legal):
    """1 when `value` is one of the numbers `legal`."""
    return any_of([value == number for number in legal])


class Decoder(wiring.Component):
    """Legality of the raw word, in the order of `isa.instructions`, for one sequencer.
    Combinational.

    Members
    -------
    word : In(1024)
    cause : Out
        First of BAD_VERSION, ILLEGAL_OPCODE, RESERVED_BITS, BAD_OPERATOR, BAD_SPACE, BAD_DTYPE;
        else NONE.
    flags : Out
        Bit i: slot i of `register_slots` is in use and holds a register number.
    operands, columns : Out
        Bit i: the instruction has operand i of `operand_slots`, column i of `column_slots`.
    datapath, flow : Out(1)
        It is for the engine; it is one of FLOW.
    """

    def __init__(self, sequencer):
        self.sequencer = sequencer
        self.layout = word_layout(sequencer)
        self.slots = register_slots(sequencer)
        super().__init__(
            {
                "word": In(WORD_BITS),
                "cause": Out(CAUSE_BITS),
                "flags": Out(len(self.slots)),
                "operands": Out(len(operand_slots(sequencer))),
                "columns": Out(len(column_slots(sequencer))),
                "datapath": Out(1),
                "flow": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        word = data.View(self.layout, self.word)
        instructions = instructions_of(self.sequencer)
        self._is = {}
        for instruction in instructions:
            self._is[instruction] = Signal(name=f"is_{instruction.name}")
            m.d.comb += self._is[instruction].eq(word.opcode == instruction.opcode)

        m.d.comb += [
            self.datapath.eq(self._any(i for i in instructions if i.datapath)),
            self.flow.eq(self._any(i for i in instructions if i.name in FLOW)),
            self.operands.eq(Cat(self._using(slot) for slot in operand_slots(self.sequencer))),
            self.columns.eq(Cat(self._using(slot) for slot in column_slots(self.sequencer))),
            self.flags.eq(Cat(self.word[s.flag] & self._using(s.owner) for s in self.slots)),
        ]
        checks = (
            (Cause.BAD_VERSION, word.version != ISA_VERSION),
            (Cause.ILLEGAL_OPCODE, ~self._any(instructions)),
            (Cause.RESERVED_BITS, self._reserved()),
            (Cause.BAD_OPERATOR, self._operator(word)),
            (Cause.BAD_SPACE, self._space(word)),
            (Cause.BAD_DTYPE, self._dtype(word)),
        )
        bad = Signal(len(checks))
        m.d.comb += bad.eq(Cat(condition for _, condition in checks))
        for bit, (cause, _) in reversed(list(enumerate(checks))):
            with m.If(bad[bit]):
                m.d.comb += self.cause.eq(cause)
        return m

    def _any(self, instructions):
        return any_of([self._is[i] for i in instructions])

    def _using(self, owner):
        if owner is None:
            return Const(1, 1)
        return self._any(i for i in self._is if uses(i, owner))

    def _reserved(self):
        # Bits with the same set of instructions that use them are tested together.
        groups = {}
        for bit in range(WORD_BITS):
            users = frozenset(i for i in self._is if i.used_mask >> bit & 1)
            groups.setdefault(users, []).append(bit)
        found = []
        for users, bits in groups.items():
            if len(users) < len(self._is):
                ordered = [i for i in self._is if i in users]
                found.append(Cat(self.word[bit] for bit in bits).any() & ~self._any(ordered))
        for slot in self.slots:
            if slot.width > REGISTER_BITS:
                high = self.word[slot.low + REGISTER_BITS : slot.low + slot.width]
                found.append(self.word[slot.flag] & self._using(slot.owner) & high.any())
        for bit, name in enumerate(IMMEDIATES):
            # The flag of an immediate that the instruction has not.
            without = [i for i in self._is if uses(i, "imm_regs") and not uses(i, name)]
            found.append(self.word[OPTIONS["imm_regs"].low + bit] & self._any(without))
        return any_of(found)

    def _operator(self, word):
        found = [word.update_kind > max(Update)]
        for instruction, match in self._is.items():
            if "alu_op" in instruction.options:
                found.append(match & (word.alu_op > max(RegOp)))
            if "cond" in instruction.options:
                found.append(match & (word.cond > max(Condition)))
            for name, legal in instruction.enums:
                found.append(match & ~one_of(word[name], legal))
            found += self._rules(word, instruction, match, Cause.BAD_OPERATOR)
        return any_of(found)

    def _rules(self, word, instruction, match, cause):
        """Conditions of the refused combinations of an instruction that have this cause."""
        found = []
        for rule in instruction.rules:
            if rule.cause == cause:
                condition = match
                for path, values in rule.when:
                    field = word
                    for name in path.split("."):
                        field = field[name]
                    condition = condition & one_of(field, values)
                found.append(condition)
        return found

    def _space(self, word):
        found = []
        for instruction, match in self._is.items():
            for operand in instruction.operands:
                found.append(match & ~one_of(word[operand.slot].space, operand.spaces))
            for column in instruction.columns:
                found.append(match & (word[column.slot].space > max(Space)))
        return any_of(found)

    def _dtype(self, word):
        found = []
        for instruction, match in self._is.items():
            for operand in instruction.operands:
                found.append(match & ~one_of(word[operand.slot].dtype, operand.dtypes))
            for column in instruction.columns:
                block = word[column.slot]
                found.append(match & (block.space != Space.NONE) & ~one_of(block.dtype, SUPPORTED))
            found += self._rules(word, instruction, match, Cause.BAD_DTYPE)
        return any_of(found)
