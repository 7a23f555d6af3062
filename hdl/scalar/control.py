"""Decides in every cycle what the lanes of the scalar engine do."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.issue import ELEMENT_BITS
from hdl.lib.tile import add_tile
from hdl.scalar.lane import BATCH, PLACES, LaneTiming, PostControl, ScalarControl
from hdl.scalar.step import (
    ADDRESS_BITS,
    OPERANDS,
    RAW,
    SelectWord,
    StepWord,
    start_addresses,
    step_rom,
)
from hdl.vector.delayed import delayed
from hdl.vector.op import is_op
from hdl.vector.prepare import Prepare
from hdl.vector.window import OutputWindow
from isa.fields import Function
from isa.functions import SCRATCH, Post, Table

COLUMNS = 2


class ScalarOp(data.Struct):
    """An instruction for the lanes.

    start: address of the first step.  columns: bit i, operand i (0 scale, 1 bias) comes before the
    data, else it is `immediate` i.  sourceless: elements come from nowhere.
    """

    elements: ELEMENT_BITS
    start: ADDRESS_BITS
    columns: COLUMNS
    immediate: data.ArrayLayout(32, COLUMNS)
    slope: 32
    sourceless: 1


def decode_scalar_op(m, op, issue):
    """Drives the ScalarOp `op` from the Issue."""
    starts = start_addresses()
    activation = Signal()
    m.d.comb += [
        activation.eq(is_op(issue, "activation")),
        op.elements.eq(issue.elements),
        op.columns[0].eq(activation & (issue.column0.space != 0)),
        op.columns[1].eq(activation & (issue.column1.space != 0)),
        op.immediate[0].eq(issue.imm0), op.immediate[1].eq(issue.imm1),
        op.slope.eq(issue.imm2),
        op.sourceless.eq(is_op(issue, "rand_get_state")),
        op.start.eq(starts[RAW]),
    ]
    with m.If(activation), m.Switch(issue.func):
        for function in Function:
            with m.Case(function):
                m.d.comb += op.start.eq(starts[function])


class _Near(data.Struct):
    """Of a step, what acts a cycle after launch."""

    select: SelectWord
    flips: 1


class _Along(data.Struct):
    """Of a step and an element, what acts from the multiplier on."""

    multiply: 1
    add: 1
    table: Table
    finish: PostControl
    scratch_write: SCRATCH
    scratch_at: range(BATCH)
    output: 1


class ScalarLaunch(wiring.Component):
    """Launches one element a cycle and follows it through the lanes, which never stall.

    A function of one step takes the elements as they come. One of several steps works on batches of
    `BATCH` elements: each step on the whole batch, then the next step. A pass takes as many cycles
    as the batch has elements, or the latency of a lane plus 1 where that is more, which is so in
    the last batch of an instruction only. Consecutive instructions follow without a bubble when
    operands are immediates.

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
        self._timing = LaneTiming(stages)
        # A place is used from launch until the cycle after the writer took it.
        if self._timing.result + 2 > PLACES:
            raise ValueError(f"a lane of {self._timing.result} cycles and {PLACES} places")
        super().__init__({
            "op": In(stream.Signature(ScalarOp)),
            "src_valid": In(1), "src_ready": Out(1),
            "output_valid": Out(1), "output_ready": In(1),
            "control": Out(ScalarControl),
            "immediate": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        op, result = self.op.p, self._timing.result
        m.submodules.prepare = prepare = Prepare(ScalarOp, reduces=False)
        m.submodules.window = window = OutputWindow(PLACES)

        # The instruction and the step that are launched.
        running, sourceless, unread = Signal(), Signal(), Signal(ELEMENT_BITS)
        start, slope = Signal(ADDRESS_BITS), Signal(32, reset_less=True)
        now, now_at = Signal(StepWord, reset_less=True), Signal(ADDRESS_BITS)
        armed, first, single = Signal(), Signal(), Signal()
        element, top = Signal(range(BATCH)), Signal(range(BATCH))
        wait = Signal(range(result + 1))

        # What happens: an element is launched, it ends the pass, the instruction, another starts.
        launch, pass_end, ends, advance = Signal(), Signal(), Signal(), Signal()
        all_read, final, fetched_is_next = Signal(), Signal(), Signal()
        m.d.comb += [
            single.eq(first & now.last),
            all_read.eq(unread == first),
            launch.eq(armed & (~first | sourceless | self.src_valid)
                      & (~now.last | window.room)),
            pass_end.eq(launch & Mux(first, all_read | (~single & (element == BATCH - 1)),
                                     element == top)),
            ends.eq(pass_end & now.last & all_read),
            advance.eq(prepare.ready & fetched_is_next & (~running | ends)),
        ]
        with m.If(launch):
            m.d.sync += [element.eq(Mux(pass_end, 0, element + 1)), unread.eq(unread - first)]
        with m.If(pass_end & first):
            m.d.sync += top.eq(element)

        # The next step is fetched ahead: of a batch, of the next batch, of the next instruction.
        rom = add_tile(m, platform, "steps", step_rom())
        fetched, fetched_at = StepWord(rom.data), Signal(ADDRESS_BITS)
        fetches = Signal()
        next_at = Signal(ADDRESS_BITS)
        m.d.comb += [
            final.eq(~running | (now.last & (single | (~first & (unread == 0))))),
            next_at.eq(Mux(final, op.start, Mux(now.last, start, now_at + 1))),
            rom.address.eq(next_at), rom.en.eq(1),
            fetched_is_next.eq(fetches & (fetched_at == next_at)),
        ]
        m.d.sync += [fetches.eq(1), fetched_at.eq(next_at)]

        # A step reads what the one before wrote `result` + 1 cycles after its launch.
        gap, step_now, step_later = Signal.like(wait), Signal(), Signal()
        m.d.comb += [
            gap.eq(Mux(now.last | (element >= result), 0, result - element)),
            step_now.eq(pass_end & ~ends & (gap == 0) & fetched_is_next),
            step_later.eq(running & ~armed & (wait <= 1) & fetched_is_next),
        ]
        with m.If(pass_end):
            m.d.sync += [armed.eq(0), wait.eq(gap)]
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.If(ends):
            m.d.sync += running.eq(0)
        with m.If(advance | step_now | step_later):
            m.d.sync += [
                armed.eq(1), now.eq(fetched), now_at.eq(fetched_at), first.eq(advance | now.last),
            ]
            for i in range(len(OPERANDS)):
                with m.If(fetched.slope[i]):
                    m.d.sync += now.value[i].eq(Mux(advance, op.slope, slope))
        with m.If(advance):
            m.d.sync += [
                running.eq(1), unread.eq(op.elements), sourceless.eq(op.sourceless),
                start.eq(op.start), slope.eq(op.slope),
            ]

        m.d.comb += [
            prepare.op.valid.eq(self.op.valid), prepare.op.p.eq(op),
            self.op.ready.eq(prepare.op.ready),
            prepare.take.eq(advance), prepare.hold.eq(0),
            # Columns stand before the data of their instruction, behind that of the one that runs.
            prepare.beat.eq(self.src_valid), prepare.free.eq(~running | (unread == 0)),
            self.src_ready.eq((launch & first & ~sourceless) | prepare.use_beat),
            window.launch.eq(launch & now.last),
            self.output_valid.eq(window.valid), window.ready.eq(self.output_ready),
        ]
        self._drive(m, prepare, window, now, launch=launch, element=element, advance=advance)
        return m

    def _drive(self, m, prepare, window, now, *, launch, element, advance):
        """The control of the lanes; what acts later travels beside the element."""
        c, time = self.control, self._timing
        near, along = Signal(_Near), Signal(_Along)
        m.d.comb += [
            near.select.eq(now.select), near.flips.eq(now.post == Post.FLIP_ODD),
            along.multiply.eq(now.multiply), along.add.eq(now.add), along.table.eq(now.table),
            along.finish.post.eq(now.post), along.finish.raw.eq(now.raw),
            along.scratch_at.eq(element), along.output.eq(launch & now.last),
        ]
        m.d.comb += [
            along.scratch_write[i].eq(launch & ~now.last & (now.to == i)) for i in range(SCRATCH)
        ]
        near = delayed(m, near, 1, "near")
        product = delayed(m, along, time.product, "to_product")
        total = delayed(m, product, time.total - time.product, "to_total")
        function = delayed(m, total, time.function - time.total, "to_function")
        result = delayed(m, function, time.result - time.function, "to_result")
        m.d.comb += [
            self.immediate.eq(prepare.immediate),
            c.load_immediate.eq(prepare.load_immediate), c.load.eq(prepare.load),
            c.advance.eq(advance),
            c.operand.eq(now.operand), c.value.eq(now.value), c.ref.eq(now.ref),
            c.element.eq(element),
            c.select.eq(near.select), c.flips.eq(near.flips),
            c.multiply.eq(product.multiply), c.add.eq(total.add), c.table.eq(total.table),
            c.finish.eq(function.finish),
            c.scratch_write.eq(result.scratch_write), c.scratch_at.eq(result.scratch_at),
            window.arrive.eq(result.output), c.output_write.eq(result.output),
            c.output_at.eq(window.at), c.output_from.eq(window.take_from),
        ]
