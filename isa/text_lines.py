"""Whole lines of assembly: an instruction or a descriptor with its arguments, and back.  Syntax:
docs/assembly.md.
"""

import re

from isa.arguments import DEFAULTS, ENUMS, FLAGS, REGISTER_FIELDS, fields_of, parameters
from isa.encoding import DIMENSIONS, Descriptor, EncodeError, encode_descriptor
from isa.fields import Update
from isa.instructions import BY_NAME
from isa.pattern import Reg
from isa.text import (
    NAME,
    TextError,
    format_address,
    format_float,
    format_update,
    format_wait,
    parse_address,
    parse_float,
    parse_integer,
    parse_register,
    parse_update,
    parse_wait,
)
from isa.text_operands import format_column, format_operand, parse_column, parse_operand
from isa.values import Address, Bits, SemaphoreUpdate, float_bits

_COPY_ARGUMENTS = ("src", "dst", "row_bytes", "rows", "update")


def split(text):
    """Words of a line; blanks inside brackets and parentheses do not separate."""
    words, depth, word = [], 0, ""
    for char in text:
        depth += (char in "[(") - (char in "])")
        if depth < 0:
            raise TextError(f"{char!r} closes nothing; remove it")
        if char.isspace() and depth == 0:
            if word:
                words.append(word)
            word = ""
        else:
            word += char
    if depth:
        raise TextError("a bracket is not closed; add it")
    return [*words, word] if word else words


def parse_instruction(text, names, labels):
    """(instruction name, fields) of a line; labels: {name: index} for targets."""
    name, *words = split(text)
    instruction = BY_NAME.get(name)
    if instruction is None:
        raise TextError(f"no instruction {name!r}; there are {', '.join(BY_NAME)}")
    known = parameters(instruction)
    arguments = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in known:
            raise TextError(f"{name} has no argument {key!r}; there are {', '.join(known)}")
        if key in arguments:
            raise TextError(f"argument {key!r} is there twice; give it once")
        if key in FLAGS and not equals:
            arguments[key] = True
        elif not equals or not value:
            raise TextError(f"argument {key!r} has no value; write {key}=VALUE")
        else:
            arguments[key] = _parse_argument(instruction, key, value, names, labels)
    try:
        return name, fields_of(name, arguments)
    except EncodeError as error:
        raise TextError(str(error)) from None


def format_instruction(instruction, arguments, names, labels):
    """Inverse of `parse_instruction`; labels: {index: name}."""
    words = [instruction.name]
    defaults = DEFAULTS | {
        column.doc: Bits(float_bits(column.default)) for column in instruction.columns
    }
    for key, required in parameters(instruction).items():
        value = arguments.get(key)
        if value is None or (not required and key in defaults and value == defaults[key]):
            continue
        words.append(
            key
            if key in FLAGS
            else f"{key}={_format_argument(instruction, key, value, names, labels)}"
        )
    return " ".join(words)


def parse_descriptor(text, names):
    """128 bytes of a `copy` line."""
    name, *words = split(text)
    if name != "copy":
        raise TextError(f"no descriptor {name!r}; write copy, or .word")
    arguments = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in _COPY_ARGUMENTS:
            raise TextError(f"copy has no argument {key!r}; there are {', '.join(_COPY_ARGUMENTS)}")
        if key in arguments or not value:
            raise TextError(
                f"argument {key!r} is there twice or has no value; write {key}=VALUE once"
            )
        arguments[key] = value
    for key in ("src", "dst", "row_bytes"):
        if key not in arguments:
            raise TextError(f"copy: argument {key!r} is missing; write {key}=VALUE")
    rows = _rows(arguments["rows"]) if "rows" in arguments else []
    rows = [*reversed(rows), *((1, 0, 0),) * (DIMENSIONS - len(rows))]
    facts = {}
    if "update" in arguments:
        update = parse_update(arguments["update"], names)
        if isinstance(update.value, Reg) or update.at_read:
            raise TextError(
                "a descriptor updates with a number when all bytes are visible; no register, no "
                "@read"
            )
        facts = {
            "update_kind": update.kind,
            "update_semaphore": update.semaphore,
            "update_value": update.value,
        }
    try:
        return encode_descriptor(
            Descriptor(
                src_address=_fixed_address(arguments["src"], names),
                dst_address=_fixed_address(arguments["dst"], names),
                row_bytes=parse_integer(arguments["row_bytes"], "row_bytes"),
                count=tuple(r[0] for r in rows),
                src_stride=tuple(r[1] for r in rows),
                dst_stride=tuple(r[2] for r in rows),
                **facts,
            )
        )
    except EncodeError as error:
        raise TextError(str(error)) from None


