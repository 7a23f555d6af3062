"""Scalar engine of the golden model: functions, dtypes at both ports, roundings, generators."""

import ml_dtypes
import numpy as np
import pytest

from golden.access import Access, load, store_words
from golden.arith.functions.program import apply, evaluate
from golden.arith.xorwow import Xorwow
from golden.engines.random import RESET_STATE
from golden.engines.scalar import ScalarEngine
from golden.memory import Memories
from golden.operation import Operation
from isa.dtypes import FP8, NARROW, DType
from isa.fields import Function, Space
from isa.geometry import preset
from verif.equality import assert_same

ONE, MINUS_ZERO = 0x3F800000, 0x80000000
ELEMENTS = 24
DST, COLUMNS = 512, 1024


@pytest.fixture
def memories():
    return Memories(preset("small"))


def access(dtype, offset, partitions=4, elements=ELEMENTS, partition=0):
    return Access(Space.SBUF, dtype, partition, partitions, offset, ((1, elements),))


def put(memories, place, array):
    """The elements of an operand, as they lie in memory."""
    view = place.view(memories.sbuf)
    view[...] = np.ascontiguousarray(array).view(view.dtype).reshape(view.shape)


def get(memories, place):
    """Codes of the elements of an operand."""
    return np.array(place.view(memories.sbuf)).reshape(place.partitions, -1)


def activation(func, src, dst, columns=(None, None), **options):
    given = {"imm0": ONE, "imm1": 0, "imm2": 0, "sat": 0, "stochastic": 0, "func": func, **options}
    return Operation("activation", src, None, dst, *columns, given, True)


def bits(value):
    return int(np.float32(value).view(np.uint32))


def numbers(seed, scale=4.0, partitions=4):
    random = np.random.default_rng(seed)
    return random.normal(0, scale, (partitions, ELEMENTS)).astype(np.float32)


@pytest.mark.parametrize("function", Function)
def test_every_function_between_fp32(memories, function):
    x, src, dst = numbers(1), access(DType.FP32, 0), access(DType.FP32, DST)
    put(memories, src, x)
    options = {"imm0": bits(0.75), "imm1": bits(-0.5), "imm2": bits(0.125)}
    ScalarEngine(memories).activation(activation(function, src, dst, **options))
    z = x * np.float32(0.75) + np.float32(-0.5)
    expected = apply(function, z, np.float32(0.125))
    assert_same(get(memories, dst), expected.view(np.uint32))


def test_scale_and_bias_are_rounded_apart(memories):
    """x = 1 + 2^-12: x x = 1 + 2^-11 + 2^-24 rounds to even, the sum with -1 is exact."""
    x = np.full((4, ELEMENTS), 1 + 2.0**-12, np.float32)
    src, dst = access(DType.FP32, 0), access(DType.FP32, DST)
    put(memories, src, x)
    options = {"imm0": bits(1 + 2.0**-12), "imm1": bits(-1.0)}
    ScalarEngine(memories).activation(activation(Function.COPY, src, dst, **options))
    assert_same(get(memories, dst), np.full((4, ELEMENTS), bits(2.0**-11), np.uint32))


@pytest.mark.parametrize("dtype", [DType.FP32, DType.BF16, DType.FP16, DType.INT8])
def test_columns_of_any_dtype(memories, dtype):
    x, src, dst = numbers(2), access(DType.FP32, 0), access(DType.FP32, DST)
    put(memories, src, x)
    scale, bias = np.array([[1], [2], [-3], [4]]), np.array([[-5], [6], [7], [0]])
    columns = []
    for i, values in enumerate((scale, bias)):
        columns.append(access(dtype, COLUMNS + 4 * i, elements=1))
        put(memories, columns[-1], values.astype(dtype.numpy))
    ScalarEngine(memories).activation(activation(Function.SIGMOID, src, dst, columns))
    z = x * scale.astype(np.float32) + bias.astype(np.float32)
    assert_same(get(memories, dst), apply(Function.SIGMOID, z).view(np.uint32))


