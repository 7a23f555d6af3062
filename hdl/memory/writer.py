"""A stream of elements into the places of an access pattern in SBUF or PSUM."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.check import check_stream
from hdl.lib.issue import Pattern
from hdl.lib.tile import add_tile
from hdl.memory.ports import PSUM_WORD_BITS, PsumWrite, SbufWrite
from hdl.memory.rotate import rotate_to_partitions
from hdl.memory.word_stream import WordStream
from hdl.memory.write_lane import NARROW_STAGES, WriteLane
from isa.geometry import PSUM_WORD_BYTES, WORD_BYTES

_LANE_BITS = 32


class StateAccess(enum.Enum, shape=2):
    """What a request does to the generators of random words of the pattern's partitions."""

    NONE = 0
    SET = 1
    GET = 2


class WriteRequest(data.Struct):
    """A pattern to write; no count may be 0.

    raw: the low bytes of a lane are the element.  Else it is FP32, which is narrowed to nearest or,
    with `stochastic`, stochastically, and with `sat` does not overflow (`hdl.arith.narrow`).
    state: SET: the six elements are words x, y, z, w, v, d of the generators, nothing is written;
    GET: the words are what is written, the elements, of which there are six, are ignored.
    """

    pattern: Pattern
    raw: 1
    sat: 1
    stochastic: 1
    state: StateAccess


