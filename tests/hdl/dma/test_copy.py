"""Copies by the DMA engine: every small shape and alignment, strides, boundaries, zero work.

Memories are compared whole, so every byte that a copy does not touch is a guard byte.
"""

import random

import pytest

from isa.address_map import sbuf_address
from isa.encoding import Descriptor
from isa.fields import Update
from sim.models.axi_memory import Timing
from sim.models.dma_bench import DmaBench
from sim.models.dma_cases import (
    DESCRIPTORS,
    DIRECTIONS,
    GAPPED,
    HBM_SOURCE,
    HBM_TARGET,
    TINY,
    random_descriptor,
    source,
    target,
)


def run(descriptors, *, config=TINY, seed=0, times=1, limit=20_000, **bench):
    bench = DmaBench(config, seed=seed, **bench)
    trigger = bench.place(DESCRIPTORS, descriptors)
    bench.script(*[bench.check([trigger], limit=limit)] * times)
    return bench


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_small_shape(direction):
    """rows x columns in 1..9, dense and with gaps, packed one after the other."""
    descriptors, at = [], 5
    for rows in range(1, 10):
        for columns in range(1, 10):
            pitch = columns + (rows + columns) % 3
            descriptors.append(
                Descriptor(
                    src_address=source(TINY, direction[0], at),
                    dst_address=target(TINY, direction[1], at + 3),
                    row_bytes=columns,
                    count=(rows, 1, 1),
                    src_stride=(pitch, 0, 0),
                    dst_stride=(columns + 1, 0, 0),
                    update_kind=Update.INCREMENT,
                    update_semaphore=rows,
                )
            )
            at += rows * (columns + 3)
    assert at < TINY.sbuf_bytes
    bench = run(descriptors)
    assert len(bench.updates) == 81


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_alignment(direction):
    """16 x 16 offsets within a word; rows of 1 to 50 bytes."""
    descriptors = []
    for src in range(16):
        for dst in range(16):
            size = 1 + (7 * src + 19 * dst + 3 * (src == dst)) % 50
            descriptors.append(
                Descriptor(
                    src_address=source(TINY, direction[0], 64 * src + src),
                    dst_address=target(TINY, direction[1], 96 * dst % 4096 + dst),
                    row_bytes=size,
                    count=(2, 1, 1),
                    src_stride=(112, 0, 0),
                    dst_stride=(64, 0, 0),
                )
            )
    run(descriptors)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("edge", [-1, 0, 1])
def test_strides_near_the_array(direction, edge):
    """Strides of the array's edge -1, 0, +1 elements of 2 and 4 bytes, of both signs, and large
    ones."""
    descriptors = []
    for element in (2, 4):
        stride = element * (TINY.array + edge)
        for sign, other in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            descriptors.append(
                Descriptor(
                    src_address=source(TINY, direction[0], 2001),
                    dst_address=target(TINY, direction[1], 2050),
                    row_bytes=element,
                    count=(5, 3, 2),
                    src_stride=(sign * stride, 3 * stride, -1000),
                    dst_stride=(other * stride, 777, 1500),
                )
            )
    large = 0x8000 if direction == "hh" else 2500
    descriptors.append(
        Descriptor(
            src_address=source(TINY, direction[0], 0),
            dst_address=target(TINY, direction[1], 2 * large),
            row_bytes=33,
            count=(3, 1, 1),
            src_stride=(large, 0, 0),
            dst_stride=(-large, 0, 0),
        )
    )
    run(descriptors)


@pytest.mark.parametrize("direction", ["hs", "sh"])
def test_4_kib_boundary(direction):
    """A row that straddles a 4 KiB boundary of HBM by every number of bytes; the memory model
    refuses a burst that does."""
    descriptors = []
    for before in range(70):
        src, dst = source(TINY, direction[0], 100), target(TINY, direction[1], 100)
        if direction[0] == "h":
            src = HBM_SOURCE[0] + 0x2000 - before
        else:
            dst = HBM_TARGET[0] + 0x2000 - before
        descriptors.append(Descriptor(src_address=src, dst_address=dst, row_bytes=69))
    run(descriptors)


def test_long_rows():
    """Rows longer than every FIFO and burst, unaligned and across several 4 KiB pages."""
    run(
        [
            Descriptor(
                src_address=HBM_SOURCE[0] + 13, dst_address=HBM_TARGET[0] + 6, row_bytes=9001
            ),
            Descriptor(
                src_address=HBM_SOURCE[0] + 6, dst_address=HBM_TARGET[0] + 0x3001, row_bytes=8192
            ),
            Descriptor(
                src_address=HBM_SOURCE[0] + 6,
                dst_address=sbuf_address(TINY, 3, 0),
                row_bytes=TINY.sbuf_bytes,
            ),
            Descriptor(
                src_address=sbuf_address(TINY, 1, 0),
                dst_address=HBM_TARGET[0] + 0x6001,
                row_bytes=TINY.sbuf_bytes,
            ),
        ]
    )


