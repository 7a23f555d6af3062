"""DMA copies against loops over bytes, statuses and errors."""

import random

import numpy as np
import pytest

from golden.chip import GoldenChip
from isa.address_map import (
    CORE_BASE,
    PSUM_BASE,
    DmaCause,
    Sequencer,
    State,
    sbuf_address,
)
from isa.builder import ProgramBuilder
from isa.encoding import Descriptor, encode_descriptor
from isa.fields import Space, Update
from isa.geometry import preset
from verif.programs.data import mixed_bytes
from verif.programs.patterns import Area
from verif.programs.transfers import Transfers

TINY = preset("tiny")
WIDE = TINY.with_(name="wide", sbuf_stride_bytes=32 << 10)
"""SBUF rows with gaps between them in the address map, as in the full-size presets."""
HBM_USED = 4096


def fill(chip, seed):
    """Mixed data in HBM and everywhere in SBUF; returns plain copies of both."""
    generator = np.random.default_rng(seed)
    config = chip.config
    chip.write(0, mixed_bytes(generator, HBM_USED))
    for partition in range(config.partitions):
        chip.write(sbuf_address(config, partition, 0), mixed_bytes(generator, config.sbuf_bytes))
    return chip.read(0, config.hbm_bytes), chip.memories.sbuf.bytes.copy()


def byte(config, hbm, sbuf, address):
    """(array, index) of a byte."""
    if address < config.hbm_bytes:
        return hbm, address
    partition, offset = divmod(address - CORE_BASE, config.sbuf_stride_bytes)
    return sbuf, (partition, offset)


def plain_copy(config, hbm, sbuf, d):
    """The descriptor, byte by byte."""
    for i2 in range(d.count[2]):
        for i1 in range(d.count[1]):
            for i0 in range(d.count[0]):
                index = (i0, i1, i2)
                src = d.src_address + sum(i * s for i, s in zip(index, d.src_stride, strict=True))
                dst = d.dst_address + sum(i * s for i, s in zip(index, d.dst_stride, strict=True))
                for i in range(d.row_bytes):
                    array, place = byte(config, hbm, sbuf, src + i)
                    target, where = byte(config, hbm, sbuf, dst + i)
                    target[where] = array[place]


def trigger(chip, descriptors, engine=0, at=1 << 16, races=True):
    """Runs the descriptors in one trigger; returns the Result."""
    chip.write(at, b"".join(encode_descriptor(d) for d in descriptors))
    builder = ProgramBuilder(chip.config)
    builder.hbm_tensor("reserved", (1 << 18,), 1)
    builder.sync.dma_trigger(dma_engine=engine, imm=len(descriptors), address=at)
    return chip.run(builder.build())


@pytest.mark.parametrize("config", [TINY, WIDE], ids=["tiny", "wide"])
def test_random_copies(config):
    rng = random.Random(5)
    areas = [Area(Space.SBUF, 0, 300), Area(Space.SBUF, config.sbuf_bytes - 200, config.sbuf_bytes)]
    transfers = Transfers(config, rng, [(0, HBM_USED, True)], areas)
    directions = set()
    for seed in range(30):
        chip = GoldenChip(config)
        hbm, sbuf = fill(chip, seed)
        done = 0
        for _ in range(6):
            copy = transfers.copy()
            plain_copy(config, hbm, sbuf, copy.descriptor)
            result = trigger(chip, [copy.descriptor], engine=seed % 2)
            assert result.ok, result.errors()
            assert result.dma[seed % 2].descriptors == 1
            assert result.dma[seed % 2].bytes == copy.descriptor.bytes
            directions.add((copy.reads[0].space, copy.writes[0].space))
            done += 1
        used = slice(0, HBM_USED)
        assert (chip.memories.hbm.flat[used] == hbm[used]).all(), (seed, done)
        assert (chip.memories.sbuf.bytes == sbuf).all(), (seed, done)
    assert directions == {(a, b) for a in (0, Space.SBUF) for b in (0, Space.SBUF)}


def test_rows_that_overlap_are_copied_in_order():
    for count, stride in (((4, 1, 1), (0, 0, 0)), ((3, 2, 2), (3, -5, 7)), ((5, 1, 1), (2, 0, 0))):
        chip = GoldenChip(TINY)
        hbm, sbuf = fill(chip, 3)
        d = Descriptor(
            src_address=64,
            dst_address=sbuf_address(TINY, 1, 640),
            row_bytes=9,
            count=count,
            src_stride=(20, 70, 150),
            dst_stride=stride,
        )
        plain_copy(TINY, hbm, sbuf, d)
        assert trigger(chip, [d]).ok
        assert (chip.memories.sbuf.bytes == sbuf).all()


def test_no_work_completes_with_its_update_whatever_the_addresses():
    nothing = [
        Descriptor(
            src_address=(1 << 64) - 1,
            dst_address=5 << 40,
            row_bytes=row,
            count=count,
            update_kind=Update.ADD,
            update_semaphore=4,
            update_value=3,
        )
        for row, count in ((0, (1, 1, 1)), (7, (0, 1, 1)), (7, (1, 0, 1)), (7, (1, 1, 0)))
    ]
    result = trigger(GoldenChip(TINY), nothing)
    assert result.ok
    assert result.semaphores[4] == 12
    assert (result.dma[0].descriptors, result.dma[0].bytes) == (4, 0)


