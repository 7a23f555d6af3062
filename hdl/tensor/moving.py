"""Control of multiply_moving: sends moving columns into the array and generates their PSUM
addresses."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.arith.decode import OperandFormat
from hdl.lib.check import check
from hdl.lib.issue import Pattern
from hdl.memory.address_generator import AddressGenerator
from hdl.tensor.sequence import SEQUENCE_BITS
from isa.geometry import PSUM_WORD_BYTES


def multiply_layout(config):
    """What stays the same for all columns of a multiply_moving.

    rows, columns: K and M, 1..P.  operand_format: of the moving elements.  transpose, double_row:
    modes of the array.  rotation: quadrant of PSUM where result 0 lies.  swap: it is the first one
    since a load, and waits until load number `loads` is done.
    """
    return data.StructLayout(
        {
            "rows": range(config.partitions + 1),
            "columns": range(config.partitions + 1),
            "operand_format": OperandFormat,
            "transpose": 1,
            "double_row": 1,
            "rotation": 2,
            "accumulate": 1,
            "swap": 1,
            "loads": SEQUENCE_BITS,
        }
    )


def issue_layout(config):
    """A multiply_moving as `MovingControl` takes it."""
    return data.StructLayout({"result": Pattern, "multiply": multiply_layout(config)})


def tag_layout(config):
    """What travels beside a column through the array."""
    return data.StructLayout(
        {
            "valid": 1,
            "word": ceil_log2(config.psum_words),
            "columns": range(config.partitions + 1),
            "rotation": 2,
            "accumulate": 1,
            "last": 1,
        }
    )


class MovingControl(wiring.Component):
    """Lets one moving column a cycle into the array.

    A column waits for its element, for the weights of its instruction, and, when it accumulates,
    until `config.psum_accumulate_cycles` after an earlier column for the same PSUM word.
    Instructions follow each other without a bubble.

    Members
    -------
    issue : In(stream of issue_layout(config))
    element : In(stream of {last})
        Control part of the moving stream; the element goes into the array in the cycle in which it
        is taken.
    loads : In, swaps : Out
        Loads and swaps done, modulo 2^SEQUENCE_BITS.  `swaps` counts in the cycle after the column
        with the tag.
    active : Out(P)
        Rows that take part.
    swap : Out(1)
        The column is the first one with new weights.
    format, transpose, double_row : Out
        Of the column.
    tag : Out(tag_layout(config))
        Of the column; `valid` = a column goes in.
    """

    def __init__(self, config):
        self._config = config
        super().__init__(
            {
                "issue": In(stream.Signature(issue_layout(config))),
                "element": In(stream.Signature(data.StructLayout({"last": 1}))),
                "loads": In(SEQUENCE_BITS),
                "swaps": Out(SEQUENCE_BITS),
                "active": Out(config.partitions),
                "swap": Out(1),
                "format": Out(OperandFormat),
                "transpose": Out(1),
                "double_row": Out(1),
                "tag": Out(tag_layout(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self._config
        layout = multiply_layout(config)
        m.submodules.addresses = addresses = AddressGenerator(config, tag_bits=layout.size)
        now = data.View(layout, addresses.o.payload.tag)
        word = Signal(len(self.tag.word))
        go, last = Signal(), Signal()
        m.d.comb += [
            addresses.request.valid.eq(self.issue.valid),
            addresses.request.payload.pattern.eq(self.issue.payload.result),
            addresses.request.payload.tag.eq(self.issue.payload.multiply),
            self.issue.ready.eq(addresses.request.ready),
            word.eq(addresses.o.payload.address[ceil_log2(PSUM_WORD_BYTES) :]),
            last.eq(self.element.payload.last),
        ]

        # A swap needs all its weights on the bus; the columns after it follow in order anyway.
        first, waits = Signal(init=1), Signal()
        with m.If(go):
            m.d.sync += first.eq(last)
        m.d.comb += waits.eq(first & now.swap & (now.loads != self.loads))

        # An accumulation reads its word: earlier columns of the same word must have left the PSUM
        # adder.
        slot = data.StructLayout({"valid": 1, "word": len(word)})
        recent = Signal(data.ArrayLayout(slot, config.psum_accumulate_cycles - 1))
        m.d.sync += recent.eq(Cat(go, word, recent))
        hazard = Signal()
        m.d.comb += hazard.eq(
            now.accumulate & Cat(entry.valid & (entry.word == word) for entry in recent).any()
        )

        m.d.comb += [
            self.element.ready.eq(addresses.o.valid & ~waits & ~hazard),
            go.eq(self.element.valid & self.element.ready),
            addresses.o.ready.eq(go),
            self.active.eq(Cat(now.rows > k for k in range(config.partitions))),
            self.swap.eq(go & first & now.swap),
            self.format.eq(now.operand_format),
            self.transpose.eq(now.transpose),
            self.double_row.eq(now.double_row),
            self.tag.valid.eq(go),
            self.tag.word.eq(word),
            self.tag.columns.eq(now.columns),
            self.tag.rotation.eq(now.rotation),
            self.tag.accumulate.eq(now.accumulate),
            self.tag.last.eq(last),
        ]
        m.d.sync += self.swaps.eq(self.swaps + self.swap)

        same_end = Signal()
        m.d.comb += same_end.eq(~go | (addresses.o.payload.last == last))
        check(m, platform, same_end, "tensor: moving operand and result differ in length")
        return m
