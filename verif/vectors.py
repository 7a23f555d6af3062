"""Operands that break floating-point units, for FP32 and BF16.

Two streams, because each finds what the other misses: the cross product of special exponents and
special significands, and pairs that meet, that is whose exponents lie so close that alignment,
cancellation, rounding or the border of the subnormals comes into play. Uniform codes alone hardly
ever do any of that. Everything is deterministic in the generator that is passed in; arrays are
uint32 (FP32) or uint16 (BF16) codes.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Format:
    """A binary interchange format with 8 exponent bits."""

    fraction_bits: int
    dtype: type

    @property
    def bits(self):
        return self.fraction_bits + 9

    def join(self, sign, exponent, fraction):
        """Codes from fields of any integer dtype; they must be in range."""
        code = (np.asarray(sign, np.int64) << 8 | exponent) << self.fraction_bits | fraction
        return code.astype(self.dtype)


FP32 = Format(23, np.uint32)
BF16 = Format(7, np.uint16)

SPECIAL_EXPONENTS = (
    *(0, 1, 2, 3, 23, 24, 25, 103, 104, 126, 127, 128, 150, 151, 190, 230, 252, 253, 254, 255),
)
_BIAS = 127
_NEAR_ADD = 27
"""Beyond this distance the smaller FP32 operand of a sum is nothing but a sticky bit."""


def special_fractions(form):
    """Zero, all ones, one-hot, all but one, runs of ones from the bottom and from the top."""
    ones = (1 << form.fraction_bits) - 1
    hot = [1 << bit for bit in range(form.fraction_bits)]
    runs = [bit - 1 for bit in hot] + [ones & ~(bit - 1) for bit in hot]
    return np.array(sorted({0, ones, *hot, *(ones ^ bit for bit in hot), *runs}), np.int64)


def specials(form):
    """Every special exponent with every special fraction and both signs."""
    sign, exponent, fraction = np.meshgrid(
        [0, 1], SPECIAL_EXPONENTS, special_fractions(form), indexing="ij"
    )
    return form.join(sign, exponent, fraction).ravel()


def corner_codes(form):
    """Two dozen codes and their negatives: the ends of every range, units, NaNs of both kinds."""
    top = form.fraction_bits
    ones = (1 << top) - 1
    quiet = 1 << (top - 1)
    codes = [
        *(
            form.join(0, exponent, fraction)
            for exponent in (0, 1, 254)
            for fraction in (0, 1, ones)
        ),
        *(form.join(0, _BIAS, fraction) for fraction in (0, 1, ones)),
        *(form.join(0, exponent, 0) for exponent in (2, 63, 64, 126, 128, 190, 255)),
        *(form.join(0, 0, fraction) for fraction in (quiet, ones - 1)),
        *(form.join(0, 255, fraction) for fraction in (1, quiet - 1, quiet, quiet + 1, ones)),
    ]
    positive = np.unique(np.array(codes, form.dtype))
    return np.concatenate([positive, positive | form.dtype(1 << (form.bits - 1))])


def corner_pairs(form):
    """The cross product of the corner codes: every pair of classes, signs and ends of ranges."""
    codes = corner_codes(form)
    a, b = np.meshgrid(codes, codes, indexing="ij")
    return a.ravel(), b.ravel()


def random_codes(form, rng, count):
    """Uniform codes, and special or random exponents with special or random fractions."""
    fractions = special_fractions(form)
    exponent = np.where(
        rng.random(count) < 0.5, rng.choice(SPECIAL_EXPONENTS, count), rng.integers(0, 256, count)
    )
    fraction = np.where(
        rng.random(count) < 0.5,
        rng.choice(fractions, count),
        rng.integers(0, 1 << form.fraction_bits, count),
    )
    return form.join(rng.integers(0, 2, count), exponent, fraction)


def addition_pairs(form, rng, count):
    """Pairs for sums: the corner pairs, unrelated ones, and near ones, in random order."""
    near = count // 2
    a, b = random_codes(form, rng, near), random_codes(form, rng, near)
    exponent = _exponent(form, a) + rng.integers(-_NEAR_ADD, _NEAR_ADD + 1, near)
    b = _with_exponent(form, b, np.clip(exponent, 0, 255))
    # Nearly equal magnitudes: all leading bits cancel, down to the last few.
    close = rng.random(near) < 0.2
    b[close] = a[close] ^ rng.integers(0, 16, int(close.sum()), dtype=form.dtype)
    flip = rng.random(near) < 0.5
    b[flip] ^= form.dtype(1 << (form.bits - 1))
    return _mixed(form, rng, count, (a, b))


def product_pairs(form, rng, count):
    """Pairs for products: the corner pairs, unrelated ones, and ones at the ends of the range.

    Half of the pairs has its product within a few binades of 2^-126 or of overflow; where the
    fraction has the bits for it, a quarter of those lies next to 2^-126 itself.
    """
    near = count // 2
    a, b = random_codes(form, rng, near), random_codes(form, rng, near)
    target = np.where(rng.random(near) < 0.7, 1, 255) + rng.integers(-4, 4, near)
    # The leading one of a subnormal stands as many binades below as its fraction is short.
    ea = _exponent(form, a)
    below = form.fraction_bits - np.floor(np.log2(np.maximum(_fraction(form, a), 1))).astype(int)
    exponent = np.clip(target + _BIAS - np.where(ea == 0, 1 - below, ea), 0, 255)
    b = _with_exponent(form, b, exponent)
    border = np.flatnonzero((rng.random(near) < 0.25) & (ea > 0) & (ea < 255))
    b[border] = _border_partner(form, rng, a[border])
    return _mixed(form, rng, count, (a, b))


def quotient_pairs(form, rng, count):
    """Pairs for quotients: the corner pairs, unrelated ones, and ones at the ends of the range.

    Half of the pairs has its quotient within some binades of 2^-126, of the smallest subnormal or
    of overflow; a third of those is b times a short number, so that it is exact or close to a tie.
    """
    near = count // 2
    a, b = random_codes(form, rng, near), random_codes(form, rng, near)
    short = rng.random(near) < 0.33
    kept = rng.integers(1, form.fraction_bits + 1, near)
    factor = 1 + rng.integers(0, 1 << form.fraction_bits, near) / float(1 << form.fraction_bits)
    factor = np.floor(factor * np.exp2(kept)) / np.exp2(kept)
    significand = 1 + _fraction(form, b) / float(1 << form.fraction_bits)
    product = significand * factor
    product = np.where(product >= 2, product / 2, product)
    fraction = np.rint((product - 1) * (1 << form.fraction_bits)).astype(np.int64)
    fraction = np.clip(fraction + rng.integers(-1, 2, near), 0, (1 << form.fraction_bits) - 1)
    a = np.where(short, form.join(a >> (form.bits - 1), _exponent(form, a), fraction), a)
    target = rng.choice((1, 1 - form.fraction_bits, 255), near) + rng.integers(-4, 5, near)
    exponent = np.clip(_exponent(form, a) + _BIAS - target, 0, 255)
    return _mixed(form, rng, count, (a.astype(form.dtype), _with_exponent(form, b, exponent)))


def power_pairs(rng, count):
    """FP32 pairs for powers: the corner pairs, any, and ones whose power is in the range.

    Of the latter some have a next to +-1, or an integer or half an integer as b.
    """
    near = count // 2
    a = np.exp2(rng.uniform(-149, 128, near))
    close = 1 + rng.uniform(-1, 1, near) * np.exp2(-rng.integers(0, 24, near))
    a = np.where(rng.random(near) < 0.3, close, a).astype(np.float32)
    with np.errstate(all="ignore"):
        b = rng.uniform(-160, 140, near) / np.log2(a.astype(np.float64))
        b = np.where(rng.random(near) < 0.3, np.rint(2 * b) / 2, b)
        b = np.where(rng.random(near) < 0.2, rng.integers(-20, 21, near), b).astype(np.float32)
    a = np.where(rng.random(near) < 0.4, -a, a)
    return _mixed(FP32, rng, count, (a.view(np.uint32), b.view(np.uint32)))


def word_pairs(rng, count):
    """Pairs of words: ends of the signed and unsigned ranges, small ones, equal ones, any."""
    ends = np.array([0, 1, 2, 31, 32, 33, 63, 64, 255, 256, 1 << 16], np.uint32)
    ends = np.concatenate([ends, 0 - ends, ends + np.uint32(1 << 31), (1 << 31) - ends])
    corner = [part.ravel() for part in np.meshgrid(ends, ends)]
    a, b = rng.integers(0, 1 << 32, (2, count), np.uint32)
    kind = rng.integers(0, 6, count)
    b = np.where(kind == 0, rng.integers(0, 40, count), b)
    b = np.where(kind == 1, a + rng.integers(-2, 3, count), b) & 0xFFFFFFFF
    a = np.where(kind == 2, np.uint32(1) << (a & 31), a)
    a = np.where(kind == 3, rng.choice(ends, count), a)
    return tuple(
        np.concatenate([few, many.astype(np.uint32)])[: max(count, len(few))]
        for few, many in zip(corner, (a, b), strict=True)
    )


def _border_partner(form, rng, a):
    """b such that |a * b| is within a few units of 2^-126 (a normal), as far as b's range goes."""
    one = 1 << form.fraction_bits
    significand = one + _fraction(form, a)
    # The significand q with significand * q closest to a power of two, and its neighbours.
    q = (2 * one * one + significand // 2) // significand + rng.integers(-2, 3, len(a))
    carry = q >= 2 * one
    q = np.clip(np.where(carry, 2 * one - 1, q), one, 2 * one - 1)
    exponent = np.clip(_BIAS - _exponent(form, a), 1, 254)
    return form.join(rng.integers(0, 2, len(a)), exponent, q - one)


def _mixed(form, rng, count, near):
    corner = corner_pairs(form)
    rest = max(count - len(corner[0]) - len(near[0]), 0)
    far = random_codes(form, rng, rest), random_codes(form, rng, rest)
    uniform = rng.random(rest) < 0.25
    any_code = rng.integers(0, 1 << form.bits, (2, int(uniform.sum())), dtype=form.dtype)
    far[0][uniform], far[1][uniform] = any_code
    order = rng.permutation(count)
    return tuple(
        np.concatenate(parts)[:count][order] for parts in zip(corner, near, far, strict=True)
    )


def _exponent(form, code):
    return (code.astype(np.int64) >> form.fraction_bits) & 0xFF


def _fraction(form, code):
    return code.astype(np.int64) & ((1 << form.fraction_bits) - 1)


def _with_exponent(form, code, exponent):
    sign = code.astype(np.int64) >> (form.bits - 1)
    return form.join(sign, exponent, _fraction(form, code))
