"""Instructions that a chip refuses: cause, place, and that nothing else is disturbed."""

import random

import pytest

from golden.chip import GoldenChip
from isa.address_map import CORE_BASE, Cause, Sequencer, State
from isa.builder import ProgramBuilder
from isa.encoding import encode, encode_int
from isa.fields import Space
from isa.geometry import preset
from isa.pattern import AccessPattern, Reg
from verif.random_program import generate

CONFIG = preset("tiny")
BF16, FP32 = 1, 0


def operand(slot, space=Space.SBUF, dtype=FP32, partition=0, count=4, offset=0, **dims):
    values = {"space": space, "dtype": dtype, "partition": partition, "partition_count": count}
    values |= {"offset": offset, "count0": 4, "count1": 1, "count2": 1, "count3": 1, "step0": 1}
    return {f"{slot}.{name}": int(value) for name, value in (values | dims).items()}


def copy(**changes):
    fields = {**operand("src0"), **operand("dst", offset=64), **changes}
    return encode_int("tensor_copy", fields)


def stationary(**changes):
    return encode_int("load_stationary", {**operand("src0", dtype=BF16), **changes})


def multiply(**changes):
    moving = operand("src0", dtype=BF16)
    return encode_int("multiply_moving", {**moving, **operand("dst", Space.PSUM), **changes})


CASES = [
    ("undefined opcode", "vector", [copy() | 0xFF], Cause.ILLEGAL_OPCODE),
    ("other engine", "scalar", [copy()], Cause.ILLEGAL_OPCODE),
    ("version", "vector", [copy() ^ 1 << 8], Cause.BAD_VERSION),
    ("version before opcode", "vector", [(copy() | 0xFF) ^ 1 << 8], Cause.BAD_VERSION),
    ("reserved bit", "vector", [copy() | 1 << 1023], Cause.RESERVED_BITS),
    (
        "register number",
        "vector",
        [copy(**{"src0.regs": 1, "src0.offset": 64})],
        Cause.RESERVED_BITS,
    ),
    ("register of a wait", "vector", [copy(wait_reg=1, wait_value=64)], Cause.RESERVED_BITS),
    ("update kind", "vector", [copy(update_kind=5)], Cause.BAD_OPERATOR),
    ("space", "vector", [copy(**{"dst.space": 3})], Cause.BAD_SPACE),
    ("no space", "vector", [copy(**{"dst.space": 0})], Cause.BAD_SPACE),
    ("dtype", "vector", [copy(**{"src0.dtype": 14})], Cause.BAD_DTYPE),
    ("space before dtype", "vector", [copy(**{"src0.dtype": 14, "dst.space": 0})], Cause.BAD_SPACE),
    ("partition", "vector", [copy(**{"dst.partition": 1})], Cause.BAD_PARTITION),
    ("partition end", "vector", [copy(**{"dst.partition_count": 5})], Cause.BAD_PARTITION),
    ("misaligned", "vector", [copy(**{"dst.offset": 66})], Cause.MISALIGNED),
    ("below 0", "vector", [copy(**{"src0.step0": -1})], Cause.OUT_OF_RANGE),
    (
        "beyond the end",
        "vector",
        [copy(**{"dst.offset": CONFIG.sbuf_bytes - 12})],
        Cause.OUT_OF_RANGE,
    ),
    (
        "too many",
        "vector",
        [copy(**{"src0.step0": 0, "src0.count0": 65535, "src0.count1": 2})],
        Cause.OUT_OF_RANGE,
    ),
    ("shape", "vector", [copy(**{"src0.count0": 5})], Cause.SHAPE_MISMATCH),
    ("no stationary", "tensor", [multiply()], Cause.SHAPE_MISMATCH),
    ("K", "tensor", [stationary(), multiply(**{"src0.partition_count": 3})], Cause.SHAPE_MISMATCH),
    ("M", "tensor", [stationary(), multiply(**{"dst.partition_count": 3})], Cause.SHAPE_MISMATCH),
    ("N", "tensor", [stationary(), multiply(**{"dst.count0": 3})], Cause.SHAPE_MISMATCH),
    ("M too large", "tensor", [stationary(**{"src0.count0": 5})], Cause.OUT_OF_RANGE),
    (
        "over a bank",
        "tensor",
        [stationary(), multiply(**{"dst.offset": 256 - 8})],
        Cause.OUT_OF_RANGE,
    ),
    ("stationary in PSUM", "tensor", [stationary(**{"src0.space": 2})], Cause.BAD_SPACE),
    ("alu op", "sync", [encode_int("reg_alu", {"alu_op": 9})], Cause.BAD_OPERATOR),
    ("condition", "sync", [encode_int("branch", {"cond": 7})], Cause.BAD_OPERATOR),
    ("unaligned word", "sync", [encode_int("reg_load", {"address": 2})], Cause.BAD_ADDRESS),
    ("gap", "sync", [encode_int("reg_store", {"address": CORE_BASE - 4})], Cause.BAD_ADDRESS),
    ("descriptor", "sync", [encode_int("dma_trigger", {"address": 64})], Cause.BAD_ADDRESS),
    ("no DMA engine", "sync", [encode_int("dma_trigger", {"dma_engine": 2})], Cause.BAD_DMA_ENGINE),
    ("branch target", "sync", [encode_int("branch", {"target": 7})], Cause.PC_OUT_OF_RANGE),
    ("loop backwards", "sync", [encode_int("loop", {"target": 2})], Cause.PC_OUT_OF_RANGE),
    ("loop beyond the end", "sync", [encode_int("loop", {"target": 7})], Cause.PC_OUT_OF_RANGE),
]


