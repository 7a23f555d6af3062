"""Scans: the order, what is carried on, every number of elements."""

import numpy as np
import pytest

from isa.dtypes import DType
from isa.fields import AluOp, Space
from isa.instructions import BY_NAME
from verif import softfloat
from verif.equality import assert_same
from verif.lane_bench import lane_bench
from verif.lane_model import assert_run
from verif.lane_programs import Programs, random_memories
from verif.memory_bench import make_pattern

STAGES = (1, 4, 6)
LIMIT = 60_000
SOFT = {
    AluOp.ADD: softfloat.add,
    AluOp.SUBTRACT: softfloat.subtract,
    AluOp.MULTIPLY: softfloat.multiply,
}


def scan(config, count, op0, op1, *, at=0, dtype=DType.FP32, **fields):
    patterns = {
        slot: make_pattern(
            config,
            space=Space.SBUF,
            dtype=dtype if slot == "dst" else DType.FP32,
            offset=at + 2048 * place,
            dims=[(1, count)],
        )
        for place, slot in enumerate(("src0", "src1", "dst"))
    }
    opcode = BY_NAME["tensor_tensor_scan"].opcode
    return {
        "opcode": opcode,
        "op0": int(op0),
        "op1": int(op1),
        "elements": count,
        **patterns,
        **fields,
    }


def loop(op0, op1, a, b, carry):
    """By SoftFloat, one element after the other: codes [P, count]."""
    found = np.empty_like(a)
    for i in range(a.shape[1]):
        carry = SOFT[op1](SOFT[op0](a[:, i], carry), b[:, i])
        found[:, i] = carry
    return found


def words(image, offset, count):
    return np.ascontiguousarray(image[:, offset : offset + 4 * count]).view(np.uint32)


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("op0", SOFT)
@pytest.mark.parametrize("op1", SOFT)
def test_element_after_element(stages, op0, op1):
    bench = lane_bench("vector", stages)
    rng = np.random.default_rng([stages, op0, op1])
    sbuf, psum = random_memories(rng, bench.config)
    initial = 0xBFC00000
    for count in (1, 2, 40):
        run = bench.run(
            [scan(bench.config, count, op0, op1, imm0=initial)], sbuf, psum, cycle_limit=LIMIT
        )
        first = np.full(bench.config.partitions, initial, np.uint32)
        a, b = words(sbuf, 0, count), words(sbuf, 2048, count)
        assert_same(words(run.sbuf, 4096, count), loop(op0, op1, a, b, first))


def test_running_sums_are_not_sums_of_partials():
    """2^24 + 1 + 1 + ... stays, whereas eight partials would add the ones up first."""
    bench = lane_bench("vector", 4)
    sbuf = np.zeros((bench.config.partitions, bench.config.sbuf_bytes), np.uint8)
    psum = np.zeros((bench.config.partitions, bench.config.psum_bytes), np.uint8)
    values = np.array([2.0**24] + [1.0] * 31, np.float32)
    sbuf[:, :128] = values.view(np.uint8)
    sbuf[:, 2048 : 2048 + 128] = np.ones(32, np.float32).view(np.uint8)
    # (src0 + carry) * 1
    run = bench.run(
        [scan(bench.config, 32, AluOp.ADD, AluOp.MULTIPLY, imm0=0)], sbuf, psum, cycle_limit=LIMIT
    )
    assert (words(run.sbuf, 4096, 32).view(np.float32) == np.float32(2.0**24)).all()


def test_what_is_carried_on_is_not_rounded_to_the_dtype():
    """In BF16 1 + 2^-9 is 1; 1 + 2 * 2^-9 + ... reaches the next number all the same."""
    bench = lane_bench("vector", 4)
    sbuf = np.zeros((bench.config.partitions, bench.config.sbuf_bytes), np.uint8)
    psum = np.zeros((bench.config.partitions, bench.config.psum_bytes), np.uint8)
    sbuf[:, : 4 * 8] = np.full(8, 2.0**-9, np.float32).view(np.uint8)
    program = [scan(bench.config, 8, AluOp.ADD, AluOp.ADD, dtype=DType.BF16, imm0=0x3F800000)]
    found = bench.run(program, sbuf, psum, cycle_limit=LIMIT).sbuf[:, 4096 : 4096 + 16]
    # 1 + i 2^-9 in steps of 2^-7, ties to even.
    expected = [0x3F80, 0x3F80, 0x3F81, 0x3F81, 0x3F81, 0x3F82, 0x3F82, 0x3F82]
    assert (np.ascontiguousarray(found).view(np.uint16) == expected).all()


@pytest.mark.parametrize("stages", STAGES)
def test_back_to_back_with_everything_else(stages):
    """Initial values are the instruction's own, from a column or not, whatever came before."""
    bench = lane_bench("vector", stages)
    names = ("tensor_tensor_scan", "tensor_tensor_scan", "tensor_scalar", "tensor_reduce", "memset")
    for seed in range(6):
        rng = np.random.default_rng([stages, seed])
        sbuf, psum = random_memories(rng, bench.config)
        program = Programs(rng, bench.config, max_elements=12).program(names, 50)
        deny = (0, 100)[seed % 2]
        run = bench.run(
            program, sbuf, psum, cycle_limit=LIMIT, deny_read=deny, deny_write=deny, seed=seed + 1
        )
        assert_run(run, program, sbuf, psum)
