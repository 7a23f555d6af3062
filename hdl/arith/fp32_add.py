"""FP32 adder: IEEE binary32, round to nearest even, gradual underflow, canonical NaN."""

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import EXPONENT, EXPONENT_ONES, FRACTION, MAGNITUDE, SIGN, pack_special
from hdl.arith.pipeline import PipelinedUnit, bind
from hdl.arith.shift import leading_zeros, shift_left, shift_right_sticky

_BEYOND = 5  # Width of the shift amounts: both significands fit into 32 bits.


class Fp32Add(PipelinedUnit):
    """o = a + b, or a - b where `negate_b` is 1. One result a cycle, latency `stages`.

    Segments: swap | align | add | count leading zeros | normalise | round, with a register behind
    each of them at 6 stages. Equals `golden.arith.float32.add` and `subtract` bit for bit.

    Formats: binary32. Source: IEEE 754-2019, 5.4.1, rounded to nearest, ties to even (4.3.1).

    Parameters
    ----------
    stages, enable : int, bool
        See `PipelinedUnit`.
    subtract : bool
        Adds the input `negate_b`.

    Members
    -------
    a, b : In(32)
        binary32 operands; any code.
    negate_b : In(1), only with `subtract`
        Subtract instead of add; travels with a and b.
    en : In(1), only with `enable`
    o : Out(32)
        The sum.
    """

    PLACEMENT = (
        (),
        ("add",),
        ("align", "count"),
        ("swap", "add", "normalise"),
        ("swap", "align", "add", "normalise"),
        ("swap", "align", "add", "count", "normalise"),
        ("swap", "align", "add", "count", "normalise", "output"),
    )

    def __init__(self, *, stages=0, enable=False, subtract=False):
        self.subtract = subtract
        members = {"a": In(32), "b": In(32), "o": Out(32)}
        if subtract:
            members["negate_b"] = In(1)
        super().__init__(members, stages=stages, enable=enable)

    @property
    def tile_parameters(self):
        return (*super().tile_parameters, int(self.subtract))

    def elaborate(self, platform):
        m = Module()

        # Swap: order by magnitude, so that the difference below never is negative.
        sign_b = bind(m, "sign_b", self.b[SIGN] ^ self.negate_b if self.subtract else self.b[SIGN])
        swap = bind(m, "swap", self.a[MAGNITUDE] < self.b[MAGNITUDE])
        s = self.cut(
            m,
            "swap",
            large=Mux(swap, self.b[MAGNITUDE], self.a[MAGNITUDE]),
            small=Mux(swap, self.a[MAGNITUDE], self.b[MAGNITUDE]),
            sign=Mux(swap, sign_b, self.a[SIGN]),
            differ=self.a[SIGN] ^ sign_b,
        )

        # Align: the small significand with guard, round and sticky bits.
        large_normal, large_exponent = _exponent(m, "large", s.large)
        small_normal, small_exponent = _exponent(m, "small", s.small)
        distance = bind(m, "distance", (large_exponent - small_exponent)[:8])
        # Beyond 31 nothing but the sticky bit is left, as at 31.
        far = bind(m, "far", distance[_BEYOND:].any())
        amount = bind(m, "amount", distance[:_BEYOND] | far.replicate(_BEYOND))
        small = bind(m, "small_significand", Cat(Const(0, 2), s.small[FRACTION], small_normal))
        aligned, sticky = shift_right_sticky(m, "align", small, amount)
        infinite = bind(m, "infinite", s.large[EXPONENT] == EXPONENT_ONES)
        # The larger magnitude is a NaN if either operand is one.
        opposite = bind(m, "opposite", s.differ & (s.small[EXPONENT] == EXPONENT_ONES))
        s = self.cut(
            m,
            "align",
            large=Cat(s.large[FRACTION], large_normal),
            small=Cat(sticky, aligned),
            exponent=large_exponent,
            sign=s.sign,
            differ=s.differ,
            infinite=infinite,
            nan=infinite & (s.large[FRACTION].any() | opposite),
        )

        # Add: one carry chain; a one on both sides below the operands carries in.
        left = Cat(s.differ, Const(0, 3), s.large)
        right = Cat(s.differ, Cat(s.small, Const(0, 1)) ^ s.differ.replicate(28))
        s = self.cut(
            m,
            "add",
            total=(left + right)[1:29],
            exponent=s.exponent,
            sign=s.sign,
            differ=s.differ,
            infinite=s.infinite,
            nan=s.nan,
        )

        # Count: the shift stops at the exponent of the subnormals.
        zeros = leading_zeros(m, "zeros", s.total)
        zero = bind(m, "zero", zeros[-1])
        subnormal = bind(m, "subnormal", zeros > s.exponent)
        s = self.cut(
            m,
            "count",
            total=s.total,
            amount=Mux(subnormal, s.exponent[:_BEYOND], zeros[:_BEYOND]),
            # Total has its leading one above the point of an operand, hence the one.
            exponent=Mux(subnormal | zero, 0, (s.exponent - zeros + 1)[:8]),
            # Exact cancellation gives +0, and equal signs give their sign, zeros included.
            sign=s.sign & ~(zero & s.differ),
            infinite=s.infinite,
            nan=s.nan,
        )

        # Normalise.
        normal = shift_left(m, "normalise", s.total, s.amount)
        s = self.cut(
            m,
            "normalise",
            fraction=normal[4:27],
            guard=normal[3],
            sticky=normal[:3].any(),
            exponent=s.exponent,
            sign=s.sign,
            infinite=s.infinite,
            nan=s.nan,
        )

        # Round: a carry out of the fraction steps the exponent, up to infinity.
        round_up = bind(m, "round_up", s.guard & (s.sticky | s.fraction[0]))
        rounded = bind(m, "rounded", (Cat(s.fraction, s.exponent) + round_up)[:31])
        overflow = bind(m, "overflow", rounded[EXPONENT] == EXPONENT_ONES)
        result = pack_special(
            sign=s.sign,
            exponent=rounded[EXPONENT],
            fraction=rounded[FRACTION],
            nan=s.nan,
            infinite=s.infinite | overflow,
        )
        m.d.comb += self.o.eq(self.cut(m, "output", o=result).o)
        return m


def _exponent(m, name, magnitude):
    """(has the hidden one, biased exponent of the significand: 1 for subnormals)."""
    exponent = magnitude[EXPONENT]
    normal = bind(m, f"{name}_normal", exponent.any())
    return normal, bind(m, f"{name}_exponent", Cat(exponent[0] | ~normal, exponent[1:]))
