"""FP32 comparisons, extrema and logical operators around one comparison of magnitudes."""

from amaranth.hdl import C, Cat, Module, Mux
from amaranth.lib import data, enum
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import BIAS, EXPONENT, EXPONENT_ONES, FRACTION, MAGNITUDE, NAN_BITS, SIGN
from hdl.arith.pipeline import PipelinedUnit, bind

_ONE = BIAS << 23


class CompareKind(enum.Enum, shape=2):
    """EXTREMUM: b where the relation holds, else a; NaN if either is NaN; -0 < +0.  RELATION: 1.0
    where it holds, else 0.0.  LOGIC: likewise, of how many operands are not +-0.
    """

    EXTREMUM = 0
    RELATION = 1
    LOGIC = 2


class CompareOp(data.Struct):
    """less, equal, greater: the relation holds where a is less than b, ...; for LOGIC, where one
    operand is true (less) or both are (equal).  unordered: it holds where one is NaN.  magnitude:
    signs do not count.
    """

    kind: CompareKind
    less: 1
    equal: 1
    greater: 1
    unordered: 1
    magnitude: 1


class Fp32Compare(PipelinedUnit):
    """o = a op b.  One result a cycle, latency `stages` (combinational by default).

    Equals `golden.arith.float32.maximum` and `minimum` and the functions of
    `golden.arith.comparison` bit for bit.

    Formats: binary32; a relation gives 1.0 or 0.0. Source: IEEE 754-2019, 5.6.1 and 5.11 (quiet
    comparisons), 9.6 (maximum, minimum).

    Members
    -------
    a, b : In(32)
        binary32; any code.
    op : In(CompareOp)
    en : In(1), only with `enable`
    o : Out(32)
    """

    def __init__(self, *, stages=0, enable=False):
        members = {"a": In(32), "b": In(32), "op": In(CompareOp), "o": Out(32)}
        super().__init__(members, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        op = self.op
        (a_sign, a_nan, a_true), (b_sign, b_nan, b_true) = (
            _classes(m, name, x, op) for name, x in (("a", self.a), ("b", self.b))
        )
        extremum = bind(m, "extremum", op.kind == CompareKind.EXTREMUM)
        smaller = bind(m, "smaller", self.a[MAGNITUDE] < self.b[MAGNITUDE])
        same = bind(m, "same", self.a[MAGNITUDE] == self.b[MAGNITUDE])
        zeros = bind(m, "zeros", ~a_true & ~b_true)
        differ = bind(m, "differ", a_sign ^ b_sign)
        # Zeros of different signs are ordered for extrema alone.
        equal = bind(m, "equal", Mux(differ, zeros & ~extremum, same))
        less = bind(m, "less", ~equal & Mux(differ, a_sign, smaller ^ a_sign))
        greater = bind(m, "greater", ~equal & ~less)
        nan = bind(m, "nan", a_nan | b_nan)
        holds = bind(
            m,
            "holds",
            Mux(
                nan,
                op.unordered,
                (op.less & less) | (op.equal & equal) | (op.greater & greater),
            ),
        )
        logic = (op.less & (a_true ^ b_true)) | (op.equal & a_true & b_true)
        truth = bind(m, "truth", Mux(op.kind == CompareKind.LOGIC, logic, holds))
        chosen = Mux(holds, Cat(self.b[MAGNITUDE], b_sign), Cat(self.a[MAGNITUDE], a_sign))
        o = Mux(
            extremum,
            Mux(nan, C(NAN_BITS, 32), chosen),
            C(_ONE, 32) & truth.replicate(32),
        )
        m.d.comb += self.o.eq(self.cut(m, "output", o=o).o)
        return m


def _classes(m, name, x, op):
    """(negative, NaN, not zero)."""
    some = bind(m, f"{name}_some", x[FRACTION].any())
    sign = bind(m, f"{name}_sign", x[SIGN] & ~op.magnitude)
    nan = bind(m, f"{name}_nan", (x[EXPONENT] == EXPONENT_ONES) & some)
    return sign, nan, bind(m, f"{name}_true", x[EXPONENT].any() | some)
