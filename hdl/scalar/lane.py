"""One lane of the scalar engine: a product, a sum, a function."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.arith.fp32_add import Fp32Add
from hdl.arith.fp32_minmax import Fp32Relu
from hdl.arith.fp32_mul import Fp32Mul
from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from hdl.vector.window import OUTPUTS

_OUTPUT_BITS = exact_log2(OUTPUTS)


class ScalarControl(data.Struct):
    """Control of all lanes in a cycle.

    Operands (0 scale, 1 bias) first, then what acts on the end of the lane.
    """

    load_immediate: 1
    load: 2
    advance0: 1
    advance1: 1
    relu: 1
    output_write: 1
    output_at: _OUTPUT_BITS
    output_from: _OUTPUT_BITS


class ScalarLane(wiring.Component):
    """A tile: func(src * scale + bias), each step rounded to FP32; never stalls.

    An element is at the end of the lane 2 * `stages` cycles after it entered.

    Members
    -------
    control : In(ScalarControl)
    immediate : In(32)
        Loaded instead of `src` while `control.load_immediate`.
    src : In(32)
        FP32 bits of an element or of a column.
    o : Out(32)
        The buffered result at `control.output_from`.
    """

    def __init__(self, *, stages):
        if not 1 <= stages <= 6:
            raise ValueError(f"a scalar lane has ALUs of 1 to 6 stages, not {stages}")
        self.stages = stages
        self.tile_parameters = (stages,)
        super().__init__({
            "control": In(ScalarControl), "immediate": In(32), "src": In(32), "o": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        c = self.control
        # Operands: `coming` is filled while the previous instruction runs.
        coming = [Signal(32, name=f"coming{i}", reset_less=True) for i in range(2)]
        operand = [Signal(32, name=f"operand{i}", reset_less=True) for i in range(2)]
        loaded = Signal(32)
        m.d.comb += loaded.eq(Mux(c.load_immediate, self.immediate, self.src))
        for i, advance in enumerate((c.advance0, c.advance1)):
            with m.If(c.load[i]):
                m.d.sync += coming[i].eq(loaded)
            with m.If(advance):
                m.d.sync += operand[i].eq(coming[i])

        m.submodules.multiply = multiply = Fp32Mul(stages=self.stages)
        m.submodules.add = add = Fp32Add(stages=self.stages)
        m.submodules.rectify = rectify = Fp32Relu()
        outputs = add_tile(m, platform, "outputs", LutRam(width=32, depth=OUTPUTS))
        m.d.comb += [
            multiply.a.eq(self.src), multiply.b.eq(operand[0]),
            add.a.eq(multiply.o), add.b.eq(operand[1]),
            rectify.i.eq(add.o),
            outputs.w_en.eq(c.output_write), outputs.w_addr.eq(c.output_at),
            outputs.w_data.eq(Mux(c.relu, rectify.o, add.o)),
            outputs.r_addr.eq(c.output_from), self.o.eq(outputs.r_data),
        ]
        return m
