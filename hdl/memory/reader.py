"""Elements of an access pattern out of SBUF or PSUM, as a stream."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.widen import Widen
from hdl.lib.check import check, check_stream
from hdl.lib.element import SIZE_BITS
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
from hdl.memory.word_stream import WordStream
from isa.geometry import WORD_BYTES

_AHEAD = 32
"""Elements that may be asked for before they are read: the buffered words full of 2-byte ones, or
two words of single bytes, which still cover the way to the memory and back."""
WIDEN_STAGES = 2
_KIND = data.StructLayout({"dtype": 4, "raw": 1})


class ReadRequest(data.Struct):
    """A pattern to read; no count may be 0.  raw: the elements, not their values (only for a
    reader that widens; the others always give elements).
    """

    pattern: Pattern
    raw: 1


def element_layout(config, *, lanes4=False):
    """One beat of a reader: `data` holds a lane per partition, `last` marks the end of a request.

    With `lanes4` a lane is 64 bits, and `mask` tells which 16-bit elements are there: 1111; or
    0001, a single element, which may have 4 bytes.
    """
    lane = QUAD_BITS if lanes4 else ELEMENT_BITS
    mask = {"mask": 4} if lanes4 else {}
    return data.StructLayout({"data": config.partitions * lane, **mask, "last": 1})


class Reader(wiring.Component):
    """Streams the elements of patterns, dimension 0 fastest, one element of every partition a beat.

    A word is fetched once for elements that follow each other in it.  Throughput is 1 element a
    cycle, also when every element lies in a new word (if the bank grants each request), and also
    across requests, of one memory or of both.  The first element is offered 6 cycles, when it is
    widened 8 cycles, after an idle reader took its request.  Lane i holds partition
    `pattern.partition` + i (cyclic).

    Parameters
    ----------
    config : isa.geometry.Config
    psum : bool
        Has a PSUM port, for patterns in PSUM.
    lanes4 : bool
        4 elements of 1 or 2 bytes a beat where they are contiguous (step 1 in dimension 0),
        aligned to the bytes of all four and left in dimension 0, else 1.
    widens : bool or None
        Elements become FP32 values.  None: where the reader has a PSUM port; without one it
        belongs to the tensor engine, which decodes elements itself.

    Members
    -------
    request : In(stream of ReadRequest)
    sbuf, psum : Out(SbufRead), Out(PsumRead)
    out : Out(stream of element_layout)
        With `widens` FP32 values as `hdl.arith.widen.Widen` says, or, for a raw request, elements
        of which signed integers are extended by their sign, others with zeros.  Without it
        elements extended with zeros; those of `lanes4` in 16 bits each, or 32 bits of a single one.
    fetched : Out(1)
        One pulse per request, in order, when its last word has arrived: the memory may change.
    """

    def __init__(self, config, psum=True, lanes4=False, widens=None):
        self.config, self.has_psum, self.lanes4 = config, psum, lanes4
        self.widens = psum if widens is None else widens
        if lanes4 and self.widens:
            raise ValueError("a reader with lanes4 cannot widen, its lanes are elements")
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
        m.submodules.words = words = WordStream(
            self.config, extra_bits=_KIND.size, quads=self.lanes4)
        element = words.o.p
        descriptor = data.StructLayout({
            "place": range(WORD_BYTES), "size": SIZE_BITS, "quad": 1, "rotation": 2, "ends": 1,
            "last": 1, **({"extra": _KIND.size} if self.widens else {})})
        m.submodules.descriptors = descriptors = StreamFifo(descriptor, depth=_AHEAD)
        m.d.comb += [
            words.request.valid.eq(self.request.valid),
            words.request.p.pattern.eq(self.request.p.pattern),
            words.request.p.extra.eq(Cat(self.request.p.pattern.dtype, self.request.p.raw)),
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
        kind = data.View(_KIND, now.extra) if self.widens else None
        go, advance = Signal(), Signal()
        m.d.comb += [
            advance.eq(~self.out.valid | self.out.ready),
            go.eq(descriptors.o.valid & (lines != 0) & advance),
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
            lane = ReadLane(psum=self.has_psum, lanes4=self.lanes4, signs=self.widens)
            add_tile(m, platform, f"lane{p}", lane)
            m.d.comb += [
                lane.sbuf.eq(self.sbuf.data.word_select(p, SBUF_WORD_BITS)),
                lane.w_en.eq(arrives), lane.w_line.eq(w_line), lane.r_line.eq(r_line),
                lane.place.eq(now.place), lane.size.eq(now.size),
            ]
            if self.has_psum:
                m.d.comb += [
                    lane.psum.eq(self.psum.data.word_select(p, PSUM_WORD_BITS)),
                    lane.from_psum.eq(self.psum.valid),
                ]
            if self.lanes4:
                m.d.comb += lane.quad.eq(now.quad)
            if self.widens:
                m.d.comb += lane.signed.eq(kind.dtype[3] & ~kind.dtype[0])
            lanes.append(lane.o)

        found = Cat(lanes)
        turned = rotate_to_lanes(m, "turned", found, now.rotation, len(found) // 4)
        if self.widens:
            self._widen(m, platform, go, advance, turned, now.last, kind)
        else:
            with m.If(go):
                m.d.sync += [
                    self.out.valid.eq(1), self.out.p.data.eq(turned), self.out.p.last.eq(now.last)]
                if self.lanes4:
                    m.d.sync += self.out.p.mask.eq(Mux(now.quad, 0b1111, 0b0001))
            with m.Elif(self.out.ready):
                m.d.sync += self.out.valid.eq(0)
        return m

    def _widen(self, m, platform, go, advance, elements, last, kind):
        """`elements` (when `go`) to `out`, in registers that all move with `advance`."""
        held, held_kind = Signal(len(elements)), Signal(_KIND)
        with m.If(advance):
            m.d.sync += [held.eq(elements), held_kind.eq(kind)]
        for stage in range(WIDEN_STAGES):
            valid, is_last = Signal(name=f"valid{stage}"), Signal(name=f"last{stage}")
            with m.If(advance):
                m.d.sync += [valid.eq(go), is_last.eq(last)]
            go, last = valid, is_last
        with m.If(advance):
            m.d.sync += [self.out.valid.eq(go), self.out.p.last.eq(last)]
        for p in range(self.config.partitions):
            unit = add_tile(m, platform, f"widen{p}", Widen(stages=WIDEN_STAGES, enable=True))
            m.d.comb += [
                unit.i.eq(held.word_select(p, ELEMENT_BITS)), unit.en.eq(advance),
                unit.dtype.eq(held_kind.dtype), unit.raw.eq(held_kind.raw),
                self.out.p.data.word_select(p, ELEMENT_BITS).eq(unit.o),
            ]
