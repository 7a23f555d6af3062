"""Read side of a DMA engine: from rows to their words."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.dma.layout import (
    BEAT_FIFO,
    BURST_BEATS,
    beat_bits,
    source_row_layout,
    source_word_layout,
    word_bits,
)
from hdl.lib.axi import address_layout
from hdl.lib.fifo import StreamFifo
from hdl.memory.ports import narrow_read_layout
from isa.geometry import WORD_BYTES


class SourceReader(wiring.Component):
    """Reads rows, and gives their words in order.

    Members
    -------
    row : In stream of rows
    ar : Out stream of HBM read bursts; r_valid, r : In, their beats in order, always accepted
    sbuf_read : Out stream, sbuf_valid, sbuf_data : In, read half of a SbufNarrow port
    word : Out stream of words

    One burst, or one SBUF word, is requested a cycle; nothing is requested for which the FIFO of
    BEAT_FIFO words has no room, so answers never wait.  A change between HBM and SBUF waits until
    all answers have come, which keeps them in order.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "row": In(stream.Signature(source_row_layout(config))),
                "ar": Out(stream.Signature(address_layout())),
                "r_valid": In(1),
                "r": In(source_word_layout()),
                "sbuf_read": Out(
                    stream.Signature(
                        narrow_read_layout(words=config.sbuf_words, partitions=config.partitions)
                    )
                ),
                "sbuf_valid": In(1),
                "sbuf_data": In(8 * WORD_BYTES),
                "word": Out(stream.Signature(source_word_layout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        active, sbuf = Signal(), Signal()
        word, beats = Signal(word_bits(config)), Signal(beat_bits(config))
        burst_log2 = ceil_log2(BURST_BEATS)

        # Credit: room in the FIFO that nobody has asked for; owed: words asked for that have not
        # come.
        credit = Signal(range(BEAT_FIFO + 1), init=BEAT_FIFO)
        owed = Signal(range(BEAT_FIFO + 1))
        to_boundary, length = Signal(range(BURST_BEATS + 1)), Signal(range(BURST_BEATS + 1))
        whole, may = Signal(), Signal()
        owed_sbuf = Signal()
        asked, arrived, taken = Signal(range(BURST_BEATS + 1)), Signal(), Signal()
        issue = Signal()
        m.d.comb += [
            to_boundary.eq(BURST_BEATS - word[:burst_log2]),
            length.eq(Mux(sbuf, 1, Mux(beats < to_boundary, beats, to_boundary))),
            whole.eq(beats == length),
            may.eq(active & ((owed == 0) | (owed_sbuf == sbuf)) & (credit >= length)),
            self.ar.valid.eq(may & ~sbuf),
            self.ar.p.addr.eq(word << ceil_log2(WORD_BYTES)),
            self.ar.p.len.eq(length - 1),
            self.sbuf_read.valid.eq(may & sbuf),
            self.sbuf_read.p.word.eq(word),
            self.sbuf_read.p.partition.eq(
                word >> ceil_log2(config.sbuf_stride_bytes // WORD_BYTES)
            ),
            issue.eq(may & Mux(sbuf, self.sbuf_read.ready, self.ar.ready)),
            asked.eq(Mux(issue, length, 0)),
            self.row.ready.eq(~active | (issue & whole)),
        ]
        with m.If(issue):
            m.d.sync += [word.eq(word + length), beats.eq(beats - length), owed_sbuf.eq(sbuf)]
        with m.If(self.row.ready):
            m.d.sync += [
                active.eq(self.row.valid),
                sbuf.eq(self.row.p.sbuf),
                word.eq(self.row.p.word),
                beats.eq(self.row.p.beats),
            ]

        m.submodules.words = words = StreamFifo(source_word_layout(), depth=BEAT_FIFO)
        wiring.connect(m, words.o, wiring.flipped(self.word))
        m.d.comb += [
            arrived.eq(self.r_valid | self.sbuf_valid),
            taken.eq(self.word.valid & self.word.ready),
            words.i.valid.eq(arrived),
            words.i.p.data.eq(Mux(self.sbuf_valid, self.sbuf_data, self.r.data)),
            words.i.p.error.eq(self.r_valid & self.r.error),
        ]
        m.d.sync += [credit.eq(credit - asked + taken), owed.eq(owed + asked - arrived)]
        return m
