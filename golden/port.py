"""A link port of a chip, as far as programs see it: reliable, in order for each sender.

What travels is cut at pages of 4 KiB, as on the wire no packet crosses one: each piece is allowed
or denied as a whole by the ingress windows of the port where it arrives.
"""

import numpy as np

from isa.address_map import (
    SEMAPHORE_BASE,
    SEMAPHORE_VIEW_BYTES,
    SemaphoreView,
)
from isa.fields import Update
from isa.geometry import SEMAPHORES
from isa.windows import PAGE_BYTES

_UPDATES = {
    SemaphoreView.SET: Update.SET,
    SemaphoreView.INCREMENT: Update.INCREMENT,
    SemaphoreView.DECREMENT: Update.DECREMENT,
    SemaphoreView.ADD: Update.ADD,
}
_WORD = 4


class BusError(Exception):
    """The access is answered with an error."""


class Access:
    """What the race checker has to know of an access through a port.

    order: ChipOrder of the sender. stamp: (component, epoch, clock) of the access. release:
    function (port, ChipOrder of the peer, semaphore, kind, value) for an update of a semaphore.
    """

    def __init__(self, order, stamp, release, origin):
        self._order = order
        self.stamp = stamp
        self.release = release
        self.origin = origin

    def posted(self, port):
        """Stamp of a write through a port."""
        component, epoch, clock = self.stamp
        order = self._order
        return order.posted_of(component, port), epoch, order.posted(clock, port)


class Port:
    """Port `index` of `chip`. far: the Port at the other end, None while nothing is connected.

    windows: list of `isa.windows.IngressWindow`, what the far end may do here. denied_writes,
    denied_reads, lost_writes: pieces refused here, and posted ones for which nothing is there.
    """

    def __init__(self, chip, index):
        self.chip = chip
        self.index = index
        self.far = None
        self.windows = []
        self.denied_writes = 0
        self.denied_reads = 0
        self.lost_writes = 0

    def write(self, address, data, access=None):
        """Post uint8 `data` to `address` of the peer. BusError only when there is no peer."""
        far = self._far()
        for start, size in _pieces(address, data.size):
            at = start - address
            far.take(start, data[at : at + size], access)

    def read(self, address, size, access=None):
        """The bytes at the peer, uint8. BusError for what is denied or not there."""
        far = self._far()
        return np.concatenate([far.give(*piece, access) for piece in _pieces(address, size)])

    def _far(self):
        if self.far is None:
            raise BusError(f"link port {self.index} has no peer")
        return self.far

    def take(self, address, data, access):
        """Perform a piece of a write of the far end."""
        if not self._allowed(address, data.size, write=True):
            self.denied_writes += 1
        elif _is_semaphore(address):
            self._update(address, data, access)
        else:
            memory = self.chip.memories.find(address, data.size)
            if memory is None:
                self.lost_writes += 1
                return
            place = address - memory.base
            self._check(memory, place, data.size, access, write=True)
            memory.flat[place : place + data.size] = data

    def give(self, address, size, access):
        """The answer to a piece of a read of the far end."""
        if not self._allowed(address, size, write=False):
            self.denied_reads += 1
            raise BusError(f"bytes {address:#x}..{address + size - 1:#x} are denied by the peer")
        if _is_semaphore(address):
            values = np.array(self.chip.semaphores.values, np.int64).astype(np.int32)
            at = (address - SEMAPHORE_BASE) % SEMAPHORE_VIEW_BYTES
            return values.view(np.uint8)[at : at + size].copy()
        memory = self.chip.memories.find(address, size)
        if memory is None:
            raise BusError(f"bytes {address:#x}..{address + size - 1:#x} of the peer do not exist")
        place = address - memory.base
        self._check(memory, place, size, access, write=False)
        return memory.flat[place : place + size].copy()

    @property
    def _sender(self):
        assert self.far is not None, "only the far end asks"
        return self.far

    def _allowed(self, address, size, *, write):
        return any(window.holds(address, size, write=write) for window in self.windows)

    def _check(self, memory, place, size, access, *, write):
        checker = self.chip.checker
        if checker is None:
            return
        if access is None:
            if write:
                checker.host_write(memory, place, size)
            return
        part = np.array([[place, place + size]], np.int64)
        checker.through_link(
            checker.footprints.of_places(memory, part),
            access.posted(self._sender.index) if write else access.stamp,
            access.origin,
            write=write,
        )

    def _update(self, address, data, access):
        """Each whole word is one update; the rest has no effect."""
        for at in range(-address % _WORD, data.size - _WORD + 1, _WORD):
            view, place = divmod(address + at - SEMAPHORE_BASE, SEMAPHORE_VIEW_BYTES)
            value = int.from_bytes(data[at : at + _WORD].tobytes(), "little", signed=True)
            kind, semaphore = _UPDATES[SemaphoreView(view)], place // _WORD
            if self.chip.checker and access is not None:
                order = self.chip.checker.order
                access.release(self._sender.index, order, semaphore, kind, value)
            self.chip.semaphores.update(semaphore, kind, value)


def _is_semaphore(address):
    view, place = divmod(address - SEMAPHORE_BASE, SEMAPHORE_VIEW_BYTES)
    return 0 <= view < len(SemaphoreView) and place < SEMAPHORES * _WORD


def _pieces(address, size):
    """[(address, size)] of a range cut at pages."""
    found, end = [], address + size
    while address < end:
        step = min(end, (address // PAGE_BYTES + 1) * PAGE_BYTES) - address
        found.append((address, step))
        address += step
    return found
