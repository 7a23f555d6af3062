"""Loading and storing elements of every dtype."""

import numpy as np
import pytest

from golden.access import Access, load, load_words, store, store_words
from golden.engines.random import RESET_STATE, Generators
from golden.memory import Partitioned
from isa.dtypes import DType
from isa.fields import Space

NAN = 0x7FC00000
FLOATS = tuple(d for d in DType if d.name.startswith(("BF", "FP")))
INTEGERS = tuple(d for d in DType if "INT" in d.name)


def memory_of(codes, dtype):
    """A memory of two equal rows that start with `codes`, and the access to them."""
    raw = np.frombuffer(codes.tobytes(), np.uint8)
    memory = Partitioned(Space.SBUF, 2, raw.size, raw.size, 0)
    memory.bytes[...] = raw
    return memory, Access(Space.SBUF, dtype, 0, 2, 0, ((1, codes.size),))


def codes_of(dtype):
    """All codes of up to 16 bits; of 32 bits the corners and a sample."""
    if dtype.itemsize <= 2:
        return np.arange(1 << (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}")
    corners = [0, 1, 0x7F800001, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x3F800000, 0x3F801FFF]
    return np.concatenate(
        [
            np.array(corners, np.uint32),
            np.random.default_rng(5).integers(0, 1 << 32, 4000, np.uint32),
        ]
    )


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", DType, ids=lambda d: d.text)
def test_load_gives_the_value_of_every_code(dtype):
    codes = codes_of(dtype)
    found = load(*memory_of(codes, dtype))
    assert found.shape == (2, codes.size) and (found[0].view("u4") == found[1].view("u4")).all()
    with np.errstate(invalid="ignore"):
        if dtype == DType.TF32:
            expected = (codes & np.uint32(0xFFFFE000)).view(np.float32)
            expected[np.isnan(codes.view(np.float32))] = np.nan
        else:
            expected = codes.view(dtype.numpy).astype(np.float32)
    bits = expected.view(np.uint32)
    nan = np.isnan(expected)
    if dtype == DType.FP32:
        bits = codes
    elif dtype == DType.BF16:
        bits = codes.astype(np.uint32) << np.uint32(16)
    else:
        bits[nan] = NAN
    assert (found[0].view(np.uint32) == bits).all()


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", DType, ids=lambda d: d.text)
def test_words_are_extended_and_cut(dtype):
    codes = codes_of(dtype)
    memory, access = memory_of(codes, dtype)
    words = load_words(memory, access)
    signed = dtype in (DType.INT8, DType.INT16, DType.INT32)
    expected = codes.view(dtype.numpy).astype(np.int64) if signed else codes.astype(np.int64)
    assert words.dtype == np.uint32
    assert (words[0].astype(np.int64) == expected % (1 << 32)).all()
    before = memory.flat.copy()
    memory.flat[...] = 0
    high = 0 if dtype.itemsize == 4 else 0xA5A50000 & -(1 << (8 * dtype.itemsize))
    store_words(memory, access, words ^ np.uint32(high))
    assert (memory.flat == before).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.text)
def test_store_rounds_as_ml_dtypes_does(dtype):
    rng = np.random.default_rng(3)
    values = np.concatenate(
        [
            rng.integers(0, 1 << 32, 3000, np.uint32).view(np.float32),
            rng.normal(0, 4, 3000).astype(np.float32),
            np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32),
        ]
    )
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(dtype.numpy)
    memory, access = memory_of(np.zeros(values.size, f"u{dtype.itemsize}"), dtype)
    store(memory, access, np.stack([values, -values]))
    stored = memory.bytes.view(dtype.numpy)
    nan = np.isnan(expected.astype(np.float32))
    unsigned = f"u{dtype.itemsize}"
    assert (stored.view(unsigned)[0] == expected.view(unsigned))[~nan].all()
    assert np.isnan(stored[:, nan].astype(np.float32)).all()
    if dtype != DType.FP32:
        assert len(set(stored.view(unsigned)[:, nan].reshape(-1))) == 1


