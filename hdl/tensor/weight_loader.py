"""Control of load_stationary: puts the beats of the stationary operand on the weight bus."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.arith.decode import OperandFormat
from hdl.tensor.pe_group import GROUP
from hdl.tensor.sequence import SEQUENCE_BITS


class LoadIssue(data.Struct):
    """A load_stationary: `swaps` before it, and operand_format of its elements."""

    swaps: SEQUENCE_BITS
    operand_format: OperandFormat


class Beat(data.Struct):
    """Control part of a beat of the stationary operand: which of the four lanes hold elements, end
    of the load."""

    mask: GROUP
    last: 1


class WeightLoader(wiring.Component):
    """Takes the beats of each load in turn, counts columns, and holds a load back while its shadow
    registers are in use.

    One beat a cycle, latency 0; the bus itself carries the data of the beat as it is.

    Members
    -------
    issue : In(stream of LoadIssue)
        One entry per load_stationary; taken with its last beat.
    beat : In(stream of {mask, last})
        Control part of a beat of 1 or 4 elements (mask 0001 or 1111).
    swaps : In
        Swaps done, modulo 2^SEQUENCE_BITS.
    loads : Out
        Loads done, modulo 2^SEQUENCE_BITS; counts in the cycle after the last beat.
    format, group, shift, low, high : Out
        See `hdl.tensor.pe_row.control_layout`; `low` and `high` are 0 in a cycle without a beat.
    done : Out(1)
        The last beat of a load is on the bus.
    active : Out(1)
        A beat is on the bus.
    """

    def __init__(self, config):
        self._column_bits = ceil_log2(config.partitions)
        super().__init__(
            {
                "issue": In(stream.Signature(LoadIssue)),
                "beat": In(stream.Signature(Beat)),
                "swaps": In(SEQUENCE_BITS),
                "loads": Out(SEQUENCE_BITS),
                "format": Out(OperandFormat),
                "group": Out(max(1, self._column_bits - 2)),
                "shift": Out(2),
                "low": Out(GROUP),
                "high": Out(GROUP),
                "done": Out(1),
                "active": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        column = Signal(self._column_bits)
        allowed = Signal()
        m.d.comb += [
            allowed.eq(self.issue.valid & (self.issue.payload.swaps == self.swaps)),
            self.beat.ready.eq(allowed),
            self.active.eq(allowed & self.beat.valid),
            self.done.eq(self.active & self.beat.payload.last),
            self.issue.ready.eq(self.done),
            self.format.eq(self.issue.payload.operand_format),
            self.group.eq(column[2:]),
            self.shift.eq(column[:2]),
            Cat(self.low, self.high).eq(Mux(self.active, self.beat.payload.mask, 0) << self.shift),
        ]
        with m.If(self.active):
            m.d.sync += column.eq(column + Mux(self.beat.payload.mask[1], GROUP, 1))
        with m.If(self.done):
            m.d.sync += [column.eq(0), self.loads.eq(self.loads + 1)]
        return m
