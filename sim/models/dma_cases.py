"""Where tests of the DMA engine put descriptors, sources and destinations, all apart."""

from isa.address_map import sbuf_address
from isa.encoding import Descriptor
from isa.fields import Update
from isa.geometry import preset

TINY = preset("tiny")
GAPPED = TINY.with_(sbuf_bytes=6 << 10)
"""Partitions with unmapped bytes between them."""
DESCRIPTORS = 0x1000
HBM_SOURCE = (0x40000, 0x80000)
HBM_TARGET = (0x80000, TINY.hbm_bytes)
DIRECTIONS = ("hh", "hs", "sh", "ss")
"""Source and destination memory: h HBM, s SBUF (lower half of the partitions source, upper half
destination)."""


def source(config, letter, offset):
    """Address `offset` bytes into the source area of a memory."""
    return HBM_SOURCE[0] + offset if letter == "h" else sbuf_address(config, 0, offset)


def target(config, letter, offset):
    """Address `offset` bytes into the destination area of a memory."""
    return (
        HBM_TARGET[0] + offset
        if letter == "h"
        else sbuf_address(config, config.partitions // 2, offset)
    )


def random_descriptor(random, config, direction, *, longest=80, rows=6):
    """A legal descriptor: any alignment, strides of both signs, often overlapping destination
    rows."""
    count = [1 + random.randrange(rows) if random.random() < 0.5 else 1 for _ in range(3)]
    size = 1 + random.randrange(random.choice((3, 16, 33, longest)))
    sides = []
    for letter, area, first in (
        (direction[0], HBM_SOURCE, 0),
        (direction[1], HBM_TARGET, config.partitions // 2),
    ):
        while True:
            # Two partitions of SBUF, or half of HBM.
            limit = (area[1] - area[0]) if letter == "h" else config.sbuf_bytes
            reach = random.choice((size, size, 2 * size, 300, limit // 2))
            stride = [
                random.randint(-reach, reach) if random.random() < 0.6 else size for _ in count
            ]
            spans = [s * (n - 1) for s, n in zip(stride, count, strict=True)]
            low, high = sum(min(s, 0) for s in spans), sum(max(s, 0) for s in spans) + size
            if high - low <= limit:
                break
        at = random.choice((-low, limit - high, random.randint(-low, limit - high)))
        base = (
            area[0]
            if letter == "h"
            else sbuf_address(config, first + random.randrange(config.partitions // 2), 0)
        )
        sides.append((base + at, tuple(stride)))
    update = random.choice(tuple(Update))
    (src, src_stride), (dst, dst_stride) = sides
    return Descriptor(
        src_address=src,
        dst_address=dst,
        row_bytes=size if random.random() < 0.95 else 0,
        count=tuple(count),
        src_stride=src_stride,
        dst_stride=dst_stride,
        update_kind=update,
        update_semaphore=random.randrange(256),
        update_value=random.randint(-(1 << 31), (1 << 31) - 1),
    )
