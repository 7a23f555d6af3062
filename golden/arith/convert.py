"""Conversions between FP32 and every other element type.

Widening is exact, subnormals included. Narrowing starts from float32 only, because a cast from
anything wider would round twice. Integers: nearest, ties to even, saturating. NaNs become the
canonical one of the target, and 0 in an integer; there are no flags.
"""

from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from golden.arith.blocks import blockwise, checked, kind
from golden.arith.formats import FP32, Format

INTEGERS = tuple(np.dtype(kind) for kind in ("i1", "u1", "i2", "u2", "i4", "u4"))
RANDOM_BITS = 32

_NAN = np.uint32(FP32.nan)
_INFINITY = np.uint32(FP32.overflow)
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_EXPONENT = np.uint32(0x7F800000)


def widen(bits, form: Format) -> NDArray[np.float32]:
    """The float32 of the same value for codes of type `form.dtype`; each NaN becomes canonical.

    Raises `TypeError` for another dtype.
    """
    return blockwise(partial(_widen, form), checked(bits, form.dtype))


def narrow(x, form: Format, saturate: bool = False, random=None) -> NDArray:
    """Codes of `form.dtype` for float32 numbers, with gradual underflow.

    Nearest, ties to even; or, with `random`, a uint32 array of the shape of `x`, stochastic: with
    d bits of the significand cut off, |code| = (significand + r) >> d where r is the top d bits of
    the random word, aligned with what is cut: exactly f of the 2^d values of r round a discarded
    field f up. Results below the normals cut off more bits; where d is above 32, the d - 32 lowest
    bits of the significand are ignored. In steps of the target at x, for every d,
    |result| = floor((floor(|x| * 2^32) + word) / 2^32).

    What rounds beyond the largest finite number becomes infinity (NaN in a format without one), or
    the largest finite number if `saturate`; so does infinity itself. NaN stays NaN.

    Raises `TypeError` for another dtype, `ValueError` for random words of another shape.
    """
    x = checked(x)
    arrays = [x] if random is None else [x, checked(random, np.uint32)]
    if arrays[-1].shape != x.shape:
        raise ValueError(f"random words of shape {x.shape} expected, not {arrays[-1].shape}")
    return blockwise(partial(_narrow, form, saturate), *arrays, dtype=form.dtype)


def to_integer(x, dtype) -> NDArray:
    """The nearest integer of `dtype`, ties to even; the nearest end beyond its range; NaN is 0.

    Raises `ValueError` unless `dtype` is one of `INTEGERS`.
    """
    dtype = np.dtype(dtype)
    if dtype not in INTEGERS:
        raise ValueError(f"no integer type of the chip: {dtype}")
    return blockwise(partial(_to_integer, dtype), checked(x), dtype=dtype)


def from_integer(x) -> NDArray[np.float32]:
    """The nearest float32, ties to even, of integers of one of `INTEGERS`; else `TypeError`."""
    if getattr(x, "dtype", None) not in INTEGERS:
        raise TypeError(f"8, 16 or 32-bit integers expected, not {kind(x)}")
    return np.asarray(np.asarray(x).astype(np.float32))


def _widen(form, bits):
    if form.bits <= 16:
        return np.take(_values(form), bits, mode="clip")
    # A NaN whose payload lies in the padding alone must not become an infinity.
    nan = (bits & _MAGNITUDE) > _INFINITY
    wide = bits & ~np.uint32((1 << form.padding) - 1)
    np.copyto(wide, _NAN, where=nan)
    return wide.view(np.float32)


@cache
def _values(form):
    """float32 of every code, by the formula of `formats`."""
    code = np.arange(1 << form.bits)
    exponent = (code >> form.fraction_bits) & ((1 << form.exponent_bits) - 1)
    fraction = code & ((1 << form.fraction_bits) - 1)
    significand = np.where(exponent > 0, fraction + (1 << form.fraction_bits), fraction)
    scale = np.maximum(exponent, 1) - form.bias - form.fraction_bits
    value = np.ldexp(significand.astype(np.float64), scale)
    magnitude = code & (form.sign - 1)
    value[magnitude > form.max_code] = np.nan
    if form.has_inf:
        value[magnitude == form.overflow] = np.inf
    value = np.where(code & form.sign, -value, value).astype(np.float32)
    value.view(np.uint32)[magnitude > (form.overflow if form.has_inf else form.max_code)] = _NAN
    value.flags.writeable = False
    return value


def _narrow(form, saturate, x, random=None):
    bits = x.view(np.uint32)
    magnitude = bits & _MAGNITUDE
    if form.bias == FP32.bias:
        code = _cut(magnitude, form, random)
    else:
        code = _rescale(magnitude, form, random)
    # Codes are ordered like their values, so all that is too large is cut to one code.
    limit = form.max_code if saturate else form.overflow
    code = np.minimum(code, np.uint32(limit >> form.padding))
    code |= (bits >> np.uint32(31)) << np.uint32(form.exponent_bits + form.fraction_bits)
    nan = magnitude > _INFINITY
    if not form.has_inf and not saturate:
        nan |= (code & np.uint32(form.overflow)) == form.overflow
    code = (code << np.uint32(form.padding)).astype(form.dtype)
    if nan.any():
        code[nan] = form.nan
    return code


def _cut(magnitude, form, random):
    """Formats with the exponents of FP32: the same number of bits is cut off everywhere.

    Codes of one sign are ordered like their values, so a carry out of the fraction is right at
    the ends of binades, into the normals, and into infinity.
    """
    cut = FP32.fraction_bits - form.fraction_bits
    if not cut:
        return magnitude
    if random is None:
        odd = (magnitude >> np.uint32(cut)) & np.uint32(1)
        rounding = odd + np.uint32((1 << (cut - 1)) - 1)
    else:
        rounding = random >> np.uint32(RANDOM_BITS - cut)
    return (magnitude + rounding) >> np.uint32(cut)


def _rescale(magnitude, form, random):
    """Formats with fewer exponents: count the steps in |x|, which scaling by 2^n leaves exact."""
    # One binade above the largest finite number all is lost alike, and NaNs are seen to elsewhere.
    top = np.uint32((127 + form.min_exponent + (form.overflow >> form.fraction_bits)) << 23)
    magnitude = np.minimum(magnitude, top)
    smallest = np.uint32((127 + form.min_exponent) << 23)
    exponent = np.maximum(magnitude, smallest) & _EXPONENT
    scaling = form.fraction_bits + (0 if random is None else RANDOM_BITS)
    scale = np.uint32((2 * 127 + scaling) << 23) - exponent
    steps = magnitude.view(np.float32) * scale.view(np.float32)
    if random is None:
        count = np.rint(steps).astype(np.int32).view(np.uint32)
    else:
        # Below 2^45, so exact in float64
        total = np.trunc(steps).astype(np.float64)
        total += random
        total *= 2.0**-RANDOM_BITS
        count = total.astype(np.int32).view(np.uint32)
    # A normal counts from 2^F on, the leading one, which adds one to the exponent field.
    return count + ((exponent - smallest) >> np.uint32(23 - form.fraction_bits))


def _to_integer(dtype, x):
    limits = np.iinfo(dtype)
    wide = np.rint(x, dtype=np.float32).astype(np.float64 if dtype.itemsize == 4 else np.float32)
    np.copyto(wide, 0, where=np.isnan(x))
    return np.clip(wide, limits.min, limits.max).astype(np.int64).astype(dtype)
