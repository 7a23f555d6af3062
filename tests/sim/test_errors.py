"""Bad programs on the whole chip: the faulty sequencer stops with cause and program counter, the
others finish, the error line rises, the run ends, and the next program runs as if nothing had been
(cases H13, H22, H23, M5).  Fields that are legal alone and not together are trapped like words
that mean nothing.
"""

import numpy as np
import pytest

from celosia.programs.library import PROGRAMS
from isa.address_map import CORE_BASE, Cause, DmaCause, Sequencer, State
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.encoding import Descriptor, encode_descriptor, encode_int
from isa.fields import AluOp, Part
from isa.instructions import BY_OPCODE
from isa.program import DescriptorBlock
from sim.device import image_errors
from sim.script import Job
from verif.chip_runs import assert_equal, shallow

CONFIG = shallow("tiny")
SRC = {"src0.space": 1, "src0.partition_count": 4, **{f"src0.count{i}": 1 for i in range(4)}}
DST = {"dst.space": 1, "dst.partition_count": 4, **{f"dst.count{i}": 1 for i in range(4)}}
COPY = {**SRC, **DST}

WORDS = {
    Cause.ILLEGAL_OPCODE: ("vector", 0xFF | 1 << 8),
    Cause.BAD_VERSION: ("vector", encode_int("nop", {}) ^ 1 << 9),
    Cause.RESERVED_BITS: ("vector", encode_int("nop", {}) | 1 << 1023),
    Cause.BAD_OPERATOR: (
        "vector",
        encode_int("tensor_tensor", {**COPY, "src1.space": 1, "op0": 63}),
    ),
    Cause.BAD_SPACE: ("vector", encode_int("tensor_copy", {**COPY, "src0.space": 3})),
    Cause.BAD_DTYPE: ("vector", encode_int("tensor_copy", {**COPY, "src0.dtype": 14})),
    Cause.BAD_PARTITION: ("vector", encode_int("tensor_copy", {**COPY, "dst.partition": 1})),
    Cause.MISALIGNED: ("vector", encode_int("tensor_copy", {**COPY, "src0.offset": 2})),
    Cause.OUT_OF_RANGE: (
        "vector",
        encode_int("tensor_copy", {**COPY, "src0.offset": CONFIG.sbuf_bytes}),
    ),
    Cause.SHAPE_MISMATCH: ("vector", encode_int("tensor_copy", {**COPY, "src0.count0": 2})),
    Cause.BAD_ADDRESS: ("sync", encode_int("reg_load", {"address": CORE_BASE - 16})),
    Cause.BAD_DMA_ENGINE: (
        "sync",
        encode_int("dma_trigger", {"dma_engine": 15, "use_imm": 1, "imm": 1}),
    ),
    Cause.PC_OUT_OF_RANGE: ("sync", encode_int("branch", {"target": 1000})),
}


def word(name, *modes, **changes):
    """An instruction over one element in each of 4 partitions, in FP32 and SBUF where it is not
    said otherwise; modes: flags that are set; changes: other fields, `__` for the dot of a path.
    """
    fields = {**COPY, **{path.replace("src0", "src1"): value for path, value in SRC.items()}}
    slots = {"memset": ("dst",), "load_stationary": ("src0",)}.get(name, ("src0", "dst"))
    slots += ("src1",) if name.startswith("tensor_tensor") else ()
    fields = {path: value for path, value in fields.items() if path.startswith(slots)}
    if name == "multiply_moving":
        fields |= {"dst.space": 2, "dst.partition_count": 1}
    if name == "tensor_reduce":
        fields["reduce_dims"] = 1
    fields |= dict.fromkeys(modes, 1)
    return encode_int(
        name, fields | {path.replace("__", "."): int(value) for path, value in changes.items()}
    )


