"""Access patterns on the host: what an operand of an instruction touches, element by element and
byte by byte.

In Python and in text `dims` are written OUTERMOST first; in instruction words dimension 0 is the
innermost.
"""

import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isa.dtypes import DType
from isa.encoding import EncodeError, field_range
from isa.fields import COLUMN, COLUMN_REGS, DIMS, OPERAND, OPERAND_REGS, Space
from isa.geometry import REGISTERS

_RANGES = {f.name: field_range(f) for f in OPERAND}
_COLUMN_RANGES = {f.name: field_range(f) for f in COLUMN}


@dataclass(frozen=True)
class Reg:
    """A register of the sequencer where a value may stand; written r0..r63."""

    number: int

    def __post_init__(self):
        if not isinstance(self.number, int) or not 0 <= self.number < REGISTERS:
            raise EncodeError(f"register {self.number!r} is outside r0..r{REGISTERS - 1}")

    def __str__(self):
        return f"r{self.number}"


Value = Any
"""An integer, or a Reg that holds it."""


@dataclass(frozen=True)
class AccessPattern:
    """An operand: elements of `dtype` in `partition_count` partitions from `partition` on.

    Element (i0, i1, ...) of a partition lies at byte offset + itemsize * sum(i * step).  dims: 1
    to 4 pairs (step in elements, count), outermost first; the last varies fastest.  offset,
    partition, partition_count and the counts may be a Reg.  EncodeError (a ValueError) when a
    value does not fit its field; what a chip's geometry demands is checked by `isa.check`.
    """

    space: Space
    dtype: DType
    partition: Value
    partition_count: Value
    offset: Value
    dims: tuple

    def __post_init__(self):
        dims = tuple(tuple(pair) for pair in self.dims)
        if not 1 <= len(dims) <= DIMS or any(len(pair) != 2 for pair in dims):
            raise EncodeError(
                f"dims = {self.dims!r}, must be 1 to {DIMS} pairs (step, count), outermost first"
            )
        object.__setattr__(
            self, "dims", tuple((_fit("step0", s, False), _fit("count0", c)) for s, c in dims)
        )
        object.__setattr__(self, "space", _member(Space, self.space, "space"))
        object.__setattr__(self, "dtype", _member(DType, self.dtype, "dtype"))
        for name in ("partition", "partition_count", "offset"):
            object.__setattr__(self, name, _fit(name, getattr(self, name)))

    @property
    def has_registers(self):
        """A Reg stands for one of the values."""
        return any(
            isinstance(v, Reg)
            for v in (self.partition, self.partition_count, self.offset, *self.shape)
        )

    @property
    def shape(self):
        """Counts, outermost first, without the partitions."""
        return tuple(count for _, count in self.dims)

    @property
    def elements(self):
        """Elements in a partition."""
        self._resolved("elements")
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def partitions(self):
        """(first, one past the last) partition."""
        self._resolved("partitions")
        return self.partition, self.partition + self.partition_count

    @property
    def is_empty(self):
        """No work: some count is 0."""
        self._resolved("is_empty")
        return self.partition_count == 0 or 0 in self.shape

    def element_offsets(self):
        """Byte offset in the partition of every element in order, int64 [elements]."""
        self._resolved("element_offsets")
        return element_offsets(self.offset, self.dtype.itemsize, self.dims)

    def bounding_box(self):
        """(lowest byte touched, one past the highest) in a partition; (offset, offset) when
        empty.
        """
        self._resolved("bounding_box")
        return bounding_box(self.offset, self.dtype.itemsize, self.dims)

    def byte_intervals(self):
        """Bytes touched in a partition as disjoint, sorted, maximal intervals: int64 [n, 2], low
        and one past high.
        """
        self._resolved("byte_intervals")
        return byte_intervals(self.offset, self.dtype.itemsize, self.dims)

    def byte_mask(self, size):
        """Bool [size]: which bytes of a partition are touched; ValueError when one lies outside."""
        low, high = self.bounding_box()
        if low < 0 or high > size:
            raise ValueError(
                f"bytes {low}..{high} of the pattern lie outside a partition of {size} bytes"
            )
        mask = np.zeros(size, dtype=bool)
        for first, last in self.byte_intervals():
            mask[first:last] = True
        return mask

    def pairs(self):
        """The operand of a double_row instruction: its elements are pairs of neighbours.

        The innermost dimension must be two adjacent elements, all others lie at even distances.
        """
        *outer, inner = self.dims
        if not outer or inner != (1, 2) or any(step % 2 for step, _ in outer):
            raise ValueError(f"dims {self.dims} are not pairs of adjacent elements")
        return self.with_(dims=tuple((step // 2, count) for step, count in outer))

    def resolve(self, registers):
        """The pattern with each Reg replaced by `registers[number]`."""

        def value(item):
            return int(registers[item.number]) if isinstance(item, Reg) else item

        return replace(
            self,
            partition=value(self.partition),
            partition_count=value(self.partition_count),
            offset=value(self.offset),
            dims=tuple((s, value(c)) for s, c in self.dims),
        )

    def with_(self, **changes):
        """A copy with some values changed and checked again."""
        return replace(self, **changes)

    def fields(self, slot):
        """{field path: value} of the operand block `slot` (src0, src1, dst)."""
        dims = (*reversed(self.dims), *((0, 1),) * (DIMS - len(self.dims)))
        values = {
            "offset": self.offset,
            "partition": self.partition,
            "partition_count": self.partition_count,
            **{f"count{i}": count for i, (_, count) in enumerate(dims)},
        }
        regs = sum(
            1 << bit for bit, name in enumerate(OPERAND_REGS) if isinstance(values[name], Reg)
        )
        found = {
            "space": int(self.space),
            "dtype": int(self.dtype),
            "regs": regs,
            **{f"step{i}": step for i, (step, _) in enumerate(dims)},
            **{name: _number(value) for name, value in values.items()},
        }
        return {f"{slot}.{name}": value for name, value in found.items()}

    @classmethod
    def from_fields(cls, slot, fields):
        """The pattern in the block `slot` of decoded fields; unused outer dimensions (step 0,
        count 1) are dropped.
        """
        regs = fields[f"{slot}.regs"]
        values = {
            name: Reg(fields[f"{slot}.{name}"]) if regs >> bit & 1 else fields[f"{slot}.{name}"]
            for bit, name in enumerate(OPERAND_REGS)
        }
        dims = [(fields[f"{slot}.step{i}"], values[f"count{i}"]) for i in reversed(range(DIMS))]
        while len(dims) > 1 and dims[0] == (0, 1):
            dims.pop(0)
        return cls(
            fields[f"{slot}.space"],
            fields[f"{slot}.dtype"],
            values["partition"],
            values["partition_count"],
            values["offset"],
            tuple(dims),
        )

    def _resolved(self, what):
        if self.has_registers:
            raise ValueError(
                f"{what} of a pattern that reads registers is known at run time only: "
                "resolve(registers) first"
            )


@dataclass(frozen=True)
class ColumnPattern:
    """A [P, 1] operand: one element per partition at `offset`, from `partition` on, as many
    partitions as src0.
    """

    space: Space
    dtype: DType
    partition: Value
    offset: Value

    def __post_init__(self):
        object.__setattr__(self, "space", _member(Space, self.space, "space"))
        object.__setattr__(self, "dtype", _member(DType, self.dtype, "dtype"))
        for name in COLUMN_REGS:
            object.__setattr__(self, name, _fit(name, getattr(self, name), ranges=_COLUMN_RANGES))

    @property
    def has_registers(self):
        """A Reg stands for one of the values."""
        return isinstance(self.partition, Reg) or isinstance(self.offset, Reg)

    def pattern(self, partition_count):
        """The same as an AccessPattern of one element per partition."""
        return AccessPattern(
            self.space, self.dtype, self.partition, partition_count, self.offset, ((0, 1),)
        )

    def fields(self, slot):
        """{field path: value} of the column block `slot`."""
        regs = sum(
            1 << bit for bit, name in enumerate(COLUMN_REGS) if isinstance(getattr(self, name), Reg)
        )
        found = {
            "space": int(self.space),
            "dtype": int(self.dtype),
            "regs": regs,
            "partition": _number(self.partition),
            "offset": _number(self.offset),
        }
        return {f"{slot}.{name}": value for name, value in found.items()}

    @classmethod
    def from_fields(cls, slot, fields):
        """The column in the block `slot` of decoded fields."""
        regs = fields[f"{slot}.regs"]
        values = {
            name: Reg(fields[f"{slot}.{name}"]) if regs >> bit & 1 else fields[f"{slot}.{name}"]
            for bit, name in enumerate(COLUMN_REGS)
        }
        return cls(
            fields[f"{slot}.space"], fields[f"{slot}.dtype"], values["partition"], values["offset"]
        )


def element_offsets(offset, itemsize, dims):
    """Byte offset of every element in order, int64; dims (step, count) outermost first."""
    found = np.array([offset], dtype=np.int64)
    for step, count in dims:
        found = (found[:, None] + np.arange(count, dtype=np.int64) * (step * itemsize)).reshape(-1)
    return found


def bounding_box(offset, itemsize, dims):
    """(lowest byte, one past the highest) that the elements touch; (offset, offset) when there
    are none.
    """
    if any(count == 0 for _, count in dims):
        return offset, offset
    reach = [step * (count - 1) * itemsize for step, count in dims]
    return offset + sum(r for r in reach if r < 0), offset + sum(
        r for r in reach if r > 0
    ) + itemsize


def byte_intervals(offset, itemsize, dims):
    """Bytes that the elements touch as disjoint, sorted, maximal intervals, int64 [n, 2]."""
    if any(count == 0 for _, count in dims):
        return np.zeros((0, 2), dtype=np.int64)
    low, _ = bounding_box(offset, itemsize, dims)
    strides = sorted(
        (abs(step) * itemsize, count) for step, count in dims if step != 0 and count > 1
    )
    run = itemsize
    while strides and strides[0][0] <= run:  # the run repeats without a gap: it grows
        stride, count = strides.pop(0)
        run += stride * (count - 1)
    starts = np.unique(element_offsets(low, 1, tuple(strides)))
    first = np.concatenate(([True], starts[1:] > starts[:-1] + run))
    last = np.concatenate((first[1:], [True]))
    return np.stack((starts[first], starts[last] + run), axis=1)


def _member(enum, value, name):
    try:
        return enum(value)
    except ValueError:
        raise EncodeError(
            f"{name} = {value!r}, must be one of {', '.join(m.name for m in enum)}"
        ) from None


def _fit(name, value, reg_allowed=True, ranges=_RANGES):
    if isinstance(value, Reg):
        if not reg_allowed:
            raise EncodeError(f"{name.rstrip('0')} = {value} cannot be a register")
        return value
    try:
        number = operator.index(value)
    except TypeError:
        raise EncodeError(f"{name.rstrip('0')} = {value!r} is not an integer") from None
    low, high = ranges[name]
    if not low <= number <= high:
        raise EncodeError(f"{name.rstrip('0')} = {number} is outside {low}..{high}")
    return number


def _number(value):
    return value.number if isinstance(value, Reg) else value
