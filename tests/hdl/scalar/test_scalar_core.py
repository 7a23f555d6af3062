"""The steps of the scalar engine against the golden functions; batches, stalls, rates."""

import numpy as np
import pytest

from golden.arith.functions import program
from hdl.scalar.lane import BATCH, LaneTiming
from isa.fields import Function
from isa.functions import PROGRAMS
from verif.equality import assert_same
from verif.scalar_bench import PARTITIONS, activation, no_source, raw_words, scalar_bench
from verif.vectors import FP32, corner_codes, random_codes, specials

STAGES = (4,)
ALL_STAGES = [
    pytest.param(stages, marks=() if stages in STAGES else pytest.mark.nightly)
    for stages in range(1, 7)
]
SIZES = (1, 2, 31, 32, 33, 63, 64, 65, 100)
ONE, SUBNORMAL, MINUS_ZERO = 0x3F800000, 0x00012345, 0x80000000


def real(codes):
    return np.asarray(codes, np.uint32).view(np.float32)


def golden(function, x, scale=ONE, bias=0, slope=0):
    with np.errstate(all="ignore"):
        return program.evaluate(function, real(x), real(scale), real(bias), real(slope)).view(
            np.uint32
        )


def arguments(rng, count):
    """Where functions do something, every binade, and any code: uint32 [P, count]."""
    near = (rng.normal(0, 4, (PARTITIONS, count))).astype(np.float32).view(np.uint32)
    wide = random_codes(FP32, rng, PARTITIONS * count).reshape(PARTITIONS, count)
    return np.where(rng.random((PARTITIONS, count)) < 0.6, near, wide)


def parameters(rng):
    """Scale and bias of one instruction, codes or columns, and slope."""
    found = []
    for plain in (ONE, 0):
        kind = rng.integers(4)
        value = random_codes(FP32, rng, PARTITIONS).reshape(PARTITIONS, 1)
        moderate = rng.normal(0, 1.5, (PARTITIONS, 1)).astype(np.float32).view(np.uint32)
        value = moderate if rng.random() < 0.8 else value
        found.append((plain, int(value[0, 0]), value, value)[kind])
    slope = int(rng.normal(0, 1, 1).astype(np.float32).view(np.uint32)[0])
    return {"scale": found[0], "bias": found[1], "slope": slope}


def assert_works(bench, works, *, seed=None, **stalls):
    """`works`: (function, data, parameters) each; the results are the golden ones. -> cycles."""
    found, cycles = bench.run([activation(f, x, **given) for f, x, given in works], **stalls)
    for (function, x, given), result in zip(works, found, strict=True):
        scale, bias = (
            np.broadcast_to(given.get(k, v), x.shape) for k, v in (("scale", ONE), ("bias", 0))
        )
        want = golden(function, x, scale, bias, np.uint32(given.get("slope", 0)))
        assert_same(result, want, seed=seed, x=x, scale=scale, bias=bias)
    return cycles


