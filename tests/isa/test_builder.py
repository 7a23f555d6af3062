"""The builder: every instruction by name, allocation, labels, loops, DMA, and every misuse."""

import numpy as np
import pytest

from isa.address_map import Sequencer
from isa.arguments import NotCanonical, arguments_of, fields_of, parameters
from isa.assembler import assemble
from isa.builder import ProgramBuilder
from isa.dtypes import FP8, DType
from isa.encoding import Descriptor, EncodeError, decode, decode_descriptor, encode
from isa.fields import AluOp, Condition, Space, Update
from isa.geometry import preset
from isa.instructions import INSTRUCTIONS
from isa.pattern import AccessPattern, ColumnPattern, Reg
from isa.placement import ProgramError
from isa.program_file import dumps, loads
from isa.values import Address, Bits, SemaphoreUpdate, Wait, float_bits

SMALL = preset("small")


@pytest.fixture
def b():
    builder = ProgramBuilder(SMALL)
    builder.semaphore("loaded")
    builder.semaphore("done")
    return builder


def last(stream):
    """(instruction name, fields) of the last instruction of a finished stream, the added halt
    left out.
    """
    words, _, _ = stream.finish()
    instruction, fields = decode(words[-2])
    return instruction.name, fields


def test_a_program(b):
    x = b.hbm_tensor("x", (16, 64), DType.FP32, "input")
    y = b.hbm_tensor("y", (16, 64), DType.FP32, "output")
    t = b.sbuf("t", (16, 64), DType.FP32)
    b.dma_copy(engine=0, via=b.sync, src=x, dst=t, update=("loaded", "increment"))
    with b.vector.loop(3):
        b.vector.tensor_copy(
            src0=t[:, :32],
            dst=t[:, 32:],
            wait=("loaded", 1),
            update=("done", "add", 2),
            at_read=True,
        )
    b.dma_copy(engine=1, via="sync", src=t, dst=y, wait=("done", 6), update=("done", "set", 0))
    program = b.build()
    assert [s.sequencer for s in program.streams] == [Sequencer.VECTOR, Sequencer.SYNC]
    names = [decode(word)[0].name for word in program.stream(Sequencer.VECTOR).words]
    assert names == ["loop", "tensor_copy", "halt"]
    _, loop = decode(program.streams[0].words[0])
    assert (loop["imm"], loop["use_imm"], loop["target"]) == (3, 1, 2)
    _, copy = decode(program.streams[0].words[1])
    assert (copy["wait"], copy["wait_semaphore"], copy["wait_value"]) == (1, 0, 1)
    assert (
        copy["update_kind"],
        copy["update_at_read"],
        copy["update_semaphore"],
        copy["update_value"],
    ) == (3, 1, 1, 2)
    assert (copy["src0.offset"], copy["dst.offset"], copy["dst.count0"]) == (0, 128, 32)
    assert program.semaphores == {"loaded": 0, "done": 1}
    assert program.stream(Sequencer.VECTOR).line(1).startswith("test_builder.py:")
    _, trigger = decode(program.stream(Sequencer.SYNC).words[1])
    assert trigger["address"] == program.descriptors[1].address
    assert (trigger["dma_engine"], trigger["imm"], trigger["wait_value"]) == (1, 1, 6)
    assert decode_descriptor(program.descriptors[1].words[0]).update_kind is Update.SET
    assert loads(dumps(program)) == program


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda i: i.name)
def test_every_instruction_has_a_method_that_equals_its_fields(instruction, b):
    columns = 6 if instruction.shape == "state" else 16
    patterns = {
        o.slot: AccessPattern(o.spaces[0], o.dtypes[0], 0, 16, 0, ((1, columns),))
        for o in instruction.operands
    }
    bf16 = instruction.name in ("load_stationary", "multiply_moving")
    if bf16:
        patterns["src0"] = patterns["src0"].with_(dtype=DType.BF16)
    arguments = dict(patterns)
    if instruction.name == "tensor_reduce":
        arguments["dst"] = patterns["dst"].with_(dims=((0, 1),))
    for name, needed in parameters(instruction).items():
        if needed and name not in arguments:
            arguments[name] = {
                "op0": "add",
                "op1": "max",
                "func": "relu",
                "alu_op": "add",
                "cond": "eq",
                "imm0": 2.5,
                "imm": 7,
                "rd": Reg(3),
                "rb": Reg(5),
                "address": 0x1000,
                "target": 1,
                "wait": Wait(1, 2),
                "update": SemaphoreUpdate(Update.ADD, 1, 2),
            }[name]
    if "use_imm" in instruction.options:
        arguments["imm"] = 1
    stream = b.streams[min(instruction.sequencers)]
    if instruction.name == "loop":
        stream.emit("loop", **arguments)
    else:
        getattr(stream, instruction.name)(**arguments)
        assert instruction.doc in getattr(type(stream), instruction.name).__doc__
    words, _, _ = stream.finish()
    assert words[0] == encode(instruction.name, fields_of(instruction.name, arguments))
    assert not bf16 or decode(words[0])[1]["src0.dtype"] == 1


