"""Decoder against the rules in `isa.check` and `isa.encoding`."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.sequencer.decode import FLOW, Decoder
from hdl.sequencer.layout import WORD_BITS, instructions_of
from isa.address_map import SEQUENCERS, Cause, Sequencer
from isa.check import check_form, register_fields
from isa.encoding import DecodeError, decode, encode_int, field_map, field_range
from isa.instructions import BY_OPCODE

TELLING = (
    "space",
    "dtype",
    "regs",
    "update_kind",
    "op0",
    "op1",
    "func",
    "alu_op",
    "cond",
    "reduce_dims",
    "imm_regs",
    "wait_reg",
    "update_reg",
)


def expected_cause(word, sequencer):
    try:
        instruction, fields = decode(word, sequencer)
    except DecodeError as error:
        return error.cause
    fault = check_form(instruction, fields)
    return Cause.NONE if fault is None else fault.cause


def run_words(sequencer, words, check):
    """`check(word, outputs)` for each word."""
    dut = Decoder(sequencer)

    async def bench(ctx):
        for word in words:
            ctx.set(dut.word, word)
            check(
                word,
                {
                    name: ctx.get(getattr(dut, name))
                    for name in ("cause", "flags", "datapath", "flow")
                },
            )

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()


def legal(rng, instruction):
    """A random word that passes every check of the decoder."""
    for _ in range(1000):
        fields = drawn(rng, instruction)
        if check_form(instruction, fields) is None:
            return encode_int(instruction.name, fields)
    raise AssertionError(f"{instruction.name}: no draw of 1000 keeps its rules")


def drawn(rng, instruction):
    """Random fields, each with a legal value."""
    fields = {}
    for path, field in field_map(instruction.name).items():
        fields[path] = rng.randint(*field_range(field))
    fields |= {"opcode": instruction.opcode, "version": 1, "update_kind": rng.randint(0, 4)}
    for operand in instruction.operands:
        fields[f"{operand.slot}.space"] = int(rng.choice(operand.spaces))
        fields[f"{operand.slot}.dtype"] = int(rng.choice(operand.dtypes))
    for column in instruction.columns:
        fields[f"{column.slot}.space"] = rng.choice([0, 1, 2])
        fields[f"{column.slot}.dtype"] = rng.choice([0, 1])
    for path, values in instruction.enums:
        fields[path] = int(rng.choice(values))
    if "alu_op" in fields:
        fields["alu_op"] = rng.randint(0, 8)
    if "cond" in fields:
        fields["cond"] = rng.randint(0, 6)
    if "imm_regs" in fields and "imm1" not in fields:
        fields["imm_regs"] &= 1
    for path in register_fields(instruction, fields):
        fields[path] = rng.randrange(64)
    return fields


@pytest.mark.parametrize("sequencer", SEQUENCERS)
def test_every_opcode(sequencer):
    words = [1 << 8 | opcode for opcode in range(256)]
    seen = set()

    def check(word, out):
        opcode = word & 0xFF
        instruction = BY_OPCODE.get(opcode)
        known = instruction is not None and sequencer in instruction.sequencers
        assert (out["cause"] == Cause.ILLEGAL_OPCODE) == (not known)
        assert out["cause"] == expected_cause(word, sequencer)
        assert out["datapath"] == (known and instruction.datapath)
        assert out["flow"] == (known and instruction.name in FLOW)
        seen.add(opcode)

    run_words(sequencer, words, check)
    assert len(seen) == 256


@pytest.mark.parametrize("sequencer", SEQUENCERS)
def test_every_version(sequencer):
    # A wrong version comes before everything else.
    words = [version << 8 | opcode for version in range(256) for opcode in (0, 0xFF)]

    def check(word, out):
        version, opcode = word >> 8 & 0xFF, word & 0xFF
        if version != 1:
            assert out["cause"] == Cause.BAD_VERSION
        else:
            assert out["cause"] == (Cause.ILLEGAL_OPCODE if opcode else Cause.NONE)

    run_words(sequencer, words, check)


def reserved_words(sequencer, stride):
    rng = random.Random(int(sequencer))
    for instruction in instructions_of(sequencer):
        reserved = [b for b in range(WORD_BITS) if not instruction.used_mask >> b & 1]
        base = legal(rng, instruction)
        yield base, None
        for bit in reserved[rng.randrange(stride) :: stride]:
            yield base | 1 << bit, bit


def check_reserved(sequencer, stride):
    words = list(reserved_words(sequencer, stride))
    flipped = dict(words)
    assert len(flipped) > len(instructions_of(sequencer))

    def check(word, out):
        assert out["cause"] == (Cause.NONE if flipped[word] is None else Cause.RESERVED_BITS)

    run_words(sequencer, [w for w, _ in words], check)


@pytest.mark.parametrize("sequencer", SEQUENCERS)
def test_reserved_bits_sampled(sequencer):
    check_reserved(sequencer, 23)


@pytest.mark.nightly
@pytest.mark.parametrize("sequencer", SEQUENCERS)
def test_every_reserved_bit(sequencer):
    check_reserved(sequencer, 1)


@pytest.mark.parametrize("sequencer", SEQUENCERS)
def test_random_words_match_the_rules(sequencer):
    rng = random.Random(100 + int(sequencer))
    words = []
    for _ in range(60):
        for instruction in instructions_of(sequencer):
            word = legal(rng, instruction)
            for _ in range(rng.randint(0, 2)):
                # Any value in one of its fields, opcode and version less often.
                paths = list(field_map(instruction.name))
                telling = [path for path in paths if path.endswith(TELLING)]
                name = rng.choice(rng.choice([paths, telling]))
                field = field_map(instruction.name)[name]
                if name in ("opcode", "version") and rng.random() < 0.8:
                    continue
                word &= ~field.mask
                word |= rng.getrandbits(field.width) << field.low
            words.append(word)
    counts = {}

    def check(word, out):
        cause = expected_cause(word, sequencer)
        assert out["cause"] == cause, f"{word:#x}"
        counts[cause] = counts.get(cause, 0) + 1
        if cause == Cause.NONE:
            instruction = BY_OPCODE[word & 0xFF]
            assert out["datapath"] == instruction.datapath

    run_words(sequencer, words, check)
    expected = {Cause.NONE, Cause.RESERVED_BITS, Cause.BAD_OPERATOR}
    if sequencer < Sequencer.GPSIMD:
        expected |= {Cause.BAD_SPACE, Cause.BAD_DTYPE}
    assert expected <= set(counts)
