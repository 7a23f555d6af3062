"""Front end of the vector and scalar engines: an instruction becomes requests to their parts."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.pipeline import bind
from hdl.lib.element import element_size
from hdl.lib.fifo import StreamFifo
from hdl.lib.hazard import HazardTracker
from hdl.lib.issue import EngineSignature, Pattern
from hdl.memory.reader import ReadRequest
from hdl.memory.writer import StateAccess, WriteRequest
from hdl.vector.op import is_op
from hdl.vector.retire import Retire
from isa.fields import DIMS

_RAW_BIT = 5
"""Of an `isa.fields.AluOp`: it works on words."""
IN_FLIGHT = 4
"""Instructions between dispatch and completion."""


class Dispatch(wiring.Component):
    """Takes instructions in order and hands out their parts.

    Readers, lanes and writer then work on different instructions. An instruction is held, before
    it reads anything, while one of its sources overlaps a destination in flight or `IN_FLIGHT` are
    in flight. Dispatch costs one cycle, and one more per column. Columns are read before the data,
    by reader `column_reader`, as patterns of one element; src0 goes to reader 0, src1 to reader 1.

    Elements and columns are read, and results written, raw by raw operators and copies between
    equal dtypes, and where a state of the generators is set, of which the pattern of the write
    tells the partitions; else reads widen to FP32 and the write narrows.

    Parameters
    ----------
    readers : int
        1 or 2.
    column_reader : int
    op_shape, decode
        What the lanes get: a struct, and `decode(m, op, issue)`, which drives it.

    Members
    -------
    engine : In(EngineSignature)
    read0, read1 : Out(stream of ReadRequest)
    write : Out(stream of WriteRequest)
    op : Out(stream of op_shape)
    fetched : In(readers), written : In(1)
        Pulses of the readers and of the writer.
    """

    def __init__(self, *, readers, column_reader, op_shape, decode):
        if not 0 <= column_reader < readers <= 2:
            raise ValueError(f"column reader {column_reader} of {readers} readers")
        self.readers, self.column_reader = readers, column_reader
        self.op_shape, self._decode = op_shape, decode
        super().__init__({
            "engine": In(EngineSignature()),
            **{f"read{i}": Out(stream.Signature(ReadRequest)) for i in range(readers)},
            "write": Out(stream.Signature(WriteRequest)),
            "op": Out(stream.Signature(op_shape)),
            "fetched": In(readers),
            "written": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        issue = self.engine.issue.p
        m.submodules.hazards = hazards = HazardTracker(depth=IN_FLIGHT, sources=4)
        m.submodules.retire = retire = Retire(readers=self.readers, depth=IN_FLIGHT)
        m.submodules.ops = ops = StreamFifo(self.op_shape, depth=IN_FLIGHT)
        m.submodules.writes = writes = StreamFifo(WriteRequest, depth=IN_FLIGHT)
        reads = []
        for i in range(self.readers):
            fifo = m.submodules[f"reads{i}"] = StreamFifo(ReadRequest, depth=IN_FLIGHT)
            _forward(m, getattr(self, f"read{i}"), fifo.o)
            reads.append(fifo.i)
        _forward(m, self.write, writes.o)
        _forward(m, self.op, ops.o)

        # What the instruction reads.
        two, scalar, scan, sets, gets = (bind(m, short, is_op(issue, name)) for short, name in (
            ("two", "tensor_tensor"), ("scalar", "tensor_scalar"), ("scan", "tensor_tensor_scan"),
            ("sets", "rand_set_state"), ("gets", "rand_get_state")))
        raw, takes_columns, uses, column = Signal(), Signal(), Signal(2), Signal(2)
        moves = is_op(issue, "tensor_copy") & (issue.src0.dtype == issue.dst.dtype)
        m.d.comb += [
            raw.eq(sets | moves | ((two | scalar) & issue.op0[_RAW_BIT])),
            takes_columns.eq(scalar | scan | is_op(issue, "activation")),
            uses[0].eq(~is_op(issue, "memset") & ~gets),
            uses[1].eq(two | scan),
            column[0].eq(takes_columns & (issue.column0.space != 0)),
            column[1].eq(takes_columns & (issue.column1.space != 0)),
        ]
        columns = [_column_pattern(m, f"column{i}", getattr(issue, f"column{i}"), issue.src0)
                   for i in range(2)]
        used = (uses[0], uses[1], column[0], column[1])
        for extent, pattern, use in zip(hazards.source, (issue.src0, issue.src1, *columns), used,
                                        strict=True):
            m.d.comb += [
                extent.space.eq(Mux(use, pattern.space, 0)),
                extent.low.eq(pattern.low), extent.high.eq(pattern.high),
            ]
        m.d.comb += [
            # A state that is set is no memory; its dst is all zero.
            hazards.destination.space.eq(issue.dst.space),
            hazards.destination.low.eq(issue.dst.low),
            hazards.destination.high.eq(issue.dst.high),
            hazards.pop.eq(retire.complete),
        ]

        # Columns one after the other, then everything else at once.
        sent, clear, go, rooms = Signal(2), Signal(), Signal(), Signal(2 + self.readers)
        use_column, column_index = Signal(), Signal()
        m.d.comb += [
            clear.eq(self.engine.issue.valid & ~hazards.hit & ~hazards.full),
            column_index.eq(~column[0] | sent[0]),
            use_column.eq((column & ~sent) != 0),
            rooms[0].eq(ops.i.ready), rooms[1].eq(writes.i.ready),
            go.eq(clear & ~use_column & rooms.all()),
            self.engine.issue.ready.eq(go),
            hazards.push.eq(go), retire.start.eq(go),
            ops.i.valid.eq(go), writes.i.valid.eq(go),
            writes.i.p.pattern.eq(Mux(sets, issue.src0.as_value(), issue.dst.as_value())),
            writes.i.p.raw.eq(raw),
            writes.i.p.sat.eq(issue.sat), writes.i.p.stochastic.eq(issue.stochastic),
            writes.i.p.state.eq(Mux(
                sets, StateAccess.SET, Mux(gets, StateAccess.GET, StateAccess.NONE))),
        ]
        self._decode(m, ops.i.p, issue)
        for i, (read, pattern) in enumerate(zip(reads, (issue.src0, issue.src1), strict=False)):
            needs_column = use_column if i == self.column_reader else Const(0)
            m.d.comb += [
                rooms[2 + i].eq(read.ready | ~uses[i]),
                read.valid.eq(Mux(needs_column, clear, go & uses[i])),
                read.p.pattern.eq(pattern), read.p.raw.eq(raw),
            ]
            if i == self.column_reader:
                with m.If(use_column):
                    m.d.comb += read.p.pattern.eq(Mux(column_index, columns[1].as_value(),
                                                      columns[0].as_value()))
                m.d.comb += retire.need[i].eq(uses[i] + column[0] + column[1])
                with m.If(read.valid & read.ready & use_column):
                    m.d.sync += sent.bit_select(column_index, 1).eq(1)
            else:
                m.d.comb += retire.need[i].eq(uses[i])
        with m.If(go):
            m.d.sync += sent.eq(0)

        m.d.comb += [
            retire.fetched.eq(self.fetched), retire.written.eq(self.written),
            self.engine.read_done.eq(retire.read_done), self.engine.complete.eq(retire.complete),
        ]
        return m


def _forward(m, port, source):
    """`source` stream out through `port`."""
    m.d.comb += [port.valid.eq(source.valid), port.p.eq(source.p), source.ready.eq(port.ready)]


def _column_pattern(m, name, column, data):
    """The [P, 1] operand `column` as a Pattern over the partitions that `data` has."""
    pattern = Signal(Pattern, name=name)
    size = element_size(m, f"{name}_size", column.dtype)
    m.d.comb += [
        pattern.space.eq(column.space), pattern.dtype.eq(column.dtype), pattern.size.eq(size),
        pattern.partition.eq(column.partition), pattern.partition_count.eq(data.partition_count),
        pattern.offset.eq(column.offset), pattern.low.eq(column.offset),
        pattern.high.eq(column.offset + (1 << size)),
    ]
    m.d.comb += [pattern.count[i].eq(1) for i in range(DIMS)]
    return pattern
