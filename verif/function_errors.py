"""Errors of the scalar engine's functions against float64: worst ulp, BF16 results, lost results.

An error in ulp is |found - exact| / 2^(floor(log2 |exact|) - F), F the fraction bits of the format,
over all inputs whose exact result is a normal number. One that is tiny (below 2^-100) and became
zero is not counted there but as `lost`. A result below 2^-126 must come out within 2^-126 of it.
"""

from dataclasses import dataclass

import numpy as np

from golden.arith import bfloat16, convert
from golden.arith.formats import Format
from golden.arith.functions.program import apply
from isa.fields import Function
from verif.function_reference import SLOPE, reference

TINY = 2.0**-126
_LOST_BELOW = 2.0**-100
_EXPONENT_BITS, _BIAS64 = 52, 1023
_TOP = {23: 2.0**128 * (1 - 2.0**-25), 7: 2.0**128 * (1 - 2.0**-9)}
"""What rounds to infinity, by fraction bits."""


@dataclass
class Errors:
    """worst: ulp, at: the input; absolute: worst |found - exact| where |exact| < 1; lost: results
    that became zero, lost_below: the largest of them; wrong: results that are not the nearest
    number; inputs: how many were looked at.
    """

    worst: float = 0.0
    at: float = 0.0
    absolute: float = 0.0
    absolute_at: float = 0.0
    lost: int = 0
    lost_below: float = 0.0
    wrong: int = 0
    inputs: int = 0

    def join(self, other):
        """The errors over both sets of inputs."""
        if other.worst > self.worst:
            self.worst, self.at = other.worst, other.at
        if other.absolute > self.absolute:
            self.absolute, self.absolute_at = other.absolute, other.absolute_at
        self.lost += other.lost
        self.lost_below = max(self.lost_below, other.lost_below)
        self.wrong += other.wrong
        self.inputs += other.inputs
        return self


def fp32(function: Function, x, found=None) -> Errors:
    """Errors of FP32 results at float32 x. AssertionError for NaN, infinity or a number where
    there should be something else.
    """
    if found is None:
        found = apply(function, x, np.float32(SLOPE))
    return _errors(x, found.astype(np.float64), reference(function, x), 23)


def bf16(function: Function) -> Errors:
    """Errors of results narrowed to BF16, at all 65 536 BF16 inputs."""
    x = bfloat16.widen(np.arange(1 << 16, dtype=np.uint16))
    codes = bfloat16.narrow(apply(function, x, np.float32(SLOPE)))
    return _errors(x, bfloat16.widen(codes).astype(np.float64), reference(function, x), 7)


def every_number(form: Format):
    """float32 values of all codes of a format of at most 16 bits."""
    return convert.widen(np.arange(1 << form.bits, dtype=form.dtype), form)


def nearest(exact, form: Format):
    """The numbers of `form` nearest to float64 ones, ties to even, as float64.

    Gradual underflow; what rounds beyond the largest number is infinity, or NaN without one.
    """
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(exact)[1] - 1, form.min_exponent)
        ulp = np.ldexp(1.0, exponent - form.fraction_bits)
        rounded = np.rint(exact / ulp) * ulp
    beyond = np.copysign(np.inf if form.has_inf else np.nan, rounded)
    return np.where(np.abs(rounded) > form.max_finite, beyond, rounded)


def not_nearest(function: Function, form: Format, found=None):
    """(How many results in `form`, of all codes of `form`, are another number than the nearest; the
    worst distance of a finite result from the exact one, in ulp of `form`).

    found: the float32 results at `every_number`, from the golden model unless given. They are
    narrowed to nearest. The sign of a zero counts where the exact result has one.
    """
    x = every_number(form)
    if found is None:
        found = apply(function, x, np.float32(SLOPE))
    found = convert.widen(convert.narrow(found, form), form).astype(np.float64)
    exact = reference(function, x)
    best = nearest(exact, form)
    wrong = (found != best) & ~(np.isnan(found) & np.isnan(best))
    wrong |= (exact != 0) & ~np.isnan(best) & (np.signbit(found) != np.signbit(best))
    finite = np.isfinite(found) & np.isfinite(best)
    exponent = np.maximum(np.frexp(exact[finite])[1] - 1, form.min_exponent)
    distance = np.abs(found[finite] - exact[finite])
    return int(wrong.sum()), float(np.ldexp(distance, form.fraction_bits - exponent).max())


