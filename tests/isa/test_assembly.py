"""Text and program are the same thing: round trips over every instruction, descriptor and
directive; the commands.
"""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa import assembler, disassembler
from isa.address_map import PSUM_BASE, SBUF_BASE, Sequencer
from isa.arguments import fields_of, parameters
from isa.assembler import assemble
from isa.check import check_static
from isa.disassembler import disassemble, instruction_text
from isa.dtypes import DType
from isa.encoding import (
    Descriptor,
    decode,
    decode_descriptor,
    encode,
    encode_descriptor,
    field_map,
    field_range,
)
from isa.fields import AluOp, Condition, Part, RegOp, Space, Update
from isa.geometry import preset
from isa.instructions import BY_NAME, INSTRUCTIONS
from isa.pattern import AccessPattern, ColumnPattern, Reg
from isa.program import DescriptorBlock, Program, Stream, Tensor
from isa.program_file import load
from isa.values import Address, Bits, SemaphoreUpdate, Wait

SMALL = preset("small")
NAMES = sorted(BY_NAME)
REGS = st.builds(Reg, st.integers(0, 63))
BITS = st.builds(Bits, st.integers(0, (1 << 32) - 1))
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "assembly.md"


def program_of(words=(), sequencer=Sequencer.SYNC, descriptors=(), **facts):
    blocks = [DescriptorBlock("block", 0x4000, list(descriptors))] if descriptors else []
    streams = [Stream(sequencer, 0x8000, list(words))] if words else []
    return Program(SMALL, streams, blocks, **facts)


def assert_round_trip(program):
    text = disassemble(program)
    again = assemble(text, "round.casm")
    assert again.config == program.config
    assert [(s.sequencer, s.address, s.words) for s in again.streams] == [
        (s.sequencer, s.address, s.words) for s in program.streams
    ]
    assert again.descriptors == program.descriptors
    assert again.tensors == program.tensors
    assert again.semaphores == program.semaphores
    for sequencer, labels in program.labels.items():
        assert labels.items() <= again.labels[sequencer].items()
    return text


def operands(operand):
    count = st.one_of(st.integers(0, 65535), REGS)
    return st.builds(
        AccessPattern,
        st.sampled_from(operand.spaces),
        st.sampled_from(operand.dtypes),
        st.one_of(st.integers(0, 255), REGS),
        st.one_of(st.integers(0, 255), REGS),
        st.one_of(st.integers(0, (1 << 24) - 1), REGS),
        st.lists(st.tuples(st.integers(-32768, 32767), count), min_size=1, max_size=4),
    )


COLUMNS = st.one_of(
    BITS,
    REGS,
    st.builds(
        ColumnPattern,
        st.sampled_from((Space.SBUF, Space.PSUM)),
        st.sampled_from(DType),
        st.one_of(st.integers(0, 255), REGS),
        st.one_of(st.integers(0, (1 << 24) - 1), REGS),
    ),
)
OPTIONS = {
    "wait": st.one_of(st.none(), st.builds(Wait, st.integers(0, 255), st.one_of(INT32, REGS))),
    "update": st.one_of(
        st.none(),
        st.builds(
            SemaphoreUpdate,
            st.sampled_from((Update.INCREMENT, Update.DECREMENT)),
            st.integers(0, 255),
            at_read=st.booleans(),
        ),
        st.builds(
            SemaphoreUpdate,
            st.sampled_from((Update.ADD, Update.SET)),
            st.integers(0, 255),
            st.one_of(INT32, REGS),
            st.booleans(),
        ),
    ),
    "rd": REGS,
    "ra": REGS,
    "rb": REGS,
    "imm0": st.one_of(BITS, REGS),
    "imm": INT32,
    "alu_op": st.sampled_from(RegOp),
    "cond": st.sampled_from(Condition),
    "dma_engine": st.integers(0, 15),
    "target": st.integers(0, (1 << 32) - 1),
    "reduce_dims": st.integers(1, 4),
    "op1": st.sampled_from(AluOp),
    "reverse0": st.booleans(),
    "reverse1": st.booleans(),
    **dict.fromkeys(("accumulate", "sat", "stochastic", "double_row", "transpose"), st.booleans()),
    "part": st.sampled_from(Part),
    "imm2": BITS,
    "address": st.builds(
        Address,
        st.one_of(
            st.integers(0, (1 << 64) - 1),
            st.integers(0, SMALL.hbm_bytes),
            st.integers(SBUF_BASE, SBUF_BASE + (1 << 20)),
            st.integers(PSUM_BASE, PSUM_BASE + (1 << 18)),
        ),
    ),
}