@pytest.mark.parametrize(
    "name, fields, path",
    [
        ("nop", {"wait_value": 1}, "wait_value"),
        ("nop", {"update_at_read": 1}, "update_at_read"),
        ("reg_alu", {"use_imm": 1, "rb": 2}, "rb"),
        ("reg_alu", {"imm": 2}, "imm"),
        ("memset", {"dst.space": 1, "imm_regs": 2}, "imm_regs"),
        ("activation", {"src0.space": 1, "dst.space": 1, "column0.space": 1, "imm0": 5}, "imm0"),
        ("activation", {"src0.space": 1, "dst.space": 1, "column1.offset": 4}, "column1.offset"),
    ],
)
def test_meaningless_bits_have_no_arguments(name, fields, path):
    with pytest.raises(NotCanonical, match=f"{name}: {path} = . means nothing here"):
        arguments_of(*decode(encode(name, fields)))


@pytest.mark.parametrize("given", [{}, {"sat": True}, {"sat": False}], ids=str)
@pytest.mark.parametrize("dtype", [*FP8, DType.BF16], ids=lambda dtype: dtype.text)
def test_saturation_is_what_the_program_says(dtype, given, b):
    """In the builder as in text, whatever the format of the result."""
    tiles = {"src0": b.sbuf("x", (16, 4), DType.FP32), "dst": b.sbuf("y", (16, 4), dtype)}
    b.vector.tensor_copy(**tiles, **given)
    words, _, _ = b.vector.finish()
    assert decode(words[0])[1]["sat"] == int(given.get("sat", False))
    line = "tensor_copy src0=sbuf[0:16 @0 fp32 1x4]"
    line += f" dst=sbuf[0:16 @{tiles['dst'].tensor.address} {dtype.text} 1x4]"
    line += "".join(f" {flag}={int(value)}" for flag, value in given.items())
    text = assemble(f".config small\n.stream vector\n{line}\nhalt\n")
    assert text.stream(Sequencer.VECTOR).words == words


def test_an_instruction_of_another_sequencer_is_refused(b):
    with pytest.raises(
        ValueError, match="memset is not an instruction of the scalar sequencer, only of vector"
    ):
        b.scalar.memset(dst=b.sbuf("t", (16, 4), DType.FP32), imm0=0.0)


def test_immediates(b):
    t = b.sbuf("t", (16, 4), DType.FP32)
    for value, bits in (
        (1, 0x3F800000),
        (0.1, 0x3DCCCCCD),
        (-0.0, 1 << 31),
        (float("inf"), 0x7F800000),
        (float("nan"), 0x7FC00000),
        (1e-45, 1),
        (Bits(0x7F800001), 0x7F800001),
        (np.float32(2.5), 0x40200000),
    ):
        b.vector.memset(dst=t, imm0=value)
        assert last(b.vector)[1]["imm0"] == bits
        b.vector._words.pop()
    b.vector.memset(dst=t, imm0=Reg(9))
    fields = last(b.vector)[1]
    assert (fields["imm0"], fields["imm_regs"]) == (9, 1)
    with pytest.raises(EncodeError, match="1e.39 is beyond the largest FP32 number"):
        float_bits(1e39)
    with pytest.raises(EncodeError, match="immediate 'x' is not a number"):
        float_bits("x")
    assert float_bits(np.uint32(0x7F800001).view(np.float32)) in (0x7F800001, 0x7FC00001)


def test_columns(b):
    t = b.sbuf("t", (16, 4), DType.FP32)
    b.scalar.activation(src0=t, dst=t, func="copy", scale=t.column(2), bias=Reg(4))
    fields = last(b.scalar)[1]
    assert (
        fields["column0.space"],
        fields["column0.offset"],
        fields["imm1"],
        fields["imm_regs"],
    ) == (1, 8, 4, 2)
    with pytest.raises(
        ValueError, match="scale is one element per partition, must be a ColumnPattern or a number"
    ):
        b.scalar.activation(src0=t, dst=t, func="copy", scale=t[:, 2:3])
    with pytest.raises(ValueError, match="has 4 elements, must have 1"):
        t.column()
    assert t.column(1, partition=8) == ColumnPattern(Space.SBUF, DType.FP32, 8, 4)


