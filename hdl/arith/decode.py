"""Every floating-point format of the tensor engine to the decoded operand of its array."""

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from hdl.arith.operand import SIGNIFICAND_BITS, Operand
from hdl.arith.pipeline import PipelinedUnit, bind
from hdl.arith.shift import leading_zeros, shift_left
from isa.fields import Part

_WORD = 32
_FRACTION_BITS = SIGNIFICAND_BITS - 1
_LOW_BELOW = 12
"""The low half of an FP32 significand begins this many bits below its first bit."""


class OperandFormat(enum.Enum, shape=4):
    """What a raw value is. The low three bits are those of `isa.dtypes.DType`.

    FP32 takes part in a product as two halves of 12 significant bits, high = bits & FFFFF000 and
    low = value - high, in four passes. Infinity and NaN count in the pass high * high alone: they
    are read as zero by FP32_LOW and, for the two mixed passes, by FP32_HIGH_FINITE. RAW is no
    number: 16 bits that pass through the array (`hdl.arith.operand`). All other codes are reserved.
    """

    FP32_HIGH = 0
    BF16 = 1
    FP16 = 2
    TF32 = 3
    FP8_E5M2 = 4
    FP8_E4M3 = 5
    FP8_E3M4 = 6
    FP8_E4M3FN = 7
    FP32_HIGH_FINITE = 8
    RAW = 9
    FP32_LOW = 11


def operand_format(dtype, part):
    """The OperandFormat, as plain bits, of a `isa.dtypes.DType` and a `isa.fields.Part`; only FP32
    has a part other than FULL.
    """
    half = Mux(part == Part.LOW, OperandFormat.FP32_LOW.value, OperandFormat.FP32_HIGH_FINITE.value)
    return Mux(part[1], half, dtype)


