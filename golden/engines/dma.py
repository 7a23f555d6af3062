"""DMA engine: rows of bytes between any places of HBM, SBUF and the peers of links, in the order
of the descriptors.
"""

from collections import deque
from functools import lru_cache

import numpy as np

from golden.engines.far_copy import FarCopy, is_far
from golden.memory import Memory
from golden.port import Access
from isa.address_map import DmaCause
from isa.encoding import DescriptorError, decode_descriptor
from isa.geometry import DESCRIPTOR_BYTES
from isa.pattern import byte_intervals

_REACHABLE = (Memory.HBM, Memory.SBUF)
_ADDRESS_MASK = (1 << 64) - 1


class DmaEngine:
    """One engine: a queue of triggers, the status registers; `step` does one descriptor.

    update: function (descriptor) that applies its semaphore update. chip: memories, ports, checker
    (a RaceChecker or None), config, label.
    """

    def __init__(self, index, chip, update):
        self.index = index
        self.name = f"{chip.label}dma{index}"
        self._chip = chip
        self._memories = chip.memories
        self._update = update
        self._checker = chip.checker
        self.start()

    def start(self):
        """START: empty queue, counters and error cleared."""
        self.queue = deque()
        self.cause = DmaCause.NONE
        self.error_address = 0
        self.descriptors = 0
        self.bytes = 0

    def trigger(self, address, count):
        """Queues `count` consecutive descriptors."""
        self.queue.append([address, count])

    def step(self, origin):
        """Executes the descriptor at the head of the queue. origin: function address -> Origin."""
        head = self.queue[0]
        address = head[0]
        head[0], head[1] = address + DESCRIPTOR_BYTES, head[1] - 1
        if head[1] == 0:
            self.queue.popleft()
        checker = self._checker
        stamp = checker.order.descriptor(self.index) if checker else None
        hbm = self._memories.hbm
        if address % DESCRIPTOR_BYTES or not hbm.holds(address, DESCRIPTOR_BYTES):
            self._fail(DmaCause.BAD_DESCRIPTOR, address)
            return
        if checker:
            part = np.array([[address, address + DESCRIPTOR_BYTES]], np.int64)
            itself = checker.footprints.make(Memory.HBM, 0, 1, part)
            checker.copy(stamp, [itself], [], origin(address), identical=True)
        try:
            descriptor = _decode(hbm.flat[address : address + DESCRIPTOR_BYTES].tobytes())
        except DescriptorError as error:
            self._fail(error.cause, address)
            return
        done, cause = 0, DmaCause.NONE
        if descriptor.bytes and is_far(self._chip.config, descriptor):
            done, cause = self._far_copy(descriptor, stamp, origin(address))
        elif descriptor.bytes:
            done = self._copy(descriptor, stamp, address, origin)
            cause = DmaCause.NONE if done == descriptor.bytes else DmaCause.BAD_ADDRESS
        self.bytes += done
        if cause != DmaCause.NONE:
            self._fail(cause, address)
            return
        self.descriptors += 1
        self._update(descriptor)

    def _fail(self, cause, address):
        if self.cause == DmaCause.NONE:
            self.cause, self.error_address = cause, address

    def _far_copy(self, d, stamp, origin):
        """(bytes written, DmaCause) of a descriptor with a side at a peer."""
        checker = self._checker
        copy = FarCopy(self._chip, self._access(stamp, origin) if checker else None)
        found = copy.run(d)
        if checker:
            sources, targets = (_merged(rows, checker) for rows in (copy.sources, copy.targets))
            checker.copy(stamp, sources, targets, origin, identical=True)
        return found

    def _access(self, stamp, origin):
        order = self._checker.order

        def release(port, peer, semaphore, kind, value):
            order.release_posted_row(self.index, port, peer, semaphore, kind, value)

        return Access(order, stamp, release, origin)

    def _copy(self, d, stamp, address, origin):
        """Copies rows up to the first bad one; returns the bytes written."""
        source = Side(self._memories, d.src_address, d.row_bytes, d.count, d.src_stride)
        target = Side(self._memories, d.dst_address, d.row_bytes, d.count, d.dst_stride)
        if source.whole and target.whole:
            done = d.rows
            sources = source.footprints(self._checker)
            targets = target.footprints(self._checker)
            if target.disjoint and not source.meets(target):
                target.view()[...] = source.view()
            else:
                _copy_rows(source.rows(), target.rows())
        else:
            pairs = []
            for pair in zip(source.rows(), target.rows(), strict=True):
                if pair[0] is None or pair[1] is None:
                    break
                pairs.append(pair)
            done = len(pairs)
            sources, targets = (
                (_merged(side, self._checker) for side in zip(*pairs, strict=True))
                if pairs
                else ([], [])
            )
            _copy_rows(*zip(*pairs, strict=True)) if pairs else None
        if self._checker and done:
            same = (d.src_address, d.src_stride) == (d.dst_address, d.dst_stride)
            self._checker.copy(stamp, sources, targets, origin(address), identical=same)
        return done * d.row_bytes


