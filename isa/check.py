"""The rules of every instruction in code: the Cause that a chip reports, and what would be right.

`check` is the whole; the golden model calls it at run time with registers substituted
(`substitute`), assembler and builder call `check_static` for what no register decides.  The first
rule that fails, in this order, gives the Cause:

1. RESERVED_BITS: a field that holds a register number (its flag is set, used or not) has a bit
   above the 6 of the number; imm_regs names an immediate that the instruction has not.
2. BAD_OPERATOR: update_kind, alu_op, cond or an enumerated option outside its values.
3. BAD_SPACE, then BAD_DTYPE, of every operand and column.  A column with space NONE is the
   immediate: nothing else of it counts.
4. When a count or partition_count of an operand is 0 the instruction does no work and passes.
5. BAD_PARTITION, MISALIGNED, OUT_OF_RANGE, SHAPE_MISMATCH: each over all operands before the next
   (`isa.check_operands`).
6. Control instructions, when executed: `isa.check_control`.

Values from registers count as unsigned 32-bit numbers, whatever the width of the field that they
replace.  At run time: `check_form` on the decoded fields, then `substitute`, then `check`.
"""

from dataclasses import dataclass

from isa.address_map import Cause
from isa.check_control import control_problem
from isa.check_operands import UNKNOWN, chip_problem, operands_problem
from isa.dtypes import SUPPORTED, DType
from isa.encoding import field_map
from isa.fields import COLUMN_REGS, DIMS, OPERAND_REGS, Condition, RegOp, Space, Update

__all__ = [
    "UNKNOWN",
    "Fault",
    "check",
    "check_form",
    "check_static",
    "has_work",
    "substitute",
    "uses_registers",
]

_ENUMS = {"update_kind": Update, "alu_op": RegOp, "cond": Condition}
_REGISTER_BITS = 6
_REGISTER_LIMIT = 1 << _REGISTER_BITS


@dataclass(frozen=True)
class Fault:
    """Why an instruction is refused: Cause of the chip; what, where and what would be right."""

    cause: Cause
    message: str

    def __str__(self):
        return f"{self.cause.name}: {self.message}"


def register_fields(instruction, fields):
    """Paths of the fields of `fields` that hold a register number because their flag is set."""
    found = [f"{side}_value" for side in ("wait", "update") if fields[f"{side}_reg"]]
    for items, names in ((instruction.operands, OPERAND_REGS), (instruction.columns, COLUMN_REGS)):
        for item in items:
            regs = fields[f"{item.slot}.regs"]
            found += [f"{item.slot}.{name}" for bit, name in enumerate(names) if regs >> bit & 1]
    for bit, name in enumerate(("imm0", "imm1")):
        if fields.get("imm_regs", 0) >> bit & 1 and name in fields:
            found.append(name)
    return found


def uses_registers(instruction, fields):
    """An operand, column or immediate comes from a register."""
    return any(
        path not in ("wait_value", "update_value") for path in register_fields(instruction, fields)
    )


def substitute(instruction, fields, registers):
    """`fields` with register numbers replaced by register values (unsigned; wait and update value
    signed) and flags cleared.

    To be called when `check_form` has passed.  registers: 64 integers in 0..2^32-1.
    """
    values = dict(fields)
    for path in register_fields(instruction, fields):
        value = int(registers[fields[path]])
        if path in ("wait_value", "update_value") and value >> 31:
            value -= 1 << 32
        values[path] = value
    for path in values:
        if path in ("wait_reg", "update_reg", "imm_regs") or path.endswith(".regs"):
            values[path] = 0
    return values


def has_work(instruction, fields):
    """No count and no partition_count of any operand is 0 (always true of control instructions)."""
    return all(
        fields[f"{operand.slot}.partition_count"]
        and all(fields[f"{operand.slot}.count{i}"] for i in range(DIMS))
        for operand in instruction.operands
    )


