"""Views that a kernel writer indexes like numpy arrays: tiles in SBUF and PSUM, tensors in HBM."""

from dataclasses import dataclass
from math import prod
from typing import Any

from isa.dtypes import DType
from isa.fields import DIMS, Space
from isa.pattern import AccessPattern, ColumnPattern
from isa.program import Tensor


@dataclass(frozen=True)
class Tile:
    """A tensor in SBUF or PSUM: shape (partitions, ...).  Indexing gives the AccessPattern of a
    part of it.

    `t[p, i, j]`: p is a slice of partitions (or one), i, j are slices (steps allowed) or integers,
    which drop the dimension.
    """

    tensor: Tensor
    space: Space

    @property
    def shape(self):
        """(partitions, ...)."""
        return self.tensor.shape

    @property
    def dtype(self):
        """Element type."""
        return self.tensor.dtype

    @property
    def pattern(self):
        """Access pattern of all of it."""
        return self[:]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > len(self.shape):
            raise ValueError(
                f"tile {self.tensor.name!r} of shape {self.shape} has no {len(index)} dimensions"
            )
        first, count = _partitions(self.tensor, index[0])
        start, dims = _slices(self.tensor.name, self.shape[1:], index[1:])
        offset = self.tensor.address + start * self.dtype.itemsize
        return AccessPattern(self.space, self.dtype, first, count, offset, _fold(dims) or ((0, 1),))

    def column(self, *index, partition=0):
        """The [P, 1] operand at `index` (one integer per dimension after the partitions), from
        that partition of the tile on.
        """
        pattern = self[(slice(partition, None), *index)]
        if pattern.elements != 1:
            raise ValueError(
                f"column of tile {self.tensor.name!r}: index {index} has {pattern.elements} "
                "elements, must have 1"
            )
        return ColumnPattern(self.space, self.dtype, pattern.partition, pattern.offset)


@dataclass(frozen=True)
class HbmView:
    """Elements in HBM or in any address range: dims (stride in bytes, count), outermost first."""

    address: int
    dtype: DType
    dims: tuple

    @property
    def shape(self):
        """Counts, outermost first."""
        return tuple(count for _, count in self.dims)

    def permute(self, *axes):
        """The same elements with the dimensions in another order."""
        if sorted(axes) != list(range(len(self.dims))):
            raise ValueError(
                f"permute{axes} of {len(self.dims)} dimensions, must name each of them once"
            )
        return HbmView(self.address, self.dtype, tuple(self.dims[axis] for axis in axes))

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > len(self.dims):
            raise ValueError(f"view of shape {self.shape} has no {len(index)} dimensions")
        address, dims = self.address, []
        for axis, (stride, count) in enumerate(self.dims):
            item = index[axis] if axis < len(index) else slice(None)
            start, step, length = _range(f"dimension {axis}", item, count)
            address += start * stride
            if length is not None:
                dims.append((step * stride, length))
        return HbmView(address, self.dtype, tuple(dims))


@dataclass(frozen=True)
class HbmTensor:
    """A tensor in HBM; indexing and permuting give an HbmView."""

    tensor: Tensor

    @property
    def shape(self):
        """Counts, outermost first."""
        return self.tensor.shape

    @property
    def dtype(self):
        """Element type."""
        return self.tensor.dtype

    @property
    def address(self):
        """Byte address of the first element."""
        return self.tensor.address

    @property
    def view(self):
        """View of all of it."""
        return HbmView(
            self.address,
            self.dtype,
            tuple(zip(_strides(self.shape, self.dtype.itemsize), self.shape, strict=True)),
        )

    def permute(self, *axes):
        """See HbmView.permute."""
        return self.view.permute(*axes)

    def __getitem__(self, index):
        return self.view[index]


@dataclass(frozen=True)
class PeerView:
    """HBM tensor or view, tile or access pattern of the chip at the other end of a link; indexing
    gives a part.

    peer: an `isa.builder_peer.Peer`.  DMA copies take it.
    """

    peer: Any
    view: Any

    def __getitem__(self, index):
        return PeerView(self.peer, self.view[index])


def _strides(shape, unit):
    return tuple(unit * prod(shape[i + 1 :]) for i in range(len(shape)))


def _partitions(tensor, item):
    start, step, length = _range("partitions", item, tensor.shape[0])
    if step != 1:
        raise ValueError(
            f"tile {tensor.name!r}: partitions are consecutive, step {step} is not possible"
        )
    return tensor.partition + start, 1 if length is None else length


def _slices(name, shape, index):
    """(element offset, [(step, count)]) of an index over dense dimensions."""
    offset, dims = 0, []
    for axis, (stride, size) in enumerate(zip(_strides(shape, 1), shape, strict=True)):
        item = index[axis] if axis < len(index) else slice(None)
        start, step, length = _range(f"tile {name!r}: dimension {axis + 1}", item, size)
        offset += start * stride
        if length is not None:
            dims.append((step * stride, length))
    return offset, dims


def _range(what, item, size):
    """(start, step, length) of an index into `size` items; length None for an integer."""
    if isinstance(item, slice):
        for bound in (item.start, item.stop):
            if bound is not None and not -size <= bound <= size:
                raise ValueError(f"{what}: bound {bound} of a slice is outside 0..{size}")
        start, stop, step = item.indices(size)
        return start, step, len(range(start, stop, step))
    if not -size <= item < size:
        raise ValueError(f"{what}: index {item} is outside 0..{size - 1}")
    return item % size, 1, None


def _fold(dims):
    """`dims` with neighbours joined until DIMS are left, when they lie densely behind each
    other.
    """
    dims = list(dims)
    while len(dims) > DIMS:
        for i in range(len(dims) - 1):
            (outer, count), (inner, size) = dims[i], dims[i + 1]
            if outer == inner * size:
                dims[i : i + 2] = [(inner, count * size)]
                break
        else:
            raise ValueError(f"a pattern has at most {DIMS} dimensions, {len(dims)} are left")
    return tuple(dims)