class Side:
    """Source or destination of a descriptor."""

    def __init__(self, memories, address, row_bytes, counts, strides):
        self._memories = memories
        self._address = address
        self._row_bytes = row_bytes
        self._counts = counts
        self._strides = strides
        self._memory = memories.find(address, row_bytes, _REACHABLE)
        self._first = address - self._memory.base if self._memory else 0
        self.whole = self._memory is not None and _all_inside(
            self._first, row_bytes, counts, strides, self._memory
        )

    @property
    def disjoint(self):
        """No byte belongs to two rows."""
        return _disjoint(self._row_bytes, self._counts, self._strides)

    def meets(self, other):
        """Whether the two boxes share bytes (both sides whole)."""
        if self._memory is not other._memory:
            return False
        low, high = self._box()
        other_low, other_high = other._box()
        return low < other_high and other_low < high

    def _box(self):
        reach = [s * (c - 1) for s, c in zip(self._strides, self._counts, strict=True)]
        low = self._first + sum(min(r, 0) for r in reach)
        return low, self._first + sum(max(r, 0) for r in reach) + self._row_bytes

    def view(self):
        """All rows in place, [count2, count1, count0, row_bytes] (whole sides only)."""
        return np.ndarray(
            (*reversed(self._counts), self._row_bytes),
            np.uint8,
            buffer=self._memory.flat,
            offset=self._first,
            strides=(*reversed(self._strides), 1),
        )

    def rows(self):
        """The rows in order, as (memory, place, size), None where a row is in no single memory."""
        s0, s1, s2 = self._strides
        c0, c1, c2 = self._counts
        for i2 in range(c2):
            for i1 in range(c1):
                start = self._address + i2 * s2 + i1 * s1
                for i0 in range(c0):
                    address = (start + i0 * s0) & _ADDRESS_MASK
                    memory = self._memories.find(address, self._row_bytes, _REACHABLE)
                    yield (
                        None if memory is None else (memory, address - memory.base, self._row_bytes)
                    )

    def footprints(self, checker):
        """Footprints of all rows (whole sides only)."""
        if checker is None:
            return []
        return checker.footprints.of_rows(
            self._memory, self._first, self._row_bytes, self._counts, self._strides
        )


def _copy_rows(sources, targets):
    for (source, start, size), (target, place, _) in zip(sources, targets, strict=True):
        target.flat[place : place + size] = source.flat[start : start + size]


def _merged(rows, checker):
    if checker is None:
        return []
    by_memory = {}
    for memory, place, size in rows:
        by_memory.setdefault(memory, set()).add((place, place + size))
    found = []
    for memory, parts in by_memory.items():
        merged = []
        for low, high in sorted(parts):
            if merged and low <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        found += checker.footprints.of_places(memory, np.array(merged, np.int64))
    return found


def _all_inside(first, row_bytes, counts, strides, memory):
    """Whether every row lies within one row of the memory."""
    return _inside(first, row_bytes, counts, strides, memory.pitch, memory.row_bytes, memory.rows)


@lru_cache(1 << 12)
def _inside(first, row_bytes, counts, strides, pitch, limit, partitions):
    reach = [s * (c - 1) for s, c in zip(strides, counts, strict=True)]
    low = first + sum(min(r, 0) for r in reach)
    high = first + sum(max(r, 0) for r in reach) + row_bytes
    if low < 0 or high > pitch * partitions:
        return False
    if low // pitch == (high - 1) // pitch:
        return high - low // pitch * pitch <= limit
    offsets = np.zeros(1, np.int64)  # of rows in their partition, all that occur
    for stride, count in zip(strides, counts, strict=True):
        offsets = np.unique((offsets[:, None] + np.arange(count) * stride) % pitch)
    return int(((offsets + first) % pitch).max()) + row_bytes <= limit


@lru_cache(1 << 12)
def _disjoint(row_bytes, counts, strides):
    dims = (*zip(reversed(strides), reversed(counts), strict=True), (1, row_bytes))
    parts = byte_intervals(0, 1, dims)
    return int((parts[:, 1] - parts[:, 0]).sum()) == row_bytes * counts[0] * counts[1] * counts[2]


@lru_cache(1 << 12)
def _decode(data):
    return decode_descriptor(data)
