"""The tensor engine's product of two tiles, and its accumulation into PSUM.

Operands of every format become float32 first, exactly (`operand`); FP32 takes part as a half of 12
significant bits, so that a product of two operands has at most 24 bits and is a float32 unless it
over- or underflows. Each output is a chain: rows 0..K-1 in order, from +0, one flushed product and
one rounded sum a row. The chain of all outputs advances together, one row a step, so that numpy
works on whole M x N planes at about the speed of a bare float32 multiply and add. Matrix products
of numpy itself are never used: their order is not ours.
"""

import numpy as np
from numpy.typing import NDArray

from golden.arith import float32
from golden.arith.blocks import checked, kind
from golden.arith.convert import widen
from golden.arith.formats import FP32, Format
from isa.fields import Part

_HIGH = np.uint32(0xFFFFF000)
_SIGN = np.uint32(0x80000000)
_ABSENT = np.float32(np.inf)


def operand(bits, form: Format, part: Part = Part.FULL) -> NDArray[np.float32]:
    """The float32 numbers that codes of `form` stand for in a product, of the shape of `bits`.

    HIGH: bits & FFFFF000, infinity and NaN as they are. HIGH_FINITE: the same with infinity and NaN
    read as zero. LOW: value - high, infinity and NaN as zero. A zero has the sign of the code.

    Raises `TypeError` when `bits` are not of `form.dtype`, `ValueError` for a part that the format
    does not have: FP32 has all but FULL, every other format FULL alone.
    """
    value = widen(bits, form)
    if (form == FP32) == (part == Part.FULL):
        right = "high, low or high_finite" if form == FP32 else "full"
        raise ValueError(f"part of {form.name} must be {right}, not {Part(part).name.lower()}")
    if part == Part.FULL:
        return value
    # Only numbers are cut: a NaN whose payload lies in the low bits would become an infinity.
    finite = np.isfinite(value)
    number = np.where(finite, value, np.float32(0))
    half = (number.view(np.uint32) & _HIGH).view(np.float32)
    if part == Part.LOW:
        half = number - half
    # The magnitude is that of the half, which has no other sign than the whole.
    half = (np.abs(half).view(np.uint32) | (bits & _SIGN)).view(np.float32)
    return np.where(finite, half, value) if part == Part.HIGH else half


def chain(stationary, moving) -> NDArray[np.float32]:
    """The tile sum_k stationary[k, m] * moving[k, n], float32 of shape [M, N], NaN canonical.

    `stationary` is [K, M] and `moving` [K, N], both as `operand` gives them. Raises `ValueError`
    when the shapes do not agree, `TypeError` for another dtype.
    """
    _check(stationary, moving, 2, "[K, M] and [K, N]")
    accumulator, product = _planes(stationary, moving, 2)
    may_flush = _may_flush(stationary, moving)
    with np.errstate(all="ignore"):
        for k, flush in enumerate(may_flush):
            _multiply(stationary[k], moving[k], flush, product)
            np.add(accumulator, product, out=accumulator)
    # NaN is sticky: one canonicalisation at the end equals one at each step.
    return float32.canonicalise(accumulator)


def chain_double_row(stationary, moving) -> NDArray[np.float32]:
    """The tile whose terms are the rounded sums of two flushed products, p0 + p1, one a row:
    p_i = stationary[k, m, i] * moving[k, n, i].

    `stationary` is [K, M, 2] and `moving` [K, N, 2]; everything else is as in `chain`.
    """
    _check(stationary, moving, 3, "[K, M, 2] and [K, N, 2]")
    accumulator, first, second = _planes(stationary, moving, 3)
    may_flush = _may_flush(stationary, moving)
    with np.errstate(all="ignore"):
        for k, flush in enumerate(may_flush):
            for i, product in enumerate((first, second)):
                _multiply(stationary[k, :, i], moving[k, :, i], flush[i], product)
            np.add(first, second, out=first)
            np.add(accumulator, first, out=accumulator)
    return float32.canonicalise(accumulator)


def transpose(words, moving) -> NDArray[np.float32]:
    """The tile that passes bits: words[k, m], as the code of a float32, is the term of row k where
    moving[k, n] is not zero (NaN is not); elsewhere there is none. With one such row in each column
    n, all words come out as they are.

    `words` is [K, M], unsigned integers of at most 16 bits, `moving` is [K, N] as `operand` gives
    it. Raises what `chain` raises. Codes of 16 bits are subnormal numbers: several terms add up
    like integers.
    """
    if getattr(words, "dtype", None) not in (np.uint8, np.uint16):
        raise TypeError(f"uint8 or uint16 array expected, not {kind(words)}")
    numbers = words.astype(np.uint32).view(np.float32)
    _check(numbers, moving, 2, "[K, M] and [K, N]")
    (accumulator,) = _planes(numbers, moving, 1)
    for row, active in zip(numbers, moving != 0, strict=True):
        np.add(accumulator, row[:, None], out=accumulator, where=active[None, :])
    return accumulator


def accumulate(old, tile) -> NDArray[np.float32]:
    """PSUM accumulation: old + tile, one rounding, canonical NaN."""
    return float32.add(old, tile)


def _check(stationary, moving, ndim, shapes):
    for x in (stationary, moving):
        checked(x)
    a, b = stationary.shape, moving.shape
    if (
        (len(a), len(b)) != (ndim, ndim)
        or a[0] != b[0]
        or (a[2:], b[2:]) != ((2,) * (ndim - 2),) * 2
    ):
        raise ValueError(f"{shapes} expected, not {a} and {b}")


def _planes(stationary, moving, count):
    """`count` planes [M, N] of +0."""
    return [np.zeros((stationary.shape[1], moving.shape[1]), np.float32) for _ in range(count)]


def _multiply(row_a, row_b, flush, product):
    # One product an element; a zero's sign is lost, which no sum that starts at +0 can show
    np.einsum("m,n->mn", row_a, row_b, out=product)
    if flush:
        float32.flush(product)


def _may_flush(stationary, moving):
    """Per row (and half of a double row): whether some product can be below 2^-126.

    The product of the smallest magnitudes decides; of 24-bit numbers it is exact in float64.
    """
    return _smallest(stationary) * _smallest(moving) < float(float32.TINY)


def _smallest(x) -> NDArray[np.float64]:
    """The smallest non-zero magnitude along the columns, infinity where there is none."""
    magnitude = np.abs(x)
    magnitude[~(magnitude > 0)] = _ABSENT
    return np.min(magnitude, axis=1, initial=_ABSENT).astype(np.float64)
