"""DMA copies: what the descriptors move equals what numpy moves, whatever the views."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isa.address_map import SBUF_BASE
from isa.builder import ProgramBuilder
from isa.dma_rows import copy_descriptors
from isa.dtypes import DType
from isa.encoding import encode_descriptor
from isa.fields import Space, Update
from isa.geometry import preset
from isa.pattern import AccessPattern, Reg
from isa.values import SemaphoreUpdate
from isa.views import HbmView

TINY = preset("tiny")


def row_pairs(descriptors):
    """(src, dst, bytes) of every row, checked against one partition of SBUF or HBM."""
    for d in descriptors:
        encode_descriptor(d)
        for i2, i1, i0 in itertools.product(
            range(d.count[2]), range(d.count[1]), range(d.count[0])
        ):
            steps = list(zip((i0, i1, i2), d.src_stride, d.dst_stride, strict=True))
            src = d.src_address + sum(i * s for i, s, _ in steps)
            dst = d.dst_address + sum(i * t for i, _, t in steps)
            for address in (src, dst):
                if address >= SBUF_BASE:
                    assert (
                        address - SBUF_BASE
                    ) % TINY.sbuf_stride_bytes + d.row_bytes <= TINY.sbuf_bytes
                else:
                    assert 0 <= address <= TINY.hbm_bytes - d.row_bytes
            yield src, dst, d.row_bytes


def moved(descriptors):
    """[(src byte address, dst byte address)] in the order of the copy."""
    return [(s + i, t + i) for s, t, size in row_pairs(descriptors) for i in range(size)]


def bytes_of(view):
    """Byte addresses of a view, in order, by plain enumeration."""
    if isinstance(view, AccessPattern):
        first, last = view.partitions
        size = view.dtype.itemsize
        found = [
            SBUF_BASE + p * TINY.sbuf_stride_bytes + int(o)
            for p in range(first, last)
            for o in view.element_offsets()
        ]
    else:
        size = view.dtype.itemsize
        found = [view.address]
        for stride, count in view.dims:
            found = [at + i * stride for at in found for i in range(count)]
    return [at + i for at in found for i in range(size)]


def check_copy(src, dst):
    assert moved(copy_descriptors(TINY, src, dst)) == list(
        zip(bytes_of(src), bytes_of(dst), strict=True)
    )


def cut(draw, total, limit):
    """Counts whose product is `total`."""
    counts = []
    while total > 1 and len(counts) < limit - 1:
        counts.append(draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0])))
        total //= counts[-1]
    return [*counts, total]


@st.composite
def hbm_views(draw, total, size):
    counts = cut(draw, total, 4)
    dims = tuple((draw(st.integers(-40, 40)) * size, count) for count in counts)
    if draw(st.booleans()):
        dims = tuple(
            (size * int(np.prod(counts[i + 1 :])), count) for i, count in enumerate(counts)
        )
    return HbmView(500_000, DType.FP32 if size == 4 else DType.BF16, dims)


@st.composite
def sbuf_views(draw, total, size):
    partitions = draw(st.sampled_from([n for n in (1, 2, 3, 4) if total % n == 0]))
    counts = cut(draw, total // partitions, 3)
    dims = tuple((draw(st.integers(-9, 9)), count) for count in counts)
    if draw(st.booleans()):
        dims = tuple((int(np.prod(counts[i + 1 :])), count) for i, count in enumerate(counts))
    pattern = AccessPattern(
        Space.SBUF, DType.FP32 if size == 4 else DType.BF16, 4 - partitions, partitions, 4000, dims
    )
    low, high = pattern.bounding_box()
    assume(low >= 0 and high <= TINY.sbuf_bytes)
    return pattern


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from((1, 2, 3, 4, 6, 8, 12, 24, 36, 48, 60)), st.sampled_from((2, 4)))
def test_any_views(data, total, size):
    views = st.one_of(hbm_views(total, size), sbuf_views(total, size))
    src, dst = data.draw(views), data.draw(views)
    try:
        descriptors = copy_descriptors(TINY, src, dst)
    except ValueError as error:
        assert "cannot be walked together" in str(error)
        return
    assert moved(descriptors) == list(zip(bytes_of(src), bytes_of(dst), strict=True))


def test_a_matrix_into_partitions_takes_one_descriptor():
    b = ProgramBuilder(TINY)
    x, t = b.hbm_tensor("x", (4, 64), DType.FP32), b.sbuf("t", (4, 64), DType.FP32)
    (found,) = copy_descriptors(TINY, x, t)
    assert (found.row_bytes, found.count, found.src_stride[0], found.dst_stride[0]) == (
        256,
        (4, 1, 1),
        256,
        8192,
    )


def test_whole_partitions_are_one_row_each():
    b = ProgramBuilder(TINY)
    x, t = b.hbm_tensor("x", (4, 2048), DType.FP32), b.sbuf("t", (4, 2048), DType.FP32)
    (found,) = copy_descriptors(TINY, x, t)
    assert (found.row_bytes, found.count) == (8192, (4, 1, 1))
    (back,) = copy_descriptors(TINY, t, x)
    assert back.row_bytes == 8192
    check_copy(x.view, t.pattern)


def test_transposed_reads_and_tiles():
    b = ProgramBuilder(TINY)
    x = b.hbm_tensor("x", (8, 4), DType.FP32)
    t = b.sbuf("t", (4, 8), DType.FP32)
    check_copy(x.permute(1, 0), t.pattern)
    check_copy(x[2:6, ::2], b.sbuf("u", (4, 2), DType.FP32).pattern)
    check_copy(t[1:3, ::-1], HbmView(0x2000, DType.FP32, ((64, 2), (4, 8))))
    check_copy(x[3], t[0:1, 0:4])


def test_more_dimensions_than_a_descriptor_has_become_several():
    src = HbmView(0, DType.BF16, ((4096, 3), (512, 2), (64, 2), (16, 2), (4, 2)))
    dst = HbmView(0x20000, DType.BF16, ((2, 48),))
    found = copy_descriptors(TINY, src, dst, SemaphoreUpdate(Update.ADD, 7, 2))
    assert len(found) == 6
    assert [d.update_kind for d in found] == [Update.NONE] * 5 + [Update.ADD]
    assert (found[-1].update_semaphore, found[-1].update_value) == (7, 2)
    check_copy(src, dst)


def test_long_dimensions_are_split():
    found = copy_descriptors(
        preset("small"),
        HbmView(0, DType.BF16, ((4, 70_000),)),
        HbmView(1 << 20, DType.BF16, ((6, 70_000),)),
    )
    assert sum(d.rows for d in found) == 70_000
    assert all(max(d.count) <= 65535 for d in found)


REFUSED = [
    (
        HbmView(0, DType.FP32, ((4, 8),)),
        HbmView(64, DType.BF16, ((2, 8),)),
        "a copy does not convert",
    ),
    (
        HbmView(0, DType.FP32, ((4, 8),)),
        HbmView(64, DType.FP32, ((4, 9),)),
        "src has 8 elements, dst has 9",
    ),
    (
        HbmView(0, DType.FP32, ((4, 0),)),
        HbmView(64, DType.FP32, ((4, 0),)),
        "there is nothing to copy",
    ),
    (
        HbmView(0, DType.FP32, ((8, 2), (64, 3))),
        HbmView(0, DType.FP32, ((100, 3), (8, 2))),
        "dimensions of 3 and 2 elements",
    ),
    ("x", HbmView(64, DType.FP32, ((4, 8),)), "src = 'x', must be an HBM tensor or view, a tile"),
    (
        HbmView(0, DType.FP32, ((4, 8),)),
        AccessPattern(Space.PSUM, DType.FP32, 0, 1, 0, ((1, 8),)),
        "dst lies in PSUM",
    ),
    (
        HbmView(0, DType.FP32, ((4, 8),)),
        AccessPattern(Space.SBUF, DType.FP32, 0, 1, Reg(1), ((1, 8),)),
        "dst reads registers",
    ),
    (
        HbmView(0, DType.FP32, ((4, 8),)),
        AccessPattern(Space.SBUF, DType.FP32, 0, 1, 8180, ((1, 8),)),
        r"touches bytes 8180\.\.8211",
    ),
    (
        HbmView(0, DType.FP32, ((4, 8),)),
        AccessPattern(Space.SBUF, DType.FP32, 4, 1, 0, ((1, 8),)),
        "ends at partition 4",
    ),
    (
        HbmView(0, DType.BF16, ((4, 65537),)),
        HbmView(0, DType.BF16, ((6, 65537),)),
        "cannot be split",
    ),
    (
        HbmView(0, DType.BF16, ((2, 9), (64, 9), (640, 9), (6400, 9), (64000, 9), (8, 9), (4, 9))),
        HbmView(0, DType.BF16, ((6, 9**7),)),
        "would need more than 4096 descriptors",
    ),
]


@pytest.mark.parametrize(
    "src, dst, message", REFUSED, ids=lambda v: v[:30] if isinstance(v, str) else ""
)
def test_refusals(src, dst, message):
    with pytest.raises(ValueError, match=message):
        copy_descriptors(TINY, src, dst)