def check_form(instruction, fields):
    """First broken rule of groups 1 to 3 as a Fault, or None; these rules need no register
    value.
    """
    for path in register_fields(instruction, fields):
        value = fields[path] & ((1 << field_map(instruction.name)[path].width) - 1)
        if value >= _REGISTER_LIMIT:
            return Fault(
                Cause.RESERVED_BITS,
                f"{instruction.name}: {path} holds register number {value}, must be "
                f"0..{_REGISTER_LIMIT - 1}",
            )
    if fields.get("imm_regs", 0) >> 1 and "imm1" not in fields:
        return Fault(
            Cause.RESERVED_BITS, f"{instruction.name}: imm_regs has bit 1, there is no imm1"
        )
    return (
        _operator_fault(instruction, fields)
        or _space_fault(instruction, fields)
        or _dtype_fault(instruction, fields)
    )


def check(config, instruction, fields, *, stationary=UNKNOWN, place=None, registers=None):
    """First broken rule as a Fault, or None.

    fields: every field, with register values substituted.  stationary: (K, M, double_row,
    transpose) of the last load_stationary of the sequencer that did work, None when there was none
    since START, UNKNOWN leaves that rule out.  place: (index of the instruction, instructions in
    the stream), for the target of branch (taken) and loop; None leaves it out.  registers: values
    for the address of reg_load, reg_store and dma_trigger; its rules are left out when None and a
    register is added.
    """
    fault = check_form(instruction, fields)
    if fault is not None:
        return fault
    if instruction.datapath:
        problem = (
            operands_problem(config, instruction, fields, stationary)
            if has_work(instruction, fields)
            else None
        )
    else:
        problem = control_problem(config, instruction, fields, place, registers)
    return _fault_of(instruction, problem)


def check_static(config, instruction, fields, *, place=None):
    """What can be said before the program runs: `check`; of an instruction with registers
    `check_form`, and whether the chip has its modes unless a count of 0 leaves it without work.
    """
    if not uses_registers(instruction, fields):
        return check(config, instruction, fields, place=place)
    fault = check_form(instruction, fields)
    if fault is not None:
        return fault
    counted = fields | dict.fromkeys(register_fields(instruction, fields), 1)
    problem = chip_problem(config, fields) if has_work(instruction, counted) else None
    return _fault_of(instruction, problem)


def _fault_of(instruction, problem):
    return None if problem is None else Fault(problem[0], f"{instruction.name}: {problem[1]}")


def _operator_fault(instruction, fields):
    allowed = {path: tuple(enum) for path, enum in _ENUMS.items() if path in fields} | dict(
        instruction.enums
    )
    for path, members in allowed.items():
        if fields[path] not in [int(m) for m in members]:
            names = ", ".join(
                f"{m.name.lower()} ({int(m)})" if hasattr(m, "name") else str(m) for m in members
            )
            return Fault(
                Cause.BAD_OPERATOR,
                f"{instruction.name}: {path} = {fields[path]}, must be one of {names}",
            )
    return _rule_fault(instruction, fields, Cause.BAD_OPERATOR)


def _space_fault(instruction, fields):
    for item, spaces in (
        *((o, o.spaces) for o in instruction.operands),
        *((c, (Space.NONE, Space.SBUF, Space.PSUM)) for c in instruction.columns),
    ):
        space = fields[f"{item.slot}.space"]
        if space not in spaces:
            return Fault(
                Cause.BAD_SPACE,
                f"{instruction.name}: {item.slot} lies in space {_name(Space, space)}, "
                f"must be {' or '.join(s.name for s in spaces)}",
            )
    return None


def _dtype_fault(instruction, fields):
    columns = tuple(c for c in instruction.columns if fields[f"{c.slot}.space"] != Space.NONE)
    for item, dtypes in (
        *((o, o.dtypes) for o in instruction.operands),
        *((c, SUPPORTED) for c in columns),
    ):
        dtype = fields[f"{item.slot}.dtype"]
        if dtype not in dtypes:
            return Fault(
                Cause.BAD_DTYPE,
                f"{instruction.name}: {item.slot} has dtype {_name(DType, dtype)}, "
                f"must be {' or '.join(d.name for d in dtypes)}",
            )
    return _rule_fault(instruction, fields, Cause.BAD_DTYPE)


def _rule_fault(instruction, fields, cause):
    for rule in instruction.rules:
        if rule.cause == cause and all(fields[path] in values for path, values in rule.when):
            given = ", ".join(f"{path} = {fields[path]}" for path, _ in rule.when)
            return Fault(cause, f"{instruction.name}: {rule.doc} ({given})")
    return None


def _name(enum, code):
    return enum(code).name if code in [int(m) for m in enum] else f"code {code}"
