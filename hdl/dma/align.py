"""Byte realigner: from words at the source's alignment to words at the destination's."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.dma.layout import (
    BURST_BEATS,
    beat_bits,
    length_bits,
    sink_row_layout,
    sink_word_layout,
    source_word_layout,
    word_bits,
)
from isa.geometry import WORD_BYTES

_LOG2 = ceil_log2(WORD_BYTES)
_BITS = 8 * WORD_BYTES


def _row_layout(config):
    """A row ready to be stepped through.

    rotate: source byte b goes to destination byte b + rotate mod 16.  ahead: the first source word
    fills no destination word alone and is fetched one step early.  words_in, words_out: what the
    row touches; head, tail: its first byte in the first word, the byte after its last in the last
    word (0 = 16).
    """
    return data.StructLayout(
        {
            "end": 1,
            "sbuf": 1,
            "word": word_bits(config),
            "rotate": _LOG2,
            "ahead": 1,
            "words_in": beat_bits(config),
            "words_out": beat_bits(config),
            "head": _LOG2,
            "tail": _LOG2,
            "bytes": length_bits(config),
        }
    )


class Realigner(wiring.Component):
    """Moves bytes from their source offset within 16 bytes to their destination offset, and marks
    write bursts.

    Members: `row` In stream, `word` In stream (the words of those rows), `out` Out stream of
    `sink_word_layout`, one per destination word, and one with `end` per descriptor.  The read error
    of a word goes along in `error`.

    One destination word a cycle.  A row that begins later in its source word than in its
    destination word takes one cycle more.  Latency 3 cycles.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "row": In(stream.Signature(sink_row_layout(config))),
                "word": In(stream.Signature(source_word_layout())),
                "out": Out(stream.Signature(sink_word_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        waiting, waiting_valid, wanted = self._prepare(m)
        self._step(m, waiting, waiting_valid, wanted)
        return m

    def _prepare(self, m):
        """Register with the next row, its sums done."""
        layout = _row_layout(self.config)
        waiting, valid, wanted = (
            Signal(layout, name="waiting"),
            Signal(name="waiting_valid"),
            Signal(name="wanted"),
        )
        row = self.row.p
        head = row.byte[:_LOG2]
        stop = Signal(length_bits(self.config) + 1)
        m.d.comb += [stop.eq(head + row.bytes), self.row.ready.eq(~valid | wanted)]
        with m.If(self.row.ready):
            m.d.sync += [
                valid.eq(self.row.valid),
                waiting.end.eq(row.end),
                waiting.sbuf.eq(row.sbuf),
                waiting.word.eq(row.byte >> _LOG2),
                waiting.rotate.eq(head - row.src_offset),
                waiting.ahead.eq(~row.end & (head < row.src_offset)),
                waiting.words_in.eq((row.src_offset + row.bytes + (WORD_BYTES - 1)) >> _LOG2),
                waiting.words_out.eq((stop + (WORD_BYTES - 1)) >> _LOG2),
                waiting.head.eq(head),
                waiting.tail.eq(stop),
                waiting.bytes.eq(row.bytes),
            ]
        return waiting, valid, wanted

    def _step(self, m, waiting, waiting_valid, wanted):
        row, active, fresh = Signal.like(waiting, name="row"), Signal(), Signal()
        room, fire, finishes, takes = Signal(), Signal(), Signal(), Signal()
        last_out = Signal()
        m.d.comb += [
            takes.eq(~row.end & (row.words_in != 0)),
            fire.eq(active & room & (~takes | self.word.valid)),
            self.word.ready.eq(active & room & takes),
            last_out.eq(row.words_out == 1),
            finishes.eq(fire & (row.end | (~row.ahead & last_out))),
            wanted.eq(~active | finishes),
        ]
        with m.If(wanted):
            m.d.sync += [row.eq(waiting), active.eq(waiting_valid), fresh.eq(1)]
        with m.Elif(fire):
            m.d.sync += row.words_in.eq(row.words_in - takes)
            with m.If(row.ahead):
                m.d.sync += row.ahead.eq(0)
            with m.Else():
                m.d.sync += [
                    fresh.eq(0),
                    row.word.eq(row.word + 1),
                    row.words_out.eq(row.words_out - 1),
                ]

        # Stage 1: the source word rotated, and everything about the destination word.
        out = self.out.p
        held = Signal.like(out, name="held")
        held_valid, held_fills, held_rotate = Signal(), Signal(), Signal(_LOG2)
        passes = Signal()
        in_burst = row.word[: ceil_log2(BURST_BEATS)]
        left = Signal(ceil_log2(BURST_BEATS))
        closes = Signal()
        m.d.comb += [
            room.eq(~held_valid | passes),
            closes.eq(in_burst == BURST_BEATS - 1),
            left.eq(~in_burst),  # words after this one up to the boundary
        ]
        after = row.words_out - 1
        everything = Const((1 << WORD_BYTES) - 1, WORD_BYTES)
        with m.If(room):
            m.d.sync += [
                held_valid.eq(fire),
                held_fills.eq(row.ahead),
                held_rotate.eq(row.rotate),
                held.end.eq(row.end),
                held.sbuf.eq(row.sbuf),
                held.word.eq(row.word),
                held.mask.eq(
                    Mux(fresh, everything << row.head, everything)
                    & Mux(last_out & (row.tail != 0), ~(everything << row.tail), everything)
                ),
                held.data.eq(self._rotate(m, self.word.p.data, row.rotate)),
                held.first.eq(fresh | (in_burst == 0)),
                held.last.eq(last_out | closes),
                held.len.eq(Mux(after < left, after, left)),
                held.row_last.eq(last_out),
                held.bytes.eq(row.bytes),
                held.error.eq(takes & self.word.p.error),
            ]

        # Stage 2: bytes below `rotate` come from the word before; the last byte never does.
        previous, earlier_error = Signal(_BITS), Signal()
        last_byte = WORD_BYTES - 1
        merged = [
            Mux(byte >= held_rotate, held.data.word_select(byte, 8), previous.word_select(byte, 8))
            for byte in range(last_byte)
        ] + [held.data.word_select(last_byte, 8)]
        m.d.comb += [
            passes.eq(held_valid & (held_fills | self.out.ready)),
            self.out.valid.eq(held_valid & ~held_fills),
            out.eq(held),
            out.data.eq(Cat(*merged)),
            out.error.eq(held.error | earlier_error),
        ]
        with m.If(passes):
            m.d.sync += [previous.eq(held.data), earlier_error.eq(held_fills & held.error)]

    @staticmethod
    def _rotate(m, word, amount):
        """`word` rotated left by `amount` bytes, in two levels of four."""
        low, high = Signal(_BITS, name="rotated_low"), Signal(_BITS, name="rotated")
        with m.Switch(amount[:2]):
            for step in range(4):
                with m.Case(step):
                    m.d.comb += low.eq(word.rotate_left(8 * step))
        with m.Switch(amount[2:]):
            for step in range(4):
                with m.Case(step):
                    m.d.comb += high.eq(low.rotate_left(32 * step))
        return high