def test_tf32_stores_ten_fraction_bits():
    values = np.array([0x3F801000, 0x3F803000, 0x3F801001, 0x7F7FF000, 0x7F800001], np.uint32)
    memory, access = memory_of(np.zeros(5, np.uint32), DType.TF32)
    store(memory, access, np.stack([values] * 2).view(np.float32))
    expected = [0x3F800000, 0x3F804000, 0x3F802000, 0x7F800000, NAN]
    assert memory.bytes.view(np.uint32)[0].tolist() == expected


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.text)
def test_integers_round_to_even_and_saturate(dtype):
    limits = np.iinfo(dtype.numpy)
    values = np.array(
        [0.5, 1.5, 2.5, -0.5, -1.5, 1e10, -1e10, np.inf, -np.inf, np.nan, 100.25], np.float32
    )
    low = limits.min
    expected = [0, 2, 2, 0, max(-2, low), limits.max, low, limits.max, low, 0, 100]
    memory, access = memory_of(np.zeros(values.size, f"u{dtype.itemsize}"), dtype)
    store(memory, access, np.stack([values] * 2))
    assert memory.bytes.view(dtype.numpy)[1].tolist() == expected


def test_e4m3fn_overflow_saturated_or_not():
    values = np.array([464, 465, np.inf, -np.inf, np.nan], np.float32)
    memory, access = memory_of(np.zeros(5, np.uint8), DType.FP8_E4M3FN)
    store(memory, access, np.stack([values] * 2))
    assert memory.bytes[0].tolist() == [0x7E, 0x7F, 0x7F, 0x7F, 0x7F]
    store(memory, access, np.stack([values] * 2), sat=True)
    assert memory.bytes[0].tolist() == [0x7E, 0x7E, 0x7E, 0xFE, 0x7F]


def test_stochastic_rounding_takes_the_words_in_order_and_repeats_values():
    dtype = DType.BF16
    memory, access = memory_of(np.zeros(4, np.uint16), dtype)
    random = np.array([[0x7FFFFFFF, 0x80000000, 0, 0xFFFFFFFF]] * 2, np.uint32)
    one = np.array([[0x3F808000]], np.uint32).view(np.float32)
    store(memory, access, one, random=random)
    assert memory.bytes.view(np.uint16)[0].tolist() == [0x3F80, 0x3F81, 0x3F80, 0x3F81]


def test_repeated_addresses_keep_the_last_element():
    memory = Partitioned(Space.SBUF, 1, 8, 8, 0)
    access = Access(Space.SBUF, DType.UINT8, 0, 1, 7, ((0, 2), (-1, 3)))
    store_words(memory, access, np.arange(1, 7, dtype=np.uint32)[None])
    assert memory.bytes[0].tolist() == [0, 0, 0, 0, 0, 6, 5, 4]


def test_generators_step_alone_and_keep_their_state():
    generators = Generators(8)
    assert generators.get(3, 1).tolist() == [list(RESET_STATE)]
    first = generators.draw(2, 4, 5)
    assert (generators.get(0, 2) == RESET_STATE).all() and (
        generators.get(6, 2) == RESET_STATE
    ).all()
    # The first number of the program in Marsaglia's paper.
    assert first[0, 0] == 246875399 and (first == first[0]).all()
    rest = generators.draw(2, 1, 3)
    again = Generators(8)
    assert (again.draw(0, 1, 8)[0] == [*first[0], *rest[0]]).all()
    state = np.arange(12, dtype=np.uint32).reshape(2, 6)
    generators.set(5, state)
    assert (generators.get(5, 2) == state).all()
    with pytest.raises(ValueError, match=r"there are 0\.\.7"):
        generators.set(7, state)
    with pytest.raises(ValueError, match="uint32 expected"):
        generators.set(0, state.astype(np.int32))
