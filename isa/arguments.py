"""Instructions as people write them: named arguments, and the fields that they become.

`fields_of` turns arguments into fields for `isa.encoding.encode`; `arguments_of` is its inverse.
Builder and assembler share both, so the two have the same names:

* operands by slot (src0, src1, dst): AccessPattern;
* columns by meaning (operand0, operand1, scale, bias): a float, Bits, a Reg, or a ColumnPattern;
* options by field name: enumerations by member or text, flags as bool, registers as Reg, floats
  for imm0;
* imm (integer, -2^31..2^32-1) or rb (Reg) for the second operand of control instructions;
* address: integer or Address; target: instruction index; wait: Wait; update: SemaphoreUpdate.
"""

import operator

from isa.encoding import EncodeError, field_map
from isa.fields import AluOp, Condition, Function, Part, RegOp, Space, Update
from isa.instructions import BY_NAME
from isa.pattern import AccessPattern, ColumnPattern, Reg
from isa.values import Address, Bits, SemaphoreUpdate, Wait, enum_member, float_bits

ENUMS = {
    "op0": AluOp,
    "op1": AluOp,
    "func": Function,
    "part": Part,
    "alu_op": RegOp,
    "cond": Condition,
}
FLAGS = (
    "reverse0",
    "reverse1",
    "accumulate",
    "sat",
    "stochastic",
    "double_row",
    "transpose",
)
REGISTER_FIELDS = ("rd", "ra", "rb")
DEFAULTS = {
    "op1": AluOp.BYPASS,
    "part": Part.FULL,
    "imm2": Bits(0),
    "reduce_dims": 1,
    "dma_engine": 0,
    "ra": Reg(0),
    **dict.fromkeys(FLAGS, False),
}
_HIDDEN = ("use_imm", "address_reg")


class NotCanonical(ValueError):
    """Fields that no arguments express (meaningless bits are set); assembly writes such words as
    numbers.
    """


def parameters(instruction):
    """{argument name: True when it must be given} of an instruction, in the order of the
    reference page.
    """
    found = {operand.slot: True for operand in instruction.operands}
    found |= {column.doc: False for column in instruction.columns}
    enums = dict(instruction.enums)
    for name in instruction.options:
        if name not in _HIDDEN:
            either = name in ("imm", "rb") and "use_imm" in instruction.options
            default = name in DEFAULTS and DEFAULTS[name] in enums.get(name, (DEFAULTS[name],))
            found[name] = not default and not either
    found["wait"] = instruction.name == "sem_wait"
    found["update"] = instruction.name == "sem_update"
    return found


def fields_of(name, arguments):
    """{field path: value} of the instruction `name`; EncodeError says which argument is wrong
    and what it may be.
    """
    instruction = BY_NAME.get(name)
    if instruction is None:
        raise EncodeError(f"no instruction {name!r}; there are {', '.join(BY_NAME)}")
    known = parameters(instruction)
    for argument in arguments:
        if argument not in known:
            raise EncodeError(f"{name}: no argument {argument!r}; there are {', '.join(known)}")
    for argument, required in known.items():
        if required and arguments.get(argument) is None:
            raise EncodeError(f"{name}: argument {argument!r} is missing")
    fields = dict.fromkeys(field_map(name), 0)
    del fields["opcode"], fields["version"]
    _synchronise(name, fields, arguments)
    _require_second(instruction, arguments)
    for operand in instruction.operands:
        pattern = arguments[operand.slot]
        if not isinstance(pattern, AccessPattern):
            raise EncodeError(f"{name}: {operand.slot} = {pattern!r}, must be an AccessPattern")
        fields.update(pattern.fields(operand.slot))
    for column in instruction.columns:
        value = arguments.get(column.doc)
        _set_column(name, fields, column, column.default if value is None else value)
    for option in instruction.options:
        if option not in _HIDDEN:
            _set_option(name, fields, option, arguments.get(option))
    return fields


def _require_second(instruction, arguments):
    """Control instructions with a choice of imm and rb need one of them, unless nothing is
    compared.
    """
    if "use_imm" in instruction.options and arguments.get("imm") is None:
        always = "cond" in instruction.options and arguments["cond"] in (0, "always", "ALWAYS")
        if arguments.get("rb") is None and not always:
            raise EncodeError(f"{instruction.name}: argument 'imm' or 'rb' is missing")


def _synchronise(name, fields, arguments):
    wait, update = arguments.get("wait"), arguments.get("update")
    if wait is not None:
        if not isinstance(wait, Wait):
            raise EncodeError(f"{name}: wait = {wait!r}, must be a Wait(semaphore, value)")
        fields.update(
            wait=1,
            wait_semaphore=wait.semaphore,
            wait_reg=int(isinstance(wait.value, Reg)),
            wait_value=_plain(wait.value),
        )
    if update is not None:
        if not isinstance(update, SemaphoreUpdate):
            raise EncodeError(
                f"{name}: update = {update!r}, must be a SemaphoreUpdate(kind, semaphore, value)"
            )
        kind = enum_member(Update, update.kind, f"{name}: update kind")
        if kind in (Update.INCREMENT, Update.DECREMENT) and update.value not in (0, None):
            raise EncodeError(
                f"{name}: update {kind.name.lower()} takes no value; use add with {update.value}"
            )
        fields.update(
            update_kind=int(kind),
            update_semaphore=update.semaphore,
            update_at_read=int(bool(update.at_read)),
            update_reg=int(isinstance(update.value, Reg)),
            update_value=_plain(update.value),
        )


