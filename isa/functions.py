"""Functions of the scalar engine, each a short program of steps: the definition of its results.

A step works on one element and its four scratch registers R0..R3:

    t = a * b                 (b NONE: t = a)
    s = t + c                 (c NONE: s = t)
    y = table(s)              (NONE: y = s)
    r = post(y)
    r = other where select    (see `Select`)

each arithmetic operation rounded to FP32 like any other of the chip, and r goes to a scratch
register or, in the last step, is the result.  The first step of every function begins with
a = X, b = SCALE, c = BIAS: s = src0 * scale + bias.  All later steps read scratch registers and
constants only.  A function of n steps gives one result every n cycles.

What each function is good for stands in docs/functions.md.
"""

import math
from dataclasses import dataclass, field
from enum import IntEnum

from isa import coefficients
from isa.fields import Function

SCRATCH = 4


class Source(IntEnum):
    """Where an operand of a step comes from.  X, SCALE and BIAS in the first step only; SLOPE is
    imm2; CONSTANT is the constant of that operand in this step.
    """

    NONE = 0
    X = 1
    SCALE = 2
    BIAS = 3
    SLOPE = 4
    CONSTANT = 5
    R0 = 8
    R1 = 9
    R2 = 10
    R3 = 11


class Table(IntEnum):
    """Function by table in a step (`golden.arith.functions`)."""

    NONE = 0
    EXP = 1
    LOG = 2
    SQRT = 3
    RSQRT = 4
    RECIPROCAL = 5


class Post(IntEnum):
    """What is done to y.  NaN stays NaN in all of them.

    RELU: max(y, +0).  ABS: sign cleared.  SIGN: 1 or -1 with the sign of y, +-0 as it is.
    COPY_SIGN: y with the sign of ref.  FLIP_ODD: -y where the lowest bit of ref's word is 1.
    """

    NONE = 0
    RELU = 1
    ABS = 2
    SIGN = 3
    COPY_SIGN = 4
    FLIP_ODD = 5


@dataclass(frozen=True)
class Operand:
    """A source; the value is taken absolute first, then negated.  NaN codes may be anything."""

    source: Source = Source.NONE
    constant: float = 0.0
    absolute: bool = False
    negate: bool = False

    def __neg__(self):
        return Operand(self.source, self.constant, self.absolute, not self.negate)

    def __abs__(self):
        return Operand(self.source, self.constant, True, False)


@dataclass(frozen=True)
class Select:
    """r = `other` where ref (magnitude: |ref|) < limit, for `below`, or >= limit, else; never where
    ref is NaN.
    """

    limit: float
    other: Operand
    magnitude: bool = False
    below: bool = True


@dataclass(frozen=True)
class Step:
    """One step.  to: scratch register 0..3, None: the result.  ref: scratch register that `post`
    and `select` look at.  Constants are FP32 numbers.
    """

    a: Operand
    b: Operand = field(default_factory=Operand)
    c: Operand = field(default_factory=Operand)
    table: Table = Table.NONE
    post: Post = Post.NONE
    ref: int = 0
    select: Select | None = None
    to: int | None = None


def constant(value):
    """The number `value`, exactly representable in FP32; NaN is the canonical one."""
    return Operand(Source.CONSTANT, value)


def below(limit, other):
    """Select: `other` where ref < limit."""
    return Select(limit, other)


def from_on(limit, other):
    """Select: `other` where ref >= limit."""
    return Select(limit, other, below=False)


def small(limit, other):
    """Select: `other` where |ref| < limit."""
    return Select(limit, other, magnitude=True)


def large(limit, other):
    """Select: `other` where |ref| >= limit."""
    return Select(limit, other, magnitude=True, below=False)


R0, R1, R2, R3 = (Operand(source) for source in (Source.R0, Source.R1, Source.R2, Source.R3))
SLOPE = Operand(Source.SLOPE)
ONE = constant(1.0)


def first(**rest):
    """The first step: s = src0 * scale + bias."""
    return Step(Operand(Source.X), Operand(Source.SCALE), Operand(Source.BIAS), **rest)


def horner(coefficients, place, to):
    """Steps that leave in register `to` the polynomial in register `place`: one less than there
    are coefficients.
    """
    *rest, last = coefficients
    value = constant(last)
    for coefficient in reversed(rest):
        yield Step(place, value, constant(coefficient), to=to)
        value = Operand(Source(Source.R0 + to))


