"""The scalar engine with memories round it against sequential execution; its cycles."""

import numpy as np
import pytest

from hdl.scalar.lane import LaneTiming
from isa.address_map import Sequencer
from isa.dtypes import DType
from isa.fields import Function, Space
from isa.functions import PROGRAMS
from isa.instructions import BY_NAME
from verif.lane_bench import lane_bench
from verif.lane_model import assert_run
from verif.lane_programs import SCALAR, Programs, random_memories
from verif.memory_bench import make_pattern

STAGES = (1, 4)
LIMIT = 60_000
SBUF, PSUM = Space.SBUF, Space.PSUM
ONE, HALF, MINUS_TWO = 0x3F800000, 0x3F000000, 0xC0000000


def assert_scalar(run, program, sbuf, psum):
    assert_run(run, program, sbuf, psum, Sequencer.SCALAR)


def random_run(seed, stages, length, *, max_elements=40, name="tiny"):
    bench = lane_bench("scalar", stages, name)
    rng = np.random.default_rng(seed)
    window = (None, 512, 96)[int(rng.integers(3))]
    sbuf, psum = random_memories(rng, bench.config)
    program = Programs(rng, bench.config, window=window, max_elements=max_elements).program(
        SCALAR, length
    )
    deny = [int(d) for d in rng.choice([0, 60, 200], 2)]
    run = bench.run(
        program,
        sbuf,
        psum,
        cycle_limit=LIMIT,
        deny_read=deny[0],
        deny_write=deny[1],
        late=bool(rng.integers(2)),
        issue_gap=int(rng.choice([0, 4, 25])),
        seed=seed + 1,
    )
    assert_scalar(run, program, sbuf, psum)
    return program, (sbuf, psum), run


@pytest.mark.parametrize("stages", STAGES)
def test_random_programs(stages):
    for seed in range(15):
        random_run(seed, stages, 50)
    random_run(99, stages, 10, max_elements=600)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("stages", "name"), [(1, "tiny"), (2, "tiny"), (4, "tiny"), (6, "tiny"), (2, "small")]
)
def test_many_random_programs(stages, name):
    for seed in range(1000, 1300):
        random_run(seed, stages, 60, name=name)


def test_depth_does_not_change_results():
    for seed in range(300, 304):
        program, memories, shallow = random_run(seed, 1, 40)
        deep = lane_bench("scalar", 4).run(program, *memories, cycle_limit=LIMIT)
        assert (deep.sbuf == shallow.sbuf).all()
        assert (deep.psum == shallow.psum).all()


def flat(space, offset, count, *, dtype=DType.FP32, partition=0, partition_count=4):
    return make_pattern(
        lane_bench("scalar", 1).config,
        space=space,
        dtype=dtype,
        offset=offset,
        dims=[(1, count)],
        partition=partition,
        partition_count=partition_count,
    )


def activation(src0, dst, func=Function.COPY, *, imm0=ONE, imm1=0, **options):
    return {
        "opcode": BY_NAME["activation"].opcode,
        "src0": src0,
        "dst": dst,
        "func": int(func),
        "imm0": imm0,
        "imm1": imm1,
        **options,
        "elements": int(np.prod(src0["count"])),
    }


def column(space, offset, *, dtype=DType.FP32, partition=0):
    return {"space": int(space), "dtype": int(dtype), "partition": partition, "offset": offset}


def run_directed(program, *, stages=4, seed=7, **options):
    bench = lane_bench("scalar", stages)
    sbuf, psum = random_memories(np.random.default_rng(seed), bench.config)
    return bench.run(program, sbuf, psum, cycle_limit=LIMIT, **options), sbuf, psum


