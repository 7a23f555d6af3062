"""FP32 multiplier: the IEEE product, flushed to signed zero when it is subnormal."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib.wiring import In, Out

from hdl.arith.fp32 import (
    BIAS,
    EXPONENT,
    EXPONENT_ONES,
    FRACTION,
    MAGNITUDE,
    SIGN,
    pack_special,
)
from hdl.arith.pipeline import PipelinedUnit, bind
from hdl.arith.shift import leading_zeros, shift_left


class Fp32Mul(PipelinedUnit):
    """o = a * b. One result a cycle, latency `stages`.

    Subnormal operands count in full. The product is rounded as IEEE binary32 rounds, gradual
    underflow included, and only then replaced by zero of its sign if it is below 2^-126. Equals
    `golden.arith.float32.multiply` bit for bit.

    Segments: unpack | normalise | multiply | select | round, with a register behind each of them
    at 5 stages; further stages stand behind the multiplier.

    Formats: binary32. Source: IEEE 754-2019, 5.4.1, rounded to nearest, ties to even (4.3.1); the
    flush is docs/numerics.md's.

    Members
    -------
    a, b : In(32)
        binary32 operands; any code.
    en : In(1), only with `enable`
    o : Out(32)
        The product.
    """

    PLACEMENT = (
        (),
        ("multiply",),
        ("normalise", "multiply"),
        ("normalise", "multiply", "select"),
        ("unpack", "normalise", "multiply", "select"),
        ("unpack", "normalise", "multiply", "select", "output"),
    )
    SURPLUS = "multiply"

    def __init__(self, *, stages=0, enable=False):
        super().__init__({"a": In(32), "b": In(32), "o": Out(32)}, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()

        # Unpack: a product of two subnormals is flushed, so at most one operand has to be
        # normalised. It is called x.
        swap = bind(m, "swap", ~self.b[EXPONENT].any())
        s = self.cut(
            m,
            "unpack",
            x=Mux(swap, self.b[MAGNITUDE], self.a[MAGNITUDE]),
            y=Mux(swap, self.a[MAGNITUDE], self.b[MAGNITUDE]),
            sign=self.a[SIGN] ^ self.b[SIGN],
        )

        # Normalise.
        x_normal = bind(m, "x_normal", s.x[EXPONENT].any())
        y_normal = bind(m, "y_normal", s.y[EXPONENT].any())
        x_fraction = bind(m, "x_fraction", Cat(s.x[FRACTION], x_normal))
        zeros = leading_zeros(m, "zeros", x_fraction)
        x_high = bind(m, "x_high", s.x[EXPONENT] == EXPONENT_ONES)
        y_high = bind(m, "y_high", s.y[EXPONENT] == EXPONENT_ONES)
        x_some = bind(m, "x_some", s.x[FRACTION].any())
        y_some = bind(m, "y_some", s.y[FRACTION].any())
        zero = bind(m, "zero", (~x_normal & ~x_some) | (~y_normal & ~y_some))
        exponent_sum = bind(m, "exponent_sum", s.x[EXPONENT] + s.y[EXPONENT] + ~x_normal)
        s = self.cut(
            m,
            "normalise",
            x=shift_left(m, "normal", x_fraction, zeros[:5]),
            # y is subnormal only if x is; then the exponent is below every normal one already.
            y=Cat(s.y[FRACTION], y_normal),
            exponent=_signed(exponent_sum - zeros - BIAS),
            zero=zero,
            infinite=x_high | y_high,
            nan=(x_high & x_some) | (y_high & y_some) | ((x_high | y_high) & zero),
            sign=s.sign,
        )

        s = self.cut(
            m,
            "multiply",
            product=s.x * s.y,
            exponent=s.exponent,
            zero=s.zero,
            infinite=s.infinite,
            nan=s.nan,
            sign=s.sign,
        )

        # Select: the product of two significands is in [1, 4).
        high = bind(m, "high", s.product[47])
        significand = bind(m, "significand", Mux(high, s.product[24:48], s.product[23:47]))
        guard = bind(m, "guard", Mux(high, s.product[23], s.product[22]))
        sticky = bind(m, "sticky", s.product[:22].any() | (high & s.product[22]))
        exponent = bind(m, "exponent", _signed(s.exponent + high))
        # Just below 2^-126 IEEE rounding has one bit less: there 24 ones round up to 2^-126,
        # whatever follows them.
        border = bind(m, "border", (exponent == 0) & significand.all())
        s = self.cut(
            m,
            "select",
            fraction=significand[:23],
            round_up=(guard & (sticky | significand[0])) | border,
            exponent=exponent,
            zero=s.zero,
            infinite=s.infinite,
            nan=s.nan,
            sign=s.sign,
        )

        # Round: a carry out of the fraction steps the exponent.
        rounded = bind(m, "rounded", (Cat(s.fraction, s.exponent) + s.round_up)[:33])
        final = bind(m, "final", rounded[23:33].as_signed())
        keep = bind(m, "keep", ~(s.zero | (final <= 0)))
        result = pack_special(
            sign=s.sign,
            exponent=Mux(keep, final[:8], 0),
            fraction=Mux(keep, rounded[FRACTION], 0),
            nan=s.nan,
            infinite=s.infinite | (keep & (final >= EXPONENT_ONES)),
        )
        m.d.comb += self.o.eq(self.cut(m, "output", o=result).o)
        return m


def _signed(value):
    """A biased exponent of a product, -148 to 383, as 10 signed bits."""
    return value[:10].as_signed()