class FloatDecode(PipelinedUnit):
    """o = the operand with the value of i, exactly; subnormals are normalised.

    TF32 ignores the low 13 bits of its word, except that a NaN whose payload lies there is a NaN.
    e4m3 is IEEE-like (largest 240); e4m3fn has no infinity and one NaN of each sign. A zero keeps
    its sign, and a half that is zero has the sign of the whole. One result a cycle, latency
    `stages`.

    Segments: select the fields | normalise, with a register behind each of them at 2 stages.

    Formats: `OperandFormat` in, `Operand` out. Sources: IEEE 754-2019, 3.4; OCP 8-bit floating
    point specification 1.0 (e4m3fn).

    Parameters
    ----------
    stages, enable : int, bool
        See `PipelinedUnit`.
    width : int
        Bits of a raw value: 32, or 16 for an edge without TF32 and FP32.

    Members
    -------
    i : In(width)
        Raw value in the low bits; what lies above the width of the format is ignored.
    format : In(OperandFormat)
        Travels with i.
    en : In(1), only with `enable`
    o : Out(Operand)
    """

    PLACEMENT = ((), ("output",), ("select", "output"))

    def __init__(self, *, stages=0, enable=False, width=_WORD):
        if width not in (16, _WORD):
            raise ValueError(f"width must be 16 or {_WORD}, not {width!r}")
        self.width = width
        members = {"i": In(width), "format": In(OperandFormat), "o": Out(Operand)}
        super().__init__(members, stages=stages, enable=enable)

    @property
    def tile_parameters(self):
        return (*super().tile_parameters, self.width)

    @property
    def tile_combinational(self):
        """Without stages there are no clock ports."""
        return self.stages == 0

    def elaborate(self, platform):
        m = Module()
        i = Cat(self.i, Const(0, _WORD - self.width))
        code = self.format.as_value()
        byte = bind(m, "byte", code[2])
        # Raw bits take the way of the low half, which begins at bit 0 too.
        low = bind(m, "low", code[3] & code[0])
        raw = bind(m, "raw", low & ~code[1])
        no_inf = bind(m, "no_inf", byte & code[1] & code[0])
        # Two multiplexers of four: e5m2, e4m3 and e4m3fn, e3m4, the low half; then the first of
        # them, bf16, fp16, the rest.
        inner = bind(m, "inner", Cat(code[0], low | (code[1] & ~no_inf)))
        word = bind(m, "word", ~byte & ~low)
        outer = bind(m, "outer", Cat(word & (code[0] | ~code[1]), word & (code[1] | ~code[0])))

        def pick(name, e5m2, e4m3, e3m4, low, bf16, fp16, wide):
            first = bind(m, f"{name}_first", _one_of(inner, e5m2, e4m3, e3m4, low))
            return bind(m, name, _one_of(outer, first, bf16, fp16, wide))

        # Fields of every format, in the order of `pick`.
        exponents = [
            _less_one(i[at:end])
            for at, end in ((2, 7), (3, 7), (4, 7), (23, 31), (7, 15), (10, 15), (23, 31))
        ]
        fractions = [
            Cat(Const(0, _FRACTION_BITS - (end - at)), i[at:end])
            for at, end in ((0, 2), (0, 3), (0, 4), (0, 11), (0, 7), (0, 10), (12, 23))
        ]
        exponent = Cat(pick(f"exponent_{k}", *(x[k] for x in exponents)) for k in range(8))
        bits = [pick(f"fraction_{k}", *(x[k] for x in fractions)) for k in range(_FRACTION_BITS)]
        tf32 = bind(m, "tf32", code[0] & code[1] & ~low)
        fraction = bind(m, "fraction", Cat(bits[0] & ~tf32, *bits[1:]))

        # The bits that a short exponent does not have are copies of its top one.
        three = bind(m, "three", byte & code[1] & ~code[0])
        below_five = bind(m, "below_five", byte & (code[0] | code[1]))
        below_eight = bind(m, "below_eight", byte | (outer == 2))
        clear, full = Const(1, 1), Const(1, 1)
        for skip, at, end in ((Const(0, 1), 0, 2), (three, 2, 3), (below_five, 3, 4)):
            clear &= skip | ~exponent[at:end].any()
            full &= skip | exponent[at:end].all()
        subnormal = exponent[7] & clear & (below_eight | ~exponent[4:7].any())
        high = ~exponent[7] & full & (below_eight | exponent[4:7].all())
        subnormal, high = bind(m, "subnormal", subnormal), bind(m, "high", high)
        special = bind(m, "special", high & ~no_inf & ~raw)
        s = self.cut(
            m,
            "select",
            # Infinity and NaN have no hidden one here: so the fraction tells them apart.
            significand=Cat(fraction, ~special & Mux(low, i[_FRACTION_BITS], ~subnormal)),
            sign=_one_of(outer, Mux(low, i[31] & ~raw, i[7]), i[15], i[15], i[31]),
            exponent=exponent,
            raw=raw,
            raw_exponent=i[SIGNIFICAND_BITS:16],
            subnormal=subnormal,
            low=low,
            special=special,
            finite=code[3],
            payload=(outer == 3) & i[: 23 - 10].any(),
            highest=high & no_inf & fraction[-3:].all(),
        )

        zeros = leading_zeros(m, "zeros", s.significand)
        correction = bind(
            m, "correction", (zeros[:4] + Mux(s.low, _LOW_BELOW, 0) - s.subnormal - 1)[:6]
        )
        some = bind(m, "some", ~zeros[-1] | s.payload)
        none = bind(m, "none", zeros[-1] & ~s.raw)
        amount = bind(m, "amount", zeros[:4] & ~s.raw.replicate(4))
        number = s.exponent.as_signed() - correction.as_signed()
        raw_bits = len(s.raw_exponent)
        s = self.cut(
            m,
            "output",
            sign=s.sign,
            exponent=Cat(
                Mux(s.raw, s.raw_exponent, number[:raw_bits]), number[raw_bits:]
            ).as_signed(),
            significand=shift_left(m, "normalise", s.significand, amount),
            raw=s.raw,
            nan=(s.special & ~s.finite & some) | s.highest,
            inf=s.special & ~s.finite & ~some,
            zero=Mux(s.special, s.finite, none),
        )
        m.d.comb += [
            self.o.sign.eq(s.sign),
            self.o.exponent.eq(s.exponent),
            # The top bit of a number is one wherever the significand means anything.
            self.o.significand.eq(
                Cat(s.significand[:_FRACTION_BITS], s.significand[_FRACTION_BITS] | ~s.raw)
            ),
            self.o.nan.eq(s.nan),
            self.o.inf.eq(s.inf),
            self.o.zero.eq(s.zero),
        ]
        return m


def _one_of(select, *values):
    low, high = (Mux(select[0], values[at + 1], values[at]) for at in (0, 2))
    return Mux(select[1], high, low)


def _less_one(exponent):
    """The unbiased exponent less one, 8 signed bits.

    All biases are 2^(n-1) - 1 for n bits of exponent, so this is its top bit inverted, extended.
    """
    return Cat(exponent[:-1], (~exponent[-1]).replicate(9 - len(exponent)))
