"""The vector engine with memories round it against sequential execution in numpy."""

import numpy as np
import pytest

from isa.dtypes import DType
from isa.fields import AluOp, Space
from isa.instructions import BY_NAME
from verif.lane_bench import lane_bench
from verif.lane_model import assert_run
from verif.lane_programs import VECTOR, Programs, random_memories
from verif.memory_bench import make_pattern

STAGES = (1, 4)
LIMIT = 60_000
SBUF, PSUM = Space.SBUF, Space.PSUM


def random_run(seed, stages, names, length, *, max_elements=40, name="tiny"):
    """Runs and checks one random program; returns it, the memories before it and the run."""
    bench = lane_bench("vector", stages, name)
    rng = np.random.default_rng(seed)
    window = (None, 512, 96)[int(rng.integers(3))]
    sbuf, psum = random_memories(rng, bench.config)
    program = Programs(rng, bench.config, window=window, max_elements=max_elements).program(
        names, length
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
    assert_run(run, program, sbuf, psum)
    return program, (sbuf, psum), run


@pytest.mark.parametrize("stages", STAGES)
def test_random_programs(stages):
    for seed in range(20):
        random_run(seed, stages, VECTOR, 50)


@pytest.mark.parametrize("name", VECTOR)
def test_each_instruction(name):
    for seed in range(100, 106):
        random_run(seed, 4, [name], 50)


def test_long_instructions():
    for seed in range(200, 204):
        random_run(seed, 4, VECTOR, 12, max_elements=600)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("stages", "name"), [(1, "tiny"), (2, "tiny"), (4, "tiny"), (6, "tiny"), (2, "small")]
)
def test_many_random_programs(stages, name):
    for seed in range(1000, 1400):
        random_run(
            seed,
            stages,
            VECTOR,
            60,
            name=name,
            max_elements=int(np.random.default_rng(seed).choice([8, 40, 200])),
        )


def test_depth_does_not_change_results():
    for seed in range(300, 304):
        program, memories, shallow = random_run(seed, 1, VECTOR, 40)
        deep = lane_bench("vector", 4).run(program, *memories, cycle_limit=LIMIT)
        assert (deep.sbuf == shallow.sbuf).all()
        assert (deep.psum == shallow.psum).all()


def flat(space, offset, count, *, dtype=DType.FP32, partition=0, partition_count=4, step=1):
    return make_pattern(
        lane_bench("vector", 1).config,
        space=space,
        dtype=dtype,
        offset=offset,
        dims=[(step, count)],
        partition=partition,
        partition_count=partition_count,
    )


def instruction(name, **fields):
    return {
        "opcode": BY_NAME[name].opcode,
        **fields,
        "elements": int(np.prod(fields.get("src0", fields["dst"])["count"])),
    }


def column(space, offset, *, dtype=DType.FP32, partition=0):
    return {"space": int(space), "dtype": int(dtype), "partition": partition, "offset": offset}


def run_directed(program, *, seed=7, stages=4, **options):
    bench = lane_bench("vector", stages)
    sbuf, psum = random_memories(np.random.default_rng(seed), bench.config)
    run = bench.run(program, sbuf, psum, cycle_limit=LIMIT, **options)
    return run, sbuf, psum


