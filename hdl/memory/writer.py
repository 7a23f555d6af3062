"""A stream of elements into the places of an access pattern in SBUF or PSUM."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.check import check_stream
from hdl.lib.issue import Pattern
from hdl.lib.tile import add_tile
from hdl.memory.ports import PSUM_WORD_BITS, PsumWrite, SbufWrite
from hdl.memory.rotate import rotate_to_partitions
from hdl.memory.word_stream import HALVES, WordStream
from hdl.memory.write_lane import WriteLane
from isa.geometry import PSUM_WORD_BYTES

_LANE_BITS = 32


class WriteRequest(data.Struct):
    """A pattern to write (no count may be 0); `raw`: BF16 is the upper half of a lane as it is."""

    pattern: Pattern
    raw: 1


class Writer(wiring.Component):
    """Writes one element of every partition of the pattern a cycle, dimension 0 fastest.

    Neighbouring elements of one word become one write; where elements fall on the same bytes
    (step 0) the later one stays.  Throughput is 1 element a cycle, also when each needs its own
    write, and across requests.  An element taken in cycle t is offered to the memory in t + 2 if it
    ends a word.  Partitions outside the pattern are not written.  Lane i goes to partition
    `pattern.partition` + i.

    Members
    -------
    request : In(stream of WriteRequest)
    i : In(stream)
        {data: P * 32}: FP32 bits, narrowed for BF16 (RNE, canonical NaN) unless `raw`.  As many
        elements as the pattern has.
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
        request_extra = data.StructLayout({"raw": 1, "partition_count": 8})
        m.submodules.words = words = WordStream(self.config, extra_bits=request_extra.size)
        element = words.o.p
        extra = data.View(request_extra, element.extra)
        m.d.comb += [
            words.request.valid.eq(self.request.valid),
            words.request.p.pattern.eq(self.request.p.pattern),
            words.request.p.extra.eq(
                Cat(self.request.p.raw, self.request.p.pattern.partition_count)),
            self.request.ready.eq(words.request.ready),
        ]

        # Element and place meet, lanes turn to their partitions.
        control = data.StructLayout({
            "word": len(element.word), "halves": HALVES, "psum": 1, "ends": 1, "last": 1,
            "partitions": partitions})
        joined, held = Signal(), Signal(control)
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
        pair = Signal(2)
        m.d.comb += pair.eq(Mux(element.bf16, Mux(element.half[0], 0b10, 0b01), 0b11))
        halves = Cat(pair & (element.half[1:] == n).replicate(2) for n in range(HALVES // 2))
        with m.If(load):
            m.d.sync += [
                held.word.eq(element.word), held.halves.eq(halves), held.psum.eq(element.psum),
                held.ends.eq(element.ends), held.last.eq(element.last),
                held.partitions.eq(used_turned),
            ]

        # Merge into the buffer, or on the end of a word into the output register.
        sent, merge = Signal(), Signal()
        valid, out, waiting = Signal(), Signal(control), Signal(HALVES)
        m.d.comb += [
            sent.eq(valid & Mux(out.psum, self.psum.ready, self.sbuf.ready)),
            merge.eq(joined & (~held.ends | ~valid | sent)),
            join_ready.eq(~joined | merge),
        ]
        with m.If(join_ready):
            m.d.sync += joined.eq(load)
        push = Signal()
        all_halves = Signal(HALVES)
        m.d.comb += [push.eq(merge & held.ends), all_halves.eq(waiting | held.halves)]
        with m.If(merge):
            m.d.sync += waiting.eq(Mux(held.ends, 0, all_halves))
        with m.If(push):
            m.d.sync += [valid.eq(1), out.eq(held), out.halves.eq(all_halves)]
        with m.Elif(sent):
            m.d.sync += valid.eq(0)
        m.d.sync += self.done.eq(sent & out.last)

        lanes = []
        for p in range(partitions):
            lane = add_tile(m, platform, f"lane{p}", WriteLane())
            m.d.comb += [
                lane.i.eq(turned.word_select(p, _LANE_BITS)),
                lane.bf16.eq(element.bf16), lane.raw.eq(extra.raw), lane.load.eq(load),
                lane.halves.eq(held.halves),
                lane.merge.eq(merge & ~held.ends), lane.push.eq(push),
            ]
            lanes.append(lane.word)
        out_bytes = Cat(half.replicate(2) for half in out.halves)
        m.d.comb += [
            self.sbuf.valid.eq(valid & ~out.psum),
            self.sbuf.p.word.eq(out.word),
            self.sbuf.p.partitions.eq(out.partitions),
            self.sbuf.p.bytes.eq(out_bytes),
            self.sbuf.p.data.eq(Cat(lanes)),
            self.psum.valid.eq(valid & out.psum),
            self.psum.p.word.eq(out.word),
            self.psum.p.partitions.eq(out.partitions),
            self.psum.p.bytes.eq(out_bytes[:PSUM_WORD_BYTES]),
            self.psum.p.data.eq(Cat(word[:PSUM_WORD_BITS] for word in lanes)),
        ]
        return m