INVERSE_PI, HALF_PI = constant(coefficients.INVERSE_PI), constant(coefficients.HALF_PI)
TWO, HALF = constant(2.0), constant(0.5)
PLACE = constant(coefficients.PLACE)
GELU_TANH_LINEAR = constant(coefficients.GELU_TANH_LINEAR)
GELU_TANH_CUBIC = constant(coefficients.GELU_TANH_CUBIC)
MAGIC = 1.5 * 2.0**23
"""x + MAGIC is the nearest integer to x, in the low bits of the word."""
LARGEST_ANGLE = 3.0 * 2.0**15
"""sin and cos are NaN from here on: z / pi has 15 bits."""
ZERO, MINUS_ZERO, NAN = constant(0.0), constant(-0.0), constant(math.nan)

# R2 = Phi(-|z|) e^(z^2 / 2), R3 = e^(-z^2 / 2)
_NORMAL_TAIL = (
    first(to=0),
    Step(abs(R0), c=PLACE, table=Table.RECIPROCAL, to=1),
    *horner(coefficients.TAIL, R1, to=2),
    Step(R0, constant(-0.5), to=3),
    Step(R0, R3, table=Table.EXP, to=3),
)


def _sine(pi):
    """R0 = r = R0 - R2 pi, R3 = sin(r) / r - 1, +0 where it is nothing; sin(r) (-1)^R1."""
    return (
        *(Step(R2, constant(-part), R0, to=0) for part in pi),
        Step(R0, R0, to=2),
        *horner(coefficients.SINE, R2, to=3),
        Step(R3, R2, select=small(2.0**-13, ZERO), to=3),
        Step(R3, R0, R0, post=Post.FLIP_ODD, ref=1),
    )


