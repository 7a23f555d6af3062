"""CRC-40 of a flit: the definition bit by bit, a byte table, and many flits at once.

Register reflected (bit 0 is the next coefficient to leave), init all ones, no final XOR but the
salt of the sender's session.  Check value over the nine ASCII bytes "123456789", without salt:
0x95482FA084.
"""

from functools import lru_cache

import numpy as np

from isa.link import CRC_BITS, CRC_INIT, CRC_POLYNOMIAL, crc_salt

CHECK = 0x95482FA084
"""CRC-40 of b"123456789"."""
FIELD_BYTES = CRC_BITS // 8
REFLECTED = int(f"{CRC_POLYNOMIAL:0{CRC_BITS}b}"[::-1], 2)


def crc40_bitwise(data, register=CRC_INIT):
    """The definition: one bit of `data` at a time, bit 0 of each byte first."""
    for byte in data:
        for bit in range(8):
            leaves = (register ^ byte >> bit) & 1
            register = register >> 1 ^ (REFLECTED if leaves else 0)
    return register


_TABLE = tuple(crc40_bitwise((byte,), 0) for byte in range(256))


def crc40(data, register=CRC_INIT):
    """Register behind the bytes `data`, from `register` on."""
    for byte in data:
        register = _TABLE[(register ^ byte) & 0xFF] ^ register >> 8
    return register


@lru_cache
def _positions(length):
    """(table[position, byte], register behind `length` zero bytes): CRC is linear over XOR, so
    each byte contributes on its own, by its distance from the end.
    """
    table = np.empty((length, 256), dtype=np.uint64)
    row = np.array(_TABLE, dtype=np.uint64)
    low = np.array(_TABLE, dtype=np.uint64)
    for position in range(length - 1, -1, -1):
        table[position] = row
        row = low[row & np.uint64(0xFF)] ^ row >> np.uint64(8)
    table.setflags(write=False)
    return table, crc40(bytes(length))


def crc40_many(data):
    """uint64[n] of a uint8[n, length] array: CRC-40 of each row."""
    data = np.asarray(data, dtype=np.uint8)
    table, zeros = _positions(data.shape[-1])
    chosen = table[np.arange(data.shape[-1]), data]
    return np.bitwise_xor.reduce(chosen, axis=-1) ^ np.uint64(zeros)


def flit_crc(flit, session):
    """Value of the CRC field of the flit `flit` (bytes; the last five are not looked at)."""
    body = np.frombuffer(flit, dtype=np.uint8)[:-FIELD_BYTES]
    return int(crc40_many(body)) ^ crc_salt(session)


def seal(flit, session):
    """The same flit with its CRC field filled in."""
    return flit[:-FIELD_BYTES] + flit_crc(flit, session).to_bytes(FIELD_BYTES, "little")


def is_sealed(flit, session):
    """Whether the CRC field of `flit` is right for a sender of that session."""
    return int.from_bytes(flit[-FIELD_BYTES:], "little") == flit_crc(flit, session)


def are_sealed(flits, session):
    """bool[n] of uint8[n, bytes of a flit]."""
    flits = np.asarray(flits, dtype=np.uint8)
    shifts = np.arange(0, CRC_BITS, 8, dtype=np.uint64)
    field = flits[:, -FIELD_BYTES:].astype(np.uint64) << shifts
    got = np.bitwise_or.reduce(field, axis=1)
    return got == crc40_many(flits[:, :-FIELD_BYTES]) ^ np.uint64(crc_salt(session))