ENDS = {
    DType.FP32: [3.4028234663852886e38, -3.4028234663852886e38, 2.0**-149],
    DType.BF16: [255 * 2.0**120, -255 * 2.0**120, 2.0**-133],
    DType.FP16: [65504, -65504, 2.0**-24],
    DType.INT8: [127, -128],
    DType.UINT16: [65535, 0],
    DType.INT32: [2**31 - 1, -(2**31)],
    DType.UINT32: [2**32 - 1, 2**32 - 255],
}


@pytest.mark.parametrize("dtype", ENDS)
def test_bias_at_the_ends_of_its_range(memories, dtype):
    """A bias register of others was too narrow for its values.  By float64: x + bias is exact or
    rounds once, after an integer became the nearest FP32.
    """
    x = np.array([[0, 1, -2, 3e38, -3e38]] * 4, np.float32)
    src, dst = access(DType.FP32, 0, elements=5), access(DType.FP32, DST, elements=5)
    put(memories, src, x)
    bias = access(dtype, COLUMNS, elements=1)
    values = np.resize(np.array(ENDS[dtype]), (4, 1))
    put(memories, bias, values.astype(dtype.numpy))
    ScalarEngine(memories).activation(activation(Function.COPY, src, dst, (None, bias)))
    with np.errstate(over="ignore"):
        exact = x.astype(np.float64) + values.astype(np.float32).astype(np.float64)
        expected = exact.astype(np.float32)
    assert_same(get(memories, dst), expected.view(np.uint32))


HOST = {dtype: dtype.numpy for dtype in DType}


@pytest.mark.parametrize("dtype", [d for d in DType if d != DType.TF32])
def test_every_dtype_at_both_ports(memories, dtype):
    """Widened and narrowed by ml_dtypes and numpy; results lie within every range."""
    host = HOST[dtype]
    x = (np.arange(4 * ELEMENTS).reshape(4, ELEMENTS) % 7 + 1).astype(host)
    src, dst = access(dtype, 0), access(dtype, DST)
    put(memories, src, x)
    ScalarEngine(memories).activation(activation(Function.SQUARE, src, dst, imm0=bits(0.5)))
    squares = (x.astype(np.float32) / 2) ** 2
    expected = squares.astype(host) if host.kind not in "iu" else np.rint(squares).astype(host)
    assert_same(get(memories, dst), expected.view(f"u{dtype.itemsize}"))


def test_tf32_is_rounded_to_ten_bits(memories):
    src, dst = access(DType.TF32, 0), access(DType.TF32, DST)
    codes = np.full((4, ELEMENTS), 0x3F800FFF, np.uint32)
    put(memories, src, codes)
    engine = ScalarEngine(memories)
    engine.activation(activation(Function.COPY, src, dst, imm0=bits(1 + 2.0**-10)))
    assert_same(get(memories, dst), np.full((4, ELEMENTS), 0x3F802000, np.uint32))
    engine.activation(activation(Function.COPY, src, dst, imm1=bits(3 * 2.0**-11)))
    assert_same(get(memories, dst), np.full((4, ELEMENTS), 0x3F804000, np.uint32))


def test_nan_codes_do_not_survive(memories):
    """The four NaN codes of BF16 that others lost or turned into infinities."""
    src, dst = access(DType.BF16, 0, 1, 4), access(DType.BF16, DST, 1, 4)
    put(memories, src, np.array([0x7FC0, 0xFFC0, 0x7F81, 0x7FFF], np.uint16))
    for function in Function:
        ScalarEngine(memories).activation(activation(function, src, dst))
        assert_same(get(memories, dst)[0], np.full(4, 0x7FC0, np.uint16))