def test_registers_labels_and_branches(b):
    i = b.gpsimd.register("i")
    assert i == b.gpsimd.register("i") == Reg(0)
    assert b.gpsimd.register() == Reg(1)
    b.gpsimd.reg_alu(alu_op="move", rd=i, imm=0xFFFF0000)
    b.gpsimd.label("again")
    b.gpsimd.reg_alu(alu_op="add", rd=i, ra=i, rb=Reg(1))
    b.gpsimd.branch(cond=Condition.LT, ra=i, imm=10, target="again")
    b.gpsimd.branch(cond="always", target="end")
    b.gpsimd.reg_load(rd=i, address=Address(0x100, Reg(1)))
    b.gpsimd.label("end")
    program = b.build()
    words = [decode(word)[1] for word in program.streams[0].words]
    assert words[0]["imm"] == -65536
    assert [words[2]["target"], words[3]["target"]] == [1, 5]
    assert (words[4]["address_reg"], words[4]["ra"], words[4]["address"]) == (1, 1, 0x100)
    assert program.labels[Sequencer.GPSIMD] == {"again": 1, "end": 5}
    assert decode(program.streams[0].words[5])[0].name == "halt"


def test_loops_nest_and_count_by_register(b):
    with b.vector.loop(Reg(7)):
        b.vector.nop()
        with b.vector.loop(2):
            b.vector.nop()
    words = [decode(word)[1] for word in b.build().streams[0].words]
    assert (words[0]["use_imm"], words[0]["rb"], words[0]["target"], words[2]["target"]) == (
        0,
        7,
        4,
        4,
    )


def test_halt_is_added_once(b):
    b.sync.halt()
    b.vector.nop()
    assert [len(s.words) for s in b.build().streams] == [2, 1]


def test_a_label_behind_a_halt_gets_another_halt(b):
    b.sync.branch(cond="always", target="end")
    b.sync.halt()
    b.sync.label("end")
    names = [decode(word)[0].name for word in b.build().streams[0].words]
    assert names == ["branch", "halt", "halt"]


def test_several_copies_in_one_trigger(b):
    x, y = (b.hbm_tensor(n, (4, 8), DType.BF16) for n in "xy")
    block = b.dma_batch(
        [(x, y, None), (y[0:1], x[0:1], ("done", "increment"))], engine=0, via=b.sync, name="both"
    )
    assert len(block.words) == 2
    program = b.build()
    assert decode(program.streams[0].words[0])[1]["imm"] == 2
    assert program.descriptors[0].name == "both"


def test_descriptors_by_hand(b):
    block = b.descriptors(
        [Descriptor(src_address=0, dst_address=64, row_bytes=8)] * 3, "mine", address=0x4000
    )
    assert (block.address, len(block.words)) == (0x4000, 3)
    assert b.hbm_tensor("x", (4,), DType.FP32).address >= 0x4000 + 3 * 128


def test_raw_words(b):
    b.sync.raw(bytes([0xFF] * 128))
    b.sync.raw(5)
    assert b.build().streams[0].words[:2] == [bytes([0xFF] * 128), (5).to_bytes(128, "little")]


def test_hbm_places(b):
    x = b.hbm_tensor("x", (3,), DType.BF16, data=np.zeros(3, DType.BF16.numpy))
    y = b.hbm_tensor("y", (3,), DType.BF16)
    assert (x.address, y.address) == (0, 64)
    assert x.tensor.data == bytes(6)
    b.hbm_tensor("z", (3,), DType.BF16, address=2)
    with pytest.raises(ProgramError, match="'x' .* and tensor 'z' .* overlap"):
        b.build()


def test_sbuf_and_psum_places(b):
    assert b.sbuf("a", (16, 3), DType.BF16).tensor.address == 0
    assert b.sbuf("b", (4, 3), DType.BF16, partition=4).tensor.address == 16
    assert b.sbuf("c", (4, 3), DType.BF16, partition=8).tensor.address == 16
    with b.scope():
        assert b.sbuf("d", (16, 8), DType.FP32).tensor.address == 32
    assert b.sbuf("e", (16, 8), DType.FP32).tensor.address == 32
    assert b.sbuf("f", (16, 8), DType.FP32, offset=1000).tensor.address == 1000
    assert b.psum("p", (16, 300)).tensor.address == 0
    assert b.psum("q", (16, 300)).tensor.address == 2048
    assert b.psum("r", (16, 10)).tensor.address == 2048 + 1200
    assert b.psum("s", (16, 512), bank=7).tensor.address == 7 * 2048


