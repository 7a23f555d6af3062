"""Rules of operands of datapath instructions: place, alignment, capacity and shape.  Called by
`isa.check`.

Functions return (Cause, sentence) or None.  Values may be as large as a register holds.
"""

from math import prod

from isa.address_map import Cause
from isa.dtypes import DType
from isa.fields import DIMS, Space
from isa.pattern import bounding_box

UNKNOWN = "unknown"
"""Stands for the (K, M) of the last load_stationary where it is not known."""
MAX_ELEMENTS = 1 << 16
"""Elements of an operand in each partition."""
MAX_COUNT = (1 << 16) - 1


STATE_WORDS = 6
"""Words of state of a generator of random numbers."""


def element_bytes(fields, slot):
    """Bytes of an element of an operand: with double_row that of a pair."""
    pair = fields.get("double_row", 0) and slot == "src0"
    return DType(fields[f"{slot}.dtype"]).itemsize * (2 if pair else 1)


class Resolved:
    """One operand or column with all values known; column: partition_count is that of src0."""

    def __init__(self, fields, slot, partition_count=None):
        self.slot = slot
        self.space = Space(fields[f"{slot}.space"])
        self.dtype = DType(fields[f"{slot}.dtype"])
        self.itemsize = element_bytes(fields, slot)
        self.partition = fields[f"{slot}.partition"]
        self.offset = fields[f"{slot}.offset"]
        if partition_count is None:
            self.partition_count = fields[f"{slot}.partition_count"]
            self.counts = [fields[f"{slot}.count{i}"] for i in range(DIMS)]
            self.steps = [fields[f"{slot}.step{i}"] for i in range(DIMS)]
        else:
            self.partition_count = partition_count
            self.counts = [1]
            self.steps = [0]
        self.elements = prod(self.counts)
        self.low, self.high = bounding_box(
            self.offset, self.itemsize, tuple(zip(self.steps, self.counts, strict=True))
        )


def operands_problem(config, instruction, fields, stationary):
    """First broken rule of BAD_PARTITION, MISALIGNED, OUT_OF_RANGE, SHAPE_MISMATCH; the
    instruction does work.
    """
    operands = [Resolved(fields, operand.slot) for operand in instruction.operands]
    columns = [
        Resolved(fields, column.slot, operands[0].partition_count)
        for column in instruction.columns
        if fields[f"{column.slot}.space"] != Space.NONE
    ]
    everything = operands + columns
    for rule in (partition_problem, alignment_problem, range_problem):
        for item in everything:
            problem = rule(config, item)
            if problem is not None:
                return problem
    by_slot = {item.slot: item for item in operands}
    problem = _range_of_instruction(config, instruction, by_slot, fields)
    return problem or _SHAPE_RULES[instruction.shape](instruction, by_slot, fields, stationary)


def partition_problem(config, item):
    """Start partition by the size of the operand (whole, half or quadrant), and the end inside
    the array.
    """
    total, count, start = config.partitions, item.partition_count, item.partition
    if count > total:
        return Cause.BAD_PARTITION, f"{item.slot} has {count} partitions, this chip has {total}"
    step, why = config.quadrant, f"a multiple of {config.quadrant} (a quadrant)"
    if count > total // 2:
        step, why = total, f"0 (more than {total // 2} partitions)"
    elif count > total // 4:
        step, why = total // 2, f"0 or {total // 2} (more than {total // 4} partitions)"
    if start % step or start >= total:
        return (
            Cause.BAD_PARTITION,
            f"{item.slot} starts at partition {start}, must be {why} and below {total}",
        )
    if start + count > total:
        return (
            Cause.BAD_PARTITION,
            f"{item.slot} has partitions {start}..{start + count - 1}, this chip has "
            f"0..{total - 1}",
        )
    return None


def alignment_problem(_config, item):
    """Offset a multiple of the element size."""
    size = item.itemsize
    if item.offset % size:
        return (
            Cause.MISALIGNED,
            f"{item.slot} has offset {item.offset}, must be a multiple of {size} for "
            f"{item.dtype.text}",
        )
    return None


def range_problem(config, item):
    """Element count, and every byte inside the partition."""
    if max(item.counts) > MAX_COUNT:
        return (
            Cause.OUT_OF_RANGE,
            f"{item.slot} has a count of {max(item.counts)}, at most {MAX_COUNT} is possible",
        )
    if item.elements > MAX_ELEMENTS:
        return (
            Cause.OUT_OF_RANGE,
            f"{item.slot} has {item.elements} elements per partition, at most {MAX_ELEMENTS} are "
            "possible",
        )
    size = config.sbuf_bytes if item.space == Space.SBUF else config.psum_bytes
    if item.low < 0 or item.high > size:
        return Cause.OUT_OF_RANGE, (
            f"{item.slot} touches bytes {item.low}..{item.high - 1} of a partition, "
            f"{item.space.name} has 0..{size - 1}"
        )
    return None


