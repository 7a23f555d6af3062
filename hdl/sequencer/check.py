"""OperandCheck: the checks of resolved operands, from BAD_PARTITION to SHAPE_MISMATCH."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.lib.element import SIZE_BITS, element_size
from hdl.lib.issue import ELEMENT_BITS, EXTENT_BITS
from hdl.lib.tile import add_tile
from hdl.sequencer.box import OperandBox
from hdl.sequencer.decode import any_of
from hdl.sequencer.layout import (
    WORD_BITS,
    bind,
    column_slots,
    instructions_of,
    operand_slots,
    resolved_layout,
    uses,
    word_layout,
)
from hdl.sequencer.ports import CAUSE_BITS
from isa.address_map import Cause
from isa.check_operands import STATE_WORDS
from isa.fields import DIMS, Space

PHASES = 3
"""Cycles from the first multiplication to valid results."""


def bad_partition(m, config, name, start, count):
    """1 unless partitions [start, start + count) lie on the chip and begin at a legal quadrant."""
    half, quarter = config.partitions // 2, config.partitions // 4
    start = bind(m, f"{name}_start", start)
    count = bind(m, f"{name}_count", count)
    off_half = start[: exact_log2(half)].any()
    off_quarter = start[: exact_log2(quarter)].any() if quarter > 1 else Const(0, 1)
    return (
        (start + count > config.partitions)
        | ((count > half) & start.any())
        | ((count > quarter) & off_half)
        | off_quarter
    )


class OperandCheck(wiring.Component):
    """Checks a resolved instruction of an engine's sequencer.

    `phase` is 001, 010, 100 in three cycles in which the inputs are constant; from the next cycle
    on, `cause`, `elements`, `low` and `high` hold until the next phase 001.  `no_work` is
    combinational.

    Members
    -------
    word : In(1024)
    fields, big : In
        From the resolver; they count instead of those of the word.
    operands, columns : In
        From the decoder.
    phase : In(3)
    accept : In(1)
        The instruction goes on to stage 2 (a load_stationary without fault and with work is noted).
    forget : In(1)
        No load_stationary has been seen (start of a stream).
    no_work : Out(1)
        An operand in use has a count or partition count of 0.
    cause : Out
    elements : Out(17)
        Elements per partition of the first operand in use.
    low, high, size : Out
        By operand, `EXTENT_BITS` each and the bytes of an element as their exponent of 2; 0 when it
        is not in use.
    """

    def __init__(self, config, sequencer):
        self.config, self.sequencer = config, sequencer
        self.operand_slots = operand_slots(sequencer)
        self.column_slots = column_slots(sequencer)
        extents = data.ArrayLayout(EXTENT_BITS, len(self.operand_slots))
        super().__init__(
            {
                "word": In(WORD_BITS),
                "fields": In(resolved_layout(sequencer)),
                "big": In(len(self.operand_slots)),
                "operands": In(len(self.operand_slots)),
                "columns": In(len(self.column_slots)),
                "phase": In(PHASES),
                "accept": In(1),
                "forget": In(1),
                "no_work": Out(1),
                "cause": Out(CAUSE_BITS),
                "elements": Out(ELEMENT_BITS),
                "low": Out(extents),
                "high": Out(extents),
                "size": Out(data.ArrayLayout(SIZE_BITS, len(self.operand_slots))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        word = data.View(word_layout(self.sequencer), self.word)
        self._match = {
            i.name: bind(m, f"is_{i.name}", word.opcode == i.opcode)
            for i in instructions_of(self.sequencer)
            if i.datapath
        }
        self._modes = [name for name in ("double_row", "transpose") if name in word.shape().fields]
        self._sizes = {
            slot: self._size(m, word, slot) for slot in (*self.operand_slots, *self.column_slots)
        }
        boxes = {slot: self._box(m, platform, word, slot) for slot in self.operand_slots}
        m.d.comb += self.no_work.eq(
            any_of(
                [
                    used & self._zero(slot)
                    for slot, used in zip(self.operand_slots, self.operands, strict=True)
                ]
            )
        )
        first = boxes[self.operand_slots[-1]].elements
        for slot, used in reversed(list(zip(self.operand_slots, self.operands, strict=True))):
            first = Mux(used, boxes[slot].elements, first)
        m.d.comb += self.elements.eq(first)

        partition, misaligned, column_range = self._early(m, word)
        out_of_range = bind(m, "out_of_range", column_range | self._range(m, word, boxes))
        shape = bind(m, "shape", self._shape(m, word, boxes))
        with m.If(partition):
            m.d.comb += self.cause.eq(Cause.BAD_PARTITION)
        with m.Elif(misaligned):
            m.d.comb += self.cause.eq(Cause.MISALIGNED)
        with m.Elif(out_of_range):
            m.d.comb += self.cause.eq(Cause.OUT_OF_RANGE)
        with m.Elif(shape):
            m.d.comb += self.cause.eq(Cause.SHAPE_MISMATCH)
        return m

    def _zero(self, slot):
        names = ("partition_count", *(f"count{i}" for i in range(DIMS)))
        return any_of([self.fields[f"{slot}_{name}"] == 0 for name in names])

    def _size(self, m, word, slot):
        size = element_size(m, f"{slot}_size", word[slot].dtype)
        if slot == "src0" and "double_row" in self._modes:
            # Only elements of one byte make pairs.
            return bind(m, "src0_pair_size", (size + word.double_row)[:SIZE_BITS])
        return size

    def _box(self, m, platform, word, slot):
        block = word[slot]
        box = add_tile(m, platform, f"{slot}_box", OperandBox())
        m.d.comb += [
            box.offset.eq(self.fields[f"{slot}_offset"]),
            box.size.eq(self._sizes[slot]),
            box.step.eq(Cat(block[f"step{i}"] for i in range(DIMS))),
            box.count.eq(Cat(self.fields[f"{slot}_count{i}"] for i in range(DIMS))),
            box.phase.eq(self.phase),
        ]
        if "tensor_reduce" in self._match and slot == "src0":
            m.d.comb += box.reduced.eq(word.reduce_dims)
        return box

    def _partitions(self, slot):
        return self.fields[f"{slot}_partition_count"]

    def _early(self, m, word):
        """Registered in phase 001: faults that need no multiplication."""
        partition, misaligned, column_range = [], [], []
        for slot, used in zip(self.operand_slots, self.operands, strict=True):
            partition.append(
                used
                & bad_partition(
                    m, self.config, slot, self.fields[f"{slot}_partition"], self._partitions(slot)
                )
            )
            misaligned.append(used & self._misaligned(slot))
        for slot, present in zip(self.column_slots, self.columns, strict=True):
            block = word[slot]
            offset = self.fields[f"{slot}_offset"]
            used = bind(m, f"{slot}_used", present & (block.space != Space.NONE))
            partition.append(
                used
                & bad_partition(
                    m, self.config, slot, self.fields[f"{slot}_partition"], self._partitions("src0")
                )
            )
            misaligned.append(used & self._misaligned(slot))
            # The offset is aligned or MISALIGNED comes first, so the first byte decides.
            column_range.append(used & (offset >= self._capacity(block.space)))
        found = []
        for name, conditions in (
            ("partition_fault", partition),
            ("misaligned", misaligned),
            ("column_range", column_range),
        ):
            register = Signal(name=name)
            with m.If(self.phase[0]):
                m.d.sync += register.eq(any_of(conditions))
            found.append(register)
        return found

    def _misaligned(self, slot):
        offset, size = self.fields[f"{slot}_offset"], self._sizes[slot]
        return (size.any() & offset[0]) | (size[1] & offset[1])

    def _capacity(self, space):
        return Mux(space == Space.SBUF, self.config.sbuf_bytes, self.config.psum_bytes)

    def _range(self, m, word, boxes):
        found = []
        for i, (slot, box) in enumerate(boxes.items()):
            outside = (box.low < 0) | (box.last >= self._capacity(word[slot].space))
            found.append(self.operands[i] & (self.big[i] | box.many | outside))
            with m.If(self.operands[i]):
                m.d.comb += [self.low[i].eq(box.low), self.high[i].eq(box.last + 1)]
                m.d.comb += self.size[i].eq(self._sizes[slot])
        if "double_row" in self._modes and not self.config.double_row:
            users = [i.name for i in instructions_of(self.sequencer) if "double_row" in i.options]
            found.append(word.double_row & any_of([self._match[name] for name in users]))
        if "load_stationary" in self._match:
            found.append(
                self._match["load_stationary"] & (boxes["src0"].elements > self.config.partitions)
            )
        if "multiply_moving" in self._match:
            bank = exact_log2(self.config.psum_bank_bytes)
            dst = boxes["dst"]
            found.append(
                self._match["multiply_moving"]
                & (
                    (boxes["src0"].elements > self.config.max_moving)
                    | (dst.low[bank:] != dst.last[bank:])
                )
            )
        return any_of(found)

    def _shape(self, m, word, boxes):
        found = []
        for instruction in instructions_of(self.sequencer):
            if instruction.shape == "state":
                (slot,) = (slot for slot in self.operand_slots if uses(instruction, slot))
                match = self._match[instruction.name]
                found.append(match & (boxes[slot].elements != STATE_WORDS))
            if instruction.shape not in ("same", "reduce", "matmul"):
                continue
            slots = [slot for slot in self.operand_slots if uses(instruction, slot)]
            match, head = self._match[instruction.name], slots[0]
            for slot in slots[1:]:
                if instruction.shape != "matmul":
                    found.append(match & (self._partitions(slot) != self._partitions(head)))
                expected = (
                    boxes[head].outer if instruction.shape == "reduce" else boxes[head].elements
                )
                found.append(match & (boxes[slot].elements != expected))
        if "multiply_moving" in self._match:
            loaded = Signal()
            rows, columns = Signal(8), Signal(8)
            modes = bind(m, "modes", Cat(word[name] for name in self._modes))
            loaded_modes = Signal(len(modes))
            with m.If(self.accept & self._match["load_stationary"]):
                m.d.sync += [
                    loaded.eq(1),
                    rows.eq(self._partitions("src0")),
                    columns.eq(boxes["src0"].elements),
                    loaded_modes.eq(modes),
                ]
            with m.If(self.forget):
                m.d.sync += loaded.eq(0)
            found.append(
                self._match["multiply_moving"]
                & (
                    ~loaded
                    | (self._partitions("src0") != rows)
                    | (self._partitions("dst") != columns)
                    | (modes != loaded_modes)
                )
            )
        return any_of(found)
