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
"""

from dataclasses import dataclass, field
from enum import IntEnum

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
    """The number `value`, exactly representable in FP32."""
    return Operand(Source.CONSTANT, value)


R0, R1, R2, R3 = (Operand(source) for source in (Source.R0, Source.R1, Source.R2, Source.R3))
SLOPE = Operand(Source.SLOPE)
ONE = constant(1.0)


def first(**rest):
    """The first step: s = src0 * scale + bias."""
    return Step(Operand(Source.X), Operand(Source.SCALE), Operand(Source.BIAS), **rest)


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
        Step(R0, SLOPE, select=Select(0.0, R0, below=False)),
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
        Step(R1, R2, post=Post.COPY_SIGN, select=Select(2.0**-11, R0, magnitude=True)),
    ),
}
"""Function: its steps."""
