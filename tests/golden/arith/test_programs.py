"""The interpreter of programs against one element at a time, and the language's every part."""

import hashlib

import numpy as np
import pytest

from golden.arith.blocks import BLOCK
from golden.arith.functions import program
from golden.arith.functions.program import apply, evaluate
from isa.fields import Function
from isa.functions import PROGRAMS, R0, R1, SLOPE, Post, Select, Step, Table, constant, first
from verif.equality import assert_same
from verif.plain_program import bits, run

SPECIALS = np.array(
    [
        *(0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000),
        *(0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001),
        *(0xFFFFFFFF, 0x40490FDB, 0xC0490FDB, 0x42B17218, 0xC2AEAC50, 0x41200000, 0xC1300000),
    ],
    np.uint32,
).view(np.float32)


def code(value):
    return np.ascontiguousarray(value).view(np.uint32)


def numbers(count, seed):
    """Normal numbers, any codes, specials."""
    random = np.random.default_rng(seed)
    wild = random.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    return np.concatenate([random.normal(0, 4, count).astype(np.float32), wild, SPECIALS])


@pytest.mark.parametrize("function", Function)
def test_functions_against_one_element_at_a_time(function):
    x, slope = numbers(60, 1), np.float32(-1.5)
    scale, bias = np.float32(0.7), np.float32(-0.3)
    found = evaluate(function, x, scale, bias, slope)
    expected = [bits(run(PROGRAMS[function], v, scale, bias, slope)) for v in x]
    assert_same(code(found), np.array(expected, np.uint32), x=code(x))


def programs():
    """Each post, select and kind of operand by itself, random registers beside."""
    two = (first(to=0), Step(R0, constant(-0.75), constant(1.5), to=1))
    for post in Post:
        yield (*two, Step(R0, post=post, ref=1))
        yield (*two, Step(R0, R1, R0, post=post, ref=0))
    for magnitude in (False, True):
        for below in (False, True):
            for limit in (0.0, -0.0, 1.5, -1.5, 2.0**-126):
                select = Select(limit, -abs(R1), magnitude, below)
                yield (*two, Step(R0, SLOPE, ref=0, select=select))
                yield (*two, Step(R0, post=Post.COPY_SIGN, ref=1, select=select))
    for table in Table:
        yield (*two, Step(-R0, c=abs(R1), table=table))
        yield (*two, Step(R1, table=table, post=Post.FLIP_ODD, ref=0))
    for other in (constant(float("nan")), constant(-0.0), -constant(2.0), abs(SLOPE)):
        yield (*two, Step(R0, select=Select(1.0, other)))


def test_language_against_one_element_at_a_time(monkeypatch):
    x, slope = numbers(12, 2), np.float32(-2.5)
    for steps in programs():
        monkeypatch.setitem(program.PROGRAMS, Function.COPY, steps)
        expected = np.array([bits(run(steps, v, slope=slope)) for v in x], np.uint32)
        found = evaluate(Function.COPY, x, np.float32(1), np.float32(0), slope)
        assert_same(code(found), expected, x=code(x))


@pytest.mark.parametrize("function", Function)
def test_apply_is_the_function_of_the_sum(function):
    """Subnormal sums are honoured, also by functions that begin with a product."""
    x = np.concatenate([numbers(200, 3), np.float32(2.0**-130) * np.arange(-8, 9, dtype="f4")])
    tiny = np.float32(2.0**-128)
    sums = evaluate(Function.COPY, x, np.float32(1), tiny)
    found = evaluate(function, x, np.float32(1), tiny, np.float32(3))
    assert_same(code(found), code(apply(function, sums, np.float32(3))), x=code(x))


