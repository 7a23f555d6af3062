"""Fp32Add: what holds of sums."""

from amaranth.hdl import C, Cat, Module, Mux

from hdl.arith.fp32 import EXPONENT, EXPONENT_ONES, MAGNITUDE, NAN_BITS, SIGN
from hdl.arith.fp32_add import Fp32Add
from hdl.arith.pipeline import bind
from verif.formal.harness import Harness
from verif.formal.numbers import Faulty, is_nan, is_zero, order, word

_NEGATIVE_ZERO = 1 << SIGN


class _Add(Faulty, Fp32Add):
    pass


def _near_only(unit, values):
    """The smaller operand counts only within a distance of exponents."""
    swap = unit.seen["swap"]
    distance = swap.large[EXPONENT] - swap.small[EXPONENT]
    return {"small": Mux(distance > 3, 0, values["small"])}


_ADD_FAULTS = {
    "sign_of_a": {"swap": lambda unit, _: {"sign": unit.a[SIGN]}},
    "hidden_one": {"align": lambda _, values: {"large": values["large"] | 1 << 23}},
    "cancels_to_sign": {"count": lambda unit, _: {"sign": unit.seen["add"].sign}},
    "no_negative_zero": {
        "count": lambda unit, values: {"sign": values["sign"] & unit.seen["add"].total.any()}
    },
    "rounds_by_sign": {
        "normalise": lambda _, values: {"sticky": values["sticky"] | values["sign"]}
    },
    "near_only": {"align": _near_only},
}


class Addition(Harness):
    """Fp32Add, binary32 in full.  Mutations: `_ADD_FAULTS`."""

    def add(self, m, name, a, b):
        unit = _Add(_ADD_FAULTS.get(self.mutation or ""))
        m.submodules[name] = unit
        m.d.comb += [unit.a.eq(a), unit.b.eq(b)]
        return unit.o


class Sums(Addition):
    """What holds of a sum whatever its operands are."""

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        a, b = word(m, "a"), word(m, "b")
        total = self.add(m, "ab", a, b)
        self.prove(m, "commutes", self.add(m, "ba", b, a) == total)
        self.reach(m, "commutes", (a[EXPONENT] == b[EXPONENT] + 1) & (total[EXPONENT] == 3))

        canonical = bind(m, "canonical", Mux(is_nan(a), NAN_BITS, a))
        self.prove(m, "negative_zero", self.add(m, "a0", a, C(_NEGATIVE_ZERO, 32)) == canonical)
        self.reach(m, "negative_zero", a == _NEGATIVE_ZERO)
        plus_zero = self.add(m, "b0", a, C(0, 32))
        self.prove(m, "positive_zero", plus_zero == Mux(a == _NEGATIVE_ZERO, 0, canonical))
        self.reach(m, "positive_zero", ~a[EXPONENT].any() & ~is_zero(a))

        finite = a[EXPONENT] != EXPONENT_ONES
        opposite = self.add(m, "aa", a, Cat(a[MAGNITUDE], ~a[SIGN]))
        self.prove(m, "cancels", opposite == Mux(finite, 0, NAN_BITS))
        self.reach(m, "cancels", finite & a[SIGN] & a[EXPONENT].any())

        negated = self.add(m, "mirror", a ^ _NEGATIVE_ZERO, b ^ _NEGATIVE_ZERO)
        same = is_nan(total) | is_zero(total)
        self.prove(m, "symmetric", same | (negated == total ^ _NEGATIVE_ZERO))
        self.prove(m, "symmetric", ~is_nan(total) | (negated == NAN_BITS))
        self.reach(m, "symmetric", ~same & (a[SIGN] != b[SIGN]))
        return m


class Monotone(Addition):
    """a <= b implies a + c <= b + c, by steps: b is the number that follows a.

    Every a <= b is a chain of such steps, and each sum of the chain is a number when those of its
    ends are, for only infinity less infinity is none.

    bits: of the fractions of a, b and c; those below are zero.
    """

    def __init__(self, bits, **options):
        super().__init__(**options)
        self.bits = bits

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        below = 23 - self.bits
        a, c = (bind(m, f"whole_{name}", word(m, name, 32 - below) << below) for name in ("a", "c"))
        step = 1 << below
        b = bind(m, "b", Mux(a == _NEGATIVE_ZERO, 0, Mux(a[SIGN], a - step, a + step)[:32]))
        low, high = self.add(m, "ac", a, c), self.add(m, "bc", b, c)
        numbers = bind(m, "numbers", ~(is_nan(a) | is_nan(b) | is_nan(low) | is_nan(high)))
        self.prove(m, "monotone", ~numbers | (order(low, SIGN) <= order(high, SIGN)))
        self.reach(m, "monotone", numbers & (low != high) & (a[SIGN] != c[SIGN]))
        return m