@pytest.mark.parametrize("space", [SBUF, PSUM])
def test_every_pair_of_quadrants(space):
    program = []
    for source in range(4):
        for target in range(4):
            place = 16 * (4 * source + target)
            program.append(
                instruction(
                    "tensor_scalar",
                    src0=flat(SBUF, 0, 3, partition=source, partition_count=1),
                    dst=flat(space, 1024 + place, 3, partition=target, partition_count=1),
                    column0=column(PSUM, 64, partition=(source + target) % 4),
                    column1=column(SBUF, 32, partition=target),
                    op0=int(AluOp.ADD),
                    op1=int(AluOp.SUBTRACT),
                )
            )
    run, *memories = run_directed(program)
    assert_run(run, program, *memories)


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("count", [1, 9])
def test_chains_of_dependent_instructions(stages, count):
    """Each reads the result of the one before: through src0, src1, either column, in place."""
    sbuf, psum = (lambda at, n=count: flat(SBUF, at, n)), (lambda at, n=count: flat(PSUM, at, n))
    add, multiply, least = int(AluOp.ADD), int(AluOp.MULTIPLY), int(AluOp.MIN)
    chain = [
        instruction("memset", dst=sbuf(0), imm0=0x3FC00000),
        instruction("tensor_tensor", src0=sbuf(512), src1=sbuf(0), dst=psum(0), op0=multiply),
        instruction("tensor_tensor", src0=psum(0), src1=psum(256), dst=psum(0), op0=add),
        instruction("tensor_copy", src0=psum(0), dst=sbuf(64)),
        instruction(
            "tensor_scalar",
            src0=sbuf(512),
            dst=sbuf(128),
            column0=column(SBUF, 64),
            column1=column(PSUM, 512),
            op0=add,
            op1=least,
        ),
        instruction(
            "tensor_scalar",
            src0=sbuf(1024),
            dst=psum(512),
            column0=column(SBUF, 2048),
            column1=column(SBUF, 128 + 4 * (count - 1)),
            op0=multiply,
            op1=add,
        ),
        instruction("tensor_reduce", src0=psum(512), dst=psum(768, 1), op0=add, reduce_dims=1),
        instruction(
            "tensor_scalar",
            src0=sbuf(0),
            dst=sbuf(0),
            column0=column(PSUM, 768),
            imm1=0,
            op0=add,
            op1=0,
        ),
    ]
    program = chain * 5
    for gap in (0, 4):
        run, *memories = run_directed(program, stages=stages, issue_gap=gap)
        assert_run(run, program, *memories)


@pytest.mark.parametrize("index", [0, 1])
def test_the_upper_half_of_a_column_is_a_hazard_too(index):
    """An instruction that writes only the upper BF16 of an FP32 column holds its reader."""
    used = {f"column{index}": column(SBUF, 64), f"imm{1 - index}": 0x3F800000}
    program = [
        instruction("memset", dst=flat(SBUF, 66, 1, dtype=DType.BF16), imm0=0x41200000),
        instruction(
            "tensor_scalar",
            src0=flat(PSUM, 0, 4),
            dst=flat(PSUM, 64, 4),
            op0=int(AluOp.MULTIPLY),
            op1=int(AluOp.MULTIPLY),
            **used,
        ),
    ]
    run, *memories = run_directed(program)
    assert_run(run, program, *memories)


