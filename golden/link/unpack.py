"""VC buffers: accepted payload by granules, packets out of it, credit for what has left."""

from collections import deque
from dataclasses import dataclass

from golden.link.credits import CreditReturn
from isa.link import (
    GRANULE_BYTES,
    HEADER,
    MAX_PACKET_GRANULES,
    NO_PACKET,
    VCS,
    Reason,
    unpack_bits,
)


@dataclass(frozen=True)
class Granule:
    """16 bytes in a buffer.  opens: first granule of its flit; marked: `first` points at it; torn:
    what came before it has overflowed.
    """

    data: bytes
    opens: bool
    marked: bool
    poison: int
    torn: bool = False


@dataclass(frozen=True)
class Packet:
    """A whole packet, header first.  poison: a flit that carried some of it was marked."""

    vc: int
    data: bytes
    poison: int


class Unpacker:
    """Packets of one VC from its granules.

    A packet that a fault cuts short is given out with poison; errors counts PACKET_LENGTH.
    """

    def __init__(self, vc):
        self.vc = vc
        self.errors = 0
        self._gathered, self._poison, self._missing = bytearray(), 0, 0
        self._begun, self._dropping = False, False

    def granule(self, granule):
        """[packets] that end with this granule or are cut short by it."""
        ended = []
        if granule.opens:
            self._begun = False
        if granule.torn:
            if self._missing:
                ended.append(self._end(poison=1))
            self._dropping = True
        if granule.marked:
            if self._missing:
                self.errors += 1
                ended.append(self._end(poison=1))
            self._begun, self._dropping = True, False
        elif not self._missing and not self._begun and not self._dropping:
            self._fault()
        if self._dropping or not (self._missing or self._header(granule)):
            return ended
        self._gathered += granule.data
        self._poison |= granule.poison
        self._missing -= 1
        return ended if self._missing else [*ended, self._end(self._poison)]

    def _header(self, granule):
        header = unpack_bits(HEADER, int.from_bytes(granule.data, "little"))
        if not 1 <= header["granules"] <= MAX_PACKET_GRANULES:
            self._fault()
            return False
        self._missing = header["granules"]
        return True

    def _fault(self):
        self.errors += 1
        self._dropping = True

    def _end(self, poison):
        packet = Packet(self.vc, bytes(self._gathered), poison)
        self._gathered, self._poison, self._missing = bytearray(), 0, 0
        return packet


class VcBuffers:
    """The receive buffers of all VCs."""

    def __init__(self, link):
        self.link = link
        self.returns = [CreditReturn(units) for units in link.vc_units]
        self.buffers = [deque() for _ in range(VCS)]
        self.unpackers = [Unpacker(vc) for vc in range(VCS)]
        self._torn = [False] * VCS

    def deliver(self, payload):
        """An accepted `receiver.Payload`: Reason.OVERFLOW if a beat of it does not fit (that one is
        dropped, its credit returns), else NONE.
        """
        reason, size = Reason.NONE, self.link.beat_granules
        for low in range(0, payload.granules, size):
            beat = self._beat(payload, low, min(low + size, payload.granules))
            buffer, credit = self.buffers[payload.vc], self.returns[payload.vc]
            if len(buffer) + len(beat) > credit.capacity:
                credit.leave(len(beat))
                self._torn[payload.vc] = True
                reason = Reason.OVERFLOW
            else:
                buffer.extend(beat)
                self._torn[payload.vc] = False
        return reason

    def _beat(self, payload, low, high):
        beat = []
        for index in range(low, high):
            data = payload.data[index * GRANULE_BYTES :][:GRANULE_BYTES]
            marked = payload.first != NO_PACKET and index == payload.first
            torn = self._torn[payload.vc] and index == low
            beat.append(Granule(data, index == 0, marked, payload.poison, torn))
        return beat

    def take(self, vc, granules=1):
        """([packets that this completes], Reason): granules leave the buffer of a VC."""
        packets, unpacker = [], self.unpackers[vc]
        errors = unpacker.errors
        for _ in range(min(granules, len(self.buffers[vc]))):
            packets += unpacker.granule(self.buffers[vc].popleft())
            self.returns[vc].leave(1)
        return packets, Reason.PACKET_LENGTH if unpacker.errors > errors else Reason.NONE

    @property
    def limits(self):
        """Own limits of all VCs, in units."""
        return [each.limit for each in self.returns]

    @property
    def congestion(self):
        """Fill of the fullest buffer in quarters, 0..3."""
        fills = zip(self.buffers, self.returns, strict=True)
        return max(min(3, 4 * len(buffer) // each.capacity) for buffer, each in fills)


def packet_beats(packet, beat_bytes):
    """Beats of a packet as they leave the port: bytes, all full but the last one."""
    return [packet.data[low : low + beat_bytes] for low in range(0, len(packet.data), beat_bytes)]