ADD, MAX = AluOp.ADD, AluOp.MAX
AND, INT_ADD = AluOp.BITWISE_AND, AluOp.INT_ADD
BF16, TF32, FP8 = DType.BF16, DType.TF32, DType.FP8_E4M3
INT8, INT16, INT32 = DType.INT8, DType.INT16, DType.INT32
OPERATOR, DTYPE, SHAPE = Cause.BAD_OPERATOR, Cause.BAD_DTYPE, Cause.SHAPE_MISMATCH
LOAD, LOAD_HALF = word("load_stationary", src0__dtype=FP8), word("load_stationary", part=Part.HIGH)
LOAD_DOUBLE = word("load_stationary", "double_row", src0__dtype=FP8)
LOAD_TRANSPOSE = word("load_stationary", "transpose", src0__dtype=FP8)
COMBINATIONS = (
    # Cause, part of the rule, words of which the last breaks it
    (DTYPE, "sat needs a dst of", word("tensor_copy", "sat", src0__dtype=BF16)),
    (DTYPE, "sat needs a dst of", word("tensor_copy", "sat", dst__dtype=TF32)),
    (DTYPE, "sat needs a dst of", word("memset", "sat", dst__dtype=INT8)),
    (DTYPE, "sat needs a dst of", word("tensor_reduce", "sat", op0=MAX)),
    (DTYPE, "sat needs a dst of", word("activation", "sat", func=1)),
    (DTYPE, "sat needs a cast", word("tensor_copy", "sat", src0__dtype=FP8, dst__dtype=FP8)),
    (OPERATOR, "raw ones do not round", word("tensor_tensor", "sat", op0=AND, dst__dtype=BF16)),
    (DTYPE, "stochastic needs a dst of", word("tensor_tensor", "stochastic", op0=ADD)),
    (
        DTYPE,
        "stochastic needs a dst of",
        word("tensor_tensor_scan", "stochastic", op0=ADD, op1=ADD, dst__dtype=INT32),
    ),
    (
        DTYPE,
        "stochastic needs a dst of",
        word("activation", "stochastic", func=2, dst__dtype=INT16),
    ),
    (
        DTYPE,
        "stochastic needs a cast",
        word("tensor_copy", "stochastic", src0__dtype=BF16, dst__dtype=BF16),
    ),
    (
        OPERATOR,
        "raw ones do not round",
        word("tensor_scalar", "stochastic", op0=INT_ADD, dst__dtype=BF16),
    ),
    (OPERATOR, "must both be raw", word("tensor_scalar", op0=AND, op1=ADD)),
    (OPERATOR, "must both be raw", word("tensor_scalar", op0=ADD, op1=INT_ADD)),
    (DTYPE, "part must be high, low", word("load_stationary")),
    (DTYPE, "part must be high, low", LOAD_HALF, word("multiply_moving")),
    (DTYPE, "part must be full", word("load_stationary", src0__dtype=BF16, part=Part.LOW)),
    (
        DTYPE,
        "part must be full",
        LOAD_HALF,
        word("multiply_moving", src0__dtype=FP8, part=Part.HIGH_FINITE),
    ),
    (DTYPE, "without transpose the dtype", word("load_stationary", src0__dtype=INT8)),
    (DTYPE, "1 or 2 bytes", word("load_stationary", "transpose", part=Part.HIGH)),
    (
        OPERATOR,
        "exclude each other",
        word("load_stationary", "transpose", "double_row", src0__dtype=FP8),
    ),
    (
        OPERATOR,
        "exclude each other",
        LOAD_DOUBLE,
        word("multiply_moving", "transpose", "double_row", src0__dtype=FP8),
    ),
    (DTYPE, "double_row needs fp8", word("load_stationary", "double_row", src0__dtype=BF16)),
    (
        DTYPE,
        "double_row needs fp8",
        LOAD_DOUBLE,
        word("multiply_moving", "double_row", src0__dtype=BF16),
    ),
    (
        SHAPE,
        "double_row = 1, the stationary was loaded with double_row = 0",
        LOAD,
        word("multiply_moving", "double_row", src0__dtype=FP8),
    ),
    (
        SHAPE,
        "transpose = 0, the stationary was loaded with transpose = 1",
        LOAD_TRANSPOSE,
        word("multiply_moving", src0__dtype=FP8),
    ),
)


def busy_builder(config=CONFIG):
    """A program whose vector engine does real work, next to whatever a test adds."""
    b = ProgramBuilder(config)
    x = np.arange(4 * 8, dtype=np.float32).reshape(4, 8)
    b.semaphore("loaded")
    tile = b.sbuf("tile", (4, 8), DType.FP32)
    b.dma_copy(
        engine=0,
        via=b.gpsimd,
        src=b.hbm_tensor("x", x.shape, DType.FP32, "input", x),
        dst=tile,
        update=("loaded", "increment"),
    )
    b.scalar.activation(
        src0=tile,
        dst=b.sbuf("twice", (4, 8), DType.FP32),
        func="copy",
        scale=2.0,
        wait=("loaded", 1),
    )
    return b


def after(program, **options):
    """Jobs: the bad program, then a good one; both images must equal the golden model's."""
    config = program.config
    good = PROGRAMS["odd_gemm"](config, 1)
    batch, expected = assert_equal(
        config, [Job(program, **options), Job(good.program)], golden_options={"on_hazard": "report"}
    )
    assert batch.results[0].error
    assert not batch.results[1].error
    return batch.results[0].image, expected[0][1]


