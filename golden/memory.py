"""The memories of the chip as flat numpy byte arrays that cost nothing until they are written.

All memories start as zeros and keep their content between runs. The partitioned memories are laid
out with the row distance of the address map, so that a byte's place in `flat` is its distance from
the base of its window: access patterns and DMA rows are both strided views of the same array.
"""

import mmap
from enum import IntEnum

import numpy as np

from isa.address_map import PSUM_BASE, PSUM_STRIDE_BYTES, SBUF_BASE
from isa.fields import Space

_MAP_NORESERVE = 0x4000
_SMALL_BYTES = 1 << 26


class Memory(IntEnum):
    """The memories, numbered so that SBUF and PSUM agree with `isa.fields.Space`."""

    HBM = 0
    SBUF = Space.SBUF
    PSUM = Space.PSUM


def zeros(size):
    """`size` zero bytes; pages are only taken when written, so HBM sizes beyond the host's are
    fine.
    """
    if size <= _SMALL_BYTES:
        return np.zeros(size, np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8)


class Partitioned:
    """A memory of `rows` partitions. `flat`: uint8 [rows * pitch]; `bytes`: its [rows, row_bytes]
    view.

    HBM is one row as long as the memory.
    """

    def __init__(self, space, rows, row_bytes, pitch, base):
        self.space = space
        self.rows = rows
        self.row_bytes = row_bytes
        self.pitch = pitch
        self.base = base
        self.flat = zeros(rows * pitch)
        self.bytes = self.flat.reshape(rows, pitch)[:, :row_bytes]

    def holds(self, address, size):
        """Whether [address, address + size) lies within one row of this memory."""
        place = address - self.base
        if not 0 <= place < self.rows * self.pitch:
            return False
        return place % self.pitch + size <= self.row_bytes

    def locate(self, address):
        """(partition, offset) of an address that this memory holds."""
        return divmod(address - self.base, self.pitch)


class Memories:
    """HBM, SBUF and PSUM of one chip, and the 64-bit address map over them."""

    def __init__(self, config):
        rows = config.partitions
        self.hbm = Partitioned(Memory.HBM, 1, config.hbm_bytes, config.hbm_bytes, 0)
        self.sbuf = Partitioned(
            Memory.SBUF, rows, config.sbuf_bytes, config.sbuf_stride_bytes, SBUF_BASE
        )
        self.psum = Partitioned(Memory.PSUM, rows, config.psum_bytes, PSUM_STRIDE_BYTES, PSUM_BASE)
        self._by_space = (self.hbm, self.sbuf, self.psum)

    def __getitem__(self, space):
        return self._by_space[space]

    def __iter__(self):
        return iter(self._by_space)

    def find(self, address, size, spaces=tuple(Memory)):
        """The memory whose one row holds [address, address + size), or None."""
        for space in spaces:
            memory = self._by_space[space]
            if memory.holds(address, size):
                return memory
        return None

    def read(self, address, size):
        """A copy of the bytes, uint8 [size]; ValueError when they are not within one row of a
        memory.
        """
        memory = self._require(address, size)
        place = address - memory.base
        return memory.flat[place : place + size].copy()

    def write(self, address, data):
        """Writes bytes and returns their memory; ValueError when no row holds them all."""
        data = np.frombuffer(data, np.uint8)
        memory = self._require(address, data.size)
        place = address - memory.base
        memory.flat[place : place + data.size] = data
        return memory

    def _require(self, address, size):
        memory = self.find(address, size)
        if memory is None:
            raise ValueError(
                f"bytes {address:#x} to {address + size:#x} are not in HBM "
                "or in one partition of SBUF or PSUM"
            )
        return memory