def test_every_pair_of_quadrants():
    program = [
        activation(
            flat(PSUM, 0, 3, partition=source, partition_count=1),
            flat(SBUF, 1024 + 64 * (4 * source + target), 3, partition=target, partition_count=1),
            Function.RELU,
            column0=column(SBUF, 64, partition=(source + target) % 4),
            column1=column(PSUM, 32, dtype=DType.BF16, partition=target),
        )
        for source in range(4)
        for target in range(4)
    ]
    run, *memories = run_directed(program)
    assert_scalar(run, program, *memories)


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("count", [1, 9])
def test_chains_of_dependent_instructions(stages, count):
    """Each reads the result of the one before: as data, as scale, as bias, in place."""
    program = [
        activation(flat(SBUF, 0, count), flat(PSUM, 0, count), imm0=HALF, imm1=ONE),
        activation(flat(PSUM, 0, count), flat(PSUM, 0, count), imm0=MINUS_TWO),
        activation(
            flat(SBUF, 512, count), flat(SBUF, 1024, count), column0=column(PSUM, 4 * (count - 1))
        ),
        activation(
            flat(SBUF, 512, count),
            flat(SBUF, 0, count),
            Function.RELU,
            column0=column(PSUM, 512),
            column1=column(SBUF, 1024),
        ),
    ] * 8
    for gap in (0, 4):
        run, *memories = run_directed(program, stages=stages, issue_gap=gap)
        assert_scalar(run, program, *memories)


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("late", [False, True])
def test_reports_are_true(stages, late):
    """Sources may be overwritten from read_done on; results are in memory at complete."""
    rng = np.random.default_rng(5)
    program = []
    for index in range(40):
        at, count = 192 * index, int(rng.integers(1, 17))
        columns = (
            {"column0": column(SBUF, at + 64), "column1": column(SBUF, at + 96)}
            if index % 3
            else {}
        )
        program.append(activation(flat(SBUF, at, count), flat(SBUF, at + 128, count), **columns))
    spoil = {
        index: [name for name in ("column0", "column1", "src0") if name in i][-2:]
        for index, i in enumerate(program)
    }
    for seed in range(6):
        deny = (0, 50, 200)[seed % 3]
        run, sbuf, psum = run_directed(
            program,
            stages=stages,
            late=late,
            spoil=spoil,
            keep=range(40),
            seed=seed,
            deny_read=deny,
            deny_write=deny,
            issue_gap=(0, 4)[seed % 2],
        )
        clean, *_ = run_directed(program, stages=stages, seed=seed)
        assert_scalar(clean, program, sbuf, psum)
        for i, kept in zip(program, run.kept, strict=True):
            assert (kept == clean.sbuf[:, i["dst"]["low"] : i["dst"]["high"]]).all()


def test_product_and_sum_are_rounded_apart():
    """1 + 2^-12 squared, less 1 + 2^-11: a fused step would leave 2^-24; and -0 stays below +0."""
    config = lane_bench("scalar", 4).config
    sbuf = np.zeros((config.partitions, config.sbuf_bytes), np.uint8)
    psum = np.zeros((config.partitions, config.psum_bytes), np.uint8)
    x = np.float32(1 + 2.0**-12)
    sbuf[:, :16] = np.array([x, -0.0, np.nan, -3], np.float32).view(np.uint8)
    minus = int(np.float32(-(1 + 2.0**-11)).view(np.uint32))
    program = [
        activation(flat(SBUF, 0, 1), flat(SBUF, 64, 1), imm0=int(x.view(np.uint32)), imm1=minus),
        activation(flat(SBUF, 4, 3), flat(SBUF, 80, 3), imm1=0x80000000),
        activation(flat(SBUF, 4, 3), flat(SBUF, 96, 3), Function.RELU, imm1=0x80000000),
    ]
    run = lane_bench("scalar", 4).run(program, sbuf, psum, cycle_limit=LIMIT)
    words = np.ascontiguousarray(run.sbuf[0, 64:112]).view(np.uint32)
    assert words[0] == 0
    assert list(words[4:7]) == [0x80000000, 0x7FC00000, 0xC0400000]
    assert list(words[8:11]) == [0, 0x7FC00000, 0]


ENDS = {
    DType.FP32: (0x7F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF),
    DType.BF16: (0x7F7F, 0x7F7F0000, 0xFF7F0000),
    DType.FP16: (0xFBFF, 0xC77FE000, 0x477FE000),
    DType.INT8: (0x80, 0xC3000000, 0x43000000),
    DType.UINT16: (0xFFFF, 0x477FFF00, 0xC77FFF00),
    DType.INT32: (0x7FFFFFFF, 0x4F000000, 0xCF000000),
    DType.UINT32: (0xFFFFFF01, 0x4F7FFFFF, 0xCF7FFFFF),
}
"""Code of the dtype, and of the same number (to nearest) and its negative in FP32."""


