"""The tensor engine's product of two tiles, and its accumulation into PSUM.

Operands of every format become float32 first, exactly (`operand`); FP32 takes part as a half of 12
significant bits, so that a product of two operands has at most 24 bits and is a float32 unless it
over- or underflows. Each output is a chain: rows 0..K-1 in order, from +0, one flushed product and
one rounded sum a row. Matrix products of numpy are never used: their order is not ours.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from golden.arith import float32
from golden.arith.blocks import checked, kind
from golden.arith.convert import widen
from golden.arith.formats import FP32, Format
from isa.fields import Part

_HIGH = np.uint32(0xFFFFF000)
_SIGN = np.uint32(0x80000000)


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
    return _accumulated(_chain, stationary[..., None], moving[..., None])


def chain_double_row(stationary, moving) -> NDArray[np.float32]:
    """The tile whose terms are the rounded sums of two flushed products, p0 + p1, one a row:
    p_i = stationary[k, m, i] * moving[k, n, i].

    `stationary` is [K, M, 2] and `moving` [K, N, 2]; everything else is as in `chain`.
    """
    _check(stationary, moving, 3, "[K, M, 2] and [K, N, 2]")
    return _accumulated(_chain_double_row, stationary, moving)


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
    accumulator = np.zeros((numbers.shape[1], moving.shape[1]), np.float32)
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


def _accumulated(chain_of, stationary, moving):
    """`chain_of` the planes of `stationary` and `moving`, whose last axis counts them."""
    tile = np.zeros((stationary.shape[1], moving.shape[1]), np.float32)
    planes = [
        np.ascontiguousarray(x[..., i]) for x in (stationary, moving) for i in range(x.shape[2])
    ]
    chain_of(*planes, tile)
    # NaN is sticky: one canonicalisation at the end equals one at each step.
    return float32.canonicalise(tile)


@numba.njit
def _chain(a, b, tile):
    for m in range(tile.shape[0]):
        for k in range(a.shape[0]):
            for n in range(tile.shape[1]):
                tile[m, n] += float32.product(a[k, m], b[k, n])


@numba.njit
def _chain_double_row(a0, a1, b0, b1, tile):
    for m in range(tile.shape[0]):
        for k in range(a0.shape[0]):
            for n in range(tile.shape[1]):
                first = float32.product(a0[k, m], b0[k, n])
                tile[m, n] += first + float32.product(a1[k, m], b1[k, n])
