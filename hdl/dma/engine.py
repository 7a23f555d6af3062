"""The DMA engine."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.dma.align import Realigner
from hdl.dma.completion import Completion
from hdl.dma.fetch import DescriptorFetch
from hdl.dma.layout import (
    JOB_FIFO,
    ROW_FIFO,
    Ending,
    Ticket,
    Trigger,
    sink_row_layout,
    source_row_layout,
)
from hdl.dma.merge import ReadMerge
from hdl.dma.sink import SinkWriter
from hdl.dma.source import SourceReader
from hdl.dma.walker import RowWalker
from hdl.lib.axi import AxiRead, AxiWrite
from hdl.lib.check import check_stream
from hdl.lib.fifo import StreamFifo
from hdl.memory.ports import SbufNarrow
from hdl.sequencer.ports import SemaphoreUpdate

_SOURCE_ROWS = 4


class DmaStatus(wiring.Signature):
    """Status of a DMA engine (Out = engine drives): the fields of `isa.address_map.DMA_REGISTERS`.

    busy; cause, error_address: first error since it was cleared; descriptors: ended without error
    since START; bytes: of rows written without error since START, modulo 2^32.
    """

    def __init__(self):
        super().__init__(
            {
                "busy": Out(1),
                "cause": Out(8),
                "error_address": Out(64),
                "descriptors": Out(32),
                "bytes": Out(32),
            }
        )


class DmaEngine(wiring.Component):
    """Executes descriptors in order.

    Members
    -------
    trigger : In stream of Trigger, a queue of 8
    read : Out AxiRead, write : Out AxiWrite, without ids
    sbuf : Out SbufNarrow
    update : Out stream of SemaphoreUpdate, each after the last byte of its descriptor is visible,
        in order
    status : Out DmaStatus
    clear : In pulse, zeroes counters and error (START);  clear_error : In pulse, forgets the error

    A descriptor copies count2 x count1 x count0 rows of row_bytes bytes from any byte address to
    any byte address of HBM, SBUF or a peer window, dimension 0 innermost.  Reads run ahead of
    writes, into later descriptors too: only semaphores order one descriptor's writes before
    another's reads.

    Throughput: 16 bytes a cycle; a row costs one cycle more when its source offset is above its
    destination offset (mod 16).

    Errors: the descriptor ends without its update (rows before a bad one are written; after a read
    error nothing more is), the first error is latched, the next descriptor is executed.
    """

    def __init__(self, config):
        self.config = config
        self.tile_parameters = (
            config.array,
            config.sbuf_bytes,
            config.sbuf_stride_bytes,
            config.hbm_bytes,
            *([config.links] if config.links else []),
        )
        super().__init__(
            {
                "trigger": In(stream.Signature(Trigger)),
                "read": Out(AxiRead(config)),
                "write": Out(AxiWrite(config)),
                "sbuf": Out(SbufNarrow(config)),
                "update": Out(stream.Signature(SemaphoreUpdate)),
                "status": Out(DmaStatus()),
                "clear": In(1),
                "clear_error": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.fetch = fetch = DescriptorFetch(config)
        m.submodules.walker = walker = RowWalker(config)
        m.submodules.source_rows = source_rows = StreamFifo(
            source_row_layout(config), depth=_SOURCE_ROWS
        )
        m.submodules.sink_rows = sink_rows = StreamFifo(sink_row_layout(config), depth=ROW_FIFO)
        m.submodules.source = source = SourceReader(config)
        m.submodules.align = align = Realigner(config)
        m.submodules.sink = sink = SinkWriter(config)
        m.submodules.endings = endings = StreamFifo(Ending, depth=JOB_FIFO)
        m.submodules.tickets = tickets = StreamFifo(Ticket, depth=JOB_FIFO)
        m.submodules.completion = completion = Completion()
        m.submodules.merge = merge = ReadMerge(config)

        connect(m, flipped(self.trigger), fetch.trigger)
        connect(m, fetch.job, walker.job)
        connect(m, walker.source, source_rows.i)
        connect(m, source_rows.o, source.row)
        connect(m, walker.sink, sink_rows.i)
        connect(m, sink_rows.o, align.row)
        connect(m, source.word, align.word)
        connect(m, align.out, sink.word)
        connect(m, walker.ending, endings.i)
        connect(m, endings.o, completion.ending)
        connect(m, sink.ticket, tickets.i)
        connect(m, tickets.o, completion.ticket)
        connect(m, completion.update, flipped(self.update))

        connect(m, fetch.ar, merge.fetch_ar)
        connect(m, source.ar, merge.data_ar)
        connect(m, merge.port, flipped(self.read))
        m.d.comb += [
            fetch.r_valid.eq(merge.fetch_valid),
            fetch.r.eq(merge.r),
            source.r_valid.eq(merge.data_valid),
            source.r.eq(merge.r),
        ]
        connect(m, sink.aw, flipped(self.write.aw))
        connect(m, sink.w, flipped(self.write.w))
        connect(m, flipped(self.write.b), completion.b)
        m.d.comb += sink.acknowledged.eq(completion.acknowledged)
        connect(m, source.sbuf_read, flipped(self.sbuf.read))
        connect(m, sink.sbuf_write, flipped(self.sbuf.write))
        m.d.comb += [source.sbuf_valid.eq(self.sbuf.valid), source.sbuf_data.eq(self.sbuf.data)]

        # A descriptor with a read error is walked no further; the poison is the walked descriptor's
        # when no end of an earlier one is still on its way.
        ends, end_in, end_out = Signal(range(ROW_FIFO + 8)), Signal(), Signal()
        m.d.comb += [
            end_in.eq(walker.ending.valid & walker.ending.ready),
            end_out.eq(sink.ticket.valid & sink.ticket.ready),
            walker.abort.eq(sink.poisoned & (ends == 0)),
        ]
        m.d.sync += ends.eq(ends + end_in - end_out)

        self._status(m, fetch, sink, completion)
        for name, port in (
            ("ar", self.read.ar),
            ("aw", self.write.aw),
            ("w", self.write.w),
            ("update", self.update),
            ("sbuf_read", self.sbuf.read),
            ("sbuf_write", self.sbuf.write),
        ):
            check_stream(m, platform, port, f"dma_{name}")
        return m

    def _status(self, m, fetch, sink, completion):
        status = self.status
        running = Signal(range(64))
        m.d.sync += [
            running.eq(running + fetch.started - completion.retired),
            status.descriptors.eq(status.descriptors + completion.completed),
        ]
        m.d.comb += status.busy.eq(fetch.pending | (running != 0))
        with m.If(sink.row_done):
            m.d.sync += status.bytes.eq(status.bytes + sink.row_bytes)
        with m.If(completion.failed & (status.cause == 0)):
            m.d.sync += [
                status.cause.eq(completion.cause),
                status.error_address.eq(completion.address),
            ]
        with m.If(self.clear | self.clear_error):
            m.d.sync += [status.cause.eq(0), status.error_address.eq(0)]
        with m.If(self.clear):
            m.d.sync += [status.descriptors.eq(0), status.bytes.eq(0)]