SHAPES = [(), (1,), (0,), (7,), (3, 5), (2, 3, 4), (5, 0), (3, BLOCK + 5), (2 * BLOCK + 3, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape):
    x = np.asarray(np.random.default_rng(4).normal(size=shape), np.float32)
    found = evaluate(Function.SIGMOID, x, np.float32(2), np.float32(1))
    assert found.shape == shape
    flat = [
        evaluate(Function.SIGMOID, part, np.float32(2), np.float32(1))
        for part in np.array_split(x.ravel(), 3)
    ]
    assert np.array_equal(code(found.ravel()), code(np.concatenate(flat)))


@pytest.mark.parametrize("columns", [1, 5, BLOCK // 2 + 1, BLOCK + 3])
@pytest.mark.parametrize("shape", [(6, 1), (1, 1), (), "full", "row"])
def test_parameters_are_broadcast(columns, shape):
    random = np.random.default_rng(5)
    x = random.normal(size=(6, columns)).astype(np.float32)
    shape = {"full": (6, columns), "row": (columns,)}.get(shape, shape)
    scale, bias, slope = (np.asarray(random.normal(size=shape), np.float32) for _ in range(3))
    found = evaluate(Function.PRELU, x, scale, bias, slope)
    z = x * scale + bias
    assert np.array_equal(code(found), code(np.where(z >= 0, z, z * slope)))


def test_sources_stay_as_they_are():
    x = numbers(50, 6)
    before = code(x).copy()
    for function in Function:
        result = apply(function, x)
        result[:] = 0
    assert_same(code(x), before)


@pytest.mark.parametrize("name", ["x", "scale", "bias", "slope"])
def test_other_types_are_refused(name):
    given = dict.fromkeys(("x", "scale", "bias", "slope"), np.ones(3, np.float32))
    given[name] = np.ones(3)
    with pytest.raises(TypeError, match=f"{name}: float32 expected, not float64"):
        evaluate(Function.COPY, **given)


DIGESTS = {
    Function.COPY: "1220b6557245f6e0",
    Function.RELU: "a4df37760f8508f0",
    Function.EXP: "036e98f8f81df32b",
    Function.LOG: "1f99524df214e9e0",
    Function.SQRT: "2e3e866b1d17c4a3",
    Function.RSQRT: "86760b456662ecd3",
    Function.RECIPROCAL: "913081cb3a9cf80e",
    Function.SIGMOID: "5a54e7912d6979b0",
    Function.TANH: "02c965a33f4dfd9b",
    Function.GELU: "92c97425ae96b478",
    Function.GELU_TANH: "2bd8c541182b51ae",
    Function.GELU_DERIVATIVE: "4021202545de2dff",
    Function.SILU: "c6ca9a64cc7098fc",
    Function.SILU_DERIVATIVE: "9d82f381d4c7ad65",
    Function.SOFTPLUS: "2f012ed430fccd7f",
    Function.MISH: "5f8f623494346090",
    Function.ERF: "a284e394f3dbacb0",
    Function.SIN: "1935cfffaf41d16f",
    Function.COS: "61a6c8f2d773afdb",
    Function.ARCTAN: "ef08c4a5cf4c6f6e",
    Function.SQUARE: "511411c2ff10343d",
    Function.ABS: "77b337f11dd0a693",
    Function.SIGN: "a39a81558b9e0001",
    Function.PRELU: "8823022b24302e7f",
}
"""First 16 digits of the SHA-256 of the results, little endian, for every 20 011th FP32 code and
65 536 numbers from -20 to 20, slope 1/4."""


@pytest.mark.parametrize("function", DIGESTS)
def test_results_are_pinned(function):
    """Bars leave room; the programs do not: another coefficient is another function."""
    codes = np.arange(0, 1 << 32, 20_011).astype(np.uint32).view(np.float32)
    z = np.concatenate([codes, np.linspace(-20, 20, 1 << 16).astype(np.float32)])
    results = code(apply(function, z, np.float32(0.25))).astype("<u4").tobytes()
    assert hashlib.sha256(results).hexdigest()[:16] == DIGESTS[function]
