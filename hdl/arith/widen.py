"""Elements of every dtype to FP32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import BIAS, EXPONENT, EXPONENT_ONES, FRACTION, SIGN
from hdl.arith.pipeline import PipelinedUnit, bind
from hdl.arith.shift import leading_zeros, shift_left
from isa.dtypes import DType

_NAN = 0x7FC00000
_INFINITY = 0x7F800000
_TF32_PADDING = 13
_ROUNDED = 8
"""Bits of a normalised integer below the 24 of a significand."""
# Of the short floats with a path of their own: bits of exponent and fraction, bias.
_SHORT = {
    DType.FP16: (5, 10, 15),
    DType.FP8_E5M2: (5, 2, 15),
    DType.FP8_E4M3: (4, 3, 7),
    DType.FP8_E3M4: (3, 4, 3),
    DType.FP8_E4M3FN: (4, 3, 7),
}


class Widen(PipelinedUnit):
    """o = the FP32 value of an element. One result a cycle, latency `stages`.

    Floats are exact, subnormals included; FP32 and BF16 keep the codes of NaNs, those of the other
    formats become 7FC00000. The low 13 bits of TF32 count only in telling NaN from infinity.
    Integers round to the nearest FP32, ties to even. Where `raw` is 1, o = i. Equals
    `golden.access.load` and `load_words`.

    An integer, and FP16 and FP8 but infinity and NaN, is an integer of at most 32 bits times a
    power of 2, which is normalised and rounded. Segments: take apart, count the zeros | shift |
    round, with a register behind each of them at 3 stages.

    Formats: every `isa.dtypes.DType` in, binary32 out. Sources: IEEE 754-2019, 3.4 and 5.4.1
    (convertFromInt); OCP 8-bit floating point specification 1.0 (e4m3fn).

    Parameters
    ----------
    stages, enable : int, bool
        See `PipelinedUnit`.

    Members
    -------
    i : In(32)
        The element, a signed integer extended by its sign, all others with zeros.
    dtype : In(4)
        Code of `isa.dtypes.DType`.
    raw : In(1)
        Both travel with i.
    en : In(1), only with `enable`
    o : Out(32)
    """

    PLACEMENT = ((), ("output",), ("count", "output"), ("count", "shift", "output"))

    def __init__(self, *, stages=0, enable=False):
        members = {"i": In(32), "dtype": In(4), "raw": In(1), "o": Out(32)}
        super().__init__(members, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        i, dtype = self.i, self.dtype
        integer = dtype[3]
        number, scale, sign, special, nan = self._short_float(m)
        negative = bind(m, "negative", i[SIGN] & ~dtype[0])
        magnitude = bind(m, "magnitude", (Mux(negative, ~i, i) + negative)[: len(i)])
        whole = bind(m, "whole", Mux(integer, magnitude, number))

        # What needs no arithmetic: bits that move, infinity and NaN.
        is_fp32, is_bf16, is_tf32 = (
            bind(m, f"is_{d.text}", dtype == d) for d in (DType.FP32, DType.BF16, DType.TF32)
        )
        lost = (i[EXPONENT] == EXPONENT_ONES) & i[FRACTION].any()
        canonical = bind(m, "canonical", Mux(is_tf32, lost, nan))
        infinity = Cat(Const(_INFINITY, 31), sign)
        kept = Mux(
            is_tf32,
            Cat(Const(0, _TF32_PADDING), i[_TF32_PADDING:]),
            Mux(is_bf16, Cat(Const(0, 16), i[:16]), infinity),
        )
        moved = Mux(self.raw | is_fp32, i, Mux(canonical, _NAN, kept))
        direct = self.raw | is_fp32 | is_bf16 | is_tf32 | (special & ~integer)
        s = self.cut(
            m,
            "count",
            word=Mux(bind(m, "direct", direct), moved, whole),
            zeros=leading_zeros(m, "zeros", whole),
            scale=Mux(integer, BIAS + 31, scale),
            sign=Mux(integer, negative, sign),
            direct=direct,
        )

        zero = bind(m, "zero", s.zeros[-1])
        amount = s.zeros[:-1] & (~s.direct).replicate(5)
        s = self.cut(
            m,
            "shift",
            word=shift_left(m, "normalised", s.word, bind(m, "amount", amount)),
            # One less, for the leading one of the significand is added to the exponent.
            exponent=(s.scale - s.zeros - 1)[:8] & (~zero).replicate(8),
            sign=s.sign,
            direct=s.direct,
        )

        odd, half, below = s.word[_ROUNDED], s.word[_ROUNDED - 1], s.word[: _ROUNDED - 1].any()
        up = bind(m, "up", half & (odd | below))
        packed = bind(
            m, "packed", Cat(Const(0, FRACTION.stop), s.exponent) + s.word[_ROUNDED:] + up
        )
        o = Mux(s.direct, s.word, Cat(packed[:SIGN], s.sign))
        m.d.comb += self.o.eq(self.cut(m, "output", o=o).o)
        return m

    def _short_float(self, m):
        """(significand as an integer, exponent field of bit 31, sign, no number, NaN)."""
        i = self.i
        shapes = {
            "number": max(bits for _, bits, _ in _SHORT.values()) + 1,
            "short_scale": 8,
            "short_sign": 1,
            "special": 1,
            "short_nan": 1,
        }
        found = [Signal(width, name=name) for name, width in shapes.items()]
        with m.Switch(self.dtype):
            for dtype, (exponent_bits, fraction_bits, bias) in _SHORT.items():
                exponent = i[fraction_bits : exponent_bits + fraction_bits]
                fraction = i[:fraction_bits]
                normal = exponent.any()
                # e4m3fn has no infinity, and its only NaN has all bits set.
                numbers = fraction.all() if dtype == DType.FP8_E4M3FN else Const(1, 1)
                special = exponent.all() & numbers
                values = (
                    Cat(fraction, normal),
                    Cat(exponent[0] | ~normal, exponent[1:]) + (BIAS + 31 - bias - fraction_bits),
                    i[exponent_bits + fraction_bits],
                    special,
                    special & fraction.any(),
                )
                with m.Case(dtype):
                    m.d.comb += [s.eq(value) for s, value in zip(found, values, strict=True)]
        return found