PROGRAMS = {
    Function.COPY: (first(),),
    Function.RELU: (first(post=Post.RELU),),
    Function.EXP: (first(table=Table.EXP),),
    Function.LOG: (first(table=Table.LOG),),
    Function.SQRT: (first(table=Table.SQRT),),
    Function.RSQRT: (first(table=Table.RSQRT),),
    Function.RECIPROCAL: (first(table=Table.RECIPROCAL),),
    Function.ABS: (first(post=Post.ABS),),
    Function.SIGN: (first(post=Post.SIGN),),
    Function.SQUARE: (first(to=0), Step(R0, R0)),
    Function.PRELU: (
        first(to=0),
        Step(R0, SLOPE, select=from_on(0.0, R0)),
    ),
    # 1 / (1 + e^-z)
    Function.SIGMOID: (
        first(to=0),
        Step(-R0, table=Table.EXP, to=1),
        Step(R1, c=ONE, table=Table.RECIPROCAL),
    ),
    # (1 - e) / (1 + e) with e = e^(-2|z|) and the sign of z; z itself where |z| < 2^-11
    Function.TANH: (
        first(to=0),
        Step(abs(R0), constant(-2.0), table=Table.EXP, to=1),
        Step(R1, c=ONE, table=Table.RECIPROCAL, to=2),
        Step(-R1, c=ONE, to=1),
        Step(R1, R2, post=Post.COPY_SIGN, select=small(2.0**-11, R0)),
    ),
    # z Phi(z) = max(z, 0) - |z| Phi(-|z|)
    Function.GELU: (
        *_NORMAL_TAIL,
        Step(-abs(R0), R2, to=2),
        Step(R2, R3, select=large(16.0, MINUS_ZERO), to=2),
        Step(R2, c=R0, select=below(0.0, R2)),
    ),
    # D = Phi(-|z|) - |z| phi(z) where z < 0, else 1 - D
    Function.GELU_DERIVATIVE: (
        *_NORMAL_TAIL,
        Step(abs(R0), constant(-coefficients.DENSITY), R2, to=2),
        Step(R2, R3, select=large(16.0, MINUS_ZERO), to=2),
        Step(-R2, c=ONE, select=below(0.0, R2)),
    ),
    # z / (1 + e^-u), u = 2 sqrt(2 / pi) (z + 0.044715 z^3)
    Function.GELU_TANH: (
        first(to=0),
        Step(R0, R0, to=1),
        Step(R1, GELU_TANH_CUBIC, GELU_TANH_LINEAR, to=1),
        Step(-R1, R0, table=Table.EXP, to=1),
        Step(R1, c=ONE, table=Table.RECIPROCAL, to=1),
        Step(R0, R1, select=below(-16.0, MINUS_ZERO)),
    ),
    # z / (1 + e^-z)
    Function.SILU: (
        first(to=0),
        Step(-R0, table=Table.EXP, to=1),
        Step(R1, c=ONE, table=Table.RECIPROCAL, to=1),
        Step(R0, R1, select=below(-128.0, MINUS_ZERO)),
    ),
    # D = e u (1 - |z| u), e = e^-|z|, u = 1 / (1 + e), where z < 0, else 1 - D
    Function.SILU_DERIVATIVE: (
        first(to=0),
        Step(-abs(R0), table=Table.EXP, to=1),
        Step(R1, c=ONE, table=Table.RECIPROCAL, to=2),
        Step(R1, R2, to=1),
        Step(-abs(R0), R2, ONE, to=2),
        Step(R1, R2, select=large(128.0, MINUS_ZERO), to=1),
        Step(-R1, c=ONE, select=below(0.0, R1)),
    ),
    # max(z, 0) + log(1 + e), e = e^-|z|
    Function.SOFTPLUS: (
        first(to=0),
        Step(-abs(R0), table=Table.EXP, to=1),
        Step(R1, c=ONE, table=Table.LOG, to=2),
        *horner(coefficients.LOG1P, R1, to=3),
        Step(R3, R1, ref=1, select=from_on(0.125, R2), to=3),
        Step(R3, c=R0, select=below(0.0, R3)),
    ),
    # z n / (n + 2), n = e^z (e^z + 2)
    Function.MISH: (
        first(to=0),
        Step(R0, table=Table.EXP, to=1),
        Step(R1, c=TWO, to=2),
        Step(R1, R2, to=1),
        Step(R1, c=TWO, table=Table.RECIPROCAL, to=2),
        Step(R0, R1, select=below(-128.0, MINUS_ZERO), to=1),
        Step(R1, R2, select=from_on(20.0, R0)),
    ),
    # 1 - erfc(|z|) with the sign of z; from |z| = 11/16 down z P(z^2)
    Function.ERF: (
        first(to=0),
        Step(abs(R0), c=PLACE, table=Table.RECIPROCAL, to=1),
        *horner(coefficients.ERFC, R1, to=2),
        Step(-R0, R0, table=Table.EXP, to=3),
        Step(-R2, R3, ONE, post=Post.COPY_SIGN, to=1),
        Step(R0, R0, to=2),
        *horner(coefficients.ERF, R2, to=3),
        Step(R3, R0, select=large(0.6875, R1)),
    ),
    # R2 = the integer next to z / pi
    Function.SIN: (
        first(to=0),
        Step(R0, INVERSE_PI, constant(MAGIC), to=1),
        Step(R1, c=constant(-MAGIC), select=large(LARGEST_ANGLE, NAN), to=2),
        *_sine(coefficients.PI_OF_SIN),
    ),
    # sin(z + pi / 2): R2 = the integer next to z / pi + 1/2, less 1/2
    Function.COS: (
        first(to=0),
        Step(R0, INVERSE_PI, HALF, to=1),
        Step(R1, c=constant(MAGIC), select=large(LARGEST_ANGLE, NAN), to=1),
        Step(R1, c=constant(-MAGIC), to=2),
        Step(R2, c=-HALF, to=2),
        *_sine(coefficients.PI_OF_COS),
    ),
    # R3 = arctan(m), m = z or, from |z| = 1 on, 1 / z; there pi / 2 - |R3| with the sign of z
    Function.ARCTAN: (
        first(to=0),
        Step(R0, table=Table.RECIPROCAL, select=small(1.0, R0), to=1),
        Step(R1, R1, to=2),
        *horner(coefficients.ARCTANGENT, R2, to=3),
        Step(R3, R2, select=small(2.0**-13, ZERO), to=3),
        Step(R3, R1, R1, to=3),
        Step(-abs(R3), c=HALF_PI, post=Post.COPY_SIGN, select=small(1.0, R3)),
    ),
}
"""Function: its steps."""