@pytest.mark.parametrize(
    ("words", "sequencer", "cause"),
    [c[2:0:-1] + c[3:] for c in CASES],
    ids=[c[0].replace(" ", "-") for c in CASES],
)
def test_cause(words, sequencer, cause):
    """The bad word has an update (and a wait) that must not count; another stream goes on."""
    builder = ProgramBuilder(CONFIG)
    stream = builder.streams[Sequencer[sequencer.upper()]]
    stream.nop()
    stream.nop(update=(1, "increment"))
    for word in words[:-1]:
        stream.raw(word)
    stream.raw(words[-1] | 1 << 64)
    stream.nop(update=(2, "increment"))
    other = builder.streams[Sequencer.GPSIMD]
    other.sem_wait(wait=(1, 1), update=(3, "increment"))
    other.notify(imm=77)
    chip = GoldenChip(CONFIG, uninitialised=False)
    before = chip.memories.sbuf.bytes.copy()
    result = chip.run(builder.build())
    status = result[stream.sequencer]
    index = 1 + len(words)
    assert (status.state, status.cause, status.pc) == (State.ERROR, cause, index), status.message
    assert status.retired == index
    assert result.semaphores[:4].tolist() == [0, 1, 0, 1]
    assert result[Sequencer.GPSIMD].notify_value == 77
    assert (chip.memories.sbuf.bytes == before).all()
    assert result.errors()[0].startswith(f"{sequencer}[{index}]: {cause.name}")


def test_a_loop_too_deep_and_a_loop_beyond_the_enclosing_one():
    builder = ProgramBuilder(CONFIG)
    stream = builder.sync
    for depth in range(5):
        stream.emit("loop", imm=1, target=f"end{depth}")
    stream.nop()
    for depth in range(5):
        stream.label(f"end{depth}")
    status = GoldenChip(CONFIG).run(builder.build())[Sequencer.SYNC]
    assert (status.cause, status.pc, status.retired) == (Cause.LOOP_DEPTH, 4, 4)

    builder = ProgramBuilder(CONFIG)
    stream = builder.sync
    stream.emit("loop", imm=1, target="end")
    stream.emit("loop", imm=0, target="late")
    stream.nop()
    stream.label("end")
    stream.nop()
    stream.label("late")
    status = GoldenChip(CONFIG).run(builder.build())[Sequencer.SYNC]
    assert (status.cause, status.pc) == (Cause.PC_OUT_OF_RANGE, 1)


@pytest.mark.parametrize("times", [0, 1])
def test_a_fifth_loop_without_passes_is_fine(times):
    builder = ProgramBuilder(CONFIG)
    stream = builder.sync
    for depth in range(4):
        stream.emit("loop", imm=1, target=f"end{depth}")
    stream.emit("loop", imm=times, target="inner")
    if times == 0:
        stream.nop()
    stream.label("inner")
    for depth in range(4):
        stream.label(f"end{depth}")
    stream.notify(imm=1)
    assert GoldenChip(CONFIG).run(builder.build())[Sequencer.SYNC].notify_count == 1


