"""The functions of the scalar engine: the programs of `isa.functions`, run on whole arrays.

A program is written out as one scalar function and compiled: `text` shows it. Every operation in it
is one of `golden.arith.float32` or a function by table, so nothing is rounded that the steps do not
round.
"""

from functools import cache

import numpy as np

from golden.arith.element import bits, choose, element, elementwise, number, unary
from golden.arith.float32 import NAN, Float32Array, add, canonical, canonicalise, multiply, product
from golden.arith.functions.exponential import exponential
from golden.arith.functions.logarithm import natural_logarithm
from golden.arith.functions.reciprocal import inverse
from golden.arith.functions.root import inverse_root, root
from isa.fields import Function
from isa.functions import PROGRAMS, Post, Source, Step, Table

_TABLES = {
    Table.EXP: exponential,
    Table.LOG: natural_logarithm,
    Table.SQRT: root,
    Table.RSQRT: inverse_root,
    Table.RECIPROCAL: inverse,
}
_ZERO, _ONE = np.float32(0), np.float32(1)


def apply(function: Function, z, slope: Float32Array | np.float32 = _ZERO) -> Float32Array:
    """`function` of float32 z, subnormals included; a new array of its shape.

    slope: float32 that broadcasts to that shape. `TypeError` for other types.
    """
    compiled, sloped = _compiled(PROGRAMS[Function(function)])
    z = canonicalise(z)
    return compiled(z, slope) if sloped else compiled(z)


def evaluate(
    function: Function, x, scale, bias, slope: Float32Array | np.float32 = _ZERO
) -> Float32Array:
    """function(x * scale + bias), a new array of the shape of `x`.

    All are float32 (else `TypeError`); scale, bias and slope broadcast to the shape of `x`.
    """
    for name, value in (("x", x), ("scale", scale), ("bias", bias), ("slope", slope)):
        if getattr(value, "dtype", None) != np.float32:
            kind = getattr(value, "dtype", type(value).__name__)
            raise TypeError(f"{name}: float32 expected, not {kind}")
    compiled, sloped = _compiled(PROGRAMS[Function(function)])
    z = add(multiply(x, scale), bias)
    return compiled(z, slope) if sloped else compiled(z)


def text(program: tuple[Step, ...]) -> tuple[str, dict]:
    """(Python of the scalar function, the names it uses): z is the first step's sum."""
    names: dict = {"product": product, "canonical": canonical, "choose": choose}
    lines = []
    for place, step in enumerate(program):
        s = _sum(step, names) if place else "z"
        if step.table != Table.NONE:
            s = _call(_TABLES[step.table], names, s)
        if step.post != Post.NONE:
            ref = [f"r{step.ref}"] if step.post in _WITH_REF else []
            s = _call(_POSTS[step.post], names, s, *ref)
        to = "r" if step.to is None else f"r{step.to}"
        if step.select is not None:
            lines.append(f"s = {s}")
            s = _selected(step, names)
        lines.append(f"{to} = {s}")
    parameters = "z, slope" if any("slope" in line for line in lines) else "z"
    body = "".join(f"    {line}\n" for line in lines)
    return f"def function({parameters}):\n{body}    return r\n", names


@cache
def _compiled(program):
    """(The function of arrays z or z, slope; whether it takes a slope)."""
    source, names = text(program)
    exec(source, names)
    sloped = "slope" in source
    return (elementwise if sloped else unary)(names["function"]), sloped


def _sum(step, names):
    s = _value(step.a, names)
    if step.b.source != Source.NONE:
        s = f"canonical(product({s}, {_value(step.b, names)}))"
    if step.c.source != Source.NONE:
        s = f"canonical({s} + {_value(step.c, names)})"
    return s


def _value(operand, names):
    if operand.source == Source.CONSTANT:
        value = _constant(operand.constant, names)
    elif operand.source == Source.SLOPE:
        value = "slope"
    else:
        value = f"r{operand.source - Source.R0}"
    if operand.absolute:
        value = f"abs({value})"
    return f"(-{value})" if operand.negate else value


def _constant(value, names):
    """The name of a float32 constant."""
    name = f"k{len(names)}"
    names[name] = np.float32(value)
    return name


def _call(scalar, names, *arguments):
    name = scalar.__name__
    names[name] = scalar
    return f"{name}({', '.join(arguments)})"


def _selected(step, names):
    select = step.select
    ref = f"abs(r{step.ref})" if select.magnitude else f"r{step.ref}"
    other, limit = _value(select.other, names), _constant(select.limit, names)
    return f"choose({ref} {'<' if select.below else '>='} {limit}, {other}, s)"


@element
def _relu(y):
    return choose(y <= 0, _ZERO, y)


@element
def _absolute(y):
    return abs(y)


@element
def _sign(y):
    return choose((y == 0) | (y != y), y, np.copysign(_ONE, y))


@element
def _copy_sign(y, ref):
    return choose(y == y, np.copysign(y, ref), NAN)


@element
def _flip_odd(y, ref):
    return choose(y == y, number(bits(y) ^ ((bits(ref) & 1) << 31)), NAN)


_POSTS = {
    Post.RELU: _relu,
    Post.ABS: _absolute,
    Post.SIGN: _sign,
    Post.COPY_SIGN: _copy_sign,
    Post.FLIP_ODD: _flip_odd,
}
_WITH_REF = {Post.COPY_SIGN, Post.FLIP_ODD}
