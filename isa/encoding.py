"""Instruction words and descriptors as bytes: the fields of `isa.fields` packed into 128 bytes and
back.

`encode` refuses whatever does not fit its field; `decode` refuses whatever the chip refuses before
it looks at operands, with the chip's Cause, in the chip's order: BAD_VERSION, ILLEGAL_OPCODE,
RESERVED_BITS.
"""

import operator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from isa.address_map import Cause, DmaCause
from isa.fields import DESCRIPTOR, DESCRIPTOR_COPY, Update
from isa.geometry import DESCRIPTOR_BYTES, INSTRUCTION_BYTES, ISA_VERSION
from isa.instructions import BY_NAME, BY_OPCODE

_WORD_BITS = 8 * INSTRUCTION_BYTES
_DESCRIPTOR_MASK = sum(f.mask for f in DESCRIPTOR)
DIMENSIONS = 3
"""Dimensions of rows in a descriptor."""


class EncodeError(ValueError):
    """A value that its field cannot hold, or a field that the instruction has not; the message
    says the rule.
    """


class DecodeError(ValueError):
    """A word that is no instruction; `cause` is the Cause that the chip reports."""

    def __init__(self, cause, message):
        super().__init__(f"{cause.name}: {message}")
        self.cause = cause
        self.message = message


class DescriptorError(ValueError):
    """128 bytes that are no descriptor; `cause` is the DmaCause that the chip reports."""

    def __init__(self, message):
        super().__init__(f"{DmaCause.BAD_DESCRIPTOR.name}: {message}")
        self.cause = DmaCause.BAD_DESCRIPTOR
        self.message = message


def instruction_named(name):
    """The Instruction of that name; EncodeError lists what exists."""
    if name not in BY_NAME:
        raise EncodeError(f"no instruction {name!r}; there are {', '.join(BY_NAME)}")
    return BY_NAME[name]


@cache
def field_map(name):
    """{field path: Field} of the instruction `name`, header included."""
    return {f.name: f for f in instruction_named(name).fields}


def field_range(f):
    """(least, largest) value of a Field."""
    if f.signed:
        return -(1 << f.width - 1), (1 << f.width - 1) - 1
    return 0, (1 << f.width) - 1


