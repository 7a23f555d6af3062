"""The functions of the scalar engine: the programs of `isa.functions`, run on whole arrays.

Each step in turn on a block of elements that stays in the cache; every operation is one of
`golden.arith.float32` or a function by table, so nothing is rounded that the steps do not round.
"""

import numpy as np

from golden.arith import float32
from golden.arith.blocks import BLOCK
from golden.arith.float32 import Float32Array
from golden.arith.functions.exponential import exp
from golden.arith.functions.logarithm import log
from golden.arith.functions.reciprocal import reciprocal
from golden.arith.functions.root import rsqrt, sqrt
from isa.fields import Function
from isa.functions import PROGRAMS, SCRATCH, Post, Source, Table

_TABLES = {
    Table.EXP: exp,
    Table.LOG: log,
    Table.SQRT: sqrt,
    Table.RSQRT: rsqrt,
    Table.RECIPROCAL: reciprocal,
}
_SIGN = np.uint32(1 << 31)
_ONE = np.float32(1)
_FLAT: Float32Array = np.zeros((1, 1), np.float32)


def apply(function: Function, z, slope: Float32Array | np.float32 = _FLAT) -> Float32Array:
    """`function` of float32 z, subnormals included; a new array of its shape."""
    return _blockwise(function, z, slope=slope)


def evaluate(
    function: Function, x, scale, bias, slope: Float32Array | np.float32 = _FLAT
) -> Float32Array:
    """function(x * scale + bias), a new array of the shape of `x`.

    All are float32 (else `TypeError`); scale, bias and slope broadcast to the shape of `x`.
    """
    return _blockwise(function, x, scale=scale, bias=bias, slope=slope)


def _blockwise(function, x, **parameters):
    for name, value in (("x", x), *parameters.items()):
        if getattr(value, "dtype", None) != np.float32:
            kind = getattr(value, "dtype", type(value).__name__)
            raise TypeError(f"{name}: float32 expected, not {kind}")
    x = np.asarray(x)
    result = np.empty(x.shape, np.float32)
    rows = x.reshape(-1, x.shape[-1]) if x.size and x.ndim else x.reshape(1, -1)
    into = result.reshape(rows.shape)
    given = {name: _rows(value, x.shape, rows.shape) for name, value in parameters.items()}
    program = PROGRAMS[Function(function)]
    for block in _blocks(*rows.shape):
        part = {name: _part(value, block) for name, value in given.items()}
        z = _argument(rows[block], part)
        into[block] = _run(program, z, part["slope"])
    return result


def _rows(value, shape, rows):
    """A parameter as [1, 1], [rows, 1] or `rows`."""
    value = np.asarray(value)
    if value.size == 1:
        return value.reshape(1, 1)
    if value.shape[-1] == 1:
        return np.ascontiguousarray(np.broadcast_to(value, (*shape[:-1], 1))).reshape(-1, 1)
    return np.ascontiguousarray(np.broadcast_to(value, shape)).reshape(rows)


def _part(value, block):
    if value.size == 1:
        return value
    return value[block] if value.shape[1] > 1 else value[block[0]]


def _blocks(rows, columns):
    """Pairs of slices that cover [rows, columns]."""
    width = max(1, min(columns, BLOCK))
    height = max(1, BLOCK // width)
    for row in range(0, rows, height):
        for column in range(0, columns, width):
            yield slice(row, row + height), slice(column, column + width)


def _argument(x, part):
    """What the first step's product and sum give."""
    if "scale" not in part:
        return float32.canonicalise(x)
    return float32.add(float32.multiply(x, part["scale"]), part["bias"])


def _run(program, z, slope):
    """The steps on one block; z is the first one's sum."""
    scratch: list = [None] * SCRATCH
    s = z
    for number, step in enumerate(program):
        if number:
            s = _sum(step, scratch, slope)
        r = _finish(step, s, scratch, slope)
        if step.to is not None:
            scratch[step.to] = r
    return r


def _sum(step, scratch, slope):
    s = _value(step.a, scratch, slope)
    if step.b.source != Source.NONE:
        s = float32.multiply(s, _value(step.b, scratch, slope))
    if step.c.source != Source.NONE:
        s = float32.add(s, _value(step.c, scratch, slope))
    return s


def _finish(step, s, scratch, slope):
    """Table, post and select."""
    y = s if step.table == Table.NONE else _TABLES[step.table](s)
    ref = scratch[step.ref]
    r = _post(step.post, y, ref)
    if step.select is not None:
        r = np.where(_selected(step.select, ref), _value(step.select.other, scratch, slope), r)
    return r


def _value(operand, scratch, slope):
    if operand.source == Source.CONSTANT:
        value = np.float32(operand.constant)
    elif operand.source == Source.SLOPE:
        value = slope
    else:
        value = scratch[operand.source - Source.R0]
    if operand.absolute:
        value = np.abs(value)
    return np.negative(value) if operand.negate else value


def _post(post, y, ref):
    if post == Post.NONE:
        return y
    if post == Post.RELU:
        return float32.relu(y)
    if post == Post.ABS:
        return np.abs(y)
    nan = np.isnan(y)
    if post == Post.SIGN:
        r = np.where(y == 0, y, np.copysign(_ONE, y))
    elif post == Post.COPY_SIGN:
        r = np.copysign(y, ref)
    else:
        r = (y.view(np.uint32) ^ ((ref.view(np.uint32) << np.uint32(31)) & _SIGN)).view(np.float32)
    return np.where(nan, float32.NAN, r) if nan.any() else r


def _selected(select, ref):
    ref = np.abs(ref) if select.magnitude else ref
    limit = np.float32(select.limit)
    return ref < limit if select.below else ref >= limit