@st.composite
def arguments(draw, instruction):
    found = {}
    enums = dict(instruction.enums)
    for operand in instruction.operands:
        found[operand.slot] = draw(operands(operand))
    for column in instruction.columns:
        found[column.doc] = draw(COLUMNS)
    for name in parameters(instruction):
        if name in enums:
            found[name] = draw(st.sampled_from(enums[name]))
        elif name not in found:
            found[name] = draw(OPTIONS[name])
    if "use_imm" in instruction.options:
        del found[draw(st.sampled_from(("imm", "rb")))]
    if "address_reg" in instruction.options and draw(st.booleans()):
        found["address"] = Address(found["address"].base, found.pop("ra"))
    elif "address_reg" in instruction.options:
        del found["ra"]
    required = {
        "sem_wait": ("wait", Wait(1, 2)),
        "sem_update": ("update", SemaphoreUpdate(Update.ADD, 1, 2)),
    }
    if instruction.name in required and found[required[instruction.name][0]] is None:
        found.update([required[instruction.name]])
    return found


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda i: i.name)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_instruction_in_words(instruction, data):
    """What arguments express is text; what the assembler would refuse is a word with the reason
    beside it.
    """
    word = encode(instruction.name, fields_of(instruction.name, data.draw(arguments(instruction))))
    sequencer = min(instruction.sequencers)
    text = assert_round_trip(program_of([word], sequencer))
    fault = check_static(SMALL, *decode(word), place=(0, 1))
    assert (".word" in text) == (fault is not None), text
    if fault is not None:
        assert str(fault) in text


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(((0, 16), (0, 9), (8, 8), (8, 5), (12, 4), (4, 1), (0, 0))),
    st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 6)), min_size=1, max_size=4),
    st.sampled_from(("sbuf", "psum")),
    st.sampled_from((DType.FP32, DType.BF16)),
)
def test_legal_operands_are_text(partitions, dims, space, dtype):
    pattern = AccessPattern(Space[space.upper()], dtype, *partitions, 8000, dims)
    fields = fields_of("tensor_copy", {"src0": pattern, "dst": pattern})
    text = assert_round_trip(program_of([encode("tensor_copy", fields)], Sequencer.VECTOR))
    assert ".word" not in text
    assert f"{space}[" in text


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_fields_round_trip(name, data):
    """Fields with meaningless bits too: never lost, if need be as .word."""
    ranges = {
        p: field_range(f) for p, f in field_map(name).items() if p not in ("opcode", "version")
    }
    fields = data.draw(
        st.fixed_dictionaries(
            {p: st.one_of(st.just(0), st.integers(*r)) for p, r in ranges.items()}
        )
    )
    assert_round_trip(program_of([encode(name, fields)], min(BY_NAME[name].sequencers)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(min_size=128, max_size=128), min_size=1, max_size=4))
def test_any_words_round_trip(words):
    assert_round_trip(program_of(words, descriptors=words))


RANGES = {"count": st.integers(0, 65535), "src_stride": INT32, "dst_stride": INT32}
ADDRESSES = st.one_of(
    st.integers(0, 1 << 24),
    st.integers(0, (1 << 64) - 1),
    st.integers(SBUF_BASE, SBUF_BASE + 40_000),
)


@settings(max_examples=150, deadline=None)
@given(
    st.builds(
        Descriptor,
        src_address=ADDRESSES,
        dst_address=ADDRESSES,
        row_bytes=st.integers(0, (1 << 32) - 1),
        update_kind=st.sampled_from(Update),
        update_semaphore=st.integers(0, 255),
        update_value=st.one_of(st.just(0), INT32),
        **{name: st.tuples(item, item, item) for name, item in RANGES.items()},
    )
)
def test_descriptors_round_trip(descriptor):
    text = assert_round_trip(program_of(descriptors=[encode_descriptor(descriptor)]))
    meaningless = descriptor.update_kind in (Update.NONE, Update.INCREMENT, Update.DECREMENT) and (
        descriptor.update_value
        or (descriptor.update_kind is Update.NONE and descriptor.update_semaphore)
    )
    assert (".word" in text) == bool(meaningless)