@pytest.mark.parametrize("dtype", ENDS)
def test_bias_at_the_ends_of_its_range(dtype):
    """A bias register of others was too narrow: 0 + bias is the bias, and -bias + bias nothing."""
    config = lane_bench("scalar", 4).config
    code, bias, minus = ENDS[dtype]
    sbuf = np.zeros((config.partitions, config.sbuf_bytes), np.uint8)
    psum = np.zeros((config.partitions, config.psum_bytes), np.uint8)
    sbuf[:, :8] = np.array([0, minus], np.uint32).view(np.uint8)
    sbuf[:, 2048 : 2048 + dtype.itemsize] = np.array([code], f"u{dtype.itemsize}").view(np.uint8)
    column1 = column(SBUF, 2048, dtype=dtype)
    program = [activation(flat(SBUF, 0, 2), flat(SBUF, 64, 2), column1=column1)]
    run = lane_bench("scalar", 4).run(program, sbuf, psum, cycle_limit=LIMIT)
    words = np.ascontiguousarray(run.sbuf[:, 64:72]).view(np.uint32)
    assert (words == [bias, 0]).all()


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("space", [SBUF, PSUM])
def test_an_element_a_cycle_back_to_back(stages, space):
    """Immediates cost nothing; columns a cycle each, and one more."""
    both = {f"column{i}": column(SBUF, 2048 + 4 * i) for i in range(2)}
    for count in (16, 17, 64):
        for columns, extra in (({}, 0), (both, 3), ({"column1": both["column1"]}, 2)):
            program = [activation(flat(space, 0, count), flat(space, 1024, count), **columns)] * 20
            run, *_ = run_directed(program, stages=stages, issue_gap=4)
            assert run.completed[-1] - run.completed[3] == 16 * (count + extra)


@pytest.mark.parametrize("stages", STAGES)
def test_short_instructions_stay_below_the_start_up(stages):
    both = {f"column{i}": column(SBUF, 2048 + 4 * i) for i in range(2)}
    for columns in ({}, both):
        program = [activation(flat(SBUF, 0, 1), flat(SBUF, 1024, 1), **columns)] * 20
        run, *_ = run_directed(program, stages=stages, issue_gap=4)
        assert (
            run.completed[-1] - run.completed[3]
            <= 16 * lane_bench("scalar", stages).config.start_up_cycles
        )


@pytest.mark.parametrize("stages", STAGES)
def test_a_function_of_steps_back_to_back(stages):
    """n cycles an element in full batches; a last batch takes the latency of a lane a step."""
    for function in (Function.SQUARE, Function.SILU, Function.GELU):
        n, shortest = len(PROGRAMS[function]), LaneTiming(stages).result + 1
        for count, cycles in ((64, n * 64), (36, n * 32 + (n - 1) * max(4, shortest) + 4)):
            program = [activation(flat(SBUF, 0, count), flat(SBUF, 1024, count), function)] * 12
            run, *memories = run_directed(program, stages=stages, issue_gap=4)
            assert_scalar(run, program, *memories)
            assert (np.diff(run.completed[3:]) == cycles).all()


def state_of(partitions, seed):
    return np.random.default_rng(seed).integers(0, 1 << 32, (partitions, 6), np.uint32)


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("deny", [0, 120])
def test_random_states_between_functions(stages, deny):
    """Words that look like NaNs go in and come out; functions beside them are not disturbed."""
    get, set_ = ({"opcode": BY_NAME[f"rand_{verb}_state"].opcode} for verb in ("get", "set"))
    words = {"dtype": DType.UINT32}
    x, y = flat(SBUF, 0, 40), flat(SBUF, 256, 40, dtype=DType.BF16)
    program = [
        activation(x, y, Function.SILU),
        {**get, "dst": flat(SBUF, 512, 6, **words), "elements": 6},
        activation(x, y, Function.COPY, stochastic=1),
        {**set_, "src0": flat(SBUF, 600, 6, **words), "elements": 6},
        {**get, "dst": flat(PSUM, 512, 6, **words), "elements": 6},
        activation(x, y, Function.TANH, stochastic=1),
        {**get, "dst": flat(PSUM, 544, 6, **words), "elements": 6},
        {**set_, "src0": flat(SBUF, 512, 6, **words), "elements": 6},
        {**get, "dst": flat(PSUM, 576, 6, **words), "elements": 6},
    ]
    bench = lane_bench("scalar", stages)
    sbuf, psum = random_memories(np.random.default_rng(3), bench.config)
    state = state_of(bench.config.partitions, 4)
    state[:, ::2] = np.array([0x7F800001, 0xFFC00000, 0x80000001], np.uint32)
    sbuf[:, 600:624] = state.view(np.uint8)
    run = bench.run(program, sbuf, psum, cycle_limit=LIMIT, deny_read=deny, deny_write=deny)
    assert_scalar(run, program, sbuf, psum)
    assert (run.psum[:, 512:536] == state.view(np.uint8)).all()
    reset = np.array([123456789, 362436069, 521288629, 88675123, 5783321, 6615241], np.uint32)
    assert (run.sbuf[:, 512:536] == reset.view(np.uint8)).all()
    assert (run.psum[:, 544:568] != state.view(np.uint8)).any()
    assert (run.psum[:, 576:600] == reset.view(np.uint8)).all()