def test_running_past_the_end_and_bad_streams():
    chip = GoldenChip(CONFIG)
    chip.write(0, encode("nop", {}) * 3)
    size = CONFIG.hbm_bytes
    for entry, cause, pc in (
        ((0, 3), Cause.PC_OUT_OF_RANGE, 3),
        ((64, 1), Cause.BAD_ADDRESS, 0),
        ((size - 128, 2), Cause.BAD_ADDRESS, 0),
        ((CORE_BASE, 1), Cause.BAD_ADDRESS, 0),
    ):
        result = chip.launch({Sequencer.SCALAR: entry})
        status = result[Sequencer.SCALAR]
        assert (status.state, status.cause, status.pc) == (State.ERROR, cause, pc)
    assert chip.launch({}).ok


def test_a_register_value_is_checked_in_full():
    for slot, value, cause in (
        ("src0.count0", 1 << 16, Cause.OUT_OF_RANGE),
        ("src0.offset", 1 << 24, Cause.OUT_OF_RANGE),
        ("src0.partition", 1 << 8, Cause.BAD_PARTITION),
        ("src0.partition_count", (1 << 8) + 4, Cause.BAD_PARTITION),
    ):
        builder = ProgramBuilder(CONFIG)
        bit = ("src0.offset", "src0.partition", "src0.partition_count", "src0.count0").index(slot)
        builder.vector.reg_alu(rd=Reg(7), alu_op="move", imm=value)
        builder.vector.raw(copy(**{"src0.regs": 1 << bit, slot: 7}))
        result = GoldenChip(CONFIG).run(builder.build())
        assert result[Sequencer.VECTOR].cause == cause, slot


def test_no_work_waits_updates_and_retires_whatever_the_rest_says():
    builder = ProgramBuilder(CONFIG)
    wild = AccessPattern(Space.PSUM, 0, 255, 255, 0xFFFFFF, ((-32768, 0), (5, 65535)))
    plain = AccessPattern(Space.SBUF, 0, 0, 4, 0, ((1, 4),))
    builder.vector.tensor_copy(src0=plain, dst=wild, wait=(1, 1), update=(2, "increment"))
    builder.tensor.multiply_moving(
        src0=AccessPattern(Space.SBUF, 1, 0, 4, 0, ((1, 0),)),
        dst=AccessPattern(Space.PSUM, 0, 0, 4, 0, ((1, 4),)),
        accumulate=True,
        update=(1, "increment"),
    )
    chip = GoldenChip(CONFIG)
    result = chip.run(builder.build())
    assert result.ok, result.errors()
    assert result.semaphores[[1, 2]].tolist() == [1, 1]
    assert result[Sequencer.VECTOR].retired == 2
    assert not chip.memories.sbuf.bytes.any() and not chip.memories.psum.bytes.any()


def test_any_word_has_a_defined_end():
    """Bits of random programs flipped: no exception, every sequencer ends, the chip is usable."""
    rng = random.Random(11)
    chip = GoldenChip(CONFIG, on_hazard="report")
    healthy = ProgramBuilder(CONFIG)
    healthy.sync.notify(imm=1)
    healthy = healthy.build()
    causes = set()
    for seed in range(12):
        program = generate(CONFIG, seed, 12)
        for _ in range(12):
            image = []
            for stream in program.streams:
                words = [bytearray(word) for word in stream.words]
                for _ in range(rng.choice((0, 1, 2))):
                    bit = rng.choice(
                        (rng.randrange(16), rng.randrange(128, 300), rng.randrange(1024))
                    )
                    word = rng.choice(words)
                    word[bit // 8] ^= 1 << bit % 8
                image.append((stream.address, b"".join(words)))
            chip.load(program)
            for address, content in image:
                chip.write(address, content)
            try:
                result = chip.launch(program.launch(), max_instructions=20000)
            except RuntimeError as error:
                assert "instructions" in str(error)
                continue
            for status in result.sequencers.values():
                assert status.state in (State.HALTED, State.ERROR, State.IDLE)
                causes.add(status.cause)
            assert chip.run(healthy).ok
    assert len(causes) >= 10, causes