BAD_SIDES = {
    "beyond HBM": (TINY.hbm_bytes - 8, 4),
    "before HBM": (8, -4),
    "between the windows": (1 << 40, 4),
    "end of a partition": (CORE_BASE + TINY.sbuf_bytes - 8, 4),
    "PSUM": (PSUM_BASE, 4),
    "last partition": (CORE_BASE + 4 * TINY.sbuf_bytes - 8, 4),
    "top of the map": ((1 << 64) - 8, 4),
}


@pytest.mark.parametrize("side", ["src", "dst"])
@pytest.mark.parametrize("place", BAD_SIDES)
def test_a_bad_row_ends_the_descriptor_and_the_next_one_is_unharmed(place, side):
    address, stride = BAD_SIDES[place]
    good = 2048 if side == "src" else 1024
    sides = {"src": (address, stride), "dst": (address, stride)}
    sides["dst" if side == "src" else "src"] = (good, 16)
    bad = Descriptor(
        src_address=sides["src"][0],
        dst_address=sides["dst"][0],
        row_bytes=6,
        count=(4, 1, 1),
        src_stride=(sides["src"][1], 0, 0),
        dst_stride=(sides["dst"][1], 0, 0),
        update_kind=Update.INCREMENT,
        update_semaphore=9,
    )
    fine = Descriptor(
        src_address=0,
        dst_address=sbuf_address(TINY, 2, 100),
        row_bytes=50,
        update_kind=Update.INCREMENT,
        update_semaphore=10,
    )
    chip = GoldenChip(TINY, on_hazard="report")
    hbm, sbuf = fill(chip, 8)
    rows = 0
    while rows < 4:
        start = address + rows * stride
        if not (
            0 <= start <= TINY.hbm_bytes - 6
            or (
                0 <= start - CORE_BASE < 4 * TINY.sbuf_bytes
                and (start - CORE_BASE) % TINY.sbuf_bytes <= TINY.sbuf_bytes - 6
            )
        ):
            break
        rows += 1
    if rows:
        plain_copy(
            TINY,
            hbm,
            sbuf,
            Descriptor(
                src_address=bad.src_address,
                dst_address=bad.dst_address,
                row_bytes=6,
                count=(rows, 1, 1),
                src_stride=bad.src_stride,
                dst_stride=bad.dst_stride,
            ),
        )
    assert rows < 4
    plain_copy(TINY, hbm, sbuf, fine)
    result = trigger(chip, [bad, fine, bad], at=1 << 15)
    status = result.dma[0]
    assert (status.cause, status.error_address) == (DmaCause.BAD_ADDRESS, 1 << 15)
    assert result.semaphores[[9, 10]].tolist() == [0, 1]
    assert (status.descriptors, status.bytes) == (1, 50 + 2 * 6 * rows)
    assert (chip.memories.sbuf.bytes == sbuf).all()
    used = slice(0, HBM_USED)
    assert (chip.memories.hbm.flat[used] == hbm[used]).all()
    assert (chip.memories.hbm.flat[-64:] == hbm[-64:]).all()
    assert result[Sequencer.SYNC].state == State.HALTED


def test_bad_descriptors():
    plain = Descriptor(
        src_address=0,
        dst_address=2048,
        row_bytes=16,
        update_kind=Update.INCREMENT,
        update_semaphore=1,
    )
    word = int.from_bytes(encode_descriptor(plain), "little")
    last = TINY.hbm_bytes - 128
    for change in (1, 2, 1 << 8, 1 << 20, 1 << 1000, 4 << 64):
        chip = GoldenChip(TINY, uninitialised=False)
        chip.write(last, (word ^ change).to_bytes(128, "little"))
        builder = ProgramBuilder(TINY)
        builder.sync.dma_trigger(dma_engine=1, imm=1, address=last)
        result = chip.run(builder.build())
        assert (result.dma[1].cause, result.dma[1].error_address) == (DmaCause.BAD_DESCRIPTOR, last)
        assert result.semaphores[1] == 0
    # a trigger that runs out of HBM: the first is done, the second is no descriptor
    chip = GoldenChip(TINY, uninitialised=False)
    chip.write(last, encode_descriptor(plain))
    builder = ProgramBuilder(TINY)
    builder.sync.dma_trigger(dma_engine=1, imm=2, address=last)
    result = chip.run(builder.build())
    assert (result.dma[1].cause, result.dma[1].error_address) == (
        DmaCause.BAD_DESCRIPTOR,
        TINY.hbm_bytes,
    )
    assert (result.semaphores[1], result.dma[1].descriptors) == (1, 1)


def test_statuses_are_of_one_run():
    chip = GoldenChip(TINY)
    fill(chip, 1)
    bad = Descriptor(src_address=1 << 50, dst_address=0, row_bytes=1)
    good = Descriptor(src_address=0, dst_address=2048, row_bytes=10)
    assert not trigger(chip, [bad, good]).ok
    result = trigger(chip, [good])
    assert result.ok
    assert (result.dma[0].descriptors, result.dma[0].bytes) == (1, 10)