@pytest.mark.parametrize("stages", ALL_STAGES)
@pytest.mark.parametrize("function", Function)
def test_function(stages, function):
    """Every function, at every kind of number, with stalls and without."""
    rng = np.random.default_rng(100 * stages + function)
    every = specials(FP32)
    every = every[: len(every) // PARTITIONS * PARTITIONS].reshape(PARTITIONS, -1)
    works = [(function, arguments(rng, 400), parameters(rng)) for _ in range(4)]
    works.append((function, every, {"slope": 0x3E000000}))
    for deny in (0, 100):
        assert_works(scalar_bench(stages), works, deny_source=deny, deny_result=deny)


@pytest.mark.parametrize("stages", ALL_STAGES)
@pytest.mark.parametrize("deny", [(0, 0), (160, 0), (0, 160), (60, 200), (250, 250)])
def test_mixes_back_to_back(stages, deny):
    """Any function behind any other, batches of all sizes, columns and immediates."""
    seed = 7 * stages + sum(deny)
    rng = np.random.default_rng(seed)
    works = [
        (
            Function(int(rng.integers(len(Function)))),
            arguments(rng, int(rng.choice(SIZES))),
            parameters(rng),
        )
        for _ in range(60 if deny[0] < 250 else 12)
    ]
    assert_works(scalar_bench(stages), works, seed=seed, deny_source=deny[0], deny_result=deny[1])


@pytest.mark.parametrize("stages", ALL_STAGES)
def test_words_pass_unchanged(stages):
    """The words of a random state, which may look like NaNs, between functions."""
    rng = np.random.default_rng(stages)
    words = rng.integers(0, 1 << 32, (PARTITIONS, 6), np.uint32)
    words[:, ::2] = rng.choice([0x7F800001, 0xFFFFFFFF, SUBNORMAL, MINUS_ZERO], (PARTITIONS, 3))
    x = arguments(rng, 40)
    works = [
        activation(Function.TANH, x),
        raw_words(words),
        no_source(6),
        raw_words(words),
        activation(Function.COPY, x),
        no_source(6),
        activation(Function.SIN, x),
        no_source(6),
    ]
    for deny in (0, 120):
        found, _ = scalar_bench(stages).run(works, deny_source=deny, deny_result=deny)
        assert_same(found[1], words)
        assert_same(found[3], words)
        for index, function in ((0, Function.TANH), (4, Function.COPY), (6, Function.SIN)):
            assert_same(found[index], golden(function, x), x=x)


def test_one_nan():
    """NaN of any code in data, scale or bias: the canonical one comes out of every function."""
    nans = np.array(
        [[0x7F800001, 0x7FC00000, 0xFFC00000, 0xFFFFFFFF, 0x7FA12345]] * PARTITIONS, np.uint32
    )
    ones = np.full_like(nans, ONE)
    works = [
        activation(function, data, **given)
        for function in Function
        for data, given in ((nans, {}), (ones, {"scale": 0xFFC12345}), (ones, {"bias": 0x7F800001}))
    ]
    for result in scalar_bench(4).run(works)[0]:
        assert (result == 0x7FC00000).all()


def steps_of(function):
    return len(PROGRAMS[function])


def batches(function, count):
    if steps_of(function) == 1:
        return [count]
    return [min(BATCH, count - start) for start in range(0, count, BATCH)]


def expected_cycles(function, count, stages):
    """A pass takes its elements, or the latency of a lane and one where another step follows."""
    shortest, steps = LaneTiming(stages).result + 1, steps_of(function)
    return sum((steps - 1) * max(size, shortest) + size for size in batches(function, count))


def hurried(function, count):
    """1 where the last step has one element: the next instruction's first step is not there yet."""
    return int(steps_of(function) > 1 and batches(function, count)[-1] == 1)


@pytest.mark.parametrize("stages", ALL_STAGES)
def test_a_result_every_cycle_and_step(stages):
    """A long vector: exactly one result a cycle and step of the function."""
    x = arguments(np.random.default_rng(1), 20 * BATCH)
    for function in Function:
        cycles = assert_works(scalar_bench(stages), [(function, x, {})])[0]
        apart = steps_of(function) * (x.shape[1] - BATCH) + BATCH - 1
        assert cycles[-1] - cycles[0] == apart


@pytest.mark.parametrize("stages", ALL_STAGES)
@pytest.mark.parametrize("count", [7, 31, 32, 33, 64, 65])
def test_cycles_of_instructions_back_to_back(stages, count):
    """No bubble between instructions, of the same function and of different ones."""
    x = arguments(np.random.default_rng(2), count)
    for functions in (
        (Function.EXP,),
        (Function.TANH,),
        (Function.EXP, Function.TANH),
        (Function.SQUARE, Function.COPY, Function.SIN),
    ):
        cycles = assert_works(scalar_bench(stages), [(f, x, {}) for f in functions * 6])
        ends = np.array([c[-1] for c in cycles])
        took = np.array([expected_cycles(f, count, stages) for f in functions * 6])
        bubbles = np.array([hurried(f, count) for f in functions * 6])
        assert (np.diff(ends) == took[1:] + bubbles[:-1]).all()


@pytest.mark.parametrize("stages", ALL_STAGES)
def test_columns_come_between_instructions_or_beside_later_steps(stages):
    """A cycle each and one more; none while the steps behind the first one run."""
    x = arguments(np.random.default_rng(3), 40)
    column = np.full((PARTITIONS, 1), ONE, np.uint32)
    both = {"scale": column, "bias": column}
    for function, columns, extra in (
        (Function.COPY, both, 3),
        (Function.COPY, {"bias": column}, 2),
        (Function.SILU, both, 0),
    ):
        cycles = assert_works(scalar_bench(stages), [(function, x, columns)] * 6)
        ends = np.array([c[-1] for c in cycles])
        assert (np.diff(ends) == expected_cycles(function, 40, stages) + extra).all()


@pytest.mark.parametrize("stages", ALL_STAGES)
def test_an_exponential_a_cycle(stages):
    """EXP behind scale and bias gives a result every cycle, its table in 12 stages or fewer."""
    assert LaneTiming(stages).table_stages <= 12
    x = arguments(np.random.default_rng(4), 500)
    cycles = assert_works(scalar_bench(stages), [(Function.EXP, x, {})])[0]
    assert (np.diff(cycles) == 1).all()


def test_corners_are_reached():
    """The arguments contain what they promise."""
    x = arguments(np.random.default_rng(100), 4000)
    magnitude = x & 0x7FFFFFFF
    assert {*corner_codes(FP32)} and (magnitude > 0x7F800000).any()
    assert ((magnitude > 0) & (magnitude < 0x00800000)).any()
