"""CRC-40: three implementations of ours against crccheck and against a division of polynomials."""

import re
from pathlib import Path

import numpy as np
import pytest
from crccheck.crc import Crc

from golden.link import crc
from isa.link import CELL_BYTES, CRC_BITS, CRC_POLYNOMIAL, LONG_CELLS, crc_salt

pytestmark = pytest.mark.smoke
LENGTHS = (1, 5, 59, 635)


def oracle(data):
    """crccheck's value, from the parameters in normal notation."""
    state = Crc(
        CRC_BITS,
        CRC_POLYNOMIAL,
        initvalue=(1 << CRC_BITS) - 1,
        reflect_input=True,
        reflect_output=True,
        xor_output=0,
    )
    state.process(data)
    return state.final()


def division(data):
    """Remainder of message(x) x^40 + init by long division in non-reflected notation, mirrored."""
    bits = [byte >> bit & 1 for byte in data for bit in range(8)]
    message = int("".join(map(str, bits)), 2)
    dividend = (message << CRC_BITS) ^ (((1 << CRC_BITS) - 1) << len(bits))
    generator = 1 << CRC_BITS | CRC_POLYNOMIAL
    while dividend.bit_length() > CRC_BITS:
        dividend ^= generator << (dividend.bit_length() - 1 - CRC_BITS)
    return int(f"{dividend:0{CRC_BITS}b}"[::-1], 2)


def test_check_value_is_the_published_one():
    page = (Path(__file__).parents[3] / "docs/link.md").read_text()
    published = int(re.search(r'"123456789" without salt: (0x[0-9A-F]{10})', page).group(1), 16)
    assert published == crc.CHECK == oracle(b"123456789") == crc.crc40_bitwise(b"123456789")


@pytest.mark.parametrize("length", LENGTHS)
def test_all_agree_with_two_oracles(length):
    data = np.random.default_rng(length).integers(0, 256, (8, length), dtype=np.uint8)
    many = crc.crc40_many(data)
    for row, got in zip(data, many, strict=True):
        message = row.tobytes()
        assert int(got) == oracle(message)
        assert division(message) == oracle(message)
        assert crc.crc40(message) == oracle(message)
        assert crc.crc40_bitwise(message) == oracle(message)


def test_register_can_be_carried_from_beat_to_beat():
    message = bytes(range(64))
    assert crc.crc40(message[17:], crc.crc40(message[:17])) == oracle(message)


@pytest.mark.parametrize("size", (CELL_BYTES, LONG_CELLS * CELL_BYTES))
def test_sealed_flit_is_salted_and_stored_low_byte_first(size):
    session = 0x12345678
    body = bytes(range(256)) * 3
    flit = crc.seal(body[:size], session)
    field = int.from_bytes(flit[-5:], "little")
    assert field == oracle(body[: size - 5]) ^ crc_salt(session)
    assert crc_salt(session) == 0x7812345678
    assert crc.is_sealed(flit, session)
    assert not crc.is_sealed(flit, session ^ 1)


def test_every_single_bit_error_of_a_short_flit_is_found():
    session = 0xDEADBEEF
    flit = np.frombuffer(crc.seal(bytes(range(64)), session), dtype=np.uint8)
    wrong = np.repeat(flit[None], 512, axis=0)
    bit = np.arange(512)
    wrong[bit, bit // 8] ^= (1 << bit % 8).astype(np.uint8)
    assert crc.are_sealed(flit[None], session).all()
    assert not crc.are_sealed(wrong, session).any()


def test_every_burst_of_up_to_40_bits_is_found():
    session, rng = 7, np.random.default_rng(3)
    flit = np.frombuffer(crc.seal(bytes(64), session), dtype=np.uint8)
    image = int.from_bytes(flit.tobytes(), "little")
    wrong = []
    for _ in range(4000):
        length = int(rng.integers(1, 41))
        burst = 1 | 1 << length - 1 | int(rng.integers(0, 1 << length))
        damaged = image ^ burst << int(rng.integers(0, 512 - length + 1))
        wrong.append(np.frombuffer(damaged.to_bytes(64, "little"), dtype=np.uint8))
    assert not crc.are_sealed(np.array(wrong), session).any()
