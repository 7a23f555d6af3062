"""Values in assembly text and back: numbers, registers, names, addresses, waits and updates.

Syntax: docs/assembly.md.  Parsers raise TextError with reason and what would be right.
"""

import re
from dataclasses import dataclass, field

import numpy as np

from isa.address_map import PSUM_BASE, PSUM_STRIDE_BYTES, SBUF_BASE
from isa.check_control import locate
from isa.encoding import EncodeError
from isa.fields import Update
from isa.geometry import Config
from isa.pattern import Reg
from isa.values import Address, Bits, SemaphoreUpdate, Wait, float_bits

NAME = r"[A-Za-z_][A-Za-z0-9_.]*"
_INTEGER = re.compile(r"-?(0x[0-9a-fA-F]+|[0-9]+)")
_REGISTER = re.compile(r"r([0-9]+)")
_FLOAT = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|-?inf|nan")
_ON_CHIP = re.compile(r"(sbuf|psum)\(([^,()]*),([^,()]*)\)")
_WAIT = re.compile(r"([^>=]+)>=(.+)")
_UPDATE = re.compile(r"([A-Za-z0-9_.]+?)(\+\+|--|\+=|=)([^@]*)(@read)?")
_KINDS = {"++": Update.INCREMENT, "--": Update.DECREMENT, "+=": Update.ADD, "=": Update.SET}
_SIGNS = {kind: sign for sign, kind in _KINDS.items()}


class TextError(ValueError):
    """Text that means nothing; the message gives the reason and what would be right."""


@dataclass
class Names:
    """What names stand for while text is read or written.

    tensors: {name: Tensor}; blocks: {name: DescriptorBlock}; semaphores: {name: index}.
    """

    config: Config
    tensors: dict = field(default_factory=dict)
    blocks: dict = field(default_factory=dict)
    semaphores: dict = field(default_factory=dict)

    def semaphore_text(self, index):
        """Name of a semaphore, its index when it has none."""
        return next((name for name, at in self.semaphores.items() if at == index), str(index))


def parse_integer(text, what="number"):
    """An integer, decimal or 0x."""
    if not _INTEGER.fullmatch(text):
        raise TextError(f"{what} {text!r} is no integer; write decimal or 0x digits")
    return int(text, 0) if "0x" in text else int(text)


def parse_register(text, what="register"):
    """r0 to r63."""
    match = _REGISTER.fullmatch(text)
    if not match:
        raise TextError(f"{what} {text!r} is no register; write r0 to r63")
    try:
        return Reg(int(match[1]))
    except EncodeError as error:
        raise TextError(str(error)) from None


def parse_value(text, what):
    """Integer or register."""
    return parse_register(text, what) if _REGISTER.fullmatch(text) else parse_integer(text, what)


def parse_float(text, what):
    """Number, register, or 0x with the 32 bits."""
    if _REGISTER.fullmatch(text):
        return parse_register(text, what)
    if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text):
        return Bits(int(text, 16))
    if not _FLOAT.fullmatch(text):
        raise TextError(
            f"{what} {text!r} is no number; write 1.5, -2e-3, inf, nan, 0x3f800000 or a register"
        )
    return Bits(float_bits(float(text)))


def format_float(value):
    """Shortest text that `parse_float` turns into the same bits."""
    if isinstance(value, Reg):
        return str(value)
    number = np.uint32(value.value).view(np.float32)
    if not np.isnan(number):
        return str(number)  # shortest digits that read back as the same FP32 number
    return "nan" if value.value == float_bits(float("nan")) else f"{value.value:#010x}"


def parse_semaphore(text, names):
    """Index of a semaphore given by name or number."""
    if _INTEGER.fullmatch(text):
        return parse_integer(text, "semaphore")
    if text not in names.semaphores:
        raise TextError(f"no semaphore {text!r}; declare it: .semaphore {text}")
    return names.semaphores[text]


