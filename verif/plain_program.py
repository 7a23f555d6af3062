"""Programs of `isa.functions` for one element, in the plainest way: the oracle of those who run
them on arrays or in hardware. Shares only the functions by table with them.
"""

import math

import numpy as np

from golden.arith.functions.exponential import exp
from golden.arith.functions.logarithm import log
from golden.arith.functions.reciprocal import reciprocal
from golden.arith.functions.root import rsqrt, sqrt
from isa.functions import Post, Source, Table

_TABLES = {
    Table.EXP: exp,
    Table.LOG: log,
    Table.SQRT: sqrt,
    Table.RSQRT: rsqrt,
    Table.RECIPROCAL: reciprocal,
}
_TINY = 2.0**-126
NAN = 0x7FC00000


def run(steps, x, scale=1.0, bias=0.0, slope=0.0):
    """The result, float32, for float32 numbers; NaN is the canonical one."""
    values = {Source.X: x, Source.SCALE: scale, Source.BIAS: bias, Source.SLOPE: slope}
    values = {source: np.float32(value) for source, value in values.items()}
    r = np.float32(0)
    with np.errstate(all="ignore"):
        for step in steps:
            r = _step(step, values)
            if step.to is not None:
                values[Source(Source.R0 + step.to)] = r
    return np.uint32(bits(r)).view(np.float32)


def bits(value):
    """FP32 code of a float32 number, of NaN the canonical one."""
    return NAN if math.isnan(value) else int(np.float32(value).view(np.uint32))


def _step(step, values):
    y = _operand(step.a, values)
    if step.b.source is not Source.NONE:
        y = np.float32(y * _operand(step.b, values))
        if abs(float(y)) < _TINY:
            y = _signed(np.float32(0), y)
    if step.c.source is not Source.NONE:
        y = np.float32(y + _operand(step.c, values))
    if step.table is not Table.NONE:
        y = _TABLES[step.table](np.asarray(y, np.float32))[()]
    ref = values.get(Source(Source.R0 + step.ref))
    if not math.isnan(y):
        y = _post(step.post, y, ref)
    select = step.select
    if select is not None:
        size = abs(float(ref)) if select.magnitude else float(ref)
        if not math.isnan(size) and (size < select.limit) == select.below:
            y = _operand(select.other, values)
    return np.float32(y)


def _operand(operand, values):
    value = values.get(operand.source, np.float32(operand.constant))
    code = int(value.view(np.uint32))
    if operand.absolute:
        code &= 0x7FFFFFFF
    if operand.negate:
        code ^= 0x80000000
    return np.uint32(code).view(np.float32)


def _signed(value, sign):
    return np.float32(math.copysign(value, sign))


def _post(post, y, ref):
    if post is Post.RELU:
        return y if y > 0 else np.float32(0)
    if post is Post.ABS:
        return _signed(y, np.float32(1))
    if post is Post.SIGN:
        return y if y == 0 else _signed(np.float32(1), y)
    if post is Post.COPY_SIGN:
        return _signed(y, ref)
    if post is Post.FLIP_ODD and int(ref.view(np.uint32)) & 1:
        return np.float32(-y)
    return y
