"""Flow: which instruction comes next; hardware loops."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.sequencer.layout import bind
from hdl.sequencer.ports import PC_BITS
from isa.geometry import LOOP_DEPTH

LOOP = data.StructLayout({"start": PC_BITS, "end": PC_BITS, "left": 31})


class Flow(wiring.Component):
    """Program counter of stage 1 and stack of loops.

    After `take` the counter is at the next instruction, and arrives there: while it stands at the end of the innermost
    loop that one repeats or ends, one loop a cycle, then `settled` rises.  After an instruction of
    `decode.FLOW` it waits for stage 2, which answers with one of `fall`, `skip`, `jump`, `push`.

    Members
    -------
    start : In(1)
        To instruction 0, no loops.
    take, flow : In(1)
        Stage 1 takes the instruction at `pc`; in the next cycle, `flow` says that it is in FLOW.
    fall, skip, jump, push : In(1)
        Arrive at the next instruction; arrive at `target`; go to `target` and leave the loops that do not
        contain it; begin a loop of `count` runs (at least 1) of [next, target) and enter it.
    target, count : In
    pc : Out, settled : Out(1)
        Next instruction; `settled` 0: not decided.
    full : Out(1)
        LOOP_DEPTH loops are active.
    nested : Out(1), end : Out
        A loop is active; its `target`.
    """

    def __init__(self):
        super().__init__({
            "start": In(1),
            "take": In(1),
            "flow": In(1),
            "fall": In(1),
            "skip": In(1),
            "jump": In(1),
            "push": In(1),
            "target": In(PC_BITS),
            "count": In(31),
            "pc": Out(PC_BITS),
            "settled": Out(1),
            "full": Out(1),
            "nested": Out(1),
            "end": Out(PC_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        # Level 0 is the innermost loop; bit i of `active`: there are more than i loops.
        loops = [Signal(LOOP, name=f"loop{i}") for i in range(LOOP_DEPTH)]
        active = Signal(LOOP_DEPTH)
        arriving, undecided = Signal(), Signal()
        at_end = bind(m, "at_end", active[0] & (self.pc == loops[0].end))
        m.d.comb += [
            self.settled.eq(~arriving & ~undecided),
            self.full.eq(active[-1]),
            self.nested.eq(active[0]),
            self.end.eq(loops[0].end),
        ]
        with m.If(arriving & self.flow):
            m.d.sync += [arriving.eq(0), undecided.eq(1)]
        with m.Elif(arriving & ~at_end):
            m.d.sync += arriving.eq(0)
        with m.Elif(arriving & (loops[0].left == 1)):
            _drop(m, loops, active, 1)
        with m.Elif(arriving):
            m.d.sync += [
                arriving.eq(0),
                self.pc.eq(loops[0].start),
                loops[0].left.eq(loops[0].left - 1),
            ]
        with m.If(self.take):
            m.d.sync += [self.pc.eq(self.pc + 1), arriving.eq(1)]

        with m.If(self.fall | self.skip):
            m.d.sync += [undecided.eq(0), arriving.eq(1)]
        with m.If(self.skip | self.jump):
            m.d.sync += self.pc.eq(self.target)
        with m.If(self.jump):
            m.d.sync += undecided.eq(0)
            # A loop contains its inner ones: the first level that holds the target, and all outside it, stay.
            outside = Signal(LOOP_DEPTH)
            for i, loop in enumerate(loops):
                m.d.comb += outside[i].eq(
                    active[i] & ((self.target < loop.start) | (self.target >= loop.end)))
            for leave in range(1, LOOP_DEPTH + 1):
                with m.If(outside == (1 << leave) - 1):
                    _drop(m, loops, active, leave)
        with m.If(self.push):
            m.d.sync += [
                undecided.eq(0),
                active.eq((active << 1) | 1),
                loops[0].start.eq(self.pc), loops[0].end.eq(self.target),
                loops[0].left.eq(self.count),
                *[outer.eq(inner) for inner, outer in zip(loops, loops[1:])],
            ]
        with m.If(self.start):
            m.d.sync += [self.pc.eq(0), active.eq(0), arriving.eq(0), undecided.eq(0)]
        return m


def _drop(m, loops, active, count):
    m.d.sync += active.eq(active >> count)
    m.d.sync += [loop.eq(outer) for loop, outer in zip(loops, loops[count:])]
