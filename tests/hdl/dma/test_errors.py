"""Every way in which a descriptor can be wrong; the next one is never harmed."""

import random

import pytest

from isa.address_map import CORE_BASE, PSUM_BASE, REGISTER_BASE, DmaCause, sbuf_address
from isa.encoding import Descriptor, encode_descriptor
from isa.fields import DESCRIPTOR, Update
from isa.geometry import DESCRIPTOR_BYTES
from sim.models.axi_memory import Timing
from sim.models.dma_bench import DmaBench
from sim.models.dma_cases import DESCRIPTORS, GAPPED, HBM_SOURCE, HBM_TARGET, TINY, source, target

GOOD = Descriptor(
    src_address=source(TINY, "h", 3),
    dst_address=target(TINY, "s", 5),
    row_bytes=100,
    update_kind=Update.ADD,
    update_semaphore=7,
    update_value=11,
)
OTHER = Descriptor(
    src_address=source(TINY, "s", 3),
    dst_address=target(TINY, "h", 0x9005),
    row_bytes=90,
    count=(3, 1, 1),
    src_stride=(100, 0, 0),
    dst_stride=(-95, 0, 0),
    update_kind=Update.SET,
    update_semaphore=8,
    update_value=-3,
)


def check_one(bad, cause, *, at=1, config=TINY, bus_errors=None, faults=(), seed=0, **bench):
    """GOOD, the bad one, OTHER: the bad one is named in the status, both others are done.  Then a
    good run."""
    bench = DmaBench(config, seed=seed, **bench)
    bench.memory.faults += faults
    trigger = bench.place(DESCRIPTORS, [GOOD, bad, OTHER])
    clean = bench.place(DESCRIPTORS + 0x800, [OTHER, GOOD])
    address = DESCRIPTORS + at * DESCRIPTOR_BYTES

    async def look(ctx):
        status = bench.dut.status
        assert ctx.get(status.cause) == cause
        assert ctx.get(status.error_address) == address
        assert ctx.get(status.descriptors) == 2
        assert [update[0] for update in bench.updates] == [7, 8]
        await bench.pulse(ctx, bench.dut.clear_error)
        assert (ctx.get(status.cause), ctx.get(status.error_address)) == (0, 0)
        assert ctx.get(status.descriptors) == 2, "clearing the error keeps the counters"

    errors = {} if bus_errors is None else {address: bus_errors}
    bench.script(bench.check([trigger], bus_errors=errors), look, bench.check([clean]))
    return bench


def raw(descriptor, bit):
    """Bytes of a descriptor with one bit turned over."""
    return (int.from_bytes(encode_descriptor(descriptor), "little") ^ (1 << bit)).to_bytes(
        DESCRIPTOR_BYTES, "little"
    )


RESERVED = [
    bit
    for bit in range(8 * DESCRIPTOR_BYTES)
    if not any(field.mask >> bit & 1 for field in DESCRIPTOR)
]


def test_reserved_bits_version_and_kind():
    """Every reserved bit, every bit of version and kind, each undefined update kind, alone."""
    bits = [*RESERVED, *range(16)]
    assert len(RESERVED) == 1024 - sum(field.width for field in DESCRIPTOR)
    bad = [raw(GOOD, bit) for bit in bits]
    bad += [raw_kind(GOOD, kind) for kind in (5, 6, 7)]
    bench = DmaBench(TINY, timing=Timing(latency=1))

    async def run(ctx):
        for start in range(0, len(bad), 32):
            part = bad[start : start + 32]
            trigger = bench.place(DESCRIPTORS, [*part, OTHER])
            await bench.check([trigger])(ctx)
            status = bench.dut.status
            assert ctx.get(status.cause) == DmaCause.BAD_DESCRIPTOR
            assert ctx.get(status.error_address) == DESCRIPTORS
            assert ctx.get(status.descriptors) == 1, "each of them is refused"
            assert len(bench.updates) == 1

    bench.script(run)


def raw_kind(descriptor, kind):
    """Bytes of a descriptor with that update kind."""
    word = int.from_bytes(encode_descriptor(descriptor), "little") & ~(7 << 64) | kind << 64
    return word.to_bytes(DESCRIPTOR_BYTES, "little")