def test_tensors_data_labels_and_semaphores_round_trip():
    data = bytes(100) + bytes(range(1, 29)) + bytes(128)
    program = program_of(
        [
            encode("branch", {"target": 2}),
            encode("loop", {"imm": 1, "use_imm": 1, "target": 2}),
            encode("halt", {}),
        ],
        tensors=[
            Tensor("x", "hbm", 64, (4, 16), DType.FP32, "constant", 0, data),
            Tensor("y.1", "hbm", 0x2000, (3,), DType.BF16, "output"),
            Tensor("t", "sbuf", 2, (4, 8), DType.BF16, "scratch", 8),
            Tensor("p", "psum", 64, (16, 2, 2), DType.FP32, "scratch"),
        ],
        labels={Sequencer.SYNC: {"go": 0, "there": 2, "end": 3}},
        semaphores={"done": 200, "go": 3},
    )
    text = assert_round_trip(program)
    assert "target=there" in text
    assert ".data x zero 100" in text
    assert ".tensor t sbuf @0x2 bf16 4x8 scratch partition=8" in text


def test_disassembly_is_stable():
    program = program_of([encode("branch", {"target": 1}), encode("halt", {})])
    text = disassemble(program)
    assert "L1:" in text
    again = assemble(text, "again.casm")
    assert [
        line.partition("#")[0].rstrip() for line in disassemble(again).splitlines()
    ] == text.rstrip().splitlines()


def test_another_configuration_is_written_out():
    config = SMALL.with_(name="mine", sbuf_bytes=16384, sbuf_stride_bytes=16384)
    text = assert_round_trip(Program(config))
    assert text.startswith(".config mine array=16 sbuf_bytes=16384")


def test_names_are_used_in_text():
    copy = encode_descriptor(
        Descriptor(
            src_address=0x1010,
            dst_address=SBUF_BASE + 32768 + 4,
            row_bytes=16,
            update_kind=Update.ADD,
            update_semaphore=5,
            update_value=-2,
        )
    )
    trigger = encode("dma_trigger", {"address": 0x4080, "use_imm": 1, "imm": 1, "dma_engine": 1})
    program = program_of(
        [trigger],
        descriptors=[copy, copy],
        semaphores={"s": 5},
        tensors=[Tensor("x", "hbm", 0x1000, (64,), DType.FP32)],
    )
    text = assert_round_trip(program)
    assert "copy src=x+0x10 dst=sbuf(1,0x4) row_bytes=16 update=s+=-2" in text
    assert "dma_trigger dma_engine=1 imm=1 address=block+0x80" in text
    assert (
        instruction_text(program, Sequencer.SYNC, 0)
        == "dma_trigger dma_engine=1 imm=1 address=block+0x80"
    )


def one(line, before=""):
    """Fields of one instruction, in whichever stream has it."""
    name = line.split()[0]
    sequencer = min(BY_NAME[name].sequencers).text
    program = assemble(f".config small\n{before}\n.stream {sequencer}\n{line}\nhalt\n", "one.casm")
    return decode(program.streams[0].words[0])[1]


TILES = """.tensor t sbuf @0x100 fp32 16x4x8 scratch
.tensor u psum @0x40 fp32 16x8 scratch
.tensor h hbm @0x1000 fp32 8x8 input"""


