"""Flits: bytes from payload and slot, slot from bytes, and the rules a slot must keep."""

from golden.link.crc import seal
from isa.link import (
    CELL_BYTES,
    GRANULE_BYTES,
    LONG_CELLS,
    LONG_GRANULES,
    NO_PACKET,
    SHORT_GRANULES,
    SLOT,
    Command,
    FlitType,
    Format,
    Reason,
    pack_bits,
    unpack_bits,
)

CAPACITY = {Format.SHORT: SHORT_GRANULES, Format.LONG: LONG_GRANULES}
"""Payload granules of a format."""
FLIT_BYTES = {Format.SHORT: CELL_BYTES, Format.LONG: LONG_CELLS * CELL_BYTES}
_TYPES = frozenset(FlitType)
_COMMANDS = frozenset(Command)


def build(flit_format, payload, slot, session):
    """Bytes of a flit with its CRC.  `payload`: bytes of whole granules, filled up with zeros;
    `slot`: {field: number}, what is not named is 0.  ValueError for more than the format holds.
    """
    room = CAPACITY[flit_format] * GRANULE_BYTES
    if len(payload) > room or len(payload) % GRANULE_BYTES:
        raise ValueError(f"{len(payload)} bytes of payload, a {flit_format.name} flit has {room}")
    body = payload.ljust(room, b"\0") + pack_bits(SLOT, slot).to_bytes(GRANULE_BYTES, "little")
    return seal(body, session)


def parse(flit):
    """({field: number} of the slot, bytes of all payload granules) of the bytes of a flit."""
    slot = unpack_bits(SLOT, int.from_bytes(flit[-GRANULE_BYTES:], "little"))
    return slot, flit[:-GRANULE_BYTES]


def slot_reason(slot, flit_format):
    """Reason why a slot with a good CRC is a protocol error, Reason.NONE if it is not."""
    if slot["type"] not in _TYPES:
        return Reason.BAD_TYPE
    if slot["command"] not in _COMMANDS:
        return Reason.BAD_COMMAND
    has_payload = slot["type"] == FlitType.DATA
    valid = slot["valid"]
    good = (
        slot["reserved"] == 0
        and slot["payload"] == has_payload
        and (1 <= valid <= CAPACITY[flit_format] if has_payload else valid == 0)
        and (slot["first"] < valid or slot["first"] == NO_PACKET)
        and slot["next_format"] in (Format.SHORT, Format.LONG)
        and (has_payload or flit_format == Format.SHORT)
    )
    return Reason.NONE if good else Reason.BAD_SLOT
