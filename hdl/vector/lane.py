"""One lane of the vector engine: operands, two ALUs, partial results, output buffer."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from hdl.vector.alu import Alu, AluEntry, Select
from hdl.vector.op import OperandB
from hdl.vector.slow import SlowControl, SlowUnit
from hdl.vector.window import OUTPUTS

PARTIALS = 8
"""Partial results of a reduction."""
PAIRS = 4
"""Pairs of partial results that may wait for ALU1; it is never more than 2 behind (`join.py`)."""
NODE_BITS = 4
"""Address of a sum that waits for its partner: group modulo 4, node of the tree."""
_PARTIAL_BITS = exact_log2(PARTIALS)
_PAIR_BITS = exact_log2(PAIRS)
_OUTPUT_BITS = exact_log2(OUTPUTS)


class Source1(enum.Enum, shape=2):
    """Operands of ALU1."""

    ALU0 = 0
    PAIR = 1
    NODE = 2
    SCAN = 3


class LaneControl(data.Struct):
    """Control of all lanes in a cycle.

    Fields named 0 go with an element on its way into ALU0; `select0` and the fields below it act on
    what leaves ALU0; `carry`, `select1` and those below it on what leaves ALU1.  A scan has
    operand 0 replaced by each result (`carry`), and its element of src1 wait for ALU1 (`late`).
    """

    # Operands of the next instruction, and their way to the ALUs.
    load_immediate: 1
    load: 2
    advance0: 1
    advance1: 1
    # Slow unit: see hdl/vector/slow.py.
    slow: SlowControl
    # Into ALU0.
    late: 1
    entry0: AluEntry
    b0: OperandB
    partial_read: _PARTIAL_BITS
    # Out of ALU0.
    select0: Select
    partial_write: 1
    partial: _PARTIAL_BITS
    pair_write: 1
    pair_single: 1
    pair_at: _PAIR_BITS
    # Into ALU1.
    source1: Source1
    entry1: AluEntry
    pair_from: _PAIR_BITS
    # Out of ALU1.
    carry: 1
    select1: Select
    node_write: 1
    node: NODE_BITS
    output_write: 1
    output_at: _OUTPUT_BITS
    output_from: _OUTPUT_BITS


class VectorLane(wiring.Component):
    """o = (a op0 b) op1 c, element by element; or a scan, or the join of a reduction's partials.

    A tile: datapath only, every decision comes with `control`; never stalls. An element leaves ALU0
    `stages` cycles after it entered, and ALU1 as many cycles later: latency 2 * stages, one element
    a cycle. Less where op0 is a quotient or a power, one in SLOW_CYCLES = 17 cycles, and in a scan,
    one in 2 * stages + 1. A sum, maximum or minimum takes an element a cycle into 8 partials, which
    ALU1 joins as ((0+1)+(2+3))+((4+5)+(6+7)) while the next group comes in.

    Formats: binary32, or words of 32 bits for bitwise and integer operators. Sources: those of the
    units in `Alu` and `SlowUnit`; the order of sums is docs/numerics.md's.

    Parameters
    ----------
    stages : int
        Of each ALU.

    Members
    -------
    control : In(LaneControl)
    immediate : In(32)
        Loaded instead of `src1` while `control.load_immediate`.
    src0, src1 : In(32)
        Elements that enter ALU0, FP32 bits or words; `src1` also carries columns.
    o : Out(32)
        The buffered result at `control.output_from`.
    """

    def __init__(self, *, stages):
        self.stages = stages
        self.tile_parameters = (stages,)
        super().__init__({
            "control": In(LaneControl),
            "immediate": In(32),
            "src0": In(32),
            "src1": In(32),
            "o": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        c = self.control
        m.submodules.alu0 = alu0 = Alu(stages=self.stages, slow=True)
        m.submodules.alu1 = alu1 = Alu(stages=self.stages)

        # Operands: `coming` is filled while the previous instruction runs.
        coming = [Signal(32, name=f"coming{i}", reset_less=True) for i in range(2)]
        operand = [Signal(32, name=f"operand{i}", reset_less=True) for i in range(2)]
        loaded = Signal(32)
        m.d.comb += loaded.eq(Mux(c.load_immediate, self.immediate, self.src1))
        for i, advance in enumerate((c.advance0, c.advance1)):
            with m.If(c.load[i]):
                m.d.sync += coming[i].eq(loaded)
            with m.If(advance):
                m.d.sync += operand[i].eq(coming[i])

        with m.If(c.carry):
            m.d.sync += operand[0].eq(alu1.o)
        late = Signal(32, reset_less=True)
        with m.If(c.late):
            m.d.sync += late.eq(self.src1)

        slow = add_tile(m, platform, "slow", SlowUnit())
        m.d.comb += [
            slow.control.eq(c.slow), slow.a.eq(alu0.a), slow.b.eq(alu0.b), alu0.slow.eq(slow.o),
        ]

        # Two copies of the partial results: one for the element that enters, one for the join.
        feedback = add_tile(m, platform, "feedback", LutRam(width=32, depth=PARTIALS))
        sibling = add_tile(m, platform, "sibling", LutRam(width=32, depth=PARTIALS))
        for ram in (feedback, sibling):
            m.d.comb += [
                ram.w_en.eq(c.partial_write), ram.w_addr.eq(c.partial), ram.w_data.eq(alu0.o)]
        m.d.comb += [
            feedback.r_addr.eq(c.partial_read),
            sibling.r_addr.eq(c.partial ^ 1),
            alu0.entry.eq(c.entry0), alu0.select.eq(c.select0),
            alu0.a.eq(self.src0),
            alu0.b.eq(Mux(c.b0 == OperandB.SRC1, self.src1,
                          Mux(c.b0 == OperandB.PARTIAL, feedback.r_data, operand[0]))),
        ]

        # Pairs and nodes of the join: see hdl/vector/join.py.
        pairs = add_tile(m, platform, "pairs", LutRam(width=64, depth=PAIRS))
        nodes = add_tile(m, platform, "nodes", LutRam(width=32, depth=1 << NODE_BITS))
        m.d.comb += [
            pairs.w_en.eq(c.pair_write), pairs.w_addr.eq(c.pair_at),
            pairs.w_data.eq(Cat(alu0.o, Mux(c.pair_single, operand[1], sibling.r_data))),
            pairs.r_addr.eq(c.pair_from),
            nodes.w_en.eq(c.node_write), nodes.w_addr.eq(c.node), nodes.w_data.eq(alu1.o),
            nodes.r_addr.eq(c.node),
            alu1.entry.eq(c.entry1), alu1.select.eq(c.select1),
        ]
        pair = pairs.r_data
        with m.Switch(c.source1):
            with m.Case(Source1.PAIR):
                m.d.comb += [alu1.a.eq(pair[:32]), alu1.b.eq(pair[32:])]
            with m.Case(Source1.NODE):
                m.d.comb += [alu1.a.eq(alu1.o), alu1.b.eq(nodes.r_data)]
            with m.Default():
                m.d.comb += [
                    alu1.a.eq(alu0.o),
                    alu1.b.eq(Mux(c.source1 == Source1.SCAN, late, operand[1])),
                ]

        outputs = add_tile(m, platform, "outputs", LutRam(width=32, depth=OUTPUTS))
        m.d.comb += [
            outputs.w_en.eq(c.output_write), outputs.w_addr.eq(c.output_at),
            outputs.w_data.eq(alu1.o),
            outputs.r_addr.eq(c.output_from), self.o.eq(outputs.r_data),
        ]
        return m