@pytest.mark.parametrize(
    "text, pattern",
    [
        ("sbuf[0:16 @0x100 fp32 8x4,1x8]", AccessPattern(1, 0, 0, 16, 256, ((8, 4), (1, 8)))),
        ("sbuf[ 8+8  @256   bf16 0x8 ]", AccessPattern(1, 1, 8, 8, 256, ((0, 8),))),
        ("psum[r1+r2 @r3 fp32 1xr4]", AccessPattern(2, 0, Reg(1), Reg(2), Reg(3), ((1, Reg(4)),))),
        ("sbuf[4 @0 fp32 -1x1]", AccessPattern(1, 0, 4, 1, 0, ((-1, 1),))),
        ("t", AccessPattern(1, 0, 0, 16, 256, ((8, 4), (1, 8)))),
        ("t[8:12, 1, ::2]", AccessPattern(1, 0, 8, 4, 256 + 32, ((2, 4),))),
        ("t[12, -1]", AccessPattern(1, 0, 12, 1, 256 + 96, ((1, 8),))),
        ("t[:, 0:4:3]", AccessPattern(1, 0, 0, 16, 256, ((24, 2), (1, 8)))),
        ("u[:, 2:4]", AccessPattern(2, 0, 0, 16, 0x48, ((1, 2),))),
        ("sbuf[0:16 @t+4 fp32 1x8]", AccessPattern(1, 0, 0, 16, 260, ((1, 8),))),
    ],
)
def test_operand_text(text, pattern):
    fields = one(f"memset dst={text} imm0=0", TILES)
    assert AccessPattern.from_fields("dst", fields) == pattern


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1.5", 0x3FC00000),
        ("-0.0", 0x80000000),
        ("inf", 0x7F800000),
        ("-inf", 0xFF800000),
        ("nan", 0x7FC00000),
        ("0x7f800001", 0x7F800001),
        ("0x0", 0),
        ("1e-45", 1),
        ("3.4028235e38", 0x7F7FFFFF),
        ("7", 0x40E00000),
        (".5", 0x3F000000),
    ],
)
def test_immediate_text(text, expected):
    assert one(f"memset dst=sbuf[0 @0 fp32 1x1] imm0={text}")["imm0"] == expected


@settings(max_examples=300, deadline=None)
@given(st.integers(0, (1 << 32) - 1))
def test_every_immediate_round_trips(bits):
    from isa.text import format_float, parse_float

    assert parse_float(format_float(Bits(bits)), "x") == Bits(bits)
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    if np.isfinite(value):
        assert "0x" not in format_float(Bits(bits))


def test_column_text():
    def bias(text):
        return one(f"activation src0=t dst=t func=copy bias={text}", TILES)

    assert ColumnPattern.from_fields("column1", bias("sbuf[0 @0x8 bf16]")) == ColumnPattern(
        1, 1, 0, 8
    )
    assert ColumnPattern.from_fields("column1", bias("psum[r1 @r2 fp32]")) == ColumnPattern(
        2, 0, Reg(1), Reg(2)
    )
    assert ColumnPattern.from_fields("column1", bias("t[:, 1, 2]")) == ColumnPattern(
        1, 0, 0, 256 + 40
    )
    assert (bias("r5")["imm1"], bias("r5")["imm_regs"]) == (5, 2)


@pytest.mark.parametrize(
    "text, base, register",
    [
        ("64", 64, None),
        ("0x40+4", 68, None),
        ("h", 0x1000, None),
        ("h+0x10+r3", 0x1010, 3),
        ("t", SBUF_BASE + 0x100, None),
        ("u+4", PSUM_BASE + 0x44, None),
        ("sbuf(3,0x20)", SBUF_BASE + 3 * 32768 + 32, None),
        ("psum( 1 , 8 )+r9", PSUM_BASE + 16392, 9),
    ],
)
def test_address_text(text, base, register):
    fields = one(f"reg_load rd=r1 address={text}", TILES)
    assert (fields["address"], fields["address_reg"], fields["ra"]) == (
        base,
        int(register is not None),
        register or 0,
    )


@pytest.mark.parametrize(
    "text, kind, value, reg, at_read",
    [
        ("s++", 1, 0, 0, 0),
        ("s--", 2, 0, 0, 0),
        ("s+=5", 3, 5, 0, 0),
        ("s+=-5@read", 3, -5, 0, 1),
        ("s=r7", 4, 7, 1, 0),
        ("3=0x10", 4, 16, 0, 0),
        ("s++@read", 1, 0, 0, 1),
    ],
)
def test_update_text(text, kind, value, reg, at_read):
    fields = one(f"nop update={text}", ".semaphore s 3")
    found = [fields[f"update_{name}"] for name in ("semaphore", "kind", "value", "reg", "at_read")]
    assert found == [3, kind, value, reg, at_read]


