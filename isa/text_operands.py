"""Operands in assembly text and back: `sbuf[0:16 @0x100 bf16 64x4,1x64]`, columns, and parts of
named tiles.

Syntax: docs/assembly.md.
"""

import re

from isa.dtypes import parse_dtype
from isa.encoding import EncodeError
from isa.fields import DIMS, Space
from isa.pattern import AccessPattern, ColumnPattern, Reg
from isa.text import NAME, TextError, format_float, parse_float, parse_integer, parse_value
from isa.views import Tile

_BLOCK = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)\[(.*)\]")
_SPACES = {"sbuf": Space.SBUF, "psum": Space.PSUM}
_OPERAND_SYNTAX = (
    "write sbuf[FIRST:END @OFFSET DTYPE STEPxCOUNT,...] (or psum), a tile, or TILE[PARTITIONS, ...]"
)
_COLUMN_SYNTAX = (
    "write a number, a register, sbuf[PARTITION @OFFSET DTYPE] (or psum), "
    "or TILE[PARTITIONS, INDEX, ...]"
)


def parse_operand(text, names, what):
    """AccessPattern of an operand."""
    match = _BLOCK.fullmatch(text)
    if match and match[1] in _SPACES:
        parts = match[2].split()
        if len(parts) != 4 or not parts[1].startswith("@"):
            raise TextError(f"{what} {text!r} is not understood; {_OPERAND_SYNTAX}")
        first, count = _partitions(parts[0], what)
        dims = [_dimension(part, what) for part in parts[3].split(",")]
        if len(dims) > DIMS:
            raise TextError(f"{what} has {len(dims)} dimensions; at most {DIMS} are possible")
        offset = _offset(parts[1][1:], names, match[1], what)
        return _made(
            what,
            AccessPattern,
            _SPACES[match[1]],
            _dtype(parts[2]),
            first,
            count,
            offset,
            tuple(dims),
        )
    return _tile_part(text, names, what, _OPERAND_SYNTAX)


def format_operand(pattern):
    """Inverse of `parse_operand`."""
    dims = ",".join(f"{step}x{count}" for step, count in pattern.dims)
    first, count = pattern.partition, pattern.partition_count
    partitions = f"{first}+{count}"
    if not isinstance(first, Reg) and not isinstance(count, Reg):
        partitions = f"{first}:{first + count}"
    offset, dtype = _offset_text(pattern.offset), pattern.dtype.text
    return f"{_space(pattern)}[{partitions} @{offset} {dtype} {dims}]"


def parse_column(text, names, what):
    """Immediate (Bits or Reg) or ColumnPattern."""
    match = _BLOCK.fullmatch(text)
    if match and match[1] in _SPACES:
        parts = match[2].split()
        if len(parts) != 3 or not parts[1].startswith("@"):
            raise TextError(f"{what} {text!r} is not understood; {_COLUMN_SYNTAX}")
        offset = _offset(parts[1][1:], names, match[1], what)
        partition = parse_value(parts[0], "partition")
        return _made(what, ColumnPattern, _SPACES[match[1]], _dtype(parts[2]), partition, offset)
    if match or text in names.tensors:
        pattern = _tile_part(text, names, what, _COLUMN_SYNTAX)
        if pattern.elements != 1:
            raise TextError(
                f"{what} {text!r} has {pattern.elements} elements per partition; it must have one"
            )
        return ColumnPattern(pattern.space, pattern.dtype, pattern.partition, pattern.offset)
    return parse_float(text, what)


def format_column(value):
    """Inverse of `parse_column`."""
    if isinstance(value, ColumnPattern):
        return (
            f"{_space(value)}[{value.partition} @{_offset_text(value.offset)} {value.dtype.text}]"
        )
    return format_float(value)


def _space(pattern):
    return pattern.space.name.lower()


def _offset_text(offset):
    return str(offset) if isinstance(offset, Reg) else f"{offset:#x}"


def _dtype(text):
    try:
        return parse_dtype(text)
    except ValueError as error:
        raise TextError(str(error)) from None


def _made(what, kind, *values):
    try:
        return kind(*values)
    except EncodeError as error:
        raise TextError(f"{what}: {error}") from None


def _partitions(text, what):
    """(first, count) of `A:B` (B exclusive), `A+COUNT` or `A`."""
    if ":" in text:
        first, end = (parse_integer(part, f"{what} partition") for part in text.split(":", 1))
        if end < first:
            raise TextError(
                f"{what} partitions {text!r} end before they start; write FIRST:END, END exclusive"
            )
        return first, end - first
    first, _, count = text.partition("+")
    return parse_value(first, f"{what} partition"), parse_value(
        count, f"{what} partitions"
    ) if count else 1


def _dimension(text, what):
    step, cross, count = text.rpartition("x")
    if not cross:
        raise TextError(f"{what} dimension {text!r} is not understood; write STEPxCOUNT")
    return parse_integer(step, f"{what} step"), parse_value(count, f"{what} count")


def _offset(text, names, space, what):
    """Byte, register, tile, or TILE+BYTES."""
    name, _, added = text.partition("+")
    if re.fullmatch(NAME, name) and name in names.tensors:
        tensor = names.tensors[name]
        if tensor.space != space:
            raise TextError(
                f"{what}: tensor {name!r} lies in {tensor.space}; the operand says {space}"
            )
        return tensor.address + (parse_integer(added, f"{what} offset") if added else 0)
    return parse_value(text, f"{what} offset")


def _tile_part(text, names, what, syntax):
    match = _BLOCK.fullmatch(text)
    name = match[1] if match else text
    if name not in names.tensors:
        raise TextError(f"{what} {text!r} is not understood; {syntax}")
    tensor = names.tensors[name]
    if tensor.space == "hbm":
        raise TextError(f"{what}: tensor {name!r} lies in hbm; operands lie in sbuf or psum")
    index = (
        tuple(_index(part.strip(), what) for part in match[2].split(","))
        if match
        else (slice(None),)
    )
    try:
        return Tile(tensor, _SPACES[tensor.space])[index]
    except ValueError as error:
        raise TextError(f"{what}: {error}") from None


def _index(text, what):
    parts = [
        parse_integer(part.strip(), f"{what} index") if part.strip() else None
        for part in text.split(":")
    ]
    if len(parts) == 1 and parts[0] is not None:
        return parts[0]
    if len(parts) not in (2, 3) or parts[-1] == 0 and len(parts) == 3:
        raise TextError(f"{what} index {text!r} is not understood; write N, A:B or A:B:STEP")
    return slice(*parts)