def test_all_partitions_in_one_descriptor():
    """A dimension with the partition stride, the way tensors are loaded."""
    run(
        [
            Descriptor(
                src_address=HBM_SOURCE[0],
                dst_address=sbuf_address(TINY, 0, 512),
                row_bytes=64,
                count=(4, 2, 1),
                src_stride=(64, 256, 0),
                dst_stride=(TINY.sbuf_stride_bytes, 64, 0),
            ),
            Descriptor(
                src_address=sbuf_address(TINY, 3, 8),
                dst_address=HBM_TARGET[0] + 2,
                row_bytes=30,
                count=(4, 1, 1),
                src_stride=(-TINY.sbuf_stride_bytes, 0, 0),
                dst_stride=(30, 0, 0),
            ),
        ]
    )


@pytest.mark.parametrize("config", [TINY, GAPPED], ids=["tiny", "gapped"])
def test_last_bytes_of_each_memory(config):
    """First and last address of HBM and of each partition."""
    descriptors = []
    for size in (1, 16, 17, 31):
        for partition in range(2):
            descriptors += [
                Descriptor(
                    src_address=sbuf_address(config, partition, config.sbuf_bytes - size),
                    dst_address=config.hbm_bytes - size,
                    row_bytes=size,
                ),
                Descriptor(
                    src_address=sbuf_address(config, partition, 0),
                    dst_address=HBM_TARGET[0],
                    row_bytes=size,
                ),
                Descriptor(
                    src_address=HBM_SOURCE[0] + 64 * partition,
                    row_bytes=size,
                    dst_address=sbuf_address(config, partition + 2, config.sbuf_bytes - size),
                ),
                Descriptor(
                    src_address=0,
                    row_bytes=size,
                    dst_address=sbuf_address(config, partition + 2, 0),
                ),
            ]
    run(descriptors, config=config)


def test_zero_work_completes_in_order_with_its_update():
    """Zero rows or bytes: nothing is read or written, even at addresses outside every memory."""
    common = {"src_address": 1 << 63, "dst_address": (1 << 64) - 1, "update_kind": Update.INCREMENT}
    empty = [
        Descriptor(row_bytes=0, update_semaphore=1, **common),
        Descriptor(row_bytes=8, count=(0, 5, 5), update_semaphore=2, **common),
        Descriptor(row_bytes=8, count=(5, 0, 5), update_semaphore=3, **common),
        Descriptor(row_bytes=8, count=(5, 5, 0), update_semaphore=4, **common),
        Descriptor(row_bytes=0, src_address=0, dst_address=0),
    ]
    busy = Descriptor(
        src_address=source(TINY, "h", 1),
        dst_address=target(TINY, "h", 2),
        row_bytes=700,
        update_kind=Update.INCREMENT,
        update_semaphore=9,
    )
    bench = run([empty[0], busy, *empty, busy, *empty])
    assert [semaphore for semaphore, _, _ in bench.updates] == [1, 9, 1, 2, 3, 4, 9, 1, 2, 3, 4]


def test_more_write_bursts_than_may_be_unanswered():
    """128 bursts, twice the limit, before the first answer: the descriptor is not yet done."""
    bench = run(
        [
            Descriptor(
                src_address=source(TINY, "s", 0),
                dst_address=target(TINY, "h", 0),
                row_bytes=16,
                count=(128, 1, 1),
                src_stride=(16, 0, 0),
                dst_stride=(32, 0, 0),
                update_kind=Update.INCREMENT,
            )
        ],
        timing=Timing(latency=300),
    )
    assert bench.cycles > 600


@pytest.mark.parametrize("seed", range(4))
def test_random_chains_under_random_timing(seed):
    """Random descriptors in all directions; every channel stalls at random; three runs on one
    engine without reset."""
    rng = random.Random(seed)
    timing = Timing(
        latency=rng.choice((1, 7, 40)), jitter=rng.choice((0, 15)), stall=(0.0, 0.2, 0.5, 0.1)[seed]
    )
    stalls = {"sbuf_stall": (0.0, 0.5, 0.2, 0.7)[seed], "update_stall": (0.0, 0.3, 0.9, 0.5)[seed]}
    config = (TINY, GAPPED)[seed % 2]
    descriptors = [random_descriptor(rng, config, rng.choice(DIRECTIONS)) for _ in range(30)]
    run(descriptors, config=config, seed=seed, times=3, timing=timing, limit=60_000, **stalls)