class Writer(wiring.Component):
    """Writes one element of every partition of the pattern a cycle, dimension 0 fastest.

    Neighbouring elements of one word become one write; where elements fall on the same bytes
    (step 0) the later one stays.  Throughput is 1 element a cycle, also when each needs its own
    write, and across requests.  An element taken in cycle t is offered to the memory in t + 4 if it
    ends a word.  Partitions outside the pattern are not written.  Lane i goes to partition
    `pattern.partition` + i.

    FP32 becomes a short float or TF32 by `hdl.arith.narrow.FloatNarrow`, an integer by
    `hdl.arith.float_to_integer.FloatToInteger`; FP32 stays.  A generator of random words belongs to
    each partition (`hdl.arith.xorwow.Xorwow`).  It steps once for each element that a stochastic
    request writes there, whatever its value; only a reset of the chip gives it its first state
    again.

    Members
    -------
    request : In(stream of WriteRequest)
    i : In(stream)
        {data: P * 32}: FP32 bits, or the words of a raw request.  As many elements as the pattern
        has.
    sbuf, psum : Out(SbufWrite), Out(PsumWrite)
    done : Out(1)
        One pulse per request, in order, in the cycle after its last write was taken: reads see it.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "request": In(stream.Signature(WriteRequest)),
            "i": In(stream.Signature(
                data.StructLayout({"data": config.partitions * _LANE_BITS}))),
            "sbuf": Out(SbufWrite(config)),
            "psum": Out(PsumWrite(config)),
            "done": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        check_stream(m, platform, self.request, "writer_request")
        check_stream(m, platform, self.i, "writer_i")
        partitions = self.config.partitions
        request_extra = data.StructLayout({
            "dtype": 4, "raw": 1, "sat": 1, "stochastic": 1, "state": StateAccess,
            "partition_count": 8})
        m.submodules.words = words = WordStream(self.config, extra_bits=request_extra.size)
        element = words.o.p
        extra = data.View(request_extra, element.extra)
        asked = self.request.p
        m.d.comb += [
            words.request.valid.eq(self.request.valid),
            words.request.p.pattern.eq(asked.pattern),
            words.request.p.extra.eq(Cat(
                asked.pattern.dtype, asked.raw | (asked.state != StateAccess.NONE), asked.sat,
                asked.stochastic, asked.state, asked.pattern.partition_count)),
            self.request.ready.eq(words.request.ready),
        ]

        # Element and place meet, lanes turn to their partitions.
        control = data.StructLayout({
            "word": len(element.word), "bytes": WORD_BYTES, "size": len(element.size), "psum": 1,
            "ends": 1, "last": 1, "partitions": partitions})
        joined, held = Signal(), Signal(control)  # what is behind narrowing
        join_ready, load = Signal(), Signal()
        m.d.comb += [
            load.eq(words.o.valid & self.i.valid & join_ready),
            words.o.ready.eq(load),
            self.i.ready.eq(words.o.valid & join_ready),
        ]
        turned = rotate_to_partitions(
            m, "turned", self.i.p.data, element.rotation, len(self.i.p.data) // 4)
        used = Signal(partitions)
        m.d.comb += used.eq(Cat(extra.partition_count > p for p in range(partitions)))
        used_turned = rotate_to_partitions(
            m, "used_turned", used, element.rotation, partitions // 4)
        sets, gets = Signal(), Signal()
        m.d.comb += [
            sets.eq(extra.state == StateAccess.SET), gets.eq(extra.state == StateAccess.GET)]
        in_word4 = Mux(element.size[1], 0b1111,
                       Mux(element.size[0], Mux(element.place[1], 0b1100, 0b0011),
                           1 << element.place[:2]))
        of_word4 = Signal(4)
        m.d.comb += of_word4.eq(in_word4)
        entering = Signal(control)
        m.d.comb += [
            entering.word.eq(element.word), entering.psum.eq(element.psum),
            entering.bytes.eq(Cat(
                of_word4 & (element.place[2:] == n).replicate(4) for n in range(WORD_BYTES // 4))),
            entering.size.eq(element.size), entering.ends.eq(element.ends),
            entering.last.eq(element.last),
            # A state that is set takes the way of all elements, to be done in order.
            entering.partitions.eq(used_turned & (~sets).replicate(partitions)),
        ]
        with m.If(join_ready):
            valid, at = load, entering
            for stage in range(NARROW_STAGES - 1):
                following = Signal(name=f"valid{stage}")
                following_at = Signal(control, name=f"at{stage}")
                m.d.sync += [following.eq(valid), following_at.eq(at)]
                valid, at = following, following_at
            m.d.sync += [joined.eq(valid), held.eq(at)]

        # Merge into the buffer, or on the end of a word into the output register.
        sent, merge = Signal(), Signal()
        valid, out, waiting = Signal(), Signal(control), Signal(WORD_BYTES)
        m.d.comb += [
            sent.eq(valid & Mux(out.psum, self.psum.ready, self.sbuf.ready)),
            merge.eq(joined & (~held.ends | ~valid | sent)),
            join_ready.eq(~joined | merge),
        ]
        push = Signal()
        all_bytes = Signal(WORD_BYTES)
        m.d.comb += [push.eq(merge & held.ends), all_bytes.eq(waiting | held.bytes)]
        with m.If(merge):
            m.d.sync += waiting.eq(Mux(held.ends, 0, all_bytes))
        with m.If(push):
            m.d.sync += [valid.eq(1), out.eq(held), out.bytes.eq(all_bytes)]
        with m.Elif(sent):
            m.d.sync += valid.eq(0)
        m.d.sync += self.done.eq(sent & out.last)

        lanes = []
        for p in range(partitions):
            lane = add_tile(m, platform, f"lane{p}", WriteLane())
            m.d.comb += [
                lane.i.eq(turned.word_select(p, _LANE_BITS)),
                lane.en.eq(join_ready), lane.dtype.eq(extra.dtype), lane.raw.eq(extra.raw),
                lane.saturate.eq(extra.sat), lane.stochastic.eq(extra.stochastic),
                lane.step.eq(load & extra.stochastic & used_turned[p]),
                lane.load.eq(load & (sets | gets) & used_turned[p]), lane.get.eq(gets),
                lane.bytes.eq(held.bytes), lane.size.eq(held.size),
                lane.merge.eq(merge & ~held.ends), lane.push.eq(push),
            ]
            lanes.append(lane.word)
        m.d.comb += [
            self.sbuf.valid.eq(valid & ~out.psum),
            self.sbuf.p.word.eq(out.word),
            self.sbuf.p.partitions.eq(out.partitions),
            self.sbuf.p.bytes.eq(out.bytes),
            self.sbuf.p.data.eq(Cat(lanes)),
            self.psum.valid.eq(valid & out.psum),
            self.psum.p.word.eq(out.word),
            self.psum.p.partitions.eq(out.partitions),
            self.psum.p.bytes.eq(out.bytes[:PSUM_WORD_BYTES]),
            self.psum.p.data.eq(Cat(word[:PSUM_WORD_BITS] for word in lanes)),
        ]
        return m
