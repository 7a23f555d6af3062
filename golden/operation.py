"""From an instruction word to what an engine does: decoded, checked, registers replaced by values.

Results are remembered by word and by the values that went in, so that loops decode once.
"""

from dataclasses import dataclass

from golden.access import Access
from isa.address_map import Cause
from isa.check import UNKNOWN, check, check_form, has_work, register_fields, substitute
from isa.dtypes import DType
from isa.encoding import DecodeError, decode
from isa.fields import DIMS, Space
from isa.instructions import Instruction

_LIMIT = 1 << 15


@dataclass
class Operation:
    """A datapath instruction with work to do; operands that it has not are None."""

    name: str
    src0: Access | None
    src1: Access | None
    dst: Access | None
    column0: Access | None
    column1: Access | None
    options: dict
    element_wise: bool
    """Element i of a source and of dst belong together."""

    @property
    def sources(self):
        """The operands that are read."""
        return [a for a in (self.src0, self.src1, self.column0, self.column1) if a is not None]


@dataclass
class Prepared:
    """An instruction ready to wait and execute. operation: None for control and for zero work."""

    instruction: Instruction
    fields: dict
    operation: Operation | None


@dataclass
class Refused:
    """An instruction that stops its sequencer."""

    cause: Cause
    message: str


class Preparer:
    """Decodes for one chip configuration."""

    def __init__(self, config):
        self._config = config
        self._decoded = {}
        self._prepared = {}

    def prepare(self, word, sequencer, registers, stationary):
        """Prepared or Refused. word: 128 bytes; stationary: (K, M, double_row,
        transpose) of the tensor engine or None.
        """
        first = (word, sequencer)
        if first not in self._decoded:
            self._remember(self._decoded, first, self._decode(word, sequencer))
        decoded = self._decoded[first]
        if isinstance(decoded, Refused):
            return decoded
        instruction, fields, numbers = decoded
        values = tuple(registers[number] for number in numbers)
        key = (word, values, stationary if instruction.shape == "matmul" else None)
        found = self._prepared.get(key)
        if found is None:
            found = self._resolve(instruction, fields, registers, stationary)
            self._remember(self._prepared, key, found)
        return found

    @staticmethod
    def _decode(word, sequencer):
        try:
            instruction, fields = decode(word, sequencer)
        except DecodeError as error:
            return Refused(error.cause, str(error))
        fault = check_form(instruction, fields)
        if fault is not None:
            return Refused(fault.cause, str(fault))
        return instruction, fields, [fields[path] for path in register_fields(instruction, fields)]

    def _resolve(self, instruction, fields, registers, stationary):
        values = substitute(instruction, fields, registers)
        if not instruction.datapath:
            return Prepared(instruction, values, None)
        known = stationary if instruction.shape == "matmul" else UNKNOWN
        fault = check(self._config, instruction, values, stationary=known)
        if fault is not None:
            return Refused(fault.cause, str(fault))
        work = has_work(instruction, values)
        return Prepared(instruction, values, _operation(instruction, values) if work else None)

    @staticmethod
    def _remember(table, key, value):
        if len(table) >= _LIMIT:
            table.clear()
        table[key] = value


def _operation(instruction, fields):
    operands = {o.slot: _operand(fields, o.slot) for o in instruction.operands}
    columns = {
        c.slot: _column(fields, c.slot, operands["src0"].partitions) for c in instruction.columns
    }
    names = (*instruction.options, *(c.imm for c in instruction.columns))
    everything = {"src0": None, "src1": None, "dst": None, "column0": None, "column1": None}
    everything.update(operands)
    everything.update(columns)
    return Operation(
        name=instruction.name,
        options={name: fields[name] for name in names},
        element_wise=instruction.shape == "same"
        or (
            instruction.shape == "reduce" and operands["src0"].elements == operands["dst"].elements
        ),
        **everything,
    )


def _operand(fields, slot):
    def get(name):
        return fields[f"{slot}.{name}"]

    dims = tuple((get(f"step{i}"), get(f"count{i}")) for i in reversed(range(DIMS)))
    return Access(
        get("space"),
        DType(get("dtype")),
        get("partition"),
        get("partition_count"),
        get("offset"),
        dims,
        pairs=bool(fields.get("double_row")) and slot == "src0",
    )


def _column(fields, slot, partitions):
    if fields[f"{slot}.space"] == Space.NONE:
        return None
    return Access(
        fields[f"{slot}.space"],
        DType(fields[f"{slot}.dtype"]),
        fields[f"{slot}.partition"],
        partitions,
        fields[f"{slot}.offset"],
        ((0, 1),),
    )
