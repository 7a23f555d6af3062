"""Gets the next instruction ready while the lanes work on the previous one."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.issue import ELEMENT_BITS
from hdl.vector.op import OPERANDS
from isa.fields import DIMS


class Prepare(wiring.Component):
    """Loads the two operands of the lanes, as columns from a reader or as immediates.

    Also multiplies out how many elements a reduction makes one of. Takes 2 steps of a cycle, a
    reduction 4; a column waits for its beat.

    Parameters
    ----------
    op_shape : type
        A struct with the fields `columns` and `immediate` of VectorOp.
    reduces : bool
        Also with those of a reduction; adds the member `group`.

    Members
    -------
    op : In(stream of op_shape)
        The instruction; taken when it starts.
    take : In(1)
        Starts it; only while `ready`.
    ready : Out(1)
        Operands are loaded and `group` is known.
    group : Out(17), only with `reduces`
        Elements that a reduction makes one of.
    hold : In(1)
        The lanes still need what was loaded last.
    beat : In(1), free : In(1), use_beat : Out(1)
        The reader offers a beat; the running instruction leaves it to us; we take it.
    load : Out(2), load_immediate : Out(1), immediate : Out(32)
        To the lanes.
    """

    def __init__(self, op_shape, *, reduces):
        self._reduces = reduces
        super().__init__({
            "op": In(stream.Signature(op_shape)),
            "take": In(1),
            "ready": Out(1),
            **({"group": Out(ELEMENT_BITS)} if reduces else {}),
            "hold": In(1),
            "beat": In(1),
            "free": In(1),
            "use_beat": Out(1),
            "load": Out(OPERANDS),
            "load_immediate": Out(1),
            "immediate": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        op = self.op.p
        step = Signal(range(DIMS))
        done, loading, column, go = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            loading.eq(step < OPERANDS),
            column.eq(loading & op.columns.bit_select(step[0], 1)),
            go.eq(self.op.valid & ~done & ~self.hold & (~column | (self.beat & self.free))),
            self.use_beat.eq(go & column),
            self.load_immediate.eq(~column),
            self.immediate.eq(Mux(step[0], op.immediate[1], op.immediate[0])),
            self.ready.eq(done),
            self.op.ready.eq(self.take),
        ]
        m.d.comb += [self.load[i].eq(go & (step == i)) for i in range(OPERANDS)]

        last_step = Mux(op.reduce, DIMS - 1, OPERANDS - 1) if self._reduces else OPERANDS - 1
        with m.If(self.take):
            m.d.sync += [done.eq(0), step.eq(0)]
        with m.Elif(go):
            m.d.sync += [step.eq(step + 1), done.eq(step == last_step)]
        if self._reduces:
            # A reduction has at most 65536 elements, so the product of its counts fits.
            product = Signal(ELEMENT_BITS, init=1)
            m.d.comb += self.group.eq(product)
            with m.If(self.take):
                m.d.sync += product.eq(1)
            with m.Elif(go & op.reduce & (step < op.reduce_dims)):
                m.d.sync += product.eq((product * op.count[step])[:ELEMENT_BITS])
        return m