@pytest.mark.parametrize(
    "address",
    [
        DESCRIPTORS + 64,
        DESCRIPTORS + 16,
        TINY.hbm_bytes,
        TINY.hbm_bytes + 128,
        CORE_BASE,
        1 << 63,
        (1 << 64) - 128,
    ],
)
def test_descriptor_address(address):
    """Misaligned or outside HBM."""
    bench = DmaBench(TINY)
    good = bench.place(DESCRIPTORS, [GOOD])
    other = bench.place(DESCRIPTORS + 0x800, [OTHER])
    bench.script(bench.check([good, (address, 3), other]))
    assert len(bench.updates) == 2


def test_descriptors_up_to_the_end_of_hbm():
    """The last 128 bytes of HBM hold a good descriptor; the one behind it does not exist."""
    bench = DmaBench(TINY)
    address, _ = bench.place(TINY.hbm_bytes - 256, [GOOD, OTHER])
    bench.script(bench.check([(address, 4)]), bench.check([(address, 2)]))
    assert len(bench.updates) == 2


BAD_PLACES = {
    "hbm end": TINY.hbm_bytes - 63,
    "hbm beyond": TINY.hbm_bytes,
    "below core": CORE_BASE - 1,
    "below core whole": CORE_BASE - 64,
    "partition end": sbuf_address(TINY, 3, TINY.sbuf_bytes - 63),
    "partition end inside": sbuf_address(TINY, 1, TINY.sbuf_bytes - 1),
    "partition beyond": CORE_BASE + 4 * TINY.sbuf_stride_bytes,
    "psum": PSUM_BASE,
    "registers": REGISTER_BASE,
    "high bit 45": 1 << 45,
    "high bit 46": (1 << 46) + HBM_SOURCE[0],
    "high bit 63": (1 << 63) + HBM_SOURCE[0],
    "top": (1 << 64) - 64,
    "top wraps": (1 << 64) - 1,
}


@pytest.mark.parametrize("side", ["src_address", "dst_address"])
@pytest.mark.parametrize("place", BAD_PLACES)
def test_bad_address_at_once(place, side):
    """A first row outside: nothing is copied."""
    check_one(
        Descriptor(
            **{
                "src_address": HBM_SOURCE[0],
                "dst_address": HBM_TARGET[0],
                "row_bytes": 64,
                "count": (3, 2, 2),
                "src_stride": (64, 0, 0),
                "dst_stride": (64, 0, 0),
                side: BAD_PLACES[place],
                "update_kind": Update.INCREMENT,
            }
        ),
        DmaCause.BAD_ADDRESS,
    )


@pytest.mark.parametrize("config", [TINY, GAPPED], ids=["tiny", "gapped"])
@pytest.mark.parametrize("side", ["src", "dst"])
def test_bad_address_later(side, config):
    """Rows before the bad one stay written, rows behind it do not appear, though they would be
    good."""
    edge = sbuf_address(config, 2 if side == "dst" else 0, config.sbuf_bytes - 1)
    for rows_before in (1, 2, 5):
        common = {
            "src_address": HBM_SOURCE[0],
            "dst_address": HBM_TARGET[0],
            "row_bytes": 48,
            "count": (12, 3, 1),
            "src_stride": (48, 0, 0),
            "dst_stride": (48, 600, 0),
            "update_kind": Update.INCREMENT,
        }
        common[f"{side}_address"] = edge - 48 * rows_before
        check_one(Descriptor(**common), DmaCause.BAD_ADDRESS, config=config, seed=rows_before)


def test_row_longer_than_a_partition():
    """A row may not run from one partition into the next, nor over 2^32 - 1 bytes."""
    for size in (TINY.sbuf_bytes + 1, (1 << 32) - 1):
        check_one(
            Descriptor(
                src_address=HBM_SOURCE[0], dst_address=sbuf_address(TINY, 2, 0), row_bytes=size
            ),
            DmaCause.BAD_ADDRESS,
        )
        check_one(
            Descriptor(
                src_address=sbuf_address(TINY, 0, 0), dst_address=HBM_TARGET[0], row_bytes=size
            ),
            DmaCause.BAD_ADDRESS,
        )