@pytest.mark.parametrize("dtype", [*FP8, DType.FP16])
@pytest.mark.parametrize("sat", [0, 1])
def test_saturation(memories, dtype, sat):
    """exp beyond the largest number: that number with sat, else infinity or, without one, NaN."""
    src, dst = access(DType.FP32, 0, 1, 2), access(dtype, DST, 1, 2)
    put(memories, src, np.array([13.0, 100.0], np.float32))
    ScalarEngine(memories).activation(activation(Function.EXP, src, dst, sat=sat))
    found = get(memories, dst).view(dtype.numpy).astype(np.float32)[0]
    if sat:
        largest = float(ml_dtypes.finfo(dtype.numpy).max)
        assert found.tolist() == [largest, largest]
    elif dtype == DType.FP8_E4M3FN:
        assert np.isnan(found).all()
    else:
        assert np.isposinf(found).all()


def test_stochastic_rounding_draws_one_word_for_each_element(memories):
    """|code| = (word of FP32 + the top 16 random bits) >> 16, from the generators after reset."""
    engine, x = ScalarEngine(memories), numbers(3)
    src, dst = access(DType.FP32, 0), access(DType.BF16, DST)
    put(memories, src, x)
    lanes = Xorwow(4)
    lanes.state = np.tile(np.array(RESET_STATE, np.uint32), (4, 1))
    for _ in range(2):
        engine.activation(activation(Function.COPY, src, dst, stochastic=1))
        words = lanes.step(ELEMENTS)
        expected = (x.view(np.uint32) + (words >> 16)) >> 16
        assert_same(get(memories, dst), expected.astype(np.uint16))


@pytest.mark.parametrize("dtype", NARROW)
def test_numbers_of_the_dtype_are_never_moved(memories, dtype):
    engine = ScalarEngine(memories)
    x = numbers(4).astype(dtype.numpy)
    src, dst = access(dtype, 0), access(dtype, DST)
    put(memories, src, x)
    engine.activation(activation(Function.COPY, src, dst, stochastic=1, imm1=MINUS_ZERO))
    assert_same(get(memories, dst), get(memories, src))


def test_state_is_set_and_read_by_partition(memories):
    engine = ScalarEngine(memories)
    state = np.arange(1, 4 * 6 + 1, dtype=np.uint32).reshape(4, 6)
    src, dst = access(DType.UINT32, 0, 4, 6, 4), access(DType.UINT32, DST, 16, 6)
    store_words(memories.sbuf, src, state)
    engine.rand_set_state(Operation("rand_set_state", src, None, None, None, None, {}, False))
    read = Operation("rand_get_state", None, None, dst, None, None, {}, False)
    engine.rand_get_state(read)
    expected = np.tile(np.array(RESET_STATE, np.uint32), (16, 1))
    expected[4:8] = state
    assert_same(get(memories, dst), expected)
    engine.rand_get_state(read)
    assert_same(get(memories, dst), expected)


def test_generators_step_only_where_stochastic_results_are_written(memories):
    engine = ScalarEngine(memories)
    src, dst = access(DType.FP32, 0, 4, ELEMENTS, 8), access(DType.BF16, DST, 4, ELEMENTS, 8)
    put(memories, src, numbers(5))
    engine.activation(activation(Function.COPY, src, dst))
    engine.activation(activation(Function.COPY, src, dst, stochastic=1))
    states = access(DType.UINT32, 0, 16, 6)
    engine.rand_get_state(Operation("rand_get_state", None, None, states, None, None, {}, False))
    lanes = Xorwow(16)
    lanes.state = np.tile(np.array(RESET_STATE, np.uint32), (16, 1))
    lanes.step(ELEMENTS)
    expected = np.tile(np.array(RESET_STATE, np.uint32), (16, 1))
    expected[8:12] = lanes.state[8:12]
    assert_same(get(memories, states), expected)


def test_a_result_may_replace_its_source(memories):
    x, place = numbers(6), access(DType.FP32, 0)
    put(memories, place, x)
    ScalarEngine(memories).activation(activation(Function.TANH, place, place))
    one, zero = np.float32(1), np.float32(0)
    expected = evaluate(Function.TANH, x, one, zero)
    assert_same(load(memories.sbuf, place).view(np.uint32), expected.view(np.uint32))