def chip_problem(config, fields):
    """Modes that this chip has not, whatever the operands."""
    if fields.get("double_row") and not config.double_row:
        return Cause.OUT_OF_RANGE, "double_row = 1, this chip has single rows"
    return None


def _range_of_instruction(config, instruction, by_slot, fields):
    """Limits that belong to the tensor engine: M, N, one PSUM bank, and double rows."""
    problem = chip_problem(config, fields)
    if problem is not None:
        return problem
    if instruction.shape == "stationary" and by_slot["src0"].elements > config.partitions:
        return (
            Cause.OUT_OF_RANGE,
            f"src0 has M = {by_slot['src0'].elements} columns, the array has {config.partitions}",
        )
    if instruction.shape == "matmul":
        if by_slot["src0"].elements > config.max_moving:
            return Cause.OUT_OF_RANGE, (
                f"src0 has N = {by_slot['src0'].elements} columns, "
                f"at most {config.max_moving} are possible"
            )
        dst, bank = by_slot["dst"], config.psum_bank_bytes
        if dst.low // bank != (dst.high - 1) // bank:
            return (
                Cause.OUT_OF_RANGE,
                f"dst touches bytes {dst.low}..{dst.high - 1}, must lie within one PSUM bank of "
                f"{bank} bytes",
            )
    return None


def _no_rule(_instruction, _by_slot, _fields, _stationary):
    return None


def _same(_instruction, by_slot, _fields, _stationary):
    return _equal_partitions(by_slot) or _equal_elements(by_slot)


def _equal_partitions(by_slot):
    counts = {slot: item.partition_count for slot, item in by_slot.items()}
    if len(set(counts.values())) > 1:
        return (
            Cause.SHAPE_MISMATCH,
            f"partition counts differ: {_listed(counts)}; they must be equal",
        )
    return None


def _equal_elements(by_slot):
    counts = {slot: item.elements for slot, item in by_slot.items()}
    if len(set(counts.values())) > 1:
        return (
            Cause.SHAPE_MISMATCH,
            f"elements per partition differ: {_listed(counts)}; they must be equal",
        )
    return None


def _matmul(_instruction, by_slot, fields, stationary):
    if stationary is None:
        return Cause.SHAPE_MISMATCH, "no load_stationary came before"
    if stationary != UNKNOWN:
        k, m, *modes = stationary
        if by_slot["src0"].partition_count != k:
            return (
                Cause.SHAPE_MISMATCH,
                f"src0 has {by_slot['src0'].partition_count} partitions, the stationary has K = "
                f"{k}",
            )
        if by_slot["dst"].partition_count != m:
            return (
                Cause.SHAPE_MISMATCH,
                f"dst has {by_slot['dst'].partition_count} partitions, the stationary has M = {m}",
            )
        for name, loaded in zip(("double_row", "transpose"), modes, strict=True):
            if fields[name] != loaded:
                return (
                    Cause.SHAPE_MISMATCH,
                    f"{name} = {fields[name]}, the stationary was loaded with {name} = {loaded}",
                )
    return _equal_elements(by_slot)


def _reduce(_instruction, by_slot, fields, _stationary):
    src, dst = by_slot["src0"], by_slot["dst"]
    groups = prod(src.counts[fields["reduce_dims"] :])
    problem = _equal_partitions(by_slot)
    if problem is None and dst.elements != groups:
        problem = (
            Cause.SHAPE_MISMATCH,
            (
                f"dst has {dst.elements} elements per partition, "
                f"src0 has {groups} groups of {src.elements // groups}"
            ),
        )
    return problem


def _state(_instruction, by_slot, _fields, _stationary):
    (item,) = by_slot.values()
    if item.elements != STATE_WORDS:
        return (
            Cause.SHAPE_MISMATCH,
            f"{item.slot} has {item.elements} elements per partition, a state has {STATE_WORDS}",
        )
    return None


def _listed(counts):
    return ", ".join(f"{slot} {count}" for slot, count in counts.items())


_SHAPE_RULES = {
    "same": _same,
    "reduce": _reduce,
    "matmul": _matmul,
    "stationary": _no_rule,
    "fill": _no_rule,
    "state": _state,
}