def parse_wait(text, names):
    """SEMAPHORE>=VALUE."""
    match = _WAIT.fullmatch(text)
    if not match:
        raise TextError(f"wait {text!r} is not understood; write SEMAPHORE>=VALUE")
    return Wait(parse_semaphore(match[1], names), parse_value(match[2], "wait value"))


def format_wait(wait, names):
    """Inverse of `parse_wait`."""
    return f"{names.semaphore_text(wait.semaphore)}>={wait.value}"


def parse_update(text, names):
    """SEMAPHORE++, SEMAPHORE--, SEMAPHORE+=VALUE or SEMAPHORE=VALUE, then @read or nothing."""
    match = _UPDATE.fullmatch(text)
    if not match or (match[2] in ("++", "--")) == bool(match[3]):
        raise TextError(
            f"update {text!r} is not understood; write SEM++, SEM--, SEM+=VALUE or SEM=VALUE, "
            "then perhaps @read"
        )
    value = parse_value(match[3], "update value") if match[3] else 0
    return SemaphoreUpdate(
        _KINDS[match[2]], parse_semaphore(match[1], names), value, bool(match[4])
    )


def format_update(update, names):
    """Inverse of `parse_update`."""
    sign = _SIGNS[update.kind]
    value = str(update.value) if update.kind in (Update.ADD, Update.SET) else ""
    when = "@read" if update.at_read else ""
    return f"{names.semaphore_text(update.semaphore)}{sign}{value}{when}"


def parse_address(text, names):
    """BASE, BASE+NUMBER, BASE+rN or BASE+NUMBER+rN; BASE: number, tensor, descriptor block,
    sbuf(P,BYTE) or psum(P,BYTE).
    """
    base, *rest = text.split("+")
    address, register = _base_address(base, names), None
    for part in rest:
        if _REGISTER.fullmatch(part):
            if register is not None:
                raise TextError(f"address {text!r} adds two registers; one is possible")
            register = parse_register(part)
        else:
            address += parse_integer(part, "address part")
    return Address(address, register)


def format_address(address, names):
    """Inverse of `parse_address`, with a name where one fits."""
    base = _named_address(address.base, names)
    return base if address.register is None else f"{base}+{address.register}"


def on_chip_address(config, space, partition, offset):
    """Address of a byte of a partition of SBUF or PSUM."""
    if space == "sbuf":
        return SBUF_BASE + partition * config.sbuf_stride_bytes + offset
    return PSUM_BASE + partition * PSUM_STRIDE_BYTES + offset


def _base_address(text, names):
    match = _ON_CHIP.fullmatch(text)
    if match:
        partition, offset = (
            parse_integer(match[2].strip(), "partition"),
            parse_integer(match[3].strip(), "byte"),
        )
        address = on_chip_address(names.config, match[1], partition, offset)
        if locate(names.config, address) != (match[1], partition, offset):
            raise TextError(
                f"{text} does not exist; this chip has {names.config.partitions} partitions of "
                f"{names.config.sbuf_bytes} (sbuf) and {names.config.psum_bytes} (psum) bytes"
            )
        return address
    if _INTEGER.fullmatch(text):
        return parse_integer(text, "address")
    if text in names.blocks:
        return names.blocks[text].address
    if text not in names.tensors:
        raise TextError(
            f"address {text!r} is not understood; write a number, sbuf(P,BYTE), psum(P,BYTE), "
            "or the name of a tensor or descriptor block"
        )
    tensor = names.tensors[text]
    if tensor.space == "hbm":
        return tensor.address
    return on_chip_address(names.config, tensor.space, tensor.partition, tensor.address)


def _named_address(address, names):
    place = locate(names.config, address)
    if place is None:
        return f"{address:#x}"
    space, partition, offset = place
    if space != "hbm":
        return f"{space}({partition},{offset:#x})"
    for name, part in (*names.blocks.items(), *names.tensors.items()):
        if (
            getattr(part, "space", "hbm") == "hbm"
            and part.address <= address < part.address + part.size_bytes
        ):
            return name if part.address == address else f"{name}+{address - part.address:#x}"
    return f"{address:#x}"