def _errors(x, found, exact, fraction_bits):
    nan = np.isnan(exact)
    size = np.abs(exact)
    infinite = size >= _TOP[fraction_bits]
    _require(np.isnan(found) == nan, x, found, exact, "NaN in the wrong place")
    # A result next to the largest number may round to infinity and the other way round.
    sure = size >= _TOP[fraction_bits] * (1 + 2.0**-20)
    _require(
        np.isinf(found[sure]) & (found[sure] == np.copysign(np.inf, exact[sure])),
        x[sure],
        found[sure],
        exact[sure],
        "not infinite",
    )
    small = size < TINY
    with np.errstate(all="ignore"):
        distance = np.abs(found - exact)
    _require(distance[small] <= TINY, x[small], found[small], exact[small], "not small")
    normal = ~(nan | infinite | small)
    lost = normal & (found == 0) & (size < _LOST_BELOW)
    kept = normal & ~lost
    errors = Errors(
        inputs=x.size, lost=int(lost.sum()), lost_below=float(size[lost].max(initial=0))
    )
    if not kept.any():
        return errors
    x, distance, size = x[kept], distance[kept], size[kept]
    exponent = (size.view(np.int64) >> _EXPONENT_BITS) - _BIAS64
    ulp = distance * ((fraction_bits - exponent + _BIAS64) << _EXPONENT_BITS).view(np.float64)
    worst = int(np.argmax(ulp))
    errors.worst, errors.at = float(ulp[worst]), float(x[worst])
    errors.wrong = int((ulp > 0.5).sum()) + errors.lost
    inner = np.where(size < 1, distance, 0)
    worst = int(np.argmax(inner))
    errors.absolute, errors.absolute_at = float(inner[worst]), float(x[worst])
    return errors


def _require(good, x, found, exact, what):
    if not good.all():
        i = int(np.argmin(good))
        raise AssertionError(
            f"{what}: at {float(x[i])!r} found {float(found[i])!r}, exact {float(exact[i])!r}"
        )


_EDGES = (
    *(2.0**-13, 2.0**-11, 0.125, 0.6875, 1.0, 2.0, 2.5, 3.92, 9.44, 13.1, 16.0, 20.0, 44.36),
    *(63.0, 87.33655, 88.72284, 91.85, 127.5, 128.0, 2.0**15, 2.0**16, 98304.0, 2.0**126),
    *(0.7517915, 1.2784645, 2.0787, 1.5957691),
)
"""Where a function changes its ways, or crosses zero."""
NEAR = 512


def sample(count, seed=0):
    """Float32 inputs: `count` / 2 evenly over all codes, `count` / 4 uniform and normal where
    functions are curved, 262,140 next to multiples of pi / 2, and `NEAR` codes to each side of
    every edge.
    """
    random = np.random.default_rng(seed)
    quarter = count // 4
    codes = np.arange(random.integers(1000), 1 << 32, (1 << 32) // (2 * quarter), dtype=np.int64)
    edges = np.array(_EDGES, np.float32).view(np.uint32).astype(np.int64)
    near = (edges[:, None] + np.arange(-NEAR, NEAR + 1)).ravel()
    near = np.concatenate([near, near + (1 << 31)])
    angles = np.arange(1, 1 << 16) * (np.pi / 2)
    numbers = np.concatenate(
        [
            random.uniform(-100, 100, quarter // 2),
            random.normal(0, 3, quarter // 2),
            *(
                np.nextafter(np.float32(sign * angles), np.float32(to))
                for sign in (1, -1)
                for to in (-np.inf, np.inf)
            ),
        ]
    ).astype(np.float32)
    return np.concatenate(
        [np.concatenate([codes, near]).astype(np.uint32).view(np.float32), numbers]
    )