def test_semaphores_without_index_take_the_lowest_free_one():
    program = assemble(".config small\n.semaphore a\n.semaphore b 1\n.semaphore c\n")
    assert program.semaphores == {"a": 0, "b": 1, "c": 2}


def test_labels_and_places():
    program = assemble(
        ".config small\n.tensor x hbm @0x100 fp32 4 input\n.tensor y hbm fp32 4 output\n.stream "
        "sync\n"
        "start: nop\nagain:\nbranch cond=always target=again\nloop imm=2 target=end\nend: halt\n"
        ".stream vector @0x2000\nbranch cond=eq ra=r1 rb=r2 target=0\nhalt\n"
    )
    assert program.labels[Sequencer.SYNC] == {"start": 0, "again": 1, "end": 3}
    targets = [decode(w)[1].get("target") for w in program.streams[0].words]
    assert targets == [None, 1, 3, None]
    assert program.tensor("y").address == 0x2100
    assert program.streams[0].address == 0x2180
    assert program.streams[0].line(0) == "text:5"


def test_data_directives_append():
    program = assemble(
        ".config small\n.tensor x hbm bf16 2x5 constant\n.data x values 1.0 -2 nan\n.data x zero "
        "2\n"
        ".data x hex 0102 03 04\n.data x values 0x3f808000 0x3f818000 inf\n.data x zero 2\n"
    )
    assert (
        program.tensor("x").data.hex()
        == "803f00c0c07f00000102" + "0304" + "803f" + "823f" + "807f" + "0000"
    )
    fp32 = assemble(".config small\n.tensor x hbm fp32 2 constant\n.data x values 0x7f800001 1\n")
    assert fp32.tensor("x").data.hex() == "0100807f0000803f"


def test_the_page_has_a_program_that_assembles():
    text = PAGE.read_text().split("```")[1]
    program = assemble(text, "assembly.md")
    assert [s.sequencer.text for s in program.streams] == ["tensor", "scalar", "sync"]
    assert decode_descriptor(program.descriptors[0].words[1]).update_kind is Update.INCREMENT
    assert_round_trip(program)


def test_commands(tmp_path, capsys):
    source, output = tmp_path / "p.casm", tmp_path / "p.celosia"
    source.write_text(".config tiny\n.stream sync\nnop\nhalt\n")
    assert assembler.main([str(source)]) == 0
    assert "tiny, instructions: sync 2, tensors: 0" in capsys.readouterr().out
    program = load(output, preset("tiny"))
    assert program.streams[0].lines == ["p.casm:3", "p.casm:4"]
    assert disassembler.main([str(output)]) == 0
    text = capsys.readouterr().out
    assert text == disassemble(program)
    assert disassembler.main([str(output), "-o", str(tmp_path / "q.casm")]) == 0
    assert (tmp_path / "q.casm").read_text() == text
    assert assembler.main([str(tmp_path / "q.casm"), "-o", str(tmp_path / "q.celosia")]) == 0
    assert load(tmp_path / "q.celosia").streams[0].words == program.streams[0].words


def test_commands_report_errors(tmp_path, capsys):
    source = tmp_path / "bad.casm"
    source.write_text(".config tiny\n.stream sync\nhalf\n")
    assert assembler.main([str(source)]) == 1
    assert capsys.readouterr().err.startswith(f"{source}:3: no instruction 'half'; there are nop")
    assert assembler.main([str(tmp_path / "none.casm")]) == 1
    assert assembler.main([str(source), "--config", "huge"]) == 1
    assert "no configuration 'huge'; choose one of tiny, small" in capsys.readouterr().err
    assert disassembler.main([str(source)]) == 1
    assert "has 31 bytes; a program file has at least 64" in capsys.readouterr().err
    assert not (tmp_path / "bad.celosia").exists()


def test_a_given_configuration(tmp_path):
    text = ".stream sync\nhalt\n"
    assert assemble(text, config=SMALL).config is SMALL
    deeper = SMALL.with_(pe_add_stages=4)
    assert assemble(f".config small\n{text}", config=deeper).config is deeper
