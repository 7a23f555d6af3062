"""Bad assembly lines: `file:line: reason; what would be right`, and no other exception whatever
the text.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.assembler import AssemblyError, assemble
from isa.geometry import preset
from isa.instructions import BY_NAME

HEAD = """.config small
.semaphore done 3
.tensor t sbuf @0x100 fp32 16x8 scratch
.tensor h hbm @0x1000 fp32 8x8 input
"""
COPY = "sbuf[0:16 @0 fp32 1x8]"

# (section, line, expected message); the line is the sixth of the text
VECTOR = [
    ("half", "no instruction 'half'; there are nop, sem_wait"),
    ("nop when=1", "nop has no argument 'when'; there are wait, update"),
    ("nop wait", "argument 'wait' has no value; write wait=VALUE"),
    ("nop wait=", "argument 'wait' has no value"),
    ("nop wait=done", "wait 'done' is not understood; write SEMAPHORE>=VALUE"),
    ("nop wait=gone>=1", "no semaphore 'gone'; declare it: .semaphore gone"),
    ("nop wait=done>=x", "wait value 'x' is no integer; write decimal or 0x digits"),
    ("nop wait=done>=r64", "register 64 is outside r0..r63"),
    ("nop wait=256>=1", "wait_semaphore = 256 is outside 0..255"),
    ("nop wait=done>=2147483648", "wait_value = 2147483648 is outside -2147483648..2147483647"),
    ("nop wait=done>=1 wait=done>=2", "argument 'wait' is there twice; give it once"),
    (
        "nop update=done",
        "update 'done' is not understood; write SEM++, SEM--, SEM+=VALUE or SEM=VALUE",
    ),
    ("nop update=done++1", "update 'done++1' is not understood"),
    ("nop update=done+=", "update 'done+=' is not understood"),
    ("nop update=done+=1@end", "is not understood"),
    ("sem_wait", "sem_wait: argument 'wait' is missing"),
    ("sem_update", "sem_update: argument 'update' is missing"),
    ("notify", "notify: argument 'imm' is missing"),
    ("notify imm=4294967296", "imm = 4294967296 is outside -2147483648..4294967295"),
    ("notify imm=1.5", "imm '1.5' is no integer"),
    ("reg_alu rd=r1 alu_op=plus imm=1", "alu_op = 'plus', must be one of move, add, subtract"),
    ("reg_alu rd=1 alu_op=add imm=1", "rd '1' is no register; write r0 to r63"),
    ("reg_alu rd=r64 alu_op=add imm=1", "register 64 is outside r0..r63"),
    ("reg_alu rd=r1 alu_op=add", "argument 'imm' or 'rb' is missing"),
    ("reg_alu rd=r1 alu_op=add imm=1 rb=r2", "imm and rb exclude each other"),
    ("reg_alu alu_op=add imm=1", "argument 'rd' is missing"),
    ("branch cond=always target=nowhere", "no label 'nowhere' in this stream; define it: nowhere:"),
    (
        "branch cond=always target=9",
        "PC_OUT_OF_RANGE: branch: target = 9, the stream has instructions 0..1",
    ),
    ("branch cond=less ra=r1 imm=1 target=0", "cond = 'less', must be one of always, eq"),
    (
        "loop imm=2 target=0",
        "PC_OUT_OF_RANGE: loop: target = 0, must be after the loop instruction (0) and at most 1",
    ),
    ("reg_load rd=r1 address=2", "BAD_ADDRESS: reg_load: address 0x2, must be a multiple of 4"),
    (
        "reg_load rd=r1 address=nothing",
        "address 'nothing' is not understood; write a number, sbuf(P,BYTE)",
    ),
    ("reg_load rd=r1 address=h+r1+r2", "address 'h+r1+r2' adds two registers; one is possible"),
    (
        "reg_load rd=r1 address=sbuf(16,0)",
        "sbuf(16,0) does not exist; this chip has 16 partitions of 32768 (sbuf)",
    ),
    (
        "reg_load rd=r1 address=0x100000000000000000",
        "address = 295147905179352825856 is outside 0..18446744073709551615",
    ),
    (
        "dma_trigger imm=1 address=64",
        "BAD_ADDRESS: dma_trigger: address 0x40, must be a multiple of 128",
    ),
    (
        "dma_trigger imm=1 address=0 dma_engine=2",
        "BAD_DMA_ENGINE: dma_trigger: dma_engine = 2, this chip has engines 0..1",
    ),
    ("dma_trigger imm=1 address=0 dma_engine=16", "dma_engine = 16 is outside 0..15"),
    (
        "load_stationary src0=t",
        "load_stationary is not an instruction of the vector sequencer, only of tensor",
    ),
    ("memset dst=t", "memset: argument 'imm0' is missing"),
    (
        "memset dst=t imm0=one",
        "imm0 'one' is no number; write 1.5, -2e-3, inf, nan, 0x3f800000 or a register",
    ),
    ("memset dst=t imm0=1e39", "immediate 1e+39 is beyond the largest FP32 number"),
    ("memset dst=t imm0=0x123456789", "imm0 '0x123456789' is no number"),
    (
        "memset dst=x imm0=0",
        "dst 'x' is not understood; write sbuf[FIRST:END @OFFSET DTYPE STEPxCOUNT,...]",
    ),
    ("memset dst=h imm0=0", "dst: tensor 'h' lies in hbm; operands lie in sbuf or psum"),
    ("memset dst=ram[0:16 @0 fp32 1x8] imm0=0", "dst 'ram[0:16 @0 fp32 1x8]' is not understood"),
    ("memset dst=sbuf[0:16 0 fp32 1x8] imm0=0", "is not understood; write sbuf[FIRST:END @OFFSET"),
    ("memset dst=sbuf[0:16 @0 fp32] imm0=0", "is not understood"),
    ("memset dst=sbuf[0:16 @0 fp33 1x8] imm0=0", "no dtype 'fp33'; supported: fp32, bf16"),
    (
        "memset dst=sbuf[0:16 @0 int8 1x8] imm0=0 sat=1",
        "BAD_DTYPE: memset: sat needs a dst of bf16, fp16, fp8_e5m2",
    ),
    (
        "memset dst=sbuf[8:4 @0 fp32 1x8] imm0=0",
        "dst partitions '8:4' end before they start; write FIRST:END, END exclusive",
    ),
    ("memset dst=sbuf[a:4 @0 fp32 1x8] imm0=0", "dst partition 'a' is no integer"),
    ("memset dst=sbuf[0:300 @0 fp32 1x8] imm0=0", "partition_count = 300 is outside 0..255"),
    (
        "memset dst=sbuf[0:16 @0x1000000 fp32 1x8] imm0=0",
        "offset = 16777216 is outside 0..16777215",
    ),
    (
        "memset dst=sbuf[0:16 @0 fp32 8] imm0=0",
        "dst dimension '8' is not understood; write STEPxCOUNT",
    ),
    ("memset dst=sbuf[0:16 @0 fp32 1x65536] imm0=0", "count = 65536 is outside 0..65535"),
    ("memset dst=sbuf[0:16 @0 fp32 40000x2] imm0=0", "step = 40000 is outside -32768..32767"),
    ("memset dst=sbuf[0:16 @0 fp32 r1x2] imm0=0", "dst step 'r1' is no integer"),
    (
        "memset dst=sbuf[0:16 @0 fp32 1x1,1x1,1x1,1x1,1x1] imm0=0",
        "dst has 5 dimensions; at most 4 are possible",
    ),
    ("memset dst=sbuf[0:16 @0 fp32 1x8 imm0=0", "a bracket is not closed; add it"),
    ("memset dst=sbuf]0:16 imm0=0", "']' closes nothing; remove it"),
    (
        "memset dst=psum[0:16 @t fp32 1x8] imm0=0",
        "dst: tensor 't' lies in sbuf; the operand says psum",
    ),
    ("memset dst=t[0:17] imm0=0", "dst: partitions: bound 17 of a slice is outside 0..16"),
    ("memset dst=t[:, 9] imm0=0", "index 9 is outside 0..7"),
    (
        "memset dst=t[:, 0:8:0] imm0=0",
        "dst index '0:8:0' is not understood; write N, A:B or A:B:STEP",
    ),
    ("memset dst=t[:, :, :] imm0=0", "has no 3 dimensions"),
    (
        "memset dst=sbuf[1:3 @0 fp32 1x8] imm0=0",
        "BAD_PARTITION: memset: dst starts at partition 1, must be a multiple of 4",
    ),
    (
        "memset dst=sbuf[0:16 @2 fp32 1x8] imm0=0",
        "MISALIGNED: memset: dst has offset 2, must be a multiple of 4",
    ),
    (
        "memset dst=sbuf[0:16 @32768 fp32 1x8] imm0=0",
        "OUT_OF_RANGE: memset: dst touches bytes 32768..32799",
    ),
    (
        f"tensor_copy src0={COPY} dst=t[:, 0:4]",
        "SHAPE_MISMATCH: tensor_copy: elements per partition differ: src0 8, dst 4",
    ),
    (
        f"tensor_tensor src0={COPY} src1={COPY} dst=t op0=bypass",
        "BAD_OPERATOR: tensor_tensor: op0 = 0",
    ),
    (f"tensor_reduce src0={COPY} dst=t op0=add reduce_dims=8", "reduce_dims = 8 is outside 0..7"),
    (
        f"tensor_reduce src0={COPY} dst=t op0=add reduce_dims=5",
        "BAD_OPERATOR: tensor_reduce: reduce_dims = 5",
    ),
    (
        "tensor_scalar src0=t dst=t op0=add operand0=t",
        "operand0 't' has 8 elements per partition; it must have one",
    ),
    (
        "tensor_scalar src0=t dst=t op0=add operand0=sbuf[0 @0]",
        "write a number, a register, sbuf[PARTITION @OFFSET DTYPE]",
    ),
    ("tensor_scalar src0=t dst=t op0=add accumulate", "tensor_scalar has no argument 'accumulate'"),
    ("tensor_scalar src0=t dst=t op0=add reverse0=yes", "reverse0 'yes' is no integer"),
    ("t: nop", None),
    ("3: nop", "no instruction '3:'"),
    ("r3: nop", "label has the name 'r3'; a name has letters"),
    (".word 12", ".word 12' is not understood; write .word 0x and up to 256 hexadecimal digits"),
    (".word 0x" + "f" * 257, "is not understood; write .word 0x"),
    (".words 0x1", ".words 0x1' is not understood; write .word 0x"),
]

DESCRIPTORS = [
    ("move src=0 dst=0 row_bytes=4", "no descriptor 'move'; write copy, or .word"),
    ("copy src=0 dst=0", "copy: argument 'row_bytes' is missing; write row_bytes=VALUE"),
    ("copy from=0", "copy has no argument 'from'; there are src, dst, row_bytes, rows, update"),
    ("copy src=0 src=0", "argument 'src' is there twice or has no value"),
    ("copy src=0 dst=0 row_bytes=4294967296", "row_bytes = 4294967296 is outside 0..4294967295"),
    (
        "copy src=0 dst=0 row_bytes=4 rows=1:2",
        "rows '1:2' is not understood; write COUNT:SRC_STRIDE:DST_STRIDE, outermost first",
    ),
    (
        "copy src=0 dst=0 row_bytes=4 rows=1:0:0,1:0:0,1:0:0,1:0:0",
        "rows has 4 dimensions; at most 3 are possible",
    ),
    ("copy src=0 dst=0 row_bytes=4 rows=65536:0:0", "count0 = 65536 is outside 0..65535"),
    ("copy src=0 dst=0 row_bytes=4 rows=1:2147483648:0", "src_stride0 = 2147483648 is outside"),
    (
        "copy src=h+r1 dst=0 row_bytes=4",
        "address 'h+r1' has a register; a descriptor has numbers only",
    ),
    ("copy src=0 dst=0 row_bytes=4 update=done++@read", "no register, no @read"),
    ("copy src=0 dst=0 row_bytes=4 update=done+=r1", "no register, no @read"),
]

DIRECTIVES = [
    (".configure small", "no directive '.configure'; there are .config, .semaphore"),
    (".config", ".config has no name; write .config NAME"),
    (".config small", ".config is there twice; give it once"),
    (".config huge", "no configuration 'huge'; choose one of tiny, small"),
    (".semaphore", ".semaphore is not understood; write .semaphore NAME [INDEX]"),
    (".semaphore done", "semaphore 'done' is there twice; give it once"),
    (".semaphore far 256", "semaphore 'far' has index 256, must be in 0..255"),
    (".semaphore r1", "semaphore has the name 'r1'"),
    (
        ".tensor x",
        ".tensor is not understood; write .tensor NAME SPACE [@ADDRESS] DTYPE SHAPE ROLE",
    ),
    (
        ".tensor x ram fp32 4 input",
        "space 'ram' and role 'input', must be of hbm, sbuf, psum and input, output",
    ),
    (".tensor x hbm fp32 4 in", "role 'in', must be of"),
    (".tensor x hbm fp31 4 input", "no dtype 'fp31'; supported: fp32, bf16"),
    (".tensor x hbm fp32 4x0 input", "shape '4x0', must be positive numbers joined by x"),
    (".tensor x hbm fp32 4xb input", "shape 'b' is no integer"),
    (
        ".tensor x sbuf fp32 4x4 scratch",
        "'x' in sbuf has no place; write @BYTE (in each partition)",
    ),
    (".tensor h hbm fp32 4 input", "name 'h' is there twice; choose another"),
    (".tensor sbuf hbm fp32 4 input", "has the name 'sbuf'"),
    (
        ".data",
        ".data '' is not understood; write .data TENSOR hex|values|zero ... after .tensor TENSOR",
    ),
    (".data q hex 00", ".data 'q' is not understood"),
    (
        ".data h hex 0",
        ".data hex '0' is no list of bytes; write an even number of hexadecimal digits",
    ),
    (".data h hex 0g", "is no list of bytes"),
    (
        ".data h text abc",
        ".data 'text' is not understood; write hex DIGITS, values NUMBER ..., or zero BYTES",
    ),
    (".data h values r1", "value 'r1' is a register; write a number"),
    (".data h values", ".data 'values' is not understood"),
    (".data h zero 257", ".data zero 257, tensor 'h' has 256 bytes; write fewer"),
    (".descriptors", ".descriptors is not understood; write .descriptors NAME [@ADDRESS]"),
    (".descriptors h", "name 'h' is there twice; choose another"),
    (
        ".stream",
        ".stream '' is not understood; write .stream tensor|vector|scalar|gpsimd|sync [@ADDRESS]",
    ),
    (".stream matrix", ".stream 'matrix' is not understood"),
    (".stream sync 0x100", "address '0x100' is not understood; write @ADDRESS"),
    (".stream sync @zero", "address 'zero' is no integer"),
    ("nop", "an instruction outside a stream; start one with .stream SEQUENCER"),
    ("here:", "a label outside a stream; start one with .stream SEQUENCER"),
]


def expect(text, line, message):
    with pytest.raises(AssemblyError) as error:
        assemble(text, "bad.casm")
    assert str(error.value).startswith(f"bad.casm:{line}: "), str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("line, message", VECTOR, ids=lambda v: str(v)[:50])
def test_instruction_lines(line, message):
    text = f"{HEAD}.stream vector\n{line}\nhalt\n"
    if message is None:
        assemble(text)
    else:
        expect(text, 6, message)


@pytest.mark.parametrize("line, message", DESCRIPTORS, ids=lambda v: v[:50])
def test_descriptor_lines(line, message):
    expect(f"{HEAD}.descriptors d\n{line}\n", 6, message)


@pytest.mark.parametrize("line, message", DIRECTIVES, ids=lambda v: v[:50])
def test_directive_lines(line, message):
    expect(f"{HEAD}{line}\n", 5, message)


def test_a_text_without_configuration():
    expect("", 0, "no configuration; start with .config NAME")
    expect(".stream sync\nhalt\n", 1, ".stream before .config; start with .config NAME")


def test_another_configuration_than_asked_for():
    with pytest.raises(
        AssemblyError, match="x:1: the text is for configuration 'small'; asked for is 'tiny'"
    ):
        assemble(".config small\n", "x", preset("tiny"))


def test_custom_configurations_are_checked():
    expect(".config mine array=5\n", 1, "missing 5 required keyword-only arguments")
    expect(
        ".config mine array=5 rows=3\n",
        1,
        "write every field of isa.geometry.Config as FIELD=NUMBER",
    )
    facts = " ".join(f"{k}={v}" for k, v in preset("tiny").as_dict().items() if k != "name")
    expect(
        f".config mine {facts.replace('array=4', 'array=5')}\n",
        1,
        "array = 5, must be a power of two in 4..128",
    )
    expect(f".config mine {facts} array=\n", 1, "array '' is no integer")


def test_a_mode_that_the_chip_has_not():
    for operand in ("sbuf[0:16 @0 fp8_e4m3 1x8]", "sbuf[r1+r2 @r3 fp8_e4m3 1xr4]"):
        text = f".stream tensor\nload_stationary src0={operand} double_row\nhalt\n"
        expect(
            f".config small\n{text}",
            3,
            "OUT_OF_RANGE: load_stationary: double_row = 1, this chip has single rows",
        )
    assemble(f".config trn2\n{text}")


def test_labels_and_streams_are_unique():
    expect(
        ".config small\n.stream sync\na: nop\na: halt\n",
        4,
        "label 'a' is there twice in this stream; choose another name",
    )
    expect(
        ".config small\n.stream sync\nhalt\n.stream sync\n",
        4,
        "stream sync is there twice; a sequencer has one stream",
    )


def test_places_are_checked():
    message = "overlap; everything in HBM has its own place"
    expect(
        ".config small\n.tensor a hbm @0 fp32 4 input\n.tensor b hbm @8 fp32 4 input\n.stream "
        "sync\nhalt\n",
        3,
        message,
    )
    expect(".config small\n.stream sync @0x40\nhalt\n", 2, "must be a multiple of 128")
    expect(".config small\n.tensor a hbm @0x1000000 fp32 4 input\n", 2, "HBM has 0..0xffffff")
    expect(".config small\n.tensor a hbm @-16 fp32 4 input\n", 2, "has bytes -0x10")
    expect(".config small\n.tensor a sbuf @32760 fp32 4x4 scratch\n", 2, "sbuf has 0..32767")
    expect(".config small\n.tensor a hbm fp32 4 constant\n", 2, "is a constant without data")
    expect(
        ".config small\n.tensor a hbm fp32 4 input\n.data a hex 00\n",
        2,
        "has 1 bytes of data; its shape has 16",
    )


WORDS = st.sampled_from(
    [
        *BY_NAME,
        ".config",
        ".tensor",
        ".data",
        ".stream",
        ".descriptors",
        ".word",
        ".semaphore",
        "copy",
        "small",
        "sync",
        "vector",
        "src0=",
        "dst=",
        "wait=",
        "update=",
        "imm=",
        "address=",
        "target=",
        "rb=",
        "sbuf[0:16 @0 fp32 1x8]",
        "sbuf[",
        "]",
        "(",
        ")",
        "t",
        "h",
        "x",
        "=",
        ":",
        "@",
        "@0",
        "r1",
        "r99",
        "0x",
        "-1",
        "1",
        "1e999",
        "done",
        "done>=1",
        "done++",
        "1x1",
        "#",
        "\n",
        "\n",
        "fp32",
        "hbm",
        "input",
        "hex",
        "values",
        "zero",
        "a:",
        "é",
        "\t",
        "\0",
        "1:2:3",
        "sbuf(0,0)",
        "+",
        "99999999999999999999",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(WORDS, max_size=30), st.booleans(), st.text(max_size=20))
def test_no_text_makes_another_exception(words, glued, tail):
    text = HEAD + ".stream vector\n" + ("" if glued else " ").join(words) + tail
    try:
        assemble(text, "fuzz.casm")
    except AssemblyError as error:
        assert str(error).startswith("fuzz.casm:")