def test_views(b):
    t = b.sbuf("t", (16, 4, 8), DType.BF16, partition=0)
    assert t.pattern.dims == ((8, 4), (1, 8))
    assert t[4:8, 1, ::2] == AccessPattern(Space.SBUF, DType.BF16, 4, 4, 16, ((2, 4),))
    assert t[3, -1, ::-1] == AccessPattern(Space.SBUF, DType.BF16, 3, 1, 2 * 31, ((-1, 8),))
    assert t[:, 2, 3] == AccessPattern(Space.SBUF, DType.BF16, 0, 16, 2 * 19, ((0, 1),))
    deep = b.sbuf("deep", (1, 2, 3, 2, 2, 2), DType.BF16)
    assert deep.pattern.elements == 48
    assert deep.pattern.element_offsets().tolist() == [
        deep.tensor.address + 2 * i for i in range(48)
    ]
    x = b.hbm_tensor("x", (4, 8), DType.FP32)
    assert x[1:3, 5].dims == ((32, 2),)
    assert x[1:3, 5].address == x.address + 52
    assert x.permute(1, 0).shape == (8, 4)


MISUSE = [
    (lambda b, t: b.vector.memset(dst=t), "memset: argument 'imm0' is missing"),
    (
        lambda b, t: b.vector.memset(dst=t, imm0=0.0, src0=t),
        "memset: no argument 'src0'; there are dst, imm0, sat, stochastic, wait, update",
    ),
    (lambda b, t: b.vector.memset(dst=3, imm0=0.0), "dst = 3, must be an AccessPattern"),
    (
        lambda b, t: b.vector.tensor_tensor(src0=t, src1=t, dst=t, op0="plus"),
        "op0 = 'plus', must be one of bypass, add",
    ),
    (
        lambda b, t: b.vector.tensor_tensor(src0=t, src1=t, dst=t, op0=AluOp.BYPASS),
        "BAD_OPERATOR: .*op0 = 0",
    ),
    (
        lambda b, t: b.vector.tensor_copy(src0=t, dst=t[:, :4]),
        "SHAPE_MISMATCH: tensor_copy: elements per partition differ",
    ),
    (
        lambda b, t: b.vector.tensor_copy(src0=t[1:3], dst=t[0:2]),
        "BAD_PARTITION: tensor_copy: src0 starts at partition 1",
    ),
    (
        lambda b, t: b.tensor.load_stationary(src0=t),
        "BAD_DTYPE: load_stationary: part must be high, low or high_finite with fp32",
    ),
    (
        lambda b, t: b.sync.nop(wait=("missing", 1)),
        r"no semaphore 'missing'; there are loaded, done; allocate it",
    ),
    (lambda b, t: b.sync.nop(wait=1), r"wait = 1, must be \(semaphore, value\)"),
    (lambda b, t: b.sync.nop(wait=(256, 1)), r"wait_semaphore = 256 is outside 0\.\.255"),
    (lambda b, t: b.sync.nop(wait=(1, 1 << 31)), "wait_value = 2147483648 is outside"),
    (lambda b, t: b.sync.nop(update="done"), r"update = 'done', must be \(semaphore, kind\) or"),
    (
        lambda b, t: b.sync.nop(update=("done", "more")),
        "update kind = 'more', must be one of none, increment",
    ),
    (lambda b, t: b.sync.nop(update=("done", "add")), "update add needs a value"),
    (
        lambda b, t: b.sync.nop(update=("done", "increment", 2)),
        "update increment takes no value; use add with 2",
    ),
    (lambda b, t: b.sync.nop(at_read=True), "there is no update"),
    (lambda b, t: b.sync.sem_wait(), "sem_wait: argument 'wait' is missing"),
    (lambda b, t: b.sync.sem_update(), "sem_update: argument 'update' is missing"),
    (lambda b, t: b.sync.reg_alu(rd=Reg(1), alu_op="add"), "argument 'imm' or 'rb' is missing"),
    (
        lambda b, t: b.sync.reg_alu(rd=Reg(1), alu_op="add", imm=1, rb=Reg(2)),
        "imm and rb exclude each other",
    ),
    (lambda b, t: b.sync.reg_alu(rd=1, alu_op="add", imm=1), "rd = 1, must be a register"),
    (
        lambda b, t: b.sync.reg_alu(rd=Reg(1), alu_op="add", imm=1 << 32),
        r"imm = 4294967296 is outside -2147483648\.\.4294967295",
    ),
    (lambda b, t: b.sync.notify(imm="x"), "imm = 'x' is not an integer"),
    (
        lambda b, t: b.sync.reg_load(rd=Reg(1), address=2),
        "BAD_ADDRESS: reg_load: address 0x2, must be a multiple of 4",
    ),
    (lambda b, t: b.sync.dma_trigger(address=0, imm=1, dma_engine=2), "BAD_DMA_ENGINE"),
    (lambda b, t: b.sync.emit("matmul"), "no instruction 'matmul'"),
    (lambda b, t: b.sbuf("t", (16, 8), DType.FP32), "tensor 't' is there already"),
    (
        lambda b, t: b.sbuf("u", (17, 8), DType.FP32),
        r"must be \(partitions, \.\.\.\) within 0\.\.15",
    ),
    (lambda b, t: b.sbuf("u", (16,), DType.FP32), r"must be \(partitions, \.\.\.\)"),
    (
        lambda b, t: b.sbuf("u", (16, 9000), DType.FP32),
        r"sbuf 'u': bytes .* there are 0\.\.32767; free something",
    ),
    (lambda b, t: b.psum("u", (16, 8), bank=8), r"bank = 8, must be in 0\.\.7"),
    (lambda b, t: b.hbm_tensor("r1", (16,), DType.FP32), "tensor has the name 'r1'"),
    (lambda b, t: b.hbm_tensor("u", (1 << 23,), DType.FP32), "HBM is full"),
    (
        lambda b, t: b.hbm_tensor("u", (4,), DType.FP32, data=np.zeros(3, np.float32)),
        "the data is float32",
    ),
    (lambda b, t: b.descriptors([]), "at least one descriptor"),
    (
        lambda b, t: b.descriptors(
            [Descriptor(src_address=0, dst_address=0, row_bytes=1)], address=64
        ),
        "must be a multiple of 128",
    ),
    (
        lambda b, t: b.dma_copy(engine=0, via="dma", src=t, dst=t),
        "via = 'dma', must be one of tensor, vector",
    ),
    (
        lambda b, t: b.dma_copy(engine=0, via=b.sync, src=t, dst=t[:, :4]),
        "src has 128 elements, dst has 64",
    ),
    (lambda b, t: t[:, 9], r"index 9 is outside 0\.\.7"),
    (lambda b, t: t[:, 0:9], r"bound 9 of a slice is outside 0\.\.8"),
    (lambda b, t: t[::2], "partitions are consecutive, step 2 is not possible"),
    (lambda b, t: t[0, 0, 0], r"shape \(16, 8\) has no 3 dimensions"),
    (
        lambda b, t: b.hbm_tensor("h", (4, 4), DType.FP32).permute(0, 0),
        r"permute\(0, 0\) of 2 dimensions",
    ),
    (
        lambda b, t: b.hbm_tensor("h", (4,), DType.FP32)[0, 0],
        r"view of shape \(4,\) has no 2 dimensions",
    ),
    (lambda b, t: (b.sync.label("a"), b.sync.label("a")), "label 'a' of sync is there already"),
    (lambda b, t: [b.sync.register() for _ in range(65)], "all 64 registers of sync are in use"),
    (lambda b, t: [b.semaphore(f"s{i}") for i in range(255)], "all 256 semaphores are in use"),
    (
        lambda b, t: (b.sync.branch(cond="always", target="nowhere"), b.build()),
        r"label 'nowhere' of sync is not defined \(test_builder",
    ),
    (
        lambda b, t: (b.sync.label("a"), b.sync.emit("loop", imm=1, target="a"), b.build()),
        "PC_OUT_OF_RANGE: loop: target = 0",
    ),
]


@pytest.mark.parametrize(
    "misuse, message", MISUSE, ids=lambda v: v[:40] if isinstance(v, str) else ""
)
def test_misuse_raises_value_error_with_the_rule(misuse, message, b):
    t = b.sbuf("t", (16, 8), DType.FP32)
    with pytest.raises(ValueError, match=message):
        misuse(b, t)
