"""Decides in every cycle what the lanes of the scalar engine do."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.issue import ELEMENT_BITS
from hdl.scalar.lane import ScalarControl
from hdl.vector.delayed import delayed
from hdl.vector.op import OPERANDS
from hdl.vector.prepare import Prepare
from hdl.vector.window import OutputWindow, check_window
from isa.fields import Function


class ScalarOp(data.Struct):
    """An activation for the lanes.

    columns: bit i, operand i (0 scale, 1 bias) comes before the data, else it is `immediate` i.
    """

    elements: ELEMENT_BITS
    columns: OPERANDS
    immediate: data.ArrayLayout(32, OPERANDS)
    relu: 1


class _Tag(data.Struct):
    element: 1
    relu: 1


def decode_scalar_op(m, op, issue):
    """Drives the ScalarOp `op` from the Issue."""
    m.d.comb += [
        op.elements.eq(issue.elements),
        op.columns[0].eq(issue.column0.space != 0),
        op.columns[1].eq(issue.column1.space != 0),
        op.immediate[0].eq(issue.imm0), op.immediate[1].eq(issue.imm1),
        op.relu.eq(issue.func == Function.RELU),
    ]


class ScalarLaunch(wiring.Component):
    """Launches one element a cycle and follows it through the lanes, which never stall.

    Consecutive instructions follow without a bubble when operands are immediates.

    Members
    -------
    op : In(stream of ScalarOp)
    src_valid : In(1), src_ready : Out(1)
        Handshake of the reader, whose data goes to the lanes directly.
    output_valid : Out(1), output_ready : In(1)
        Handshake of the results in the lanes.
    control : Out(ScalarControl), immediate : Out(32)
        To all lanes.
    """

    def __init__(self, *, stages):
        check_window(stages)
        self.stages = stages
        super().__init__({
            "op": In(stream.Signature(ScalarOp)),
            "src_valid": In(1), "src_ready": Out(1),
            "output_valid": Out(1), "output_ready": In(1),
            "control": Out(ScalarControl),
            "immediate": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        c = self.control
        m.submodules.prepare = prepare = Prepare(ScalarOp, reduces=False)
        m.submodules.window = window = OutputWindow()
        running, launch, last, advance = Signal(), Signal(), Signal(), Signal()
        left, relu = Signal(ELEMENT_BITS), Signal()
        travelling = Signal(self.stages)
        m.d.comb += [
            last.eq(left == 1),
            launch.eq(running & self.src_valid & window.room),
            advance.eq(prepare.ready & Mux(running, launch & last, 1)),
            window.launch.eq(launch),
            self.src_ready.eq(launch | prepare.use_beat),
            self.output_valid.eq(window.valid), window.ready.eq(self.output_ready),
        ]
        m.d.sync += [
            left.eq(left - launch),
            travelling.eq((travelling << 1) | advance),
        ]
        with m.If(advance):
            m.d.sync += [running.eq(1), left.eq(self.op.p.elements), relu.eq(self.op.p.relu)]
        with m.Elif(launch & last):
            m.d.sync += running.eq(0)

        m.d.comb += [
            prepare.op.valid.eq(self.op.valid), prepare.op.p.eq(self.op.p),
            self.op.ready.eq(prepare.op.ready),
            prepare.take.eq(advance), prepare.hold.eq(travelling.any()),
            # Columns stand before the data of their instruction, behind that of the one that runs.
            prepare.beat.eq(self.src_valid), prepare.free.eq(~running),
            self.immediate.eq(prepare.immediate),
            c.load_immediate.eq(prepare.load_immediate), c.load.eq(prepare.load),
            c.advance0.eq(advance), c.advance1.eq(travelling[-1]),
        ]

        tag = Signal(_Tag)
        m.d.comb += [tag.element.eq(launch), tag.relu.eq(relu)]
        tag = delayed(m, tag, 2 * self.stages, "tag")
        m.d.comb += [
            window.arrive.eq(tag.element),
            c.relu.eq(tag.relu), c.output_write.eq(tag.element),
            c.output_at.eq(window.at), c.output_from.eq(window.take_from),
        ]
        return m
