"""DMA copies between strided views: which descriptors move them.

Both sides are lists of (stride in bytes, count), outermost first, and are walked in the same
order.  They are cut to common dimensions, neighbours that are dense on both sides are joined, the
innermost dense run becomes the row, three more dimensions fit a descriptor, and what is left over
becomes several descriptors.
"""

from dataclasses import replace
from itertools import product
from math import prod

from isa.address_map import SBUF_BASE
from isa.encoding import DIMENSIONS, Descriptor
from isa.fields import Space, Update
from isa.pattern import AccessPattern
from isa.views import HbmTensor, HbmView, PeerView, Tile

MAX_ROWS = (1 << 16) - 1
MAX_DESCRIPTORS = 4096
_HBM = (HbmTensor, HbmView)


def copy_descriptors(config, src, dst, update=None):
    """Descriptors that copy `src` to `dst` in order; the last one carries the update.

    src, dst: HbmTensor, HbmView, Tile or AccessPattern, or a PeerView of one, of equal element
    size and number of elements (of all partitions; partitions are the outermost dimension).
    ValueError when they do not match.
    """
    src_address, src_dims, src_size = _side(config, src, "src")
    dst_address, dst_dims, dst_size = _side(config, dst, "dst")
    if src_size != dst_size:
        raise ValueError(
            f"dma_copy: src has elements of {src_size} bytes, dst of {dst_size}; a copy does not "
            "convert"
        )
    src_count, dst_count = (prod(c for _, c in dims) for dims in (src_dims, dst_dims))
    if src_count != dst_count:
        raise ValueError(
            f"dma_copy: src has {src_count} elements, dst has {dst_count}; they must be equal"
        )
    if src_count == 0:
        raise ValueError("dma_copy: there is nothing to copy")
    dims = _join(_common(src_dims, dst_dims))
    row_bytes = src_size
    if dims and dims[-1][1] == dims[-1][2] == src_size:
        row_bytes *= dims.pop()[0]
    in_hbm = all(isinstance(getattr(side, "view", side), _HBM) for side in (src, dst))
    if row_bytes > config.sbuf_bytes and not in_hbm:  # whole partitions in one row: one row each
        dims.append((row_bytes // config.sbuf_bytes, config.sbuf_bytes, config.sbuf_bytes))
        row_bytes = config.sbuf_bytes
    dims = [part for dim in dims for part in _fit(dim)]
    outer, inner = dims[: max(0, len(dims) - DIMENSIONS)], dims[max(0, len(dims) - DIMENSIONS) :]
    if prod(count for count, _, _ in outer) > MAX_DESCRIPTORS:
        raise ValueError(
            f"dma_copy: would need more than {MAX_DESCRIPTORS} descriptors; copy rows that are "
            "dense on both sides"
        )
    inner = [*reversed(inner), *((1, 0, 0),) * (DIMENSIONS - len(inner))]
    found = []
    for indices in product(*(range(count) for count, _, _ in outer)):
        steps = list(zip(indices, outer, strict=True))
        found.append(
            Descriptor(
                src_address=src_address + sum(i * s for i, (_, s, _) in steps),
                dst_address=dst_address + sum(i * d for i, (_, _, d) in steps),
                row_bytes=row_bytes,
                count=tuple(count for count, _, _ in inner),
                src_stride=tuple(s for _, s, _ in inner),
                dst_stride=tuple(d for _, _, d in inner),
            )
        )
    if update is not None and update.kind != Update.NONE:
        found[-1] = replace(
            found[-1],
            update_kind=update.kind,
            update_semaphore=update.semaphore,
            update_value=update.value,
        )
    return found


def _side(config, view, what):
    """(address, dims, element size) of one side."""
    if isinstance(view, PeerView):
        address, dims, size = _side(view.peer.config, view.view, what)
        return view.peer.address(address), dims, size
    if isinstance(view, HbmTensor):
        view = view.view
    if isinstance(view, HbmView):
        return view.address, _dense(view.dims), view.dtype.itemsize
    if isinstance(view, Tile):
        view = view.pattern
    if not isinstance(view, AccessPattern):
        raise ValueError(
            f"dma_copy: {what} = {view!r}, must be an HBM tensor or view, a tile or an access "
            "pattern"
        )
    if view.has_registers:
        raise ValueError(f"dma_copy: {what} reads registers; a descriptor has addresses only")
    if view.space != Space.SBUF:
        raise ValueError(
            f"dma_copy: {what} lies in {view.space.name}; DMA reaches HBM and SBUF only"
        )
    low, high = view.bounding_box()
    if low < 0 or high > config.sbuf_bytes:
        raise ValueError(
            f"dma_copy: {what} touches bytes {low}..{high - 1} of a partition, SBUF has "
            f"0..{config.sbuf_bytes - 1}"
        )
    if view.partition + view.partition_count > config.partitions:
        raise ValueError(
            f"dma_copy: {what} ends at partition {view.partition + view.partition_count - 1}, "
            f"this chip has 0..{config.partitions - 1}"
        )
    size = view.dtype.itemsize
    address = SBUF_BASE + view.partition * config.sbuf_stride_bytes + view.offset
    dims = _dense([(step * size, count) for step, count in view.dims])
    if view.partition_count != 1:  # never joined with the rest: no row crosses partitions
        dims.insert(0, (config.sbuf_stride_bytes, view.partition_count))
    return address, dims, size


def _dense(dims):
    """dims without counts of 1, dense neighbours joined."""
    found = []
    for stride, count in dims:
        if count == 1:
            continue
        if found and found[-1][0] == stride * count:
            found[-1] = (stride, found[-1][1] * count)
        else:
            found.append((stride, count))
    return found


def _common(src, dst):
    """[(count, src stride, dst stride)], outermost first, over dimensions cut to common counts."""
    src, dst, found = list(src), list(dst), []
    while src and dst:
        (src_stride, src_count), (dst_stride, dst_count) = src.pop(), dst.pop()
        count = min(src_count, dst_count)
        if src_count % count or dst_count % count:
            raise ValueError(
                f"dma_copy: dimensions of {src_count} and {dst_count} elements cannot be walked "
                "together; "
                "give views whose shapes divide each other"
            )
        if src_count > count:
            src.append((src_stride * count, src_count // count))
        if dst_count > count:
            dst.append((dst_stride * count, dst_count // count))
        found.append((count, src_stride, dst_stride))
    return found[::-1]


def _join(dims):
    """Neighbours that are dense behind each other on both sides become one."""
    found = []
    for count, src, dst in dims:
        if found and found[-1][1] == src * count and found[-1][2] == dst * count:
            found[-1] = (found[-1][0] * count, src, dst)
        else:
            found.append((count, src, dst))
    return found


def _fit(dim):
    """A dimension as one or two whose counts fit a descriptor."""
    count, src, dst = dim
    if count <= MAX_ROWS:
        return [dim]
    inner = next(
        (n for n in range(MAX_ROWS, 1, -1) if count % n == 0 and count // n <= MAX_ROWS), None
    )
    if inner is None:
        raise ValueError(
            f"dma_copy: {count} rows cannot be split into two counts of at most {MAX_ROWS}"
        )
    return [(count // inner, src * inner, dst * inner), (inner, src, dst)]