def pack(f, value, owner):
    """`value` as bits in place in the word; EncodeError when it is no integer of the field's
    range.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise EncodeError(f"{owner}: {f.name} = {value!r} is not an integer") from None
    low, high = field_range(f)
    if not low <= number <= high:
        raise EncodeError(f"{owner}: {f.name} = {number} is outside {low}..{high}")
    return (number & ((1 << f.width) - 1)) << f.low


def unpack(f, word):
    """Value of a Field in the integer `word`."""
    value = (word >> f.low) & ((1 << f.width) - 1)
    if f.signed and value >> (f.width - 1):
        value -= 1 << f.width
    return value


def encode_int(name, fields):
    """The instruction `name` as a 1024-bit integer.

    fields: {field path as in `Instruction.fields`: integer}; absent fields are 0, except opcode
    and version, which are filled in.  EncodeError names field and range.
    """
    known = field_map(name)
    values = {"opcode": BY_NAME[name].opcode, "version": ISA_VERSION, **fields}
    if values["opcode"] != BY_NAME[name].opcode:
        raise EncodeError(
            f"{name}: opcode = {values['opcode']!r}, must be {BY_NAME[name].opcode:#04x} or absent"
        )
    word = 0
    for path, value in values.items():
        if path not in known:
            raise EncodeError(f"{name}: no field {path!r}; there are {', '.join(known)}")
        word |= pack(known[path], value, name)
    return word


def encode(name, fields):
    """As `encode_int`, as the 128 bytes that lie in memory (little-endian)."""
    return encode_int(name, fields).to_bytes(INSTRUCTION_BYTES, "little")


def decode(word, sequencer=None):
    """(Instruction, {field path: value}) of 128 bytes or of a 1024-bit integer; every field of the
    instruction is there.

    sequencer: when given, an opcode that this sequencer does not execute is illegal too.
    DecodeError carries the Cause; ValueError when `word` is no 128 bytes.
    """
    word = _as_int(word, INSTRUCTION_BYTES, "an instruction")
    version = (word >> 8) & 0xFF
    if version != ISA_VERSION:
        raise DecodeError(
            Cause.BAD_VERSION, f"version {version}, this is ISA version {ISA_VERSION}"
        )
    opcode = word & 0xFF
    instruction = BY_OPCODE.get(opcode)
    if instruction is None:
        raise DecodeError(Cause.ILLEGAL_OPCODE, f"opcode {opcode:#04x} is not defined")
    if sequencer is not None and sequencer not in instruction.sequencers:
        where = ", ".join(s.text for s in sorted(instruction.sequencers))
        raise DecodeError(
            Cause.ILLEGAL_OPCODE,
            f"{instruction.name} is not an instruction of the {sequencer.text} sequencer, only "
            f"of {where}",
        )
    reserved = word & ~used_mask(instruction.name)
    if reserved:
        bits = [bit for bit in range(_WORD_BITS) if reserved >> bit & 1]
        text = ", ".join(map(str, bits[:8])) + (", ..." if len(bits) > 8 else "")
        raise DecodeError(
            Cause.RESERVED_BITS, f"{instruction.name}: reserved bits {text} are set, they must be 0"
        )
    return instruction, {path: unpack(f, word) for path, f in field_map(instruction.name).items()}


@cache
def used_mask(name):
    """`Instruction.used_mask`, remembered."""
    return BY_NAME[name].used_mask


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """A DMA copy.  Tuples are indexed by dimension, 0 innermost; strides in bytes.

    Rows of `row_bytes` go from src_address + i2*src_stride[2] + i1*src_stride[1] +
    i0*src_stride[0] to the same of dst, dimension 2 outermost; then the update is applied.
    """

    src_address: int
    dst_address: int
    row_bytes: int
    count: tuple = (1, 1, 1)
    src_stride: tuple = (0, 0, 0)
    dst_stride: tuple = (0, 0, 0)
    update_kind: Update = Update.NONE
    update_semaphore: int = 0
    update_value: int = 0
    kind: int = field(default=DESCRIPTOR_COPY)
    version: int = field(default=ISA_VERSION)

    @property
    def rows(self):
        """Number of rows."""
        return self.count[0] * self.count[1] * self.count[2]

    @property
    def bytes(self):
        """Bytes copied; 0 = no work."""
        return self.rows * self.row_bytes

    def as_fields(self):
        """{field name of isa.fields.DESCRIPTOR: value}."""
        names = (
            "kind",
            "version",
            "update_kind",
            "update_semaphore",
            "update_value",
            "src_address",
            "dst_address",
            "row_bytes",
        )
        values = {name: getattr(self, name) for name in names}
        for name in ("count", "src_stride", "dst_stride"):
            items = getattr(self, name)
            if len(items) != DIMENSIONS:
                raise EncodeError(
                    f"descriptor: {name} has {len(items)} dimensions, must have {DIMENSIONS}"
                )
            values.update({f"{name}{i}": item for i, item in enumerate(items)})
        return values


def encode_descriptor(descriptor):
    """The 128 bytes of a Descriptor; EncodeError names field and range."""
    values = descriptor.as_fields()
    word = 0
    for f in DESCRIPTOR:
        word |= pack(f, values[f.name], "descriptor")
    return word.to_bytes(DESCRIPTOR_BYTES, "little")


def decode_descriptor(data):
    """The Descriptor in 128 bytes (or a 1024-bit integer).

    DescriptorError as the chip decides: kind, version, reserved bits and update kind.
    """
    word = _as_int(data, DESCRIPTOR_BYTES, "a descriptor")
    values: dict[str, Any] = {f.name: unpack(f, word) for f in DESCRIPTOR}
    if values["kind"] != DESCRIPTOR_COPY:
        raise DescriptorError(f"kind {values['kind']}, must be {DESCRIPTOR_COPY} (copy)")
    if values["version"] != ISA_VERSION:
        raise DescriptorError(f"version {values['version']}, this is ISA version {ISA_VERSION}")
    if word & ~_DESCRIPTOR_MASK:
        raise DescriptorError("reserved bits are set, they must be 0")
    if values["update_kind"] > max(Update):
        raise DescriptorError(
            f"update_kind {values['update_kind']}, must be in 0..{max(Update).value}"
        )
    values["update_kind"] = Update(values["update_kind"])
    for name in ("count", "src_stride", "dst_stride"):
        values[name] = tuple(values.pop(f"{name}{i}") for i in range(DIMENSIONS))
    return Descriptor(**values)


def _as_int(word, size, what):
    if isinstance(word, int):
        if not 0 <= word < 1 << (8 * size):
            raise ValueError(f"{what} has {8 * size} bits, the integer does not fit")
        return word
    data = bytes(word)
    if len(data) != size:
        raise ValueError(f"{what} has {size} bytes, not {len(data)}")
    return int.from_bytes(data, "little")
