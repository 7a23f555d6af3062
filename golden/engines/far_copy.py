"""DMA copies with a side in a peer window: row after row, as they travel."""

from golden.memory import Memory
from golden.port import BusError
from isa.address_map import PEER_WINDOW_BITS, DmaCause
from isa.check_control import peer_place

_REACHABLE = (Memory.HBM, Memory.SBUF)
_ADDRESS_MASK = (1 << 64) - 1


def is_far(config, descriptor):
    """Whether a side begins in a peer window."""
    return any(
        peer_place(config, address) is not None
        for address in (descriptor.src_address, descriptor.dst_address)
    )


class FarCopy:
    """Copies one descriptor. chip: with config, memories, ports. access: see `golden.port.Access`,
    None without a checker.

    sources, targets: local rows that were read and written, (memory, place, size).
    """

    def __init__(self, chip, access):
        self._chip = chip
        self._access = access
        self.sources = []
        self.targets = []

    def run(self, d):
        """(bytes written, DmaCause)."""
        sources = _addresses(d.src_address, d.count, d.src_stride)
        targets = _addresses(d.dst_address, d.count, d.dst_stride)
        done = 0
        for source, target in zip(sources, targets, strict=True):
            read = self._place(source, d.row_bytes)
            write = self._place(target, d.row_bytes)
            if read is None or write is None:
                return done, DmaCause.BAD_ADDRESS
            try:
                self._write(write, self._read(read, d.row_bytes))
            except BusError:
                return done, DmaCause.BUS_ERROR
            done += d.row_bytes
        return done, DmaCause.NONE

    def _place(self, address, size):
        """(port or memory, address there), None for an address of neither."""
        far = peer_place(self._chip.config, address)
        if far is not None:
            port, address = far
            inside = address + size <= 1 << PEER_WINDOW_BITS
            return (self._chip.ports[port], address) if inside else None
        memory = self._chip.memories.find(address, size, _REACHABLE)
        return None if memory is None else (memory, address - memory.base)

    def _read(self, place, size):
        side, at = place
        if side in self._chip.ports:
            return side.read(at, size, self._access)
        self.sources.append((side, at, size))
        return side.flat[at : at + size].copy()

    def _write(self, place, data):
        side, at = place
        if side in self._chip.ports:
            side.write(at, data, self._access)
            return
        self.targets.append((side, at, data.size))
        side.flat[at : at + data.size] = data


def _addresses(first, counts, strides):
    """Addresses of the rows in order."""
    for i2 in range(counts[2]):
        for i1 in range(counts[1]):
            start = first + i2 * strides[2] + i1 * strides[1]
            for i0 in range(counts[0]):
                yield (start + i0 * strides[0]) & _ADDRESS_MASK
