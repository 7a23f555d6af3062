"""FP32 to the shorter floating-point formats, to nearest even or stochastically."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import BIAS, EXPONENT, EXPONENT_ONES, FRACTION, SIGN
from hdl.arith.pipeline import PipelinedUnit, bind
from hdl.arith.shift import shift_right_sticky

_SIGNIFICAND_BITS = 24
_AMOUNT_BITS = 6
_TF32_PADDING = 13


class NarrowFormat(enum.Enum, shape=3):
    """The format of a result; codes are those of `isa.dtypes.DType`, 0 is reserved."""

    BF16 = 1
    FP16 = 2
    TF32 = 3
    FP8_E5M2 = 4
    FP8_E4M3 = 5
    FP8_E3M4 = 6
    FP8_E4M3FN = 7


_F = NarrowFormat
# Bits of the fraction, bias, largest finite code, canonical NaN; of TF32 without its padding.
_FACTS = {
    _F.BF16: (7, BIAS, 0x7F7F, 0x7FC0),
    _F.FP16: (10, 15, 0x7BFF, 0x7E00),
    _F.TF32: (10, BIAS, 0x3FBFF, 0x3FE00),
    _F.FP8_E5M2: (2, 15, 0x7B, 0x7E),
    _F.FP8_E4M3: (3, 7, 0x77, 0x7C),
    _F.FP8_E3M4: (4, 3, 0x6F, 0x78),
    _F.FP8_E4M3FN: (3, 7, 0x7E, 0x7F),
}


class FloatNarrow(PipelinedUnit):
    """o = i in `format`, with gradual underflow. One result a cycle, latency `stages`.

    To nearest, ties to even; or, where `stochastic` is 1, |o| = (bits + r) >> n with r the top n
    bits of `random` for the n bits of the significand that are discarded: at least 23 less those
    of the fraction, more for subnormal results. Of n > R = `random_bits` bits, the lowest n - R
    are ignored; so many are discarded only below half the smallest subnormal, at R = 24.

    What rounds beyond the largest finite number, and infinity, becomes infinity, in e4m3fn NaN;
    or the largest finite number where `saturate` is 1. NaN becomes the canonical NaN. Equals
    `golden.arith.convert.narrow`, given `random` in the top R bits of a word and zeros below.

    Segments: place the point | shift | round | replace what is out of range, with a register
    behind each of them at 4 stages.

    Formats: binary32 in; BF16, FP16, TF32 and FP8 e5m2, e4m3, e3m4, e4m3fn out, as
    `golden.arith.formats` describes them. Sources: IEEE 754-2019, 5.4.2 with 4.3.1; OCP 8-bit
    floating point specification 1.0 (e4m3fn, saturation); Connolly, Higham, Mary: Stochastic
    rounding and its probabilistic backward error analysis, SIAM J. Sci. Comput. 43, 2021 (up with
    the probability of what is discarded).

    Parameters
    ----------
    stages, enable : int, bool
        See `PipelinedUnit`.
    random_bits : int
        R, at least 24: all bits that a result other than zero discards, ties included.
    formats : tuple of NarrowFormat
        Those that `format` may have; others give undefined results. BF16 alone needs no shifter.

    Members
    -------
    i : In(32)
        binary32; any code.
    format : In(NarrowFormat)
    stochastic, saturate : In(1)
    random : In(random_bits)
        All inputs travel with i.
    en : In(1), only with `enable`
    o : Out(16), or Out(32) with TF32 among the formats
        The code, with zeros above one of 8 or 16 bits; the low 13 bits of TF32 are zero.
    """

    PLACEMENT = (
        (),
        ("shift",),
        ("shift", "output"),
        ("shift", "round", "output"),
        ("place", "shift", "round", "output"),
    )

    def __init__(self, *, stages=0, enable=False, random_bits=24, formats=tuple(NarrowFormat)):
        if not isinstance(random_bits, int) or not 24 <= random_bits <= 32:
            raise ValueError(f"random_bits must be an integer from 24 to 32, not {random_bits!r}")
        if not formats or not all(isinstance(form, NarrowFormat) for form in formats):
            raise ValueError(f"formats must be some of NarrowFormat, not {formats!r}")
        self.random_bits, self.formats = random_bits, tuple(formats)
        members = {
            "i": In(32),
            "format": In(NarrowFormat, init=NarrowFormat.BF16),
            "stochastic": In(1),
            "saturate": In(1),
            "random": In(random_bits),
            "o": Out(32 if NarrowFormat.TF32 in formats else 16),
        }
        super().__init__(members, stages=stages, enable=enable)

    @property
    def tile_parameters(self):
        formats = sum(1 << form.value for form in set(self.formats))
        return (*super().tile_parameters, self.random_bits, formats)

    def elaborate(self, platform):
        m = Module()
        # A count of steps has the leading one and the longest fraction.
        facts = {form: _FACTS[form] for form in self.formats}
        count_bits = 1 + max(fraction_bits for fraction_bits, *_ in facts.values())
        width = count_bits + self.random_bits

        # Place: steps of the format are counted, so its last bit always gets to the same place;
        # below the smallest normal exponent the step stays, and the number moves further down.
        normal = bind(m, "normal", self.i[EXPONENT].any())
        exponent = Cat(self.i[23] | ~normal, self.i[24:31])
        smallest = _table(m, "smallest", self.format, facts, lambda fact: BIAS + 1 - fact[1])
        offset = _table(m, "offset", self.format, facts, lambda fact: count_bits - 1 - fact[0])
        above = bind(m, "above", exponent - smallest)
        # Nothing is below the smallest exponent of FP32, which is that of BF16.
        short = any(bias != BIAS for _, bias, *_ in facts.values())
        below = bind(m, "below", above[-1] & short)
        amount = bind(m, "amount", offset + Mux(below, -above, 0)[:8])
        # Beyond the last level nothing is left that could count.
        far = bind(m, "far", amount[_AMOUNT_BITS:].any())
        s = self.cut(
            m,
            "place",
            significand=Cat(self.i[FRACTION], normal),
            amount=amount[:_AMOUNT_BITS] | far.replicate(_AMOUNT_BITS),
            exponent=Mux(below, 0, above)[:8],
            nan=(self.i[EXPONENT] == EXPONENT_ONES) & self.i[FRACTION].any(),
            sign=self.i[SIGN],
            format=self.format.as_value(),
            stochastic=self.stochastic,
            saturate=self.saturate,
            random=self.random,
        )

        # Shift. To nearest no bit that falls out matters: all is below half the least step then.
        wide = bind(m, "wide", Cat(Const(0, width - _SIGNIFICAND_BITS), s.significand))
        steps, _ = shift_right_sticky(m, "steps", wide, s.amount)
        s = self.cut(
            m,
            "shift",
            steps=steps,
            exponent=s.exponent,
            nan=s.nan,
            sign=s.sign,
            format=s.format,
            stochastic=s.stochastic,
            saturate=s.saturate,
            random=s.random,
        )

        # Round: one carry chain, with just below a half for even, a half for odd counts of steps.
        odd = bind(m, "odd", s.steps[self.random_bits])
        half = Cat((~odd).replicate(self.random_bits - 1), odd)
        total = bind(m, "total", s.steps + Mux(s.stochastic, s.random, half))
        s = self.cut(
            m,
            "round",
            count=total[self.random_bits :],
            exponent=s.exponent,
            nan=s.nan,
            sign=s.sign,
            format=s.format,
            saturate=s.saturate,
        )

        # The leading one adds one to the exponent field, a carry out of the fraction another.
        form = s.format
        base = Signal(18)
        with m.Switch(form):
            for chosen, (fraction_bits, *_) in facts.items():
                with m.Case(chosen.value):
                    m.d.comb += base.eq(s.exponent << fraction_bits)
        code = bind(m, "code", base + s.count)
        largest = _table(m, "largest", form, facts, lambda fact: fact[2])
        canonical = _table(m, "canonical", form, facts, lambda fact: fact[3])
        beyond = bind(m, "beyond", code > largest)
        lost = beyond & ~s.saturate & (form == _F.FP8_E4M3FN.value)
        nan = bind(m, "nan", s.nan | lost)
        # Infinity, where there is one, is the code that follows.
        magnitude = bind(m, "magnitude", Mux(beyond, largest + ~s.saturate, code)[:18])
        magnitude = bind(m, "magnitude_or_nan", Mux(nan, canonical, magnitude))
        sign = bind(m, "sign", s.sign & ~nan)
        byte = bind(m, "byte", form[2])
        o = Cat(magnitude[:7], Mux(byte, sign, magnitude[7]), magnitude[8:15], sign & ~byte)
        if _F.TF32 in facts:
            word = Cat(Const(0, _TF32_PADDING), magnitude, sign)
            o = Mux(form == _F.TF32.value, word, o)
        m.d.comb += self.o.eq(self.cut(m, "output", o=o).o)
        return m


def _table(m, name, form, facts, fact):
    """A signal with one of the facts of the format, by its code; a constant where all are equal."""
    values = {chosen.value: fact(found) for chosen, found in facts.items()}
    if len(set(values.values())) == 1:
        return Const(*set(values.values()))
    chosen = Signal(range(max(values.values()) + 1), name=name)
    with m.Switch(form):
        for code, value in values.items():
            with m.Case(code):
                m.d.comb += chosen.eq(value)
    return chosen
