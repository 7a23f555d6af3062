"""Reductions: the order of the sums, every size of group, any number of dimensions."""

from functools import reduce

import numpy as np
import pytest

from isa.dtypes import DType
from isa.fields import AluOp, Space
from isa.instructions import BY_NAME
from verif.lane_bench import lane_bench
from verif.lane_model import assert_run
from verif.lane_programs import random_memories
from verif.memory_bench import make_pattern

STAGES = (1, 4, 6)
ADD, MAX = AluOp.ADD, AluOp.MAX


def split(rng, elements, dims):
    """`dims` counts whose product is `elements`."""
    counts = []
    for _ in range(dims - 1):
        counts.append(int(rng.choice([d for d in range(1, elements + 1) if elements % d == 0])))
        elements //= counts[-1]
    return [*counts, elements]


def reduction(config, group, groups, *, op, source, target, space=Space.SBUF):
    """Over a dense src0 with the counts `group` inside and `groups` outside, innermost first."""
    counts = [*group, *groups]
    steps = np.cumprod([1, *counts[:-1]]).tolist()
    results = int(np.prod(groups))
    return {
        "opcode": BY_NAME["tensor_reduce"].opcode,
        "op0": int(op),
        "reduce_dims": len(group),
        "src0": make_pattern(
            config,
            space=space,
            dtype=DType.FP32,
            offset=source,
            dims=list(zip(steps, counts, strict=True)),
        ),
        "dst": make_pattern(
            config, space=Space.SBUF, dtype=DType.FP32, offset=target, dims=[(1, results)]
        ),
        "elements": int(np.prod(counts)),
    }


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("op", [ADD, MAX])
def test_groups_of_every_size_and_shape(stages, op):
    bench = lane_bench("vector", stages)
    rng = np.random.default_rng([stages, int(op)])
    for dims in range(1, 5):
        sbuf, psum = random_memories(rng, bench.config)
        program = [
            reduction(
                bench.config,
                split(rng, size, dims),
                split(rng, int(rng.integers(1, 13)), 4 - dims) if dims < 4 else [],
                op=op,
                source=4 * int(rng.integers(0, 1000)),
                target=6144 + 64 * size,
            )
            for size in rng.permutation(np.arange(1, 21))
        ]
        for deny, gap in ((0, 4), (120, 0)):
            run = bench.run(
                program,
                sbuf,
                psum,
                cycle_limit=30_000,
                deny_read=deny,
                deny_write=deny,
                issue_gap=gap,
            )
            assert_run(run, program, sbuf, psum)


@pytest.mark.parametrize("stages", STAGES)
def test_many_groups_with_gaps_between_their_elements(stages):
    """From PSUM, where every element may be refused: sums of two groups wait at one node."""
    bench = lane_bench("vector", stages)
    rng = np.random.default_rng(stages)
    for deny in (13, 50, 128):
        sbuf, psum = random_memories(rng, bench.config)
        program = [
            reduction(
                bench.config,
                [size],
                [min(60, 500 // size)],
                op=ADD,
                source=0,
                target=256 * size,
                space=Space.PSUM,
            )
            for size in range(1, 21)
        ]
        run = bench.run(program, sbuf, psum, cycle_limit=60_000, deny_read=deny, seed=deny)
        assert_run(run, program, sbuf, psum)


@pytest.mark.nightly
def test_groups_at_other_depths():
    for stages in (2, 3, 5):
        test_groups_of_every_size_and_shape(stages, ADD)


def run_sums(values, stages=4, op=ADD):
    """Bits of the reduction of FP32 `values`, the same in all partitions."""
    bench = lane_bench("vector", stages)
    config = bench.config
    sbuf = np.zeros((config.partitions, config.sbuf_bytes), np.uint8)
    psum = np.zeros((config.partitions, config.psum_bytes), np.uint8)
    sbuf[:, : 4 * len(values)] = np.asarray(values, np.float32).view(np.uint8)
    program = [reduction(config, [len(values)], [1], op=op, source=0, target=4096)]
    run = bench.run(program, sbuf, psum, cycle_limit=5_000)
    found = np.ascontiguousarray(run.sbuf[:, 4096:4100]).view(np.uint32)
    assert (found == found[0]).all()
    return int(found[0, 0])


def bits(value):
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize("stages", STAGES)
def test_the_order_is_that_of_eight_partials(stages):
    """Other orders of these values give other sums, so only ours gives 17.

    13: sequential.  16: the partials one after the other.  19: a tree of neighbours without
    partials.  12: partials joined at distances 4, 2, 1.
    """
    big = 2.0**24
    values = [5, 1, -big, 2 * big, 3, big, 5, -big, 1, 1, -big, 1]
    assert run_sums(values, stages) == bits(17.0)
    assert float(reduce(np.add, np.array(values, np.float32))) == 13.0


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT16, DType.BF16])
def test_sums_are_wider_than_their_elements(dtype):
    """Partial sums of the width of an element, or a widening that the reference has wrong: integer
    sums beyond the range of the elements, exact in FP32, against Python's integers.
    """
    bench = lane_bench("vector", 4)
    config = bench.config
    low, high = {DType.INT8: (-128, 128), DType.UINT16: (60000, 65536)}.get(dtype, (129, 256))
    values = np.random.default_rng(int(dtype)).integers(low, high, (config.partitions, 100))
    values[:, :4] = low
    sbuf = np.zeros((config.partitions, config.sbuf_bytes), np.uint8)
    psum = np.zeros((config.partitions, config.psum_bytes), np.uint8)
    raw = np.ascontiguousarray(values.astype(np.float32).astype(dtype.numpy)).view(np.uint8)
    sbuf[:, : raw.shape[1]] = raw
    instruction = reduction(config, [100], [1], op=ADD, source=0, target=4096)
    instruction["src0"] = make_pattern(
        config, space=Space.SBUF, dtype=dtype, offset=0, dims=[(1, 100)]
    )
    run = bench.run([instruction], sbuf, psum, cycle_limit=5_000)
    found = np.ascontiguousarray(run.sbuf[:, 4096:4100]).view(np.float32)[:, 0]
    assert found.tolist() == [float(sum(row)) for row in values.tolist()]


def test_signs_of_zero_and_specials():
    assert run_sums([-0.0]) == bits(0.0)
    assert run_sums([-0.0] * 9) == bits(0.0)
    assert run_sums([np.inf, 1, -np.inf]) == 0x7FC00000
    assert run_sums([-0.0, -0.0], op=MAX) == bits(-0.0)
    assert run_sums([-0.0, 0.0], op=MAX) == bits(0.0)
    assert run_sums([-np.inf], op=MAX) == bits(-np.inf)
    assert run_sums([1, -np.float32(np.nan), 2], op=MAX) == 0x7FC00000
    assert run_sums([np.nan] + [5.0] * 15, op=MAX) == 0x7FC00000
