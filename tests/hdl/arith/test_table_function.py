"""The table functions in hardware against the golden ones, at every number of stages."""

import numpy as np
import pytest

from golden.arith.functions.exponential import exp
from golden.arith.functions.logarithm import log
from golden.arith.functions.reciprocal import reciprocal
from golden.arith.functions.root import rsqrt, sqrt
from golden.arith.functions.tables import TABLES
from hdl.arith.table_function import TableFunction
from hdl.arith.table_rom import TABLE_AT, rom_words
from isa.functions import Table
from verif.cxxrtl import compile_unit
from verif.equality import assert_same
from verif.vectors import FP32, random_codes, specials

SEED = 90
COUNT = 100_000
BLOCK = 1 << 22
MOST_STAGES = 12
NAN, INF, SIGN, ONE = 0x7FC00000, 0x7F800000, 0x80000000, 0x3F800000

GOLDEN = {
    Table.EXP: exp,
    Table.LOG: log,
    Table.SQRT: sqrt,
    Table.RSQRT: rsqrt,
    Table.RECIPROCAL: reciprocal,
}


def golden(table, x):
    return GOLDEN[table](x.view(np.float32)).view(np.uint32)


def dense(table, rng):
    """Where the function does most: all binades, the ends of the range, the segments' borders."""
    borders = (np.arange(128, dtype=np.int64) << 16)[:, None] + np.arange(-3, 4)
    exponents = np.array([1, 64, 126, 127, 128, 129, 200, 254]) << 23
    edges = (exponents[:, None, None] + borders).ravel().clip(0, INF - 1).astype(np.uint32)
    if table is Table.EXP:
        # x log2(e) close to a border of a segment or to the end of the range.
        z = np.concatenate([np.arange(-152 * 128, 130 * 128) / 128, [128, -126, -149, -150]])
        near = (z * np.log(2)).astype(np.float32).view(np.uint32).astype(np.int64)
        edges = np.append(edges, (near[:, None] + np.arange(-3, 4)).ravel().astype(np.uint32))
    around_one = (ONE + rng.integers(-(1 << 20), 1 << 20, COUNT)).astype(np.uint32)
    return np.concatenate([edges, around_one, random_codes(FP32, rng, COUNT), specials(FP32)])


@pytest.fixture(scope="module")
def unit():
    return compile_unit(TableFunction())


@pytest.mark.parametrize("table", GOLDEN)
def test_golden(unit, table):
    x = dense(table, np.random.default_rng(SEED + table))
    assert_same(unit.stream(i=x, table=int(table)).o, golden(table, x), seed=SEED + table, x=x)


@pytest.mark.parametrize("table", GOLDEN)
def test_every_subnormal_of_few_bits(unit, table):
    """Subnormal operands are normalised: each leading bit, with a few below it."""
    low = np.arange(1 << 10, dtype=np.uint32)[:, None] << np.arange(14, dtype=np.uint32)
    x = np.unique(np.concatenate([low.ravel(), low.ravel() | SIGN]))
    assert (x & 0x7F800000 == 0).all()
    assert_same(unit.stream(i=x, table=int(table)).o, golden(table, x), x=x)


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param(stages, marks=() if stages in (3, 12) else pytest.mark.nightly)
        for stages in range(MOST_STAGES + 2)
    ],
)
def test_every_number_of_stages_equals_golden(stages):
    """The table changes from element to element; a result a cycle, `stages` cycles late."""
    rng = np.random.default_rng(SEED)
    x = random_codes(FP32, rng, COUNT)
    table = rng.integers(0, len(Table), COUNT)
    expected = x.copy()
    for code in GOLDEN:
        expected[table == code] = golden(code, x[table == code])
    unit = compile_unit(TableFunction(stages=stages))
    assert unit.latency == stages
    assert_same(unit.stream(i=x, table=table).o, expected, seed=SEED, x=x, table=table)


def test_an_exponential_a_cycle_within_twelve_stages():
    """New arguments enter every cycle, and each result leaves 12 cycles behind its own."""
    unit = compile_unit(TableFunction(stages=12))
    assert unit.latency == 12
    x = random_codes(FP32, np.random.default_rng(SEED + 7), COUNT)
    assert_same(unit.stream(i=x, table=int(Table.EXP)).o, golden(Table.EXP, x), x=x)


def test_enable_holds_the_results():
    """Every vector is offered twice, the registers advance at the second: results come twice."""
    unit = compile_unit(TableFunction(stages=3, enable=True))
    x = random_codes(FP32, np.random.default_rng(SEED + 8), 2000)
    held = np.repeat(x, 2)
    moves = np.tile(np.array([0, 1], np.uint32), len(x))
    found = unit.stream(i=held, table=int(Table.LOG), en=moves).o
    # Vector k comes out in the cycles 2k + 6 and 2k + 7; output n is that of cycle n + 3.
    want = golden(Table.LOG, x)
    assert_same(found[3::2][: len(x) - 2], want[: len(x) - 2], x=x[: len(x) - 2])
    assert_same(found[4::2][: len(x) - 3], found[3::2][: len(x) - 3])


def test_none_leaves_every_code_as_it_is(unit):
    x = specials(FP32)
    assert_same(unit.stream(i=x, table=int(Table.NONE)).o, x, x=x)


SPECIALS = {
    Table.EXP: ((0, ONE), (SIGN, ONE), (INF, INF), (SIGN | INF, 0), (1, ONE), (SIGN | 1, ONE)),
    Table.LOG: ((0, SIGN | INF), (SIGN, SIGN | INF), (INF, INF), (SIGN | INF, NAN), (ONE, 0)),
    Table.SQRT: ((0, 0), (SIGN, SIGN), (INF, INF), (SIGN | INF, NAN), (SIGN | 1, NAN), (ONE, ONE)),
    Table.RSQRT: ((0, INF), (SIGN, SIGN | INF), (INF, 0), (SIGN | INF, NAN), (SIGN | ONE, NAN)),
    Table.RECIPROCAL: ((0, INF), (SIGN, SIGN | INF), (INF, 0), (SIGN | INF, SIGN), (1, INF)),
}


@pytest.mark.parametrize("table", SPECIALS)
def test_specials(unit, table):
    nans = [(code, NAN) for code in (0x7F800001, NAN, SIGN | NAN, 0xFFFFFFFF, 0x7FA12345)]
    x, expected = np.array([*SPECIALS[table], *nans], np.uint32).T
    assert_same(unit.stream(i=x, table=int(table)).o, expected, x=x)


def test_rom_holds_the_tables():
    """Each coefficient out of its word again, c1 and c2 with the sign of the table."""
    words = rom_words()
    for name, number in TABLE_AT.items():
        rows = TABLES[name]
        held = np.array(words[128 * number : 128 * (number + 1)], np.uint64)
        c0 = (held & np.uint64((1 << 28) - 1)).astype(np.int64)
        c1 = ((held >> np.uint64(28)) & np.uint64((1 << 20) - 1)).astype(np.int64)
        c2 = (held >> np.uint64(48)).astype(np.int64)
        c1 -= (rows[0, 1] < 0) << 20
        c2 -= (rows[0, 2] < 0) << 11
        assert (np.stack([c0, c1, c2], axis=1) == rows).all()


@pytest.mark.nightly
@pytest.mark.parametrize("table", GOLDEN)
def test_all_inputs(unit, table):
    for start in range(0, 1 << 32, BLOCK):
        x = np.arange(start, start + BLOCK, dtype=np.uint64).astype(np.uint32)
        assert_same(unit.stream(i=x, table=int(table)).o, golden(table, x), x=x)
