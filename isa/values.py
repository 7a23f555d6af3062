"""Values that arguments of instructions take, apart from numbers and access patterns."""

import math
import operator
from dataclasses import dataclass

import numpy as np

from isa.encoding import EncodeError
from isa.fields import Update
from isa.pattern import Reg


@dataclass(frozen=True)
class Bits:
    """32 bits of an immediate as they are."""

    value: int

    def __post_init__(self):
        if not 0 <= operator.index(self.value) < 1 << 32:
            raise EncodeError(f"immediate bits {self.value:#x} are outside 0..0xffffffff")


@dataclass(frozen=True)
class Address:
    """A byte address plus, when `register` is given, the value of that register (unsigned)."""

    base: int
    register: Reg | None = None


@dataclass(frozen=True)
class Wait:
    """Start only when semaphore >= value (signed)."""

    semaphore: int
    value: int | Reg


@dataclass(frozen=True)
class SemaphoreUpdate:
    """What happens to a semaphore when the instruction is complete, or has read its inputs
    (at_read).
    """

    kind: Update
    semaphore: int
    value: int | Reg = 0
    at_read: bool = False


def float_bits(value):
    """FP32 bits of a Python number, rounded to nearest even; EncodeError when it is finite and
    too large.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise EncodeError(f"immediate {value!r} is not a number") from None
    if math.isnan(number):
        payload = getattr(value, "dtype", None) == np.float32  # a NaN of FP32 keeps its bits
        return int(np.asarray(value).view(np.uint32)) if payload else 0x7FC0_0000
    with np.errstate(over="ignore"):
        rounded = np.float32(number)
    if np.isinf(rounded) and not math.isinf(number):
        raise EncodeError(
            f"immediate {value!r} is beyond the largest FP32 number {np.finfo(np.float32).max}"
        )
    return int(rounded.view(np.uint32))


def enum_member(enum, value, where):
    """Member of `enum` given as member, text or code; EncodeError lists the members."""
    if isinstance(value, str) and value.upper() in enum.__members__:
        return enum[value.upper()]
    if not isinstance(value, str) and value in [int(m) for m in enum]:
        return enum(value)
    raise EncodeError(
        f"{where} = {value!r}, must be one of {', '.join(m.name.lower() for m in enum)}"
    )
