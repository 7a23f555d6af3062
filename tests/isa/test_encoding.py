"""Words of instructions and descriptors: every field over its whole range, and every refusal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.address_map import Cause, DmaCause, Sequencer
from isa.encoding import (
    DecodeError,
    Descriptor,
    DescriptorError,
    EncodeError,
    decode,
    decode_descriptor,
    encode,
    encode_descriptor,
    encode_int,
    field_map,
    field_range,
)
from isa.fields import DESCRIPTOR, Update
from isa.geometry import ISA_VERSION
from isa.instructions import BY_NAME, BY_OPCODE, INSTRUCTIONS

NAMES = sorted(BY_NAME)
FIXED = ("opcode", "version")
QUICK = settings(max_examples=25, deadline=None)


def values_of(name):
    """Strategy of all fields of an instruction, each over its range."""
    return st.fixed_dictionaries(
        {p: st.integers(*field_range(f)) for p, f in field_map(name).items() if p not in FIXED}
    )


@pytest.mark.parametrize("name", NAMES)
@QUICK
@given(data=st.data())
def test_round_trip_over_all_ranges(name, data):
    fields = data.draw(values_of(name))
    word = encode(name, fields)
    instruction, found = decode(word)
    assert len(word) == 128
    assert instruction is BY_NAME[name]
    assert found == {"opcode": instruction.opcode, "version": ISA_VERSION, **fields}
    assert decode(encode_int(name, fields)) == (instruction, found)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_at_its_limits_and_no_further(name):
    for path, field in field_map(name).items():
        if path in FIXED:
            continue
        low, high = field_range(field)
        for value in (low, high):
            word = encode_int(name, {path: value})
            assert decode(word)[1][path] == value
            others = encode_int(name, {})
            assert (word ^ others) & ~field.mask == 0, f"{path} touches other bits"
        for value in (low - 1, high + 1):
            with pytest.raises(
                EncodeError, match=rf"{name}: {path} = {value} is outside {low}\.\.{high}"
            ):
                encode(name, {path: value})


@pytest.mark.parametrize("name", NAMES)
def test_fields_do_not_overlap(name):
    seen = 0
    for field in field_map(name).values():
        assert not seen & field.mask, field.name
        seen |= field.mask
    assert seen == BY_NAME[name].used_mask


def test_bytes_are_little_endian():
    word = encode("notify", {"imm": 0x01020304, "wait": 1})
    assert word[0] == BY_NAME["notify"].opcode
    assert word[1] == ISA_VERSION
    assert word[2] == 1
    assert word[24:28] == bytes([4, 3, 2, 1])


def test_encode_refuses_unknown_names_and_values():
    with pytest.raises(EncodeError, match="no instruction 'matmul'; there are nop, sem_wait"):
        encode("matmul", {})
    with pytest.raises(EncodeError, match="nop: no field 'src0.space'; there are opcode, version"):
        encode("nop", {"src0.space": 1})
    with pytest.raises(EncodeError, match="notify: imm = 1.5 is not an integer"):
        encode("notify", {"imm": 1.5})
    with pytest.raises(EncodeError, match="nop: opcode = 1, must be 0x00 or absent"):
        encode("nop", {"opcode": 1})


@pytest.mark.parametrize("opcode", [o for o in range(256) if o not in BY_OPCODE])
def test_every_undefined_opcode_is_refused(opcode):
    with pytest.raises(
        DecodeError, match=f"ILLEGAL_OPCODE: opcode {opcode:#04x} is not defined"
    ) as error:
        decode(opcode | ISA_VERSION << 8)
    assert error.value.cause is Cause.ILLEGAL_OPCODE


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda i: i.name)
def test_only_its_sequencers_execute_an_instruction(instruction):
    word = encode(instruction.name, {})
    for sequencer in Sequencer:
        if sequencer in instruction.sequencers:
            assert decode(word, sequencer)[0] is instruction
        else:
            with pytest.raises(DecodeError, match="not an instruction of the") as error:
                decode(word, sequencer)
            assert error.value.cause is Cause.ILLEGAL_OPCODE


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda i: i.name)
def test_every_reserved_bit_is_refused(instruction):
    word = encode_int(instruction.name, {})
    reserved = [bit for bit in range(1024) if not instruction.used_mask >> bit & 1]
    assert reserved
    for bit in reserved:
        with pytest.raises(
            DecodeError, match=f"{instruction.name}: reserved bits {bit} are set"
        ) as error:
            decode(word | 1 << bit)
        assert error.value.cause is Cause.RESERVED_BITS


def test_version_is_looked_at_first_then_opcode_then_reserved_bits():
    reserved = 1 << 1023
    for version in range(256):
        if version != ISA_VERSION:
            with pytest.raises(DecodeError) as error:
                decode(0xFF | version << 8 | reserved)
            assert error.value.cause is Cause.BAD_VERSION
    with pytest.raises(DecodeError) as error:
        decode(0xFF | ISA_VERSION << 8 | reserved)
    assert error.value.cause is Cause.ILLEGAL_OPCODE


@pytest.mark.parametrize("size", [0, 1, 127, 129, 256])
def test_only_128_bytes_are_a_word(size):
    with pytest.raises(ValueError, match=f"an instruction has 128 bytes, not {size}"):
        decode(bytes(size))
    with pytest.raises(ValueError, match=f"a descriptor has 128 bytes, not {size}"):
        decode_descriptor(bytes(size))


@pytest.mark.parametrize("word", [-1, 1 << 1024])
def test_only_1024_bits_are_a_word(word):
    with pytest.raises(ValueError, match="1024 bits"):
        decode(word)


DESCRIPTOR_RANGES = {f.name: field_range(f) for f in DESCRIPTOR}


def triple(name):
    return st.tuples(*(st.integers(*DESCRIPTOR_RANGES[f"{name}{i}"]) for i in range(3)))


DESCRIPTORS = st.builds(
    Descriptor,
    src_address=st.integers(*DESCRIPTOR_RANGES["src_address"]),
    dst_address=st.integers(*DESCRIPTOR_RANGES["dst_address"]),
    row_bytes=st.integers(*DESCRIPTOR_RANGES["row_bytes"]),
    count=triple("count"),
    src_stride=triple("src_stride"),
    dst_stride=triple("dst_stride"),
    update_kind=st.sampled_from(Update),
    update_semaphore=st.integers(0, 255),
    update_value=st.integers(*DESCRIPTOR_RANGES["update_value"]),
)


@settings(max_examples=200, deadline=None)
@given(DESCRIPTORS)
def test_descriptor_round_trip(descriptor):
    data = encode_descriptor(descriptor)
    assert len(data) == 128
    assert decode_descriptor(data) == descriptor
    assert descriptor.bytes == descriptor.rows * descriptor.row_bytes


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"row_bytes": 1 << 32}, r"row_bytes = 4294967296 is outside 0\.\.4294967295"),
        ({"row_bytes": -1}, r"row_bytes = -1 is outside"),
        ({"src_address": 1 << 64}, "src_address = .* is outside"),
        ({"dst_address": -1}, "dst_address = -1 is outside"),
        ({"count": (1, 65536, 1)}, r"count1 = 65536 is outside 0\.\.65535"),
        ({"src_stride": (0, 0, 1 << 31)}, "src_stride2 = 2147483648 is outside"),
        ({"dst_stride": (-(1 << 31) - 1, 0, 0)}, "dst_stride0 = -2147483649 is outside"),
        ({"count": (1, 1)}, "count has 2 dimensions, must have 3"),
        ({"update_semaphore": 256}, "update_semaphore = 256 is outside"),
        ({"update_value": 1 << 31}, "update_value = 2147483648 is outside"),
        ({"row_bytes": "8"}, "row_bytes = '8' is not an integer"),
    ],
)
def test_descriptor_bounds(changes, message):
    with pytest.raises(EncodeError, match=message):
        encode_descriptor(
            Descriptor(**{"src_address": 0, "dst_address": 0, "row_bytes": 4} | changes)
        )


def test_bad_descriptors_are_refused():
    good = int.from_bytes(
        encode_descriptor(Descriptor(src_address=0, dst_address=0, row_bytes=4)), "little"
    )
    used = sum(f.mask for f in DESCRIPTOR)
    bad = {
        "kind 3": good ^ 2,
        "version 3": good ^ 2 << 8,
        "update_kind 5": good | 5 << 64,
        "update_kind 7": good | 7 << 64,
    }
    bad |= {f"reserved bits # {bit}": good | 1 << bit for bit in range(1024) if not used >> bit & 1}
    for what, word in bad.items():
        with pytest.raises(DescriptorError, match=what.split(" #")[0]) as error:
            decode_descriptor(word)
        assert error.value.cause is DmaCause.BAD_DESCRIPTOR
