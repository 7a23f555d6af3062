"""Flits: round trip, places of the fields on the wire, and each rule of the slot broken in turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.link.crc import is_sealed
from golden.link.flit import CAPACITY, FLIT_BYTES, build, parse, slot_reason
from isa.link import SLOT, Command, FlitType, Format, Reason

pytestmark = pytest.mark.smoke
CONTROL = {"type": FlitType.CONTROL, "first": 63}
DATA = {"type": FlitType.DATA, "payload": 1, "valid": 3, "first": 0}
FIELDS = [f for f in SLOT if f.name != "crc"]


@given(
    st.sampled_from(Format),
    st.fixed_dictionaries({f.name: st.integers(0, (1 << f.width) - 1) for f in FIELDS}),
    st.integers(0, 39),
    st.integers(0, (1 << 32) - 1),
    st.randoms(use_true_random=False),
)
def test_parse_undoes_build(flit_format, slot, granules, session, random):
    payload = random.randbytes(16 * min(granules, CAPACITY[flit_format]))
    flit = build(flit_format, payload, slot, session)
    got, body = parse(flit)
    assert len(flit) == FLIT_BYTES[flit_format]
    assert {name: got[name] for name in slot} == slot
    assert body == payload + bytes(16 * CAPACITY[flit_format] - len(payload))
    assert is_sealed(flit, session)


def test_fields_lie_where_the_table_says():
    slot = {"sequence": 0x3A5, "acknowledge": 0x15B, "nak": 1, "vc": 5, "type": FlitType.DATA}
    word = int.from_bytes(build(Format.SHORT, b"", slot, 0)[48:], "little")
    assert word & 0x3FF == 0x3A5
    assert word >> 10 & 0x3FF == 0x15B
    assert word >> 20 & 0xF == 1
    assert word >> 24 & 7 == 5
    assert word >> 78 & 0x3F == 0x15


def test_more_than_fits_is_refused():
    with pytest.raises(ValueError, match="SHORT flit has 48"):
        build(Format.SHORT, bytes(64), {}, 0)
    with pytest.raises(ValueError, match="17 bytes"):
        build(Format.LONG, bytes(17), {}, 0)


def reason_of(base, flit_format=Format.SHORT, **changes):
    flit = build(flit_format, b"", base | changes, 0)
    return slot_reason(parse(flit)[0], flit_format)


def test_good_slots_pass():
    assert reason_of(CONTROL) == reason_of(DATA) == Reason.NONE
    assert reason_of(CONTROL, type=FlitType.REPLAY) == Reason.NONE
    assert reason_of(DATA, Format.LONG, valid=39, first=38, next_format=1) == Reason.NONE
    assert reason_of(DATA, first=63) == reason_of(DATA, first=2) == Reason.NONE
    assert all(reason_of(CONTROL, command=command) == Reason.NONE for command in Command)


@pytest.mark.parametrize("code", [code for code in range(64) if code not in set(FlitType)])
def test_unknown_type(code):
    assert reason_of(CONTROL, type=code) == reason_of(DATA, type=code) == Reason.BAD_TYPE


@pytest.mark.parametrize("code", [3, 4, 5, 6, 7])
def test_unknown_command(code):
    assert reason_of(CONTROL, command=code) == Reason.BAD_COMMAND


def test_any_two_types_differ_in_four_bits():
    """A pair of slot errors cannot turn one type into another."""
    codes = list(FlitType)
    assert all((a ^ b).bit_count() >= 4 for a in codes for b in codes if a != b)


@pytest.mark.parametrize(
    ("base", "flit_format", "changes"),
    [
        (CONTROL, Format.SHORT, {"reserved": 8}),
        (CONTROL, Format.SHORT, {"payload": 1}),
        (DATA, Format.SHORT, {"payload": 0}),
        (DATA, Format.SHORT, {"valid": 0, "first": 63}),
        (DATA, Format.SHORT, {"valid": 4}),
        (DATA, Format.LONG, {"valid": 40}),
        (CONTROL, Format.SHORT, {"valid": 1}),
        (DATA, Format.SHORT, {"first": 3}),
        (DATA, Format.LONG, {"valid": 39, "first": 39}),
        (DATA, Format.LONG, {"valid": 39, "first": 62}),
        (CONTROL, Format.SHORT, {"first": 0}),
        (DATA, Format.SHORT, {"next_format": 2}),
        (CONTROL, Format.LONG, {}),
        (CONTROL, Format.LONG, {"type": FlitType.REPLAY}),
    ],
)
def test_contradicting_fields(base, flit_format, changes):
    assert reason_of(base, flit_format, **changes) == Reason.BAD_SLOT