def _set_column(name, fields, column, value):
    bit = 1 << int(column.imm[-1])
    if isinstance(value, ColumnPattern):
        fields.update(value.fields(column.slot))
    elif isinstance(value, AccessPattern):
        raise EncodeError(
            f"{name}: {column.doc} is one element per partition, must be a ColumnPattern or a "
            "number"
        )
    else:
        _set_immediate(fields, column.imm, bit, value)


def _set_immediate(fields, path, bit, value):
    if isinstance(value, Reg):
        fields["imm_regs"] |= bit
        fields[path] = value.number
    else:
        fields[path] = value.value if isinstance(value, Bits) else float_bits(value)


def _set_option(name, fields, option, value):
    where = f"{name}: {option}"
    if option == "imm0":
        _set_immediate(fields, option, 1, value)
    elif option == "imm2":
        value = DEFAULTS[option] if value is None else value
        fields[option] = value.value if isinstance(value, Bits) else float_bits(value)
    elif option in ("imm", "rb"):
        if value is not None:
            if "use_imm" in fields:
                if option == "imm" and fields["rb"] or option == "rb" and fields["use_imm"]:
                    raise EncodeError(f"{name}: imm and rb exclude each other")
                fields["use_imm"] = int(option == "imm")
            fields[option] = (
                _immediate(where, value) if option == "imm" else _register(where, value)
            )
    elif option in REGISTER_FIELDS:
        if value is not None:
            fields[option] = _register(where, value)
    elif option in ENUMS:
        default = DEFAULTS.get(option)
        fields[option] = int(enum_member(ENUMS[option], default if value is None else value, where))
    elif option == "address":
        _set_address(name, fields, value if isinstance(value, Address) else Address(value))
    else:
        fields[option] = int(
            DEFAULTS[option] if value is None and option in DEFAULTS else _integer(where, value)
        )


def _set_address(name, fields, address):
    fields["address"] = _integer(f"{name}: address", address.base)
    if address.register is not None:
        fields.update(address_reg=1, ra=_register(f"{name}: address", address.register))


def arguments_of(instruction, fields):
    """The arguments that `fields_of` turns into `fields`; NotCanonical when there are none."""
    try:
        arguments = _arguments(instruction, fields)
        again = fields_of(instruction.name, arguments)
    except EncodeError as error:
        raise NotCanonical(str(error)) from None
    for path, value in again.items():
        if fields[path] != value:
            raise NotCanonical(f"{instruction.name}: {path} = {fields[path]} means nothing here")
    return arguments


def _arguments(instruction, fields):
    found = {}
    for operand in instruction.operands:
        found[operand.slot] = AccessPattern.from_fields(operand.slot, fields)
    for column in instruction.columns:
        if fields[f"{column.slot}.space"] != Space.NONE:
            found[column.doc] = ColumnPattern.from_fields(column.slot, fields)
        else:
            found[column.doc] = _immediate_argument(fields, column.imm, 1 << int(column.imm[-1]))
    for option in instruction.options:
        if option in _HIDDEN:
            continue
        if option == "imm0":
            found[option] = _immediate_argument(fields, option, 1)
        elif option == "imm2":
            found[option] = Bits(fields[option])
        elif option in ("imm", "rb") and "use_imm" in fields:
            if fields["use_imm"] == int(option == "imm"):
                found[option] = fields[option] if option == "imm" else Reg(fields[option])
        elif option == "ra" and fields.get("address_reg"):
            continue
        elif option in REGISTER_FIELDS:
            found[option] = Reg(fields[option])
        elif option in ENUMS:
            found[option] = enum_member(ENUMS[option], fields[option], option)
        elif option == "address":
            found[option] = Address(
                fields[option], Reg(fields["ra"]) if fields["address_reg"] else None
            )
        else:
            found[option] = bool(fields[option]) if option in FLAGS else fields[option]
    if fields["wait"]:
        value = Reg(fields["wait_value"]) if fields["wait_reg"] else fields["wait_value"]
        found["wait"] = Wait(fields["wait_semaphore"], value)
    if fields["update_kind"]:
        value = Reg(fields["update_value"]) if fields["update_reg"] else fields["update_value"]
        kind = enum_member(Update, fields["update_kind"], "update_kind")
        found["update"] = SemaphoreUpdate(
            kind, fields["update_semaphore"], value, bool(fields["update_at_read"])
        )
    return found


def _immediate_argument(fields, path, bit):
    return Reg(fields[path]) if fields["imm_regs"] & bit else Bits(fields[path])


def _plain(value):
    return value.number if isinstance(value, Reg) else value


def _integer(where, value):
    try:
        return operator.index(value)
    except TypeError:
        raise EncodeError(f"{where} = {value!r} is not an integer") from None


def _immediate(where, value):
    number = _integer(where, value)
    if not -(1 << 31) <= number < 1 << 32:
        raise EncodeError(f"{where} = {number} is outside {-(1 << 31)}..{(1 << 32) - 1}")
    return number - (1 << 32) if number >> 31 == 1 else number


def _register(where, value):
    if not isinstance(value, Reg):
        raise EncodeError(f"{where} = {value!r}, must be a register")
    return value.number