@pytest.mark.parametrize("cause", WORDS, ids=lambda cause: cause.name)
def test_faulty_word(cause):
    name, word = WORDS[cause]
    b = busy_builder()
    stream = getattr(b, name)
    stream.nop()
    stream.raw(word)
    image, _ = after(b.build())
    state = image.sequencers[Sequencer[name.upper()]]
    assert (state.state, state.cause, state.pc) == (State.ERROR, cause, 1)
    assert image.sequencers[Sequencer.SCALAR].state == State.HALTED


def assert_refused(config, cause, rule, *words):
    """The last word stops its sequencer with `cause`, for that `rule` and without its update."""
    b = busy_builder(config)
    b.semaphore("never")
    sequencer = min(BY_OPCODE[words[-1] & 0xFF].sequencers)
    stream = b.streams[sequencer]
    index = len(stream) + len(words) - 1
    for item in words[:-1]:
        stream.raw(item)
    stream.raw(words[-1] | encode_int("nop", {"update_kind": 1, "update_semaphore": 1}))
    stream.nop(update=("never", "increment"))
    image, golden = after(b.build())
    state = image.sequencers[sequencer]
    assert (state.state, state.cause, state.pc) == (State.ERROR, cause, index)
    assert state.retired == index
    assert image.semaphores[:2].tolist() == [1, 0]
    others = {Sequencer.SCALAR, Sequencer.GPSIMD} - {sequencer}
    assert all(image.sequencers[other].state == State.HALTED for other in others)
    assert rule in golden[sequencer].message


def name_of(case):
    _, rule, *words = case
    return f"{BY_OPCODE[words[-1] & 0xFF].name}-{rule.replace(' ', '-')}"


@pytest.mark.parametrize("case", COMBINATIONS, ids=name_of)
def test_illegal_combination(case):
    assert_refused(CONFIG, *case)


def test_double_rows_on_a_chip_without_them():
    assert_refused(shallow("small"), Cause.OUT_OF_RANGE, "this chip has single rows", LOAD_DOUBLE)


def test_running_off_the_end():
    b = busy_builder()
    b.sync.nop()
    program = b.build()
    stream = program.stream(Sequencer.SYNC)
    del stream.words[-1]
    image, _ = after(program)
    state = image.sequencers[Sequencer.SYNC]
    assert (state.state, state.cause, state.pc) == (State.ERROR, Cause.PC_OUT_OF_RANGE, 1)


def test_fifth_nested_loop():
    b = busy_builder()
    for _ in range(5):
        b.sync.emit("loop", imm=2, target="end")
    b.sync.nop()
    b.sync.label("end")
    image, _ = after(b.build())
    state = image.sequencers[Sequencer.SYNC]
    assert (state.cause, state.pc) == (Cause.LOOP_DEPTH, 4)


def test_wait_that_is_never_satisfied():
    b = busy_builder()
    b.semaphore("never")
    b.sync.sem_wait(wait=("never", 3))
    program = b.build()
    image, _ = after(program, watchdog=3000)
    state = image.sequencers[Sequencer.SYNC]
    assert (state.cause, state.wait_semaphore, state.wait_value) == (Cause.WAIT_TIMEOUT, 1, 3)
    (line,) = image_errors(program, image)
    assert "sync[0]" in line and "WAIT_TIMEOUT" in line and "(never) >= 3, it is 0" in line


@pytest.mark.parametrize(
    "change, cause",
    [
        ({"kind": 7}, DmaCause.BAD_DESCRIPTOR),
        ({"src_address": CONFIG.hbm_bytes - 4}, DmaCause.BAD_ADDRESS),
    ],
    ids=["descriptor", "address"],
)
def test_bad_descriptor(change, cause):
    """The descriptor is dropped without its update; the one behind it runs."""
    b = busy_builder()
    y = b.hbm_tensor("y", (16,), DType.FP32, "output")
    good = Descriptor(
        src_address=0,
        dst_address=y.address,
        row_bytes=16,
        count=(1, 1, 1),
        src_stride=(0, 0, 0),
        dst_stride=(0, 0, 0),
    )
    fields = {name: value for name, value in change.items() if name != "kind"}
    bad = int.from_bytes(encode_descriptor(Descriptor(**{**good.__dict__, **fields})), "little")
    if "kind" in change:
        bad = bad & ~0xFF | change["kind"]
    block = b.descriptors([good, good], "mixed")
    b.sync.dma_trigger(dma_engine=1, imm=2, address=block.address)
    program = b.build()
    stored = next(item for item in program.descriptors if item.name == "mixed")
    assert isinstance(stored, DescriptorBlock)
    stored.words[0] = bad.to_bytes(128, "little")
    image, _ = after(program)
    assert image.dma[1].cause == cause
    assert image.dma[1].error_address == block.address
    assert image.dma[1].descriptors == 1
