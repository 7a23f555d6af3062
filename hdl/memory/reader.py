"""Elements of an access pattern out of SBUF or PSUM, as a stream."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.check import check, check_stream
from hdl.lib.fifo import StreamFifo
from hdl.lib.issue import Pattern
from hdl.lib.tile import add_tile
from hdl.memory.ports import (
    PSUM_WORD_BITS,
    SBUF_WORD_BITS,
    WIDE_READ_CYCLES,
    PsumRead,
    SbufRead,
)
from hdl.memory.read_lane import ELEMENT_BITS, LINES, QUAD_BITS, ReadLane
from hdl.memory.rotate import rotate_to_lanes
from hdl.memory.word_stream import HALVES, WordStream

_AHEAD = 4 * HALVES
"""Elements that may be asked for before they are read: the buffered words full of BF16."""


class ReadRequest(data.Struct):
    """A pattern to read; no count may be 0."""

    pattern: Pattern


def element_layout(config, *, lanes4=False):
    """One beat of a reader: `data` holds a lane per partition, `last` marks the end of a request.

    With `lanes4` a lane is 4 BF16, and `mask` tells which are there: 1111 or 0001.
    """
    lane = QUAD_BITS if lanes4 else ELEMENT_BITS
    mask = {"mask": 4} if lanes4 else {}
    return data.StructLayout({"data": config.partitions * lane, **mask, "last": 1})


class Reader(wiring.Component):
    """Streams the elements of patterns, dimension 0 fastest, one element of every partition a beat.

    A word is fetched once for elements that follow each other in it.  Throughput is 1 element a
    cycle, also when every element lies in a new word (if the bank grants each request), and also
    across requests, of one memory or of both.  The first element is offered 6 cycles after an idle
    reader took its request.  Lane i holds partition `pattern.partition` + i (cyclic).

    Parameters
    ----------
    config : isa.geometry.Config
    psum : bool
        Has a PSUM port, for patterns in PSUM.
    lanes4 : bool
        BF16 only: 4 elements a beat where they are contiguous (step 1 in dimension 0), 8-byte
        aligned and left in dimension 0, else 1.

    Members
    -------
    request : In(stream of ReadRequest)
    sbuf, psum : Out(SbufRead), Out(PsumRead)
    out : Out(stream of element_layout)
        FP32 bits; BF16 stands in the upper half over zeros (`lanes4`: 16-bit elements from the low
        end).
    fetched : Out(1)
        One pulse per request, in order, when its last word has arrived: the memory may change.
    """

    def __init__(self, config, psum=True, lanes4=False):
        self.config, self.has_psum, self.lanes4 = config, psum, lanes4
        members = {
            "request": In(stream.Signature(ReadRequest)),
            "sbuf": Out(SbufRead(config)),
            "out": Out(stream.Signature(element_layout(config, lanes4=lanes4))),
            "fetched": Out(1),
        }
        if psum:
            members["psum"] = Out(PsumRead(config))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        check_stream(m, platform, self.request, "reader_request")
        check_stream(m, platform, self.out, "reader_out")
        m.submodules.words = words = WordStream(self.config, quads=self.lanes4)
        element = words.o.p
        descriptor = data.StructLayout({
            "half": 3, "bf16": 1, "quad": 1, "rotation": 2, "ends": 1, "last": 1})
        m.submodules.descriptors = descriptors = StreamFifo(descriptor, depth=_AHEAD)
        m.d.comb += [
            words.request.valid.eq(self.request.valid),
            words.request.p.pattern.eq(self.request.p.pattern),
            self.request.ready.eq(words.request.ready),
        ]

        # Ask for a word when an element opens it; elements pass in order, one a cycle.
        room = Signal(range(LINES + 1), init=LINES)
        lines = Signal(range(LINES + 1))  # words that are here
        ask, taken, passes, release = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            ask.eq(words.o.valid & element.opens & descriptors.i.ready & (room != 0)),
            passes.eq(Mux(element.opens, taken, words.o.valid & descriptors.i.ready)),
            words.o.ready.eq(passes),
            descriptors.i.valid.eq(passes),
            self.sbuf.req.p.eq(element.word),
        ]
        m.d.comb += [descriptors.i.p[name].eq(element[name]) for name in descriptor.members]
        arrives = Signal()
        if self.has_psum:
            m.d.comb += [
                self.psum.req.p.eq(element.word),
                self.psum.req.valid.eq(ask & element.psum),
                self.sbuf.req.valid.eq(ask & ~element.psum),
                taken.eq(ask & Mux(element.psum, self.psum.req.ready, self.sbuf.req.ready)),
                arrives.eq(self.sbuf.valid | self.psum.valid),
            ]
        else:
            m.d.comb += [
                self.sbuf.req.valid.eq(ask),
                taken.eq(ask & self.sbuf.req.ready),
                arrives.eq(self.sbuf.valid),
            ]
        m.d.sync += room.eq(room - taken + release)
        both = self.sbuf.valid & self.psum.valid if self.has_psum else 0
        check(m, platform, ~(arrives & (lines == LINES)) & (both == 0),
              "reader: a word arrives that was not asked for")
        # All words of a request have arrived when the one its last element might open would have.
        finished = passes & element.last
        for cycle in range(WIDE_READ_CYCLES):
            stage = Signal(name=f"finished{cycle}")
            m.d.sync += stage.eq(finished)
            finished = stage
        m.d.comb += self.fetched.eq(finished)

        # Line buffers: both memories answer after the same time, so words arrive in request order.
        w_line, r_line = Signal(range(LINES)), Signal(range(LINES))
        now = descriptors.o.p
        go = Signal()
        m.d.comb += [
            go.eq(descriptors.o.valid & (lines != 0) & (~self.out.valid | self.out.ready)),
            descriptors.o.ready.eq(go),
            release.eq(go & now.ends),
        ]
        m.d.sync += [
            w_line.eq(w_line + arrives),
            r_line.eq(r_line + release),
            lines.eq(lines + arrives - release),
        ]
        lanes = []
        for p in range(self.config.partitions):
            lane = ReadLane(psum=self.has_psum, lanes4=self.lanes4)
            add_tile(m, platform, f"lane{p}", lane)
            m.d.comb += [
                lane.sbuf.eq(self.sbuf.data.word_select(p, SBUF_WORD_BITS)),
                lane.w_en.eq(arrives), lane.w_line.eq(w_line), lane.r_line.eq(r_line),
                lane.half.eq(now.half),
            ]
            if self.has_psum:
                m.d.comb += [
                    lane.psum.eq(self.psum.data.word_select(p, PSUM_WORD_BITS)),
                    lane.from_psum.eq(self.psum.valid),
                ]
            if self.lanes4:
                m.d.comb += lane.quad.eq(now.quad)
            else:
                m.d.comb += lane.bf16.eq(now.bf16)
            lanes.append(lane.o)

        found = Cat(lanes)
        turned = rotate_to_lanes(m, "turned", found, now.rotation, len(found) // 4)
        with m.If(go):
            m.d.sync += [
                self.out.valid.eq(1), self.out.p.data.eq(turned), self.out.p.last.eq(now.last)]
            if self.lanes4:
                m.d.sync += self.out.p.mask.eq(Mux(now.quad, 0b1111, 0b0001))
        with m.Elif(self.out.ready):
            m.d.sync += self.out.valid.eq(0)
        return m