def test_walk_out_of_the_map_by_the_largest_strides():
    """+-2^31 strides leave the map in either direction and are seen."""
    for stride in (-(1 << 31), (1 << 31) - 1):
        check_one(
            Descriptor(
                src_address=HBM_SOURCE[0],
                dst_address=HBM_TARGET[0],
                row_bytes=9,
                count=(3, 1, 1),
                src_stride=(stride, 0, 0),
                dst_stride=(9, 0, 0),
            ),
            DmaCause.BAD_ADDRESS,
        )


def test_bus_error_while_fetching():
    address = DESCRIPTORS + DESCRIPTOR_BYTES
    for beat in (0, 3, 7):
        check_one(
            GOOD,
            DmaCause.BUS_ERROR,
            bus_errors=0,
            faults=[(address + 16 * beat, address + 16 * beat + 1)],
        )


def test_bus_error_goes_before_bad_descriptor():
    address = DESCRIPTORS + DESCRIPTOR_BYTES
    bench = DmaBench(TINY)
    bench.memory.faults.append((address, address + 16))
    bench.place(DESCRIPTORS, [GOOD, bytes(128), OTHER])

    async def look(ctx):
        await bench.trigger(ctx, DESCRIPTORS, 3)
        await bench.idle(ctx, 2000)
        assert ctx.get(bench.dut.status.cause) == DmaCause.BUS_ERROR

    bench.script(look)


@pytest.mark.parametrize("direction", ["hs", "hh"])
@pytest.mark.parametrize("row", [0, 1, 7, 40])
def test_read_error(direction, row):
    """Rows before the error are written, nothing of its row or behind it; the descriptor has no
    update."""
    bad = Descriptor(
        src_address=HBM_SOURCE[0] + 0x1000,
        dst_address=target(TINY, direction[1], 0x800),
        row_bytes=16,
        count=(8, 8, 1),
        src_stride=(16, 128, 0),
        dst_stride=(19, 200, 0),
        update_kind=Update.INCREMENT,
    )
    fault = HBM_SOURCE[0] + 0x1000 + 16 * row
    check_one(
        bad,
        DmaCause.BUS_ERROR,
        bus_errors=row,
        faults=[(fault, fault + 1)],
        timing=Timing(latency=9, stall=0.1),
    )


def test_read_error_ends_a_long_descriptor():
    """The rest of a descriptor in error is not walked: 2^32 rows would take for ever."""
    start = HBM_SOURCE[0] + 0x1000
    fault = start + 16
    bad = Descriptor(
        src_address=start,
        dst_address=HBM_TARGET[0],
        row_bytes=16,
        count=(65535, 65535, 1),
        src_stride=(1, 0, 0),
        dst_stride=(0, 0, 0),
    )
    check_one(bad, DmaCause.BUS_ERROR, bus_errors=1, faults=[(fault, fault + 1)])


@pytest.mark.parametrize("word", [0, 1, 5, 12])
def test_read_error_within_a_row(word):
    """Bytes before the word in error may be written, it and what follows not."""
    for src_offset, dst_offset in ((0, 0), (3, 9), (9, 3)):
        bench = DmaBench(TINY)
        fault = HBM_SOURCE[0] + 16 * word
        bench.memory.faults.append((fault, fault + 1))
        trigger = bench.place(
            DESCRIPTORS,
            [
                Descriptor(
                    src_address=HBM_SOURCE[0] + src_offset,
                    dst_address=HBM_TARGET[0] + dst_offset,
                    row_bytes=200,
                )
            ],
        )
        before = bytes(bench.memory.data)

        async def look(ctx, bench=bench, trigger=trigger):
            await bench.trigger(ctx, *trigger)
            await bench.idle(ctx, 2000)
            assert ctx.get(bench.dut.status.cause) == DmaCause.BUS_ERROR
            assert ctx.get(bench.dut.status.bytes) == 0

        bench.script(look)
        after = bytes(bench.memory.data)
        start = HBM_TARGET[0] + dst_offset
        safe = max(0, 16 * word - src_offset)
        written = next(
            (i for i in range(200) if after[start + i] != before[HBM_SOURCE[0] + src_offset + i]),
            200,
        )
        assert safe - 32 <= written <= safe
        assert after[:start] == before[:start] and after[start + safe :] == before[start + safe :]