def format_descriptor(descriptor, names):
    """Inverse of `parse_descriptor`, when the descriptor has nothing without meaning in it."""
    rows = list(zip(descriptor.count, descriptor.src_stride, descriptor.dst_stride, strict=True))[
        ::-1
    ]
    while rows and rows[0] == (1, 0, 0):
        rows.pop(0)
    words = [
        "copy",
        f"src={_address_text(descriptor.src_address, names)}",
        f"dst={_address_text(descriptor.dst_address, names)}",
        f"row_bytes={descriptor.row_bytes}",
    ]
    if rows:
        words.append("rows=" + ",".join(":".join(map(str, row)) for row in rows))
    if descriptor.update_kind != Update.NONE:
        words.append(f"update={_descriptor_update(descriptor, names)}")
    return " ".join(words)


def _descriptor_update(descriptor, names):
    return format_update(
        SemaphoreUpdate(
            descriptor.update_kind, descriptor.update_semaphore, descriptor.update_value
        ),
        names,
    )


def _fixed_address(text, names):
    address = parse_address(text, names)
    if address.register is not None:
        raise TextError(f"address {text!r} has a register; a descriptor has numbers only")
    return address.base


def _address_text(address, names):
    return format_address(Address(address), names)


def _rows(text):
    rows = []
    for part in text.split(","):
        items = part.split(":")
        if len(items) != 3:
            raise TextError(
                f"rows {part!r} is not understood; write COUNT:SRC_STRIDE:DST_STRIDE, outermost "
                "first"
            )
        rows.append(tuple(parse_integer(item, "rows") for item in items))
    if len(rows) > DIMENSIONS:
        raise TextError(f"rows has {len(rows)} dimensions; at most {DIMENSIONS} are possible")
    return rows


def _parse_argument(instruction, key, value, names, labels):
    if key == "wait":
        return parse_wait(value, names)
    if key == "update":
        return parse_update(value, names)
    if key in [operand.slot for operand in instruction.operands]:
        return parse_operand(value, names, key)
    if key in [column.doc for column in instruction.columns]:
        return parse_column(value, names, key)
    if key in ("imm0", "imm2"):
        return parse_float(value, key)
    if key == "address":
        return parse_address(value, names)
    if key in REGISTER_FIELDS:
        return parse_register(value, key)
    if key in ENUMS:
        members = [member.name.lower() for member in ENUMS[key]]
        if value not in members:
            raise TextError(f"{key} = {value!r}, must be one of {', '.join(members)}")
        return value
    if key == "target" and re.fullmatch(NAME, value):
        if value not in labels:
            raise TextError(f"no label {value!r} in this stream; define it: {value}:")
        return labels[value]
    return parse_integer(value, key)


def _format_argument(instruction, key, value, names, labels):
    if key == "wait":
        return format_wait(value, names)
    if key == "update":
        return format_update(value, names)
    if key in [operand.slot for operand in instruction.operands]:
        return format_operand(value)
    if key in [column.doc for column in instruction.columns]:
        return format_column(value)
    if key in ("imm0", "imm2"):
        return format_float(value)
    if key == "address":
        return format_address(value, names)
    if key in ENUMS:
        return value.name.lower()
    if key == "target":
        return labels.get(value, str(value))
    return str(value)
