"""Operators on 32-bit words: bits, shifts, sums, products, extrema and comparisons."""

from amaranth.hdl import C, Cat, Module, Mux
from amaranth.lib import data, enum
from amaranth.lib.wiring import In, Out

from hdl.arith.pipeline import PipelinedUnit, bind

_BITS = 32
_AMOUNT = 5


class IntegerKind(enum.Enum, shape=3):
    """EXTREMUM: b where the relation holds, else a.  RELATION: 1 where it holds, else 0."""

    AND = 0
    OR = 1
    XOR = 2
    SHIFT = 3
    SUM = 4
    PRODUCT = 5
    EXTREMUM = 6
    RELATION = 7


class IntegerOp(data.Struct):
    """swap: b op a.  left, arithmetic: of SHIFT, else right and zeros.  subtract: of SUM; relations
    need it too.  less, equal, greater: the relation holds where a is less than b, ...; unsigned: in
    that order.
    """

    kind: IntegerKind
    swap: 1
    left: 1
    arithmetic: 1
    subtract: 1
    less: 1
    equal: 1
    greater: 1
    unsigned: 1


class IntegerUnit(PipelinedUnit):
    """o = a op b on words.  One result a cycle, latency `stages`.

    Equals the functions of `golden.arith.integer` bit for bit.  Segments: swap | everything |
    choice, with a register behind each of them at 3 stages; further ones stand behind the
    multiplier.

    Formats: words of 32 bits, two's complement or unsigned; sums and products modulo 2^32. Source:
    docs/numerics.md.

    Members
    -------
    a, b : In(32)
    op : In(IntegerOp)
    en : In(1), only with `enable`
    o : Out(32)
    """

    PLACEMENT = ((), ("work",), ("swap", "work"), ("swap", "work", "output"))
    SURPLUS = "work"

    def __init__(self, *, stages=0, enable=False):
        members = {"a": In(32), "b": In(32), "op": In(IntegerOp), "o": Out(32)}
        super().__init__(members, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        s = self.cut(
            m,
            "swap",
            a=Mux(self.op.swap, self.b, self.a),
            b=Mux(self.op.swap, self.a, self.b),
            op=self.op.as_value(),
        )
        a, b = s.a, s.b
        op = data.View(IntegerOp, s.op)

        # One carry chain: the borrow of a difference says which is less.
        total = bind(m, "total", (a + (b ^ op.subtract.replicate(_BITS)) + op.subtract)[:33])
        below = bind(m, "below", ~total[_BITS])
        flip = bind(m, "flip", ~op.unsigned & (a[-1] ^ b[-1]))
        equal = bind(m, "equal", a == b)
        less = bind(m, "less", below ^ flip)
        holds = bind(
            m,
            "holds",
            (op.less & less) | (op.equal & equal) | (op.greater & ~equal & ~less),
        )

        # One shifter to the right, between two reversals for the left.
        far = bind(m, "far", b[_AMOUNT:].any())
        fill = bind(m, "fill", op.arithmetic & a[-1])
        moved = bind(m, "moved", Mux(op.left, a[::-1], a))
        for level in range(_AMOUNT):
            step = 1 << level
            moved = bind(
                m,
                f"moved_by_{step}",
                Mux(b[level], Cat(moved[step:], fill.replicate(step)), moved),
            )
        moved = bind(m, "shifted", Mux(far, fill.replicate(_BITS), moved))

        kinds = {
            IntegerKind.AND: a & b,
            IntegerKind.OR: a | b,
            IntegerKind.XOR: a ^ b,
            IntegerKind.SHIFT: Mux(op.left, moved[::-1], moved),
            IntegerKind.SUM: total[:_BITS],
            IntegerKind.EXTREMUM: Mux(holds, b, a),
            IntegerKind.RELATION: Cat(holds, C(0, _BITS - 1)),
        }
        other = C(0, _BITS)
        for kind, value in kinds.items():
            other = other | (value & (op.kind == kind).replicate(_BITS))
        s = self.cut(
            m,
            "work",
            product=(a * b)[:_BITS],
            other=other,
            multiply=op.kind == IntegerKind.PRODUCT,
        )
        o = Mux(s.multiply, s.product, s.other)
        m.d.comb += self.o.eq(self.cut(m, "output", o=o).o)
        return m