@pytest.mark.parametrize("row", [0, 3, 11])
def test_write_error(row):
    """A refused write: the other bytes are there, the descriptor fails."""
    bench = DmaBench(TINY, timing=Timing(latency=12))
    fault = HBM_TARGET[0] + 0x8000 + 64 * row
    bench.memory.faults.append((fault, fault + 64))
    bad = Descriptor(
        src_address=source(TINY, "h", 0x2000),
        dst_address=HBM_TARGET[0] + 0x8000,
        row_bytes=64,
        count=(12, 1, 1),
        src_stride=(64, 0, 0),
        dst_stride=(64, 0, 0),
        update_kind=Update.INCREMENT,
    )
    trigger = bench.place(DESCRIPTORS, [GOOD, bad, OTHER, GOOD])
    before = bytes(bench.memory.data)

    async def look(ctx):
        await bench.trigger(ctx, *trigger)
        await bench.idle(ctx, 5000)
        status = bench.dut.status
        assert ctx.get(status.cause) == DmaCause.BUS_ERROR
        assert ctx.get(status.error_address) == DESCRIPTORS + DESCRIPTOR_BYTES
        assert ctx.get(status.descriptors) == 3
        assert [update[0] for update in bench.updates] == [7, 8, 7]

    bench.script(look)
    src, dst = HBM_SOURCE[0] + 0x2000, HBM_TARGET[0] + 0x8000
    for number in range(12):
        low = dst + 64 * number
        want = (
            before[low : low + 64]
            if number == row
            else before[src + 64 * number : src + 64 * number + 64]
        )
        assert bench.memory.data[low : low + 64] == want


def test_bus_error_goes_before_bad_address_of_a_later_row():
    """The read error of row 1 happened before row 3 was found outside."""
    bad = Descriptor(
        src_address=TINY.hbm_bytes - 48,
        dst_address=HBM_TARGET[0],
        row_bytes=16,
        count=(9, 1, 1),
        src_stride=(16, 0, 0),
        dst_stride=(16, 0, 0),
    )
    fault = TINY.hbm_bytes - 32
    check_one(bad, DmaCause.BUS_ERROR, bus_errors=1, faults=[(fault, fault + 1)])


def test_first_error_is_kept():
    bench = DmaBench(TINY)
    bad = Descriptor(src_address=1 << 50, dst_address=0, row_bytes=1)
    trigger = bench.place(DESCRIPTORS, [GOOD, bad, bytes(128), bad, OTHER])
    bench.script(bench.check([trigger]))


@pytest.mark.parametrize("seed", range(2))
def test_random_chains_with_errors(seed):
    """Good and bad ones mixed, random timing."""
    rng = random.Random(seed)
    chain = []
    for _ in range(40):
        bad_row = Descriptor(
            src_address=sbuf_address(GAPPED, 1, GAPPED.sbuf_bytes - rng.randrange(1, 200)),
            dst_address=target(GAPPED, "h", rng.randrange(4096)),
            row_bytes=rng.randrange(1, 40),
            count=(20, 1, 1),
            src_stride=(10, 0, 0),
            dst_stride=(41, 0, 0),
            update_kind=Update.INCREMENT,
        )
        chain.append(rng.choice((GOOD, OTHER, bad_row, bad_row, raw(OTHER, rng.choice(RESERVED)))))
    bench = DmaBench(
        GAPPED,
        seed=seed,
        timing=Timing(latency=5, jitter=7, stall=0.3),
        sbuf_stall=0.3,
        update_stall=0.5,
    )
    trigger = bench.place(DESCRIPTORS, chain)
    bench.script(bench.check([trigger]), bench.check([trigger]))