def disjoint_program():
    """40 instructions, each with memory of its own."""
    rng = np.random.default_rng(11)
    program = []
    for index in range(40):
        at = 192 * index
        count = int(rng.integers(1, 17))
        src0, src1 = flat(SBUF, at, count), flat(SBUF, at + 64, count)
        if rng.random() < 0.3:
            src0 = flat(PSUM, 32 * index, min(count, 8))
            count = min(count, 8)
            src1 = flat(SBUF, at + 64, count)
        choice = {
            "tensor_tensor": {"src0": src0, "src1": src1},
            "tensor_tensor_scan": {"src0": src0, "src1": src1, "column0": column(SBUF, at + 96)},
            "tensor_scalar": {
                "src0": src0,
                "column0": column(SBUF, at + 64),
                "column1": column(SBUF, at + 96, dtype=DType.BF16),
            },
            "tensor_copy": {"src0": src0},
            "tensor_reduce": {"src0": src0, "reduce_dims": 1},
            "memset": {"imm0": 0x40400000},
        }
        name = str(rng.choice(list(choice)))
        program.append(
            instruction(
                name,
                **choice[name],
                dst=flat(SBUF, at + 128, 1 if name == "tensor_reduce" else count),
                op0=int(AluOp.ADD),
                op1=int(AluOp.MULTIPLY),
            )
        )
    return program


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("late", [False, True])
def test_reports_are_true(stages, late):
    """Sources may be overwritten from read_done on; results are in memory at complete."""
    program = disjoint_program()
    spoil = {
        index: [name for name in ("src0", "src1", "column0", "column1") if name in i][-2:]
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
        assert_run(clean, program, sbuf, psum)
        for i, kept in zip(program, run.kept, strict=True):
            assert (kept == clean.sbuf[:, i["dst"]["low"] : i["dst"]["high"]]).all()


def words(memory, offset, count, dtype="<u4"):
    size = np.dtype(dtype).itemsize
    return np.ascontiguousarray(memory[:, offset : offset + size * count]).view(dtype)


NANS = np.array(
    [
        0x7F800001,
        0xFFC12345,
        0x7FFFFFFF,
        0xFF800001,
        0x80000000,
        0x00000001,
        0x7F7FFFFF,
        0xFF800000,
    ],
    np.uint32,
)


def test_copies_of_one_dtype_move_bits_and_casts_make_canonical_nans():
    config = lane_bench("vector", 4).config
    sbuf = np.zeros((config.partitions, config.sbuf_bytes), np.uint8)
    psum = np.zeros((config.partitions, config.psum_bytes), np.uint8)
    sbuf[:, :32] = NANS.view(np.uint8)
    short = (NANS >> 16).astype("<u2")
    sbuf[:, 64:80] = short.view(np.uint8)
    bf16, fp32 = {"dtype": DType.BF16}, {"dtype": DType.FP32}
    program = [
        instruction("tensor_copy", src0=flat(SBUF, 0, 8), dst=flat(PSUM, 0, 8)),
        instruction("tensor_copy", src0=flat(SBUF, 64, 8, **bf16), dst=flat(PSUM, 64, 8, **bf16)),
        instruction("tensor_copy", src0=flat(SBUF, 64, 8, **bf16), dst=flat(PSUM, 128, 8, **fp32)),
        instruction("tensor_copy", src0=flat(SBUF, 0, 8), dst=flat(PSUM, 192, 8, **bf16)),
        instruction("memset", dst=flat(PSUM, 256, 2), imm0=0xFFC12345),
        instruction("memset", dst=flat(PSUM, 320, 2, **bf16), imm0=0xFFC12345),
        instruction(
            "tensor_scalar",
            src0=flat(SBUF, 64, 8, **bf16),
            dst=flat(PSUM, 384, 8),
            op0=int(AluOp.ADD),
            op1=0,
            imm0=0x80000000,
        ),
    ]
    run = lane_bench("vector", 4).run(program, sbuf, psum, cycle_limit=LIMIT)
    for p in range(config.partitions):
        assert (words(run.psum, 0, 8)[p] == NANS).all()
        assert (words(run.psum, 64, 8, "<u2")[p] == short).all()
        assert (words(run.psum, 128, 8)[p] == short.astype(np.uint32) << 16).all()
        assert list(words(run.psum, 192, 8, "<u2")[p]) == [
            0x7FC0,
            0x7FC0,
            0x7FC0,
            0x7FC0,
            0x8000,
            0x0000,
            0x7F80,
            0xFF80,
        ]
        assert (words(run.psum, 256, 2)[p] == 0xFFC12345).all()
        assert (words(run.psum, 320, 2, "<u2")[p] == 0x7FC0).all()
        sums = words(run.psum, 384, 8)[p]
        # 7F80 and FF80 are infinities; the NaNs among the codes become the canonical one.
        assert list(sums) == [
            0x7F800000,
            0x7FC00000,
            0x7FC00000,
            0xFF800000,
            0x80000000,
            0,
            0x7F7F0000,
            0xFF800000,
        ]
