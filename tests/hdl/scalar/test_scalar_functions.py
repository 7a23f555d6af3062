"""Every BF16, FP16 and FP8 number through every function on the scalar core, and hard FP32
arguments in numbers, against the golden functions.

z is the number itself: scale 1 and bias -0 change nothing but subnormals, which come to z as the
sum of a normal product and a normal bias.
"""

import numpy as np
import pytest

from golden.arith import formats
from golden.arith.functions import program
from isa.fields import Function
from isa.functions import PROGRAMS
from verif.equality import assert_same
from verif.function_errors import every_number, sample
from verif.scalar_bench import PARTITIONS, activation, scalar_bench
from verif.tensor_formats import FP8
from verif.vectors import FP32, random_codes, specials

STAGES = 4
OTHER_STAGES = (1, 2, 3, 5, 6)
ONE, MINUS_ZERO, SMALLEST_NORMAL, MAGNITUDE = 0x3F800000, 0x80000000, 0x00800000, 0x7FFFFFFF
SLOPE = 0x3E99999A
AT_ONCE = 1 << 15
HARD = 4_000_000


def real(codes):
    return np.asarray(codes, np.uint32).view(np.float32)


def beats(codes):
    """uint32 [P, n]; what is missing at the end repeats the first code."""
    short = -len(codes) % PARTITIONS
    return np.concatenate([codes, codes[:1].repeat(short)]).reshape(PARTITIONS, -1)


def short_numbers():
    """Words of all numbers of BF16, FP16 and FP8: 132 096 codes."""
    every = [every_number(form) for form in (formats.BF16, formats.FP16, *FP8)]
    return np.concatenate(every).view(np.uint32)


def ways(z):
    """[(words of src0, bias)] that give each word of `z` once, with scale 1."""
    magnitude = z & MAGNITUDE
    subnormal = (magnitude > 0) & (magnitude < SMALLEST_NORMAL)
    found = [(z[~subnormal], MINUS_ZERO)]
    for sign in (0, MINUS_ZERO):
        # Below 2^-126 a number is its distance from there: z + 2^-126 is exact, and normal.
        chosen = z[subnormal & (z & MINUS_ZERO == sign)]
        found.append((chosen + np.uint32(SMALLEST_NORMAL), SMALLEST_NORMAL | (sign ^ MINUS_ZERO)))
    return [(words, bias) for words, bias in found if len(words)]


def run(stages, works):
    """Results uint32 [P, n] of works (function, words [P, n], scale, bias), without stalls."""
    limit = sum(words.shape[1] * len(PROGRAMS[function]) for function, words, *_ in works)
    return scalar_bench(stages).run(
        [
            activation(function, words, scale=scale, bias=bias, slope=SLOPE)
            for function, words, scale, bias in works
        ],
        cycle_limit=2 * limit + 1000 * len(works),
    )[0]


def assert_every(stages, function, z):
    """The function at each word of z, which arrives as it is."""
    works, given = [], []
    for words, bias in ways(z):
        padded = beats(words)
        works.append((function, padded, ONE, bias))
        shift = SMALLEST_NORMAL if bias != MINUS_ZERO else 0
        given.append(padded - np.uint32(shift))
    assert sum(words.size for words in given) >= z.size
    for result, words in zip(run(stages, works), given, strict=True):
        with np.errstate(all="ignore"):
            want = program.apply(function, real(words), real(SLOPE)).view(np.uint32)
        assert_same(result, want, z=words)


@pytest.mark.parametrize("function", Function)
def test_every_short_number(function):
    assert_every(STAGES, function, short_numbers())


@pytest.mark.nightly
@pytest.mark.parametrize("stages", OTHER_STAGES)
@pytest.mark.parametrize("function", Function)
def test_every_short_number_at_other_stages(function, stages):
    assert_every(stages, function, short_numbers())


def test_short_numbers_are_complete():
    z = short_numbers()
    assert z.size == 2 * 65_536 + 4 * 256
    parts = ways(z)
    assert [(words.size, bias) for words, bias in parts[1:]] == [
        (127, 0x80800000),
        (127, 0x00800000),
    ]
    for words, _ in parts:
        magnitude = words & MAGNITUDE
        assert not ((magnitude > 0) & (magnitude < SMALLEST_NORMAL)).any()
    sums = np.concatenate([real(words) + real(bias) for words, bias in parts]).view(np.uint32)
    assert_same(np.sort(sums), np.sort(z))


def hard(rng, count):
    """Words: evenly over all codes, beside the places where a function changes, at the ends of the
    128 segments of a table, special exponents with special fractions, any.
    """
    quarter = count // 4
    codes = sample(quarter, seed=int(rng.integers(1 << 30))).view(np.uint32)
    segment = rng.integers(0, 1 << 16, quarter) << 16
    beside = (segment + rng.integers(-3, 4, quarter)).astype(np.uint32)
    parts = [codes, specials(FP32), beside, random_codes(FP32, rng, quarter)]
    rest = max(count - sum(map(len, parts)), 0)
    return rng.permutation(np.concatenate([*parts, rng.integers(0, 1 << 32, rest, np.uint32)]))


def parameters(rng):
    """(Scale, bias): those that keep z, moderate ones, and any."""
    kind = rng.integers(4)
    if kind < 2:
        return ONE, (MINUS_ZERO, 0)[kind]
    if kind == 2:
        return tuple(int(word) for word in rng.normal(0, 1.5, 2).astype(np.float32).view(np.uint32))
    return tuple(int(word) for word in random_codes(FP32, rng, 2))


def assert_hard(stages, function, count, seed):
    rng = np.random.default_rng(seed)
    words = beats(hard(rng, count))
    assert words.size >= count
    parts = np.array_split(words, -(-words.shape[1] // AT_ONCE), axis=1)
    works = [(function, part, *parameters(rng)) for part in parts]
    for result, (_, part, scale, bias) in zip(run(stages, works), works, strict=True):
        with np.errstate(all="ignore"):
            want = program.evaluate(
                function, real(part), *(real(word) for word in (scale, bias, SLOPE))
            ).view(np.uint32)
        assert_same(result, want, seed=seed, x=part, scale=np.uint32(scale), bias=np.uint32(bias))


@pytest.mark.parametrize("function", Function)
def test_hard_arguments(function):
    assert_hard(STAGES, function, 40_000, seed=function)


@pytest.mark.nightly
@pytest.mark.parametrize("function", Function)
def test_hard_arguments_at_length(function):
    assert_hard(STAGES, function, HARD, seed=100 + function)
