"""Receiver: beats to checked flits, sequence check, NAK; by events.

The numbers of cycles (repeat of the NAK) are the caller's: `repeat` is the event.
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto

from golden.link.crc import is_sealed
from golden.link.flit import FLIT_BYTES, parse, slot_reason
from isa.link import (
    ATTEMPTS,
    CELL_BYTES,
    GRANULE_BYTES,
    NO_PACKET,
    SEQUENCE_BITS,
    Command,
    FlitType,
    Format,
    Reason,
)

MODULUS = 1 << SEQUENCE_BITS
HALF = MODULUS // 2


class Verdict(Enum):
    """What became of a cell (in HUNT) or of a flit."""

    ACCEPTED = auto()  # payload, in order: handed on
    GOOD = auto()  # without payload, nothing missing
    DUPLICATE = auto()  # payload seen before
    GAP = auto()  # something before this flit is missing
    WAITED = auto()  # payload dropped while a replay is awaited
    CRC = auto()
    EPOCH = auto()  # of another epoch: dropped
    HUNTED = auto()  # a cell ignored in HUNT
    ERROR = auto()  # protocol error, no effect


@dataclass(frozen=True)
class Payload:
    """Accepted payload: data are `granules` x 16 bytes, `first` as in the slot."""

    vc: int
    data: bytes
    granules: int
    first: int
    poison: int


@dataclass(frozen=True)
class Received:
    """One flit or hunted cell.  acknowledge: (acknowledge, nak); credit: (a_vc, a, b_vc, b), both
    None if the flit has no effect.  slot: {field: number} where it was looked at.
    """

    verdict: Verdict
    flit_format: Format
    slot: dict | None = None
    reason: Reason = Reason.NONE
    payload: Payload | None = None
    acknowledge: tuple | None = None
    credit: tuple | None = None
    command: Command = Command.NONE


class Receiver:
    """session, epoch: of the peer.

    expected: next payload flit, kept by `stop`.  nak: a NAK is owed, until `nak_taken`.
    hunting, waiting: as in docs/link.md.  nak_timer: counts up whenever the time to the next repeat
    starts anew.  progress: payload flits accepted.  counts: events by the names of COUNTERS.
    """

    def __init__(self, link, session=0, epoch=0):
        self.link = link
        self.session, self.epoch = session, epoch
        self.expected = 0
        self.nak = False
        self.repeats = self.nak_timer = self.progress = 0
        self.counts = Counter()
        self.start()

    def start(self):
        """Receiving starts: the next beat is beat 0 of a cell."""
        self.hunting = self.waiting = True
        self.format = Format.SHORT
        self.gathered = bytearray()
        self.repeats = 0
        self.nak_timer += 1

    def stop(self):
        """Receiving stops; what is gathered of a flit is dropped."""
        self.start()
        self.nak = False

    @property
    def restless(self):
        """Whether the time of the NAK's repeat runs."""
        return self.waiting

    def nak_taken(self):
        """The NAK stands in a slot."""
        self.nak = False

    def repeat(self):
        """The time of the repeat is over: Reason.NAK_LIMIT at the 4th, else NONE."""
        if not self.restless:
            return Reason.NONE
        self._owe_nak()
        self.repeats += 1
        self.counts["NAK_REPEATS"] += 1
        return Reason.NAK_LIMIT if self.repeats >= ATTEMPTS else Reason.NONE

    def beat(self, data):
        """A beat from the lanes (bytes): list of the `Received` that it completes, none or one."""
        assert len(data) == self.link.beat_bytes, "not a beat"
        self.gathered += data
        size = CELL_BYTES if self.hunting else FLIT_BYTES[self.format]
        if len(self.gathered) < size:
            return []
        flit, self.gathered = bytes(self.gathered), bytearray()
        return [self._cell(flit) if self.hunting else self._flit(flit, self.format)]

    def _owe_nak(self):
        self.nak = True
        self.nak_timer += 1

    def _cell(self, cell):
        """One cell in HUNT: only a short flit without fault counts; it ends HUNT."""
        ignored = Received(Verdict.HUNTED, Format.SHORT)
        if not is_sealed(cell, self.session):
            return ignored
        slot, body = parse(cell)
        if slot["epoch"] != self.epoch or slot_reason(slot, Format.SHORT) != Reason.NONE:
            return ignored
        return self._good(slot, body, Format.SHORT)

    def _flit(self, flit, flit_format):
        if not is_sealed(flit, self.session):
            self.counts["CRC_ERRORS"] += 1
            if not self.waiting:  # else a replay is asked for already
                self._owe_nak()
            self.hunting = self.waiting = True
            return Received(Verdict.CRC, flit_format)
        slot, body = parse(flit)
        if slot["epoch"] != self.epoch:
            self.counts["EPOCH_DROPS"] += 1
            self.format = Format(slot["next_format"] & 1)
            return Received(Verdict.EPOCH, flit_format, slot)
        reason = slot_reason(slot, flit_format)
        if reason != Reason.NONE:
            return self._error(slot, flit_format, reason)
        return self._good(slot, body, flit_format)

    def _error(self, slot, flit_format, reason):
        """No effect; the link leaves ACTIVE, so what follows is not framed any more."""
        self.hunting = True
        return Received(Verdict.ERROR, flit_format, slot, reason)

    def _good(self, slot, body, flit_format):
        has_payload = bool(slot["payload"])
        position = slot["sequence"] if has_payload else slot["sequence"] + 1
        ahead = (position - self.expected) % MODULUS
        if ahead == HALF:
            return self._error(slot, flit_format, Reason.BAD_SEQUENCE)
        self.counts["RX_LONG" if flit_format == Format.LONG else "RX_SHORT"] += 1
        self.format = Format(slot["next_format"])
        self.hunting = False
        if slot["type"] == FlitType.REPLAY:
            if self.waiting:
                self.repeats = 0
            self.waiting = False
        verdict = self._sequence(ahead, has_payload)
        is_control = slot["type"] == FlitType.CONTROL
        return Received(
            verdict=verdict,
            flit_format=flit_format,
            slot=slot,
            payload=self._accept(slot, body) if verdict == Verdict.ACCEPTED else None,
            acknowledge=(slot["acknowledge"], slot["nak"]),
            credit=tuple(slot[f"credit_{name}"] for name in ("a_vc", "a", "b_vc", "b")),
            command=Command(slot["command"]) if is_control else Command.NONE,
        )

    def _sequence(self, ahead, has_payload):
        if 0 < ahead < HALF:
            if not self.waiting:
                self.waiting = True
                self.counts["SEQUENCE_GAPS"] += 1
                self._owe_nak()
            return Verdict.GAP
        if not has_payload:
            return Verdict.GOOD
        if ahead > HALF:
            self.counts["DUPLICATES"] += 1
            return Verdict.DUPLICATE
        return Verdict.WAITED if self.waiting else Verdict.ACCEPTED

    def _accept(self, slot, body):
        self.expected = (self.expected + 1) % MODULUS
        self.repeats = 0
        self.progress += 1
        self.counts["RX_DATA"] += 1
        self.counts["POISON_RECEIVED"] += slot["poison"]
        return Payload(
            vc=slot["vc"],
            data=body[: slot["valid"] * GRANULE_BYTES],
            granules=slot["valid"],
            first=slot["first"],
            poison=slot["poison"],
        )


def first_of_beat(payload, beat, beat_granules):
    """Granule of beat number `beat` of an accepted flit at which the first packet begins, None if
    that is in another beat or nowhere.
    """
    if payload.first == NO_PACKET or payload.first // beat_granules != beat:
        return None
    return payload.first % beat_granules
