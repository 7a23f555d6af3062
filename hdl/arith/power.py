"""a ** b: log, a product and exp, one after the other through one table function."""

from amaranth.hdl import C, Cat, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import BIAS, EXPONENT, EXPONENT_ONES, FRACTION, MAGNITUDE, NAN_BITS, SIGN
from hdl.arith.fp32_mul import Fp32Mul
from hdl.arith.pipeline import bind
from hdl.arith.shift import leading_zeros
from hdl.arith.table_function import TableFunction
from isa.functions import Table

_TABLE_STAGES = 6
_PRODUCT_STAGES = 3
_EXP_FROM = _TABLE_STAGES + _PRODUCT_STAGES
"""First step in which the product is there."""
POWER_STEPS = _EXP_FROM + _TABLE_STAGES + 1
"""Cycles from the operands to the result, the first and the last included."""
POWER_LAST = 2 * _EXP_FROM + _TABLE_STAGES - 1
"""Last step with the result: behind it there is exp of a product that is not one of a log."""

_ONE = BIAS << 23
_UNIT = BIAS + 23


class Power(wiring.Component):
    """o = a ** b = exp(b log |a|) with a sign, bit for bit `golden.arith.power.power`.

    Nothing is kept between the parts: they are pipelines, and what they see does not change while
    the result is on its way. Takes POWER_STEPS = 16 cycles whatever the operands, and the next
    power may begin in the next cycle: one result in 16 cycles.

    Formats: binary32. Sources: C99, F.9.4.4, which IEEE 754-2019, 9.2.1 (pow) repeats, for the
    special values; log and exp are those of `TableFunction`, the product that of `Fp32Mul`.

    Members
    -------
    a, b : In(32)
        binary32, any code; stable from step 0 on.
    step : In(5)
        0, then one more in each cycle.
    o : Out(32)
        The result, while `step` is in POWER_STEPS - 1 .. POWER_LAST.
    """

    tile_parameters = ()
    latency = 0
    """For streams of vectors whose `step` comes with them."""

    def __init__(self):
        super().__init__({"a": In(32), "b": In(32), "step": In(5), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        a, b = self.a, self.b
        m.submodules.table = table = TableFunction(stages=_TABLE_STAGES)
        m.submodules.product = product = Fp32Mul(stages=_PRODUCT_STAGES)
        magnitude = bind(m, "magnitude", Cat(a[MAGNITUDE], C(0, 1)))
        exp = bind(m, "exp", self.step >= _EXP_FROM)
        m.d.comb += [
            table.i.eq(Mux(exp, product.o, magnitude)),
            table.table.eq(Mux(exp, Table.EXP, Table.LOG)),
            product.a.eq(table.o),
            product.b.eq(b),
        ]

        # The lowest one of b has the weight 2^(exponent + trailing zeros - _UNIT).
        trailing = leading_zeros(m, "trailing", Cat(C(1, 1), b[FRACTION][::-1]))
        lowest = bind(m, "lowest", b[EXPONENT] + trailing[:5])
        whole, odd = bind(m, "whole", lowest >= _UNIT), bind(m, "odd", lowest == _UNIT)

        a_some, b_some = (bind(m, f"{n}_some", x[FRACTION].any()) for n, x in (("a", a), ("b", b)))
        a_ones, b_ones = (
            bind(m, f"{n}_ones", x[EXPONENT] == EXPONENT_ONES) for n, x in (("a", a), ("b", b))
        )
        b_nan = bind(m, "b_nan", b_ones & b_some)
        root = a[SIGN] & ~a_ones & a[MAGNITUDE].any() & ~whole
        nan = bind(m, "nan", (a_ones & a_some) | b_nan | root)
        unit = bind(m, "unit", a[MAGNITUDE] == _ONE)
        always_one = bind(m, "always_one", ~b[MAGNITUDE].any() | (unit & ~a[SIGN]))
        regular = Cat(Mux(unit, C(_ONE, 31), table.o[MAGNITUDE]), a[SIGN] & odd)
        m.d.comb += self.o.eq(Mux(always_one, C(_ONE, 32), Mux(nan, C(NAN_BITS, 32), regular)))
        return m
