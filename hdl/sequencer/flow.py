"""Flow: which instruction comes next; hardware loops."""

from itertools import pairwise

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.sequencer.layout import bind
from hdl.sequencer.ports import CAUSE_BITS, PC_BITS
from isa.address_map import Cause
from isa.geometry import LOOP_DEPTH

LOOP = data.StructLayout({"start": PC_BITS, "end": PC_BITS, "left": 31})


class Flow(wiring.Component):
    """Program counter of stage 1 and stack of loops.

    After `take` the counter is at the next instruction, and arrives there: while it stands at the
    end of the innermost loop that one repeats or ends, one loop a cycle, then `settled` rises.
    After an instruction of `decode.FLOW` it waits until stage 2 executes it: `branch` or `enter`.

    Members
    -------
    start : In(1)
        To instruction 0, no loops.
    take, flow : In(1)
        Stage 1 takes the instruction at `pc`; in the next cycle, `flow` says that it is in FLOW.
    branch, taken : In(1)
        Pulse: a branch executes, and its condition holds.
    enter : In(1), count : In(32)
        Pulse: a loop executes; its count, signed.
    target, length : In
        Target of the branch or loop, instructions in the stream.
    cause : Out
        In the cycle of the pulse: PC_OUT_OF_RANGE or LOOP_DEPTH, or NONE: it has been done.
    pc : Out, settled : Out(1)
        Next instruction; `settled` 0: not decided.
    """

    def __init__(self):
        super().__init__(
            {
                "start": In(1),
                "take": In(1),
                "flow": In(1),
                "branch": In(1),
                "taken": In(1),
                "enter": In(1),
                "count": In(32),
                "target": In(PC_BITS),
                "length": In(PC_BITS),
                "cause": Out(CAUSE_BITS),
                "pc": Out(PC_BITS),
                "settled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # Level 0 is the innermost loop; bit i of `active`: there are more than i loops.
        loops = [Signal(LOOP, name=f"loop{i}") for i in range(LOOP_DEPTH)]
        active = Signal(LOOP_DEPTH)
        arriving, undecided = Signal(), Signal()
        at_end = bind(m, "at_end", active[0] & (self.pc == loops[0].end))
        m.d.comb += [
            self.settled.eq(~arriving & ~undecided),
        ]
        fall, skip, jump, push = self._decide(m, loops, active)
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

        with m.If(fall | skip):
            m.d.sync += [undecided.eq(0), arriving.eq(1)]
        with m.If(skip | jump):
            m.d.sync += self.pc.eq(self.target)
        with m.If(jump):
            m.d.sync += undecided.eq(0)
            # A loop contains its inner ones: the first level that holds the target, and all outside
            # it, stay.
            outside = Signal(LOOP_DEPTH)
            for i, loop in enumerate(loops):
                m.d.comb += outside[i].eq(
                    active[i] & ((self.target < loop.start) | (self.target >= loop.end))
                )
            for leave in range(1, LOOP_DEPTH + 1):
                with m.If(outside == (1 << leave) - 1):
                    _drop(m, loops, active, leave)
        with m.If(push):
            m.d.sync += [
                undecided.eq(0),
                active.eq((active << 1) | 1),
                loops[0].start.eq(self.pc),
                loops[0].end.eq(self.target),
                loops[0].left.eq(self.count[:31]),
                *[outer.eq(inner) for inner, outer in pairwise(loops)],
            ]
        with m.If(self.start):
            m.d.sync += [self.pc.eq(0), active.eq(0), arriving.eq(0), undecided.eq(0)]
        return m

    def _decide(self, m, loops, active):
        """What happens in this cycle: arrive at the next instruction, arrive at the target, go to
        the target and leave the loops round the branch only, enter a loop.
        """
        fall, skip, jump, push = (Signal(name=n) for n in ("fall", "skip", "jump", "push"))
        # `pc` is already behind the instruction that executes.
        beyond = bind(m, "beyond", self.target >= self.length)
        outside = bind(
            m,
            "misplaced",
            beyond | (self.target < self.pc) | (active[0] & (self.target > loops[0].end)),
        )
        idle = bind(m, "idle", (self.count.as_signed() <= 0) | (self.target == self.pc))
        with m.If(self.branch):
            with m.If(~self.taken):
                m.d.comb += fall.eq(1)
            with m.Elif(beyond):
                m.d.comb += self.cause.eq(Cause.PC_OUT_OF_RANGE)
            with m.Else():
                m.d.comb += jump.eq(1)
        with m.If(self.enter):
            with m.If(outside):
                m.d.comb += self.cause.eq(Cause.PC_OUT_OF_RANGE)
            with m.Elif(idle):
                m.d.comb += skip.eq(1)
            with m.Elif(active[-1]):
                m.d.comb += self.cause.eq(Cause.LOOP_DEPTH)
            with m.Else():
                m.d.comb += push.eq(1)
        return fall, skip, jump, push


def _drop(m, loops, active, count):
    m.d.sync += active.eq(active >> count)
    m.d.sync += [loop.eq(outer) for loop, outer in zip(loops, loops[count:], strict=False)]
