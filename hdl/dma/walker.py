"""Row walker: from a descriptor to its rows."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.dma.layout import DIMS, Ending, Job, sink_row_layout, source_row_layout, walk_bits
from hdl.dma.place import RowPlace
from isa.address_map import DmaCause
from isa.geometry import WORD_BYTES

_WORD_LOG2 = ceil_log2(WORD_BYTES)


class RowWalker(wiring.Component):
    """Walks a descriptor's rows, dimension 2 outermost, and sends each to the read side and to the
    write side.

    Members
    -------
    job : In stream of Job, held until the descriptor's last row has been sent
    source, sink : Out streams of the rows, always in step; an `end` follows a descriptor's rows in
        `sink`
    ending : Out stream of Ending, in step with the `end`
    abort : In; while high, the descriptor being walked gets no more rows

    A row outside the address map gives cause BAD_ADDRESS and is the last thing seen of its
    descriptor.  One row a cycle, 6 cycles or fewer between the last row of a descriptor and the
    first of the next.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "job": In(stream.Signature(Job)),
                "source": Out(stream.Signature(source_row_layout(config))),
                "sink": Out(stream.Signature(sink_row_layout(config))),
                "ending": Out(stream.Signature(Ending)),
                "abort": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = walk_bits(self.config)
        job = self.job.p
        left = [Signal(16, name=f"left{i}") for i in range(DIMS)]
        wrap = [Signal(name=f"wrap{i}") for i in range(DIMS)]
        last, begin, step, no_work = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            *(wrap[i].eq(left[i] == 1) for i in range(DIMS)),
            last.eq(wrap[0] & wrap[1] & wrap[2]),
            no_work.eq(
                (job.row_bytes == 0)
                | (job.count[0] == 0)
                | (job.count[1] == 0)
                | (job.count[2] == 0)
            ),
        ]
        with m.If(begin):
            m.d.sync += [left[i].eq(job.count[i]) for i in range(DIMS)]
        with m.Elif(step):
            m.d.sync += left[0].eq(Mux(wrap[0], job.count[0], left[0] - 1))
            with m.If(wrap[0]):
                m.d.sync += left[1].eq(Mux(wrap[1], job.count[1], left[1] - 1))
                with m.If(wrap[1]):
                    m.d.sync += left[2].eq(left[2] - 1)

        checking, offering = Signal(), Signal()
        offer_free, accepted, bad = Signal(), Signal(), Signal()
        places = {}
        for side, first, stride in (
            ("src", job.src_address, job.src_stride),
            ("dst", job.dst_address, job.dst_stride),
        ):
            m.submodules[f"{side}_place"] = place = RowPlace(self.config)
            m.d.comb += [
                place.take.eq(step),
                place.bytes.eq(job.row_bytes),
                place.address.eq(self._address(m, side, bits, first, stride, wrap, begin, step)),
            ]
            places[side] = place
        src, dst = places["src"], places["dst"]
        beyond, cause = Signal(), Signal(2)
        m.d.comb += [
            bad.eq(checking & ~(src.ok & dst.ok & ~beyond)),
            accepted.eq(checking & ~bad & offer_free),
            offer_free.eq(~offering | (self.source.ready & self.sink.ready)),
        ]
        with m.FSM(name="walk_state"):
            with m.State("BEGIN"):
                m.d.comb += begin.eq(self.job.valid)
                m.d.sync += [
                    cause.eq(job.cause),
                    beyond.eq((job.src_address[bits:] != 0) | (job.dst_address[bits:] != 0)),
                ]
                with m.If(begin):
                    with m.If((job.cause != DmaCause.NONE) | no_work):
                        m.next = "END"
                    with m.Else():
                        m.next = "WALK"
            with m.State("WALK"):
                m.d.comb += step.eq(~self.abort & ~bad & (~checking | offer_free))
                with m.If((step & last) | bad | self.abort):
                    m.next = "DRAIN"
            with m.State("DRAIN"), m.If(~checking & ~offering):
                m.next = "END"
            with m.State("END"):
                # Both take it in one cycle, so that rows and endings stay in step.
                m.d.comb += self.job.ready.eq(self.sink.ready & self.ending.ready)
                with m.If(self.job.ready):
                    m.next = "BEGIN"
        ends = Signal()
        m.d.comb += ends.eq(self.job.ready)
        with m.If(bad):
            m.d.sync += [checking.eq(0), cause.eq(DmaCause.BAD_ADDRESS)]
        with m.Elif(step | accepted):
            m.d.sync += checking.eq(step)

        # The row on offer.
        source, sink = (
            Signal.like(self.source.p, name="offer_source"),
            Signal.like(self.sink.p, name="offer_sink"),
        )
        with m.If(offer_free):
            m.d.sync += [
                offering.eq(accepted),
                source.sbuf.eq(src.place.sbuf),
                source.word.eq(src.place.byte >> _WORD_LOG2),
                source.beats.eq(
                    (src.place.byte[:_WORD_LOG2] + job.row_bytes + (WORD_BYTES - 1)) >> _WORD_LOG2
                ),
                sink.sbuf.eq(dst.place.sbuf),
                sink.byte.eq(dst.place.byte),
                sink.src_offset.eq(src.place.byte[:_WORD_LOG2]),
                sink.bytes.eq(job.row_bytes),
            ]
        m.d.comb += [
            self.source.p.eq(source),
            self.source.valid.eq(offering & self.sink.ready),
            self.sink.p.eq(sink),
            self.sink.p.end.eq(ends),
            self.sink.valid.eq((offering & self.source.ready) | ends),
            self.ending.valid.eq(ends),
            self.ending.p.address.eq(job.address),
            self.ending.p.cause.eq(cause),
            self.ending.p.update.eq(job.update),
        ]
        return m

    @staticmethod
    def _address(m, side, bits, first, stride, wrap, begin, step):
        """Running address of one side: `now[i]` is where dimension i's current row begins; one
        adder serves them all."""
        now = [Signal(bits, name=f"{side}{i}") for i in range(DIMS)]
        total = Signal(bits, name=f"{side}_next")
        m.d.comb += total.eq(
            Mux(~wrap[0], now[0], Mux(~wrap[1], now[1], now[2]))
            + Mux(~wrap[0], stride[0], Mux(~wrap[1], stride[1], stride[2]))
        )
        with m.If(begin):
            m.d.sync += [level.eq(first) for level in now]
        with m.Elif(step):
            m.d.sync += now[0].eq(total)
            with m.If(wrap[0]):
                m.d.sync += now[1].eq(total)
            with m.If(wrap[0] & wrap[1]):
                m.d.sync += now[2].eq(total)
        return now[0]
