"""Decides in every cycle what the lanes of the vector engine do."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.check import check
from hdl.lib.issue import ELEMENT_BITS
from hdl.vector.alu import AluEntry, Select
from hdl.vector.delayed import delayed
from hdl.vector.join import GROUP_BITS, Join
from hdl.vector.lane import PARTIALS, LaneControl, Source1
from hdl.vector.op import VectorOp
from hdl.vector.prepare import Prepare
from hdl.vector.window import OutputWindow, check_window
from isa.fields import SLOW_CYCLES


class _Tag(data.Struct):
    """What travels with an element: element = goes on into ALU1, partial = part of a reduction,
    scan = of a scan, carry = and another one follows.
    """

    element: 1
    scan: 1
    carry: 1
    partial: 1
    slot: 3
    group: GROUP_BITS
    pair: 1
    single: 1
    select0: Select
    entry1: AluEntry
    select1: Select


class _Result(data.Struct):
    element: 1
    carry: 1
    select1: Select


class VectorControl(wiring.Component):
    """Launches one element a cycle and follows it through the lanes, which never stall.

    A launch needs its inputs and, when it gives a result, a place for that.  Consecutive
    instructions follow without a bubble; what comes after a reduction waits for its last result: at
    most 4 * stages + 4 cycles.  An element of a slow operator is launched in the last of
    SLOW_CYCLES cycles in which it could be; one of a scan 2 * stages + 1 cycles behind the one
    before.

    Members
    -------
    op : In(stream of VectorOp)
    src0_valid, src1_valid : In(1), src0_ready, src1_ready : Out(1)
        Handshakes of the readers, whose data goes to the lanes directly.
    output_valid : Out(1), output_ready : In(1)
        Handshake of the results in the lanes.
    control : Out(LaneControl), immediate : Out(32)
        To all lanes.
    """

    def __init__(self, *, stages):
        check_window(stages)
        self.stages = stages
        super().__init__({
            "op": In(stream.Signature(VectorOp)),
            "src0_valid": In(1), "src0_ready": Out(1),
            "src1_valid": In(1), "src1_ready": Out(1),
            "output_valid": Out(1), "output_ready": In(1),
            "control": Out(LaneControl),
            "immediate": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        c = self.control
        m.submodules.prepare = prepare = Prepare(VectorOp, reduces=True)
        m.submodules.join = join = Join(stages=self.stages)
        m.submodules.window = window = OutputWindow()
        now = Signal(VectorOp)
        running, launch, advance = Signal(), Signal(), Signal()

        # Position in the instruction and in the group of a reduction.
        left, group, group_left = Signal(ELEMENT_BITS), Signal(ELEMENT_BITS), Signal(ELEMENT_BITS)
        slot, first, number = Signal(3), Signal(), Signal(GROUP_BITS)
        last, group_last, final = Signal(), Signal(), Signal()
        pair, produces = Signal(), Signal()
        m.d.comb += [
            last.eq(left == 1),
            group_last.eq(group_left == 1),
            final.eq(group_left <= PARTIALS),
            # The neighbour of an odd slot came just before, unless it is the first final partial.
            # That one is met by the last, in an even slot; or an even last slot has no neighbour.
            pair.eq(now.reduce & Mux(slot[0], final & (group_left != PARTIALS), group_last)),
            produces.eq(~now.reduce | group_last),
        ]
        with m.If(launch):
            m.d.sync += left.eq(left - 1)
            with m.If(group_last):
                m.d.sync += [group_left.eq(group), slot.eq(0), first.eq(1),
                             number.eq(number + 1)]
            with m.Else():
                m.d.sync += [group_left.eq(group_left - 1), slot.eq(slot + 1)]
                with m.If(slot == PARTIALS - 1):
                    m.d.sync += first.eq(0)

        # What gives a result has a place to go.  Once it could be launched this stays so: nothing
        # else takes the place.
        able, step, wait = Signal(), Signal(5), Signal(range(2 * self.stages + 1))
        m.d.comb += [
            able.eq(
                running & (self.src0_valid | ~now.uses_src0) & (self.src1_valid | ~now.uses_src1)
                & (window.room | ~produces)),
            launch.eq(able & (~now.slow | (step == SLOW_CYCLES - 1)) & (~now.scan | (wait == 0))),
            window.launch.eq(launch & produces),
            self.src0_ready.eq(launch & now.uses_src0),
            self.src1_ready.eq((launch & now.uses_src1) | prepare.use_beat),
            self.output_valid.eq(window.valid), window.ready.eq(self.output_ready),
        ]

        with m.If(able & now.slow & ~launch):
            m.d.sync += step.eq(step + 1)
        with m.Else():
            m.d.sync += step.eq(0)
        # A scan's element is carried on one cycle behind its way through both ALUs.
        with m.If(launch & now.scan):
            m.d.sync += wait.eq(2 * self.stages)
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)

        # From one instruction to the next.
        m.d.comb += advance.eq(
            prepare.ready
            & Mux(running, launch & last & ~now.reduce, ~now.reduce | window.idle))
        with m.If(advance):
            m.d.sync += [
                running.eq(1), now.eq(self.op.p), left.eq(self.op.p.elements),
                group.eq(prepare.group), group_left.eq(prepare.group), slot.eq(0), first.eq(1),
            ]
        with m.Elif(launch & last):
            m.d.sync += running.eq(0)
        travelling = Signal(self.stages)
        m.d.sync += travelling.eq((travelling << 1) | advance)
        m.d.comb += [
            prepare.op.valid.eq(self.op.valid), prepare.op.p.eq(self.op.p),
            self.op.ready.eq(prepare.op.ready),
            prepare.take.eq(advance), prepare.hold.eq(travelling.any()),
            prepare.beat.eq(self.src1_valid),
            prepare.free.eq(~(running & now.uses_src1)),
            self.immediate.eq(prepare.immediate),
            c.load_immediate.eq(prepare.load_immediate), c.load.eq(prepare.load),
            c.advance0.eq(advance), c.advance1.eq(travelling[-1]),
        ]

        # Into ALU0.
        tag = Signal(_Tag)
        m.d.comb += [
            c.slow.step.eq(step), c.slow.power.eq(now.power), c.slow.swap.eq(now.swap),
            c.late.eq(launch & now.scan),
            c.entry0.eq(now.alu0.entry),
            c.b0.eq(Mux(now.reduce & first, 0, now.b.as_value())),
            c.partial_read.eq(slot),
            tag.element.eq(launch & ~now.reduce),
            tag.scan.eq(launch & now.scan),
            tag.carry.eq(launch & now.scan & ~last),
            tag.partial.eq(launch & now.reduce),
            tag.slot.eq(slot), tag.group.eq(number),
            tag.pair.eq(launch & pair),
            tag.single.eq(~slot[0] & first),
            tag.select0.eq(now.alu0.select),
            tag.entry1.eq(now.alu1.entry), tag.select1.eq(now.alu1.select),
        ]
        tag = delayed(m, tag, self.stages, "tag")

        # Out of ALU0.  A join has ALU1 for itself: `now` is its reduction until its last result.
        m.d.comb += [
            c.select0.eq(tag.select0),
            c.partial_write.eq(tag.partial), c.partial.eq(tag.slot),
            c.pair_write.eq(tag.pair), c.pair_single.eq(tag.single),
            c.pair_at.eq(join.pair_at), c.pair_from.eq(join.pair_from),
            join.partials.eq(Mux(group < PARTIALS, group[:4], PARTIALS)),
            join.pair.eq(tag.pair), join.index.eq(tag.slot >> 1), join.group.eq(tag.group),
            c.source1.eq(Mux(join.use_node, Source1.NODE,
                             Mux(join.use_pair, Source1.PAIR,
                                 Mux(tag.scan, Source1.SCAN, Source1.ALU0)))),
            c.entry1.eq(Mux(tag.element, tag.entry1, now.alu1.entry)),
        ]
        check(m, platform, ~(tag.element & (join.use_node | join.use_pair)),
              "vector control: an element and a join want ALU1")

        # Out of ALU1.
        result = Signal(_Result)
        m.d.comb += [
            result.element.eq(tag.element), result.carry.eq(tag.carry),
            result.select1.eq(Mux(tag.element, tag.select1, now.alu1.select)),
        ]
        result = delayed(m, result, self.stages, "result")
        m.d.comb += [
            c.select1.eq(result.select1), c.carry.eq(result.carry),
            c.node.eq(join.node), c.node_write.eq(join.node_write),
            window.arrive.eq(result.element | join.result),
            c.output_write.eq(window.arrive),
            c.output_at.eq(window.at), c.output_from.eq(window.take_from),
        ]
        return m
