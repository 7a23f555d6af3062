"""Write side of a DMA engine: from words to AXI write bursts and SBUF writes."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.dma.layout import OUTSTANDING_WRITES, W_FIFO, Ticket, length_bits, sink_word_layout
from hdl.lib.axi import address_layout, write_data_layout
from hdl.lib.fifo import StreamFifo
from hdl.memory.ports import narrow_write_layout
from isa.geometry import WORD_BYTES


class SinkWriter(wiring.Component):
    """Writes words in order; one a cycle.

    Members
    -------
    word : In stream of words and descriptor ends
    aw, w : Out streams, HBM write bursts; a burst is announced when its first word is there
    sbuf_write : Out stream, write half of a SbufNarrow port
    acknowledged : In, write bursts answered since reset (modulo)
    ticket : Out stream of Ticket, one per descriptor once its SBUF writes are done
    poisoned : from a read error until the end of its descriptor, in which time no byte is written
        (strobes are zero)
    row_done, row_bytes : one pulse per row written without error
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "word": In(stream.Signature(sink_word_layout(config))),
                "aw": Out(stream.Signature(address_layout())),
                "w": Out(stream.Signature(write_data_layout())),
                "sbuf_write": Out(
                    stream.Signature(
                        narrow_write_layout(
                            words=config.sbuf_words,
                            partitions=config.partitions,
                            word_bytes=WORD_BYTES,
                        )
                    )
                ),
                "acknowledged": In(Ticket.as_shape()["burst"].shape),
                "ticket": Out(stream.Signature(Ticket)),
                "poisoned": Out(1),
                "row_done": Out(1),
                "row_bytes": Out(length_bits(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        word = self.word.p
        stride_words = ceil_log2(self.config.sbuf_stride_bytes // WORD_BYTES)
        burst = Signal.like(self.acknowledged)
        outstanding = Signal.like(self.acknowledged)
        # Bursts are announced as their first word enters this FIFO; behind it, addresses keep ahead
        # of data.
        m.submodules.w_fifo = w_fifo = StreamFifo(write_data_layout(), depth=W_FIFO)
        wiring.connect(m, w_fifo.o, wiring.flipped(self.w))
        aw_free, w_free, sbuf_free, announce = Signal(), Signal(), Signal(), Signal()
        poisoned, fire, mask = Signal(), Signal(), Signal(WORD_BYTES)
        m.d.comb += [
            outstanding.eq(burst - self.acknowledged),
            aw_free.eq(~self.aw.valid | self.aw.ready),
            w_free.eq(w_fifo.i.ready),
            w_fifo.i.valid.eq(fire & ~word.end & ~word.sbuf),
            w_fifo.i.p.data.eq(word.data),
            w_fifo.i.p.strb.eq(mask),
            w_fifo.i.p.last.eq(word.last),
            sbuf_free.eq(~self.sbuf_write.valid | self.sbuf_write.ready),
            announce.eq(fire & ~word.end & ~word.sbuf & word.first),
            poisoned.eq(self.poisoned | word.error),
            mask.eq(Mux(poisoned, 0, word.mask)),
            fire.eq(self.word.valid & self.word.ready),
        ]
        with m.If(word.end):
            # The last SBUF word has left its register; HBM words are waited for by counting
            # answers.
            m.d.comb += self.word.ready.eq(self.ticket.ready & ~self.sbuf_write.valid)
        with m.Elif(word.sbuf):
            m.d.comb += self.word.ready.eq(sbuf_free)
        with m.Else():
            m.d.comb += self.word.ready.eq(
                w_free & (~word.first | (aw_free & (outstanding != OUTSTANDING_WRITES)))
            )

        with m.If(aw_free):
            m.d.sync += [
                self.aw.valid.eq(announce),
                self.aw.p.addr.eq(word.word << ceil_log2(WORD_BYTES)),
                self.aw.p.len.eq(word.len),
            ]
        with m.If(sbuf_free):
            m.d.sync += [
                self.sbuf_write.valid.eq(fire & ~word.end & word.sbuf),
                self.sbuf_write.p.word.eq(word.word),
                self.sbuf_write.p.partition.eq(word.word >> stride_words),
                self.sbuf_write.p.bytes.eq(mask),
                self.sbuf_write.p.data.eq(word.data),
            ]
        m.d.sync += burst.eq(burst + announce)
        with m.If(fire):
            m.d.sync += self.poisoned.eq(poisoned & ~word.end)
        m.d.comb += [
            self.ticket.valid.eq(self.word.valid & word.end & ~self.sbuf_write.valid),
            self.ticket.p.burst.eq(burst),
            self.ticket.p.poisoned.eq(self.poisoned),
            self.row_done.eq(fire & ~word.end & word.row_last & ~poisoned),
            self.row_bytes.eq(word.bytes),
        ]
        return m
