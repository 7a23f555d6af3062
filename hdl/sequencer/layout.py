"""The instruction word of one sequencer as Amaranth sees it, derived from `isa.instructions`.

Everything here is computed from the declarations: layout of the word, fields that may hold a
register number, payload between the two stages.
"""

from dataclasses import dataclass

from amaranth.hdl import Signal, signed
from amaranth.lib import data

from hdl.lib.issue import Issue
from hdl.sequencer.ports import CAUSE_BITS, PC_BITS, REGISTER_BITS, SEMAPHORE_BITS
from isa.fields import (
    COLUMN,
    COLUMN_AT,
    COLUMN_BITS,
    COLUMN_REGS,
    HEADER,
    OPERAND,
    OPERAND_AT,
    OPERAND_BITS,
    OPERAND_REGS,
    OPTIONS,
)
from isa.geometry import INSTRUCTION_BYTES
from isa.instructions import INSTRUCTIONS

WORD_BITS = 8 * INSTRUCTION_BYTES
IMMEDIATES = ("imm0", "imm1")


def bind(m, name, value):
    """`value` as a signal: an expression that is used twice must not be built twice."""
    signal = Signal(value.shape(), name=name)
    m.d.comb += signal.eq(value)
    return signal


def instructions_of(sequencer):
    """Instructions that `sequencer` executes."""
    return tuple(i for i in INSTRUCTIONS if sequencer in i.sequencers)


def has_datapath(sequencer):
    """True when an engine belongs to the sequencer."""
    return any(i.datapath for i in instructions_of(sequencer))


def operand_slots(sequencer):
    """Names of the operand blocks that some instruction of the sequencer uses."""
    used = {o.slot for i in instructions_of(sequencer) for o in i.operands}
    return tuple(slot for slot in OPERAND_AT if slot in used)


def column_slots(sequencer):
    """Names of the column blocks that some instruction of the sequencer uses."""
    used = {c.slot for i in instructions_of(sequencer) for c in i.columns}
    return tuple(slot for slot in COLUMN_AT if slot in used)


def _shape(field):
    return signed(field.width) if field.signed else field.width


def _block(fields, bits):
    return data.FlexibleLayout(bits, {f.name: data.Field(_shape(f), f.low) for f in fields})


def word_layout(sequencer):
    """Layout of the word: header and options by name, operands and columns as blocks
    (`word.src0.offset`).

    Blocks of datapath instructions overlap the options of control instructions.
    """
    members = {}
    for instruction in instructions_of(sequencer):
        for field in instruction.fields:
            if "." not in field.name:
                members[field.name] = data.Field(_shape(field), field.low)
    for slot in operand_slots(sequencer):
        members[slot] = data.Field(_block(OPERAND, OPERAND_BITS), OPERAND_AT[slot])
    for slot in column_slots(sequencer):
        members[slot] = data.Field(_block(COLUMN, COLUMN_BITS), COLUMN_AT[slot])
    return data.FlexibleLayout(WORD_BITS, members)


@dataclass(frozen=True)
class RegisterSlot:
    """A field of the word that holds a register number when bit `flag` of the word is 1.

    owner: operand, column or immediate that the field belongs to; None in the header.  key: its
    name in `resolved_layout`.
    """

    owner: str | None
    name: str
    flag: int
    low: int
    width: int

    @property
    def key(self):
        return self.name if self.owner in (None, self.name) else f"{self.owner}_{self.name}"


def register_slots(sequencer):
    """Every RegisterSlot of the sequencer, in the order of substitution."""
    by_name = {f.name: f for f in HEADER}
    found = [
        RegisterSlot(None, value, by_name[flag].low, by_name[value].low, by_name[value].width)
        for flag, value in (("wait_reg", "wait_value"), ("update_reg", "update_value"))
    ]
    blocks = [(slot, OPERAND_AT[slot], OPERAND, OPERAND_REGS) for slot in operand_slots(sequencer)]
    blocks += [(slot, COLUMN_AT[slot], COLUMN, COLUMN_REGS) for slot in column_slots(sequencer)]
    for slot, base, fields, names in blocks:
        at = {f.name: f.at(base, slot) for f in fields}
        for bit, name in enumerate(names):
            field = at[name]
            found.append(RegisterSlot(slot, name, at["regs"].low + bit, field.low, field.width))
    for bit, name in enumerate(IMMEDIATES):
        if any(uses(i, name) for i in instructions_of(sequencer)):
            field = OPTIONS[name]
            found.append(
                RegisterSlot(name, name, OPTIONS["imm_regs"].low + bit, field.low, field.width)
            )
    return tuple(found)


def resolved_layout(sequencer):
    """Values of the fields of `register_slots`, registers substituted, by `RegisterSlot.key`."""
    return data.StructLayout({slot.key: slot.width for slot in register_slots(sequencer)})


def uses(instruction, owner):
    """True when `instruction` has the operand, column, immediate or option `owner` (None: the
    header).
    """
    if owner is None:
        return True
    blocks = {o.slot for o in instruction.operands} | {c.slot for c in instruction.columns}
    return owner in blocks or owner in {f.name for f in instruction.fields}


def work_layout(sequencer):
    """Payload from stage 1 to stage 2: one instruction, resolved and checked.

    cause: not NONE stops the sequencer, and nothing else counts.  no_work: an engine instruction
    without elements.  issue: only where there is an engine.
    """
    members = {
        "cause": CAUSE_BITS,
        "pc": PC_BITS,
        "opcode": 8,
        "no_work": 1,
        "wait": 1,
        "wait_semaphore": SEMAPHORE_BITS,
        "wait_value": signed(32),
        "update_kind": 3,
        "update_at_read": 1,
        "update_semaphore": SEMAPHORE_BITS,
        "update_value": signed(32),
        "rd": REGISTER_BITS,
        "ra": REGISTER_BITS,
        "rb": REGISTER_BITS,
        "use_imm": 1,
        "address_reg": 1,
        "alu_op": 4,
        "cond": 3,
        "dma_engine": 4,
        "imm": 32,
        "target": PC_BITS,
        "address": 64,
    }
    if has_datapath(sequencer):
        members["issue"] = Issue
    return data.StructLayout(members)


FETCHED = data.StructLayout({"cause": CAUSE_BITS, "pc": PC_BITS, "word": WORD_BITS})
"""From the buffer to stage 1: `cause` says why there is no word."""
