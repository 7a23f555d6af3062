"""One lane of the scalar engine: the datapath of a step, scratch registers, output buffer."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.arith.fp32 import EXPONENT, EXPONENT_ONES, FRACTION, MAGNITUDE, NAN_BITS, SIGN
from hdl.arith.fp32_add import Fp32Add
from hdl.arith.fp32_mul import Fp32Mul
from hdl.arith.pipeline import bind
from hdl.arith.table_function import TableFunction
from hdl.lib.delay import DelayLine
from hdl.lib.ram import LutRam
from hdl.lib.select import select_value
from hdl.lib.tile import add_tile
from hdl.scalar.step import OPERANDS, OperandWord, Pick, SelectWord
from isa.functions import SCRATCH, Post, Table

BATCH = 32
"""Elements that a function of several steps works on together."""
PLACES = 32
"""Results that may be on their way or wait for the writer."""
TABLE_STAGES = 2
"""Stages of the table unit for each stage of the multiplier."""
_BATCH_BITS, _PLACE_BITS = exact_log2(BATCH), exact_log2(PLACES)
_ONE_MAGNITUDE = 0x3F800000


class LaneTiming:
    """Cycles from launch to each part of a lane with `stages` in multiplier and adder.

    product, total, function: the result of multiplier, adder and table is there.  result: what the
    step gives can be written.
    """

    def __init__(self, stages):
        if not 1 <= stages <= 6:
            raise ValueError(f"a scalar lane has 1 to 6 stages, not {stages}")
        self.table_stages = TABLE_STAGES * stages
        self.product = 1 + stages
        self.total = 1 + 2 * stages
        self.function = self.total + self.table_stages
        self.result = self.function + 1


class PostControl(data.Struct):
    """What happens to the result of the table."""

    post: Post
    raw: 1


class ScalarControl(data.Struct):
    """Control of all lanes in a cycle.

    From `operand` on it goes with an element that is launched; below, each field acts where its
    part of the lane is (`LaneTiming`).
    """

    # Scale and bias of the next instruction, and their way into use.
    load_immediate: 1
    load: 2
    advance: 1
    # Launch.
    operand: data.ArrayLayout(OperandWord, len(OPERANDS))
    value: data.ArrayLayout(32, len(OPERANDS))
    ref: range(SCRATCH)
    element: _BATCH_BITS
    # One cycle later.
    select: SelectWord
    flips: 1
    # Behind multiplier, adder, table.
    multiply: 1
    add: 1
    table: Table
    finish: PostControl
    # At the end.
    scratch_write: SCRATCH
    scratch_at: _BATCH_BITS
    output_write: 1
    output_at: _PLACE_BITS
    output_from: _PLACE_BITS


class ScalarLane(wiring.Component):
    """r = post(table(a * b + c)), or `other` where the step selects it: a step of a function
    (`isa.functions.Step`) on an element. The first step of each is a * b + c = src0 * scale + bias.

    A tile; never stalls. Product and sum are each rounded to FP32, a product below 2^-126 is zero
    of its sign. A step a cycle, whose result can be written `LaneTiming.result` = 2 + 2 * stages +
    `TABLE_STAGES` * stages cycles after its launch: a function of n steps gives one result in n
    cycles.

    Formats: binary32. Sources: those of `Fp32Mul`, `Fp32Add` and `TableFunction`; what the
    functions are composed of stands in `isa.functions`.

    Parameters
    ----------
    stages : int
        Of multiplier and adder each; the table has `TABLE_STAGES` times as many.

    Members
    -------
    control : In(ScalarControl)
    immediate : In(32)
        Loaded instead of `src` while `control.load_immediate`.
    src : In(32)
        An element or a column.
    o : Out(32)
        The buffered result at `control.output_from`.
    """

    def __init__(self, *, stages):
        self.stages, self.timing = stages, LaneTiming(stages)
        self.tile_parameters = (stages,)
        super().__init__({
            "control": In(ScalarControl), "immediate": In(32), "src": In(32), "o": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        c, time = self.control, self.timing

        # Scale and bias: `coming` is filled while the previous instruction runs.
        coming = [Signal(32, name=f"coming{i}", reset_less=True) for i in range(2)]
        column = [Signal(32, name=f"column{i}", reset_less=True) for i in range(2)]
        loaded = bind(m, "loaded", Mux(c.load_immediate, self.immediate, self.src))
        for i in range(2):
            with m.If(c.load[i]):
                m.d.sync += coming[i].eq(loaded)
            with m.If(c.advance):
                m.d.sync += column[i].eq(coming[i])

        # Launch: operands and ref into registers.
        result = Signal(32, reset_less=True)
        scratch = []
        for i in range(SCRATCH):
            ram = add_tile(m, platform, f"scratch{i}", LutRam(width=32, depth=BATCH))
            m.d.comb += [
                ram.w_en.eq(c.scratch_write[i]), ram.w_addr.eq(c.scratch_at),
                ram.w_data.eq(result), ram.r_addr.eq(c.element),
            ]
            scratch.append(ram.r_data)
        entered = {}
        for i, (name, given) in enumerate(zip(OPERANDS, (self.src, *column, C(0, 32)),
                                              strict=True)):
            entered[name] = Signal(32, name=f"entered_{name}", reset_less=True)
            m.d.sync += entered[name].eq(_operand(m, name, c.operand[i], given, c.value[i],
                                                  scratch))
        ref = Signal(32, reset_less=True)
        m.d.sync += ref.eq(select_value(c.ref, scratch))

        # One cycle later: all that `post` and `select` need of ref is two bits.
        taken = bind(m, "taken", _selected(m, c.select, ref))
        flag = bind(m, "flag", Mux(c.flips, ref[0], ref[SIGN]))

        def late(name, value, cycles):
            line = add_tile(m, platform, name, DelayLine(width=len(value), cycles=cycles))
            m.d.comb += line.i.eq(value)
            return line.o

        m.submodules.multiply = multiply = Fp32Mul(stages=self.stages)
        m.submodules.add = add = Fp32Add(stages=self.stages)
        m.submodules.table = table = TableFunction(stages=time.table_stages)
        aside = late("aside", entered["a"], self.stages)
        product = bind(m, "product", Mux(c.multiply, multiply.o, aside))
        alone = late("alone", product, self.stages)
        m.d.comb += [
            multiply.a.eq(entered["a"]), multiply.b.eq(entered["b"]),
            add.a.eq(product), add.b.eq(late("addend", entered["c"], self.stages)),
            table.i.eq(Mux(c.add, add.o, alone)), table.table.eq(c.table),
        ]
        beside = bind(m, "beside", late("beside_ref", Cat(entered["other"], taken, flag),
                                        time.function - 1))
        other, taken, flag = beside[:32], beside[32], beside[33]
        changed = Mux(taken, other, _post(m, c.finish.post, table.o, flag))
        changed = bind(m, "changed", changed)
        nan = bind(m, "nan", ~c.finish.raw & _is_nan(changed))
        m.d.sync += result.eq(Mux(nan, C(NAN_BITS, 32), changed))

        outputs = add_tile(m, platform, "outputs", LutRam(width=32, depth=PLACES))
        m.d.comb += [
            outputs.w_en.eq(c.output_write), outputs.w_addr.eq(c.output_at),
            outputs.w_data.eq(result),
            outputs.r_addr.eq(c.output_from), self.o.eq(outputs.r_data),
        ]
        return m


def _operand(m, name, word, given, value, scratch):
    """The operand `word` of the element at launch."""
    pick = word.pick.as_value()
    register = select_value(pick[:2], scratch)
    direct = Mux(word.pick == Pick.VALUE, value, given)
    found = bind(m, f"picked_{name}", Mux(pick[2], register, direct))
    return Cat(found[MAGNITUDE], (found[SIGN] & ~word.absolute) ^ word.negate)


def _selected(m, select, ref):
    """1 where `select` replaces the result. Numbers are compared: -0 equals +0."""
    limit = select.limit
    zero = bind(m, "ref_zero", ~ref[MAGNITUDE].any())
    negative = bind(m, "ref_negative", ref[SIGN] & ~select.magnitude & ~zero)
    smaller = bind(m, "ref_smaller", ref[MAGNITUDE] < limit[MAGNITUDE])
    larger = bind(m, "ref_larger", ref[MAGNITUDE] > limit[MAGNITUDE])
    below = bind(m, "ref_below", Mux(limit[SIGN], negative & larger, negative | smaller))
    return select.used & ~_is_nan(ref) & ~(below ^ select.below)


def _post(m, post, y, flag):
    """`isa.functions.Post`; a NaN may change its sign."""
    some = bind(m, "y_some", y[MAGNITUDE].any())
    nan = bind(m, "y_nan", _is_nan(y))
    sign, magnitude = y[SIGN], y[MAGNITUDE]
    kept = bind(m, "y_kept", ~((post == Post.RELU) & sign & ~nan))
    unit = bind(m, "y_unit", (post == Post.SIGN) & some & ~nan)
    copied = Mux(post == Post.COPY_SIGN, flag, sign ^ ((post == Post.FLIP_ODD) & flag))
    signed = copied & kept & (post != Post.ABS)
    return Cat(Mux(unit, C(_ONE_MAGNITUDE, 31), magnitude & kept.replicate(31)), signed)


def _is_nan(x):
    return (x[EXPONENT] == EXPONENT_ONES) & x[FRACTION].any()
