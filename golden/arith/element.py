"""Definitions of one element, and functions of whole arrays made of them.

`element` marks a function of scalars, to be called by others of its kind; `elementwise` makes of
it one that takes float32 arrays. Both are compiled by numba, without fast-math: no operation is
merged with another, reordered or left out. Compiling happens at the first call and the code is
never kept on disk, where it would outlive a change of what it was made from.

Integers are 64 bits wide, so that a formula stands as in the specification.
"""

from collections.abc import Callable
from functools import wraps

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from golden.arith.blocks import checked


def element(scalar: Callable) -> Callable:
    """Marks a function of scalars."""
    return numba.njit(forceinline=True)(scalar)


def _instruction(build: Callable) -> Callable:
    """Marks what stands for an instruction of the machine, for the compiler of `element`."""
    return intrinsic(build)


@_instruction
def bits(typing, x):
    """The code of float32 `x`, 0 to 2^32 - 1."""

    def build(context, builder, _, arguments):
        code = builder.bitcast(arguments[0], context.get_value_type(types.int32))
        return builder.zext(code, context.get_value_type(types.int64))

    return types.int64(types.float32), build


@_instruction
def number(typing, code):
    """The float32 whose code is the low 32 bits of `code`."""

    def build(context, builder, _, arguments):
        low = builder.trunc(arguments[0], context.get_value_type(types.int32))
        return builder.bitcast(low, context.get_value_type(types.float32))

    return types.float32(types.int64), build


@_instruction
def choose(typing, condition, a, b):
    """a where the condition holds, else b: both are worked out, so that a loop needs no branch."""
    kind = types.float32 if types.float32 in (a, b) else types.int64

    def build(_, builder, __, arguments):
        return builder.select(*arguments)

    return kind(types.boolean, kind, kind), build


def elementwise(scalar: Callable) -> Callable:
    """`scalar` of each element: takes float32 arrays (or scalars), else `TypeError`; broadcasts
    like numpy; returns a new array. The name and docstring are those of `scalar`.
    """
    loop = numba.vectorize(scalar)

    @wraps(scalar)
    def function(*arrays):
        arrays = [checked(array) for array in arrays]
        with np.errstate(all="ignore"):
            return np.asarray(loop(*arrays))

    return function


def unary(scalar: Callable) -> Callable:
    """The same for one argument and a `scalar` of any length: it is built into the loop, which
    handles several elements at once.
    """
    inside = element(scalar)

    @numba.njit
    def loop(x, into):
        for i in range(x.size):
            into[i] = inside(x[i])

    @wraps(scalar)
    def function(x):
        x = np.ascontiguousarray(checked(x)).reshape(np.shape(x))
        result = np.empty(x.shape, np.float32)
        loop(x.reshape(-1), result.reshape(-1))
        return result

    return function
