"""Gathering and scattering the elements of an operand, with the conversions at the ports.

An operand becomes a strided view of its memory, [partitions, count3, count2, count1, count0], so
that numpy moves whole operands at once. Where several elements share an address the order of the
pattern decides, as if elements were written one after the other.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from golden.arith import bfloat16, convert
from golden.arith.formats import FORMATS
from isa.dtypes import DType
from isa.pattern import bounding_box, byte_intervals, element_offsets

_FORMATS = {DType[form.name.upper()]: form for form in FORMATS}
_SIGNED = (DType.INT8, DType.INT16, DType.INT32)
_BITS = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}


@dataclass(frozen=True)
class Access:
    """An operand whose values are all known and checked. `dims`: (step, count), outermost first.
    `pairs`: an element is two neighbours of the dtype.
    """

    space: int
    dtype: DType
    partition: int
    partitions: int
    offset: int
    dims: tuple
    pairs: bool = False

    @cached_property
    def elements(self):
        """Elements in a partition."""
        product = 1
        for _, count in self.dims:
            product *= count
        return product

    @cached_property
    def itemsize(self):
        """Bytes of an element."""
        return self.dtype.itemsize * (2 if self.pairs else 1)

    @cached_property
    def box(self):
        """[low, high) of the bytes touched in each partition."""
        return bounding_box(self.offset, self.itemsize, self.dims)

    @property
    def intervals(self):
        """Bytes touched in each partition, int64 [n, 2], sorted and disjoint."""
        return _intervals(self.itemsize, self.dims) + self.offset

    @cached_property
    def repeats(self):
        """Whether some address belongs to more than one element."""
        return _repeats(self.dims)

    def view(self, memory):
        """The elements in place: [partitions, *counts] of the unsigned integer as wide as an
        element.
        """
        return self._view(memory.flat, memory.pitch, _BITS[self.itemsize])

    def shadow_view(self, shadow, pitch, integer):
        """The same for an array of one byte per byte of the memory."""
        return self._view(shadow, pitch, integer)

    def _view(self, flat, pitch, integer):
        return np.ndarray(
            (self.partitions, *(count for _, count in self.dims)),
            integer,
            buffer=flat,
            offset=self.partition * pitch + self.offset,
            strides=(pitch, *(step * self.itemsize for step, _ in self.dims)),
        )


@lru_cache(1 << 12)
def _intervals(itemsize, dims):
    return byte_intervals(0, itemsize, dims)


@lru_cache(1 << 12)
def _repeats(dims):
    reach = 0
    for step, count in sorted((abs(step), count) for step, count in dims if count > 1):
        if step <= reach:  # not nested: only counting decides
            offsets = element_offsets(0, 1, dims)
            return np.unique(offsets).size != offsets.size
        reach += step * (count - 1)
    return False


@lru_cache(1 << 10)
def write_rounds(dims):
    """Element numbers in rounds of distinct addresses: round r holds the r-th element of each
    address.
    """
    offsets = element_offsets(0, 1, dims)
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    group = np.flatnonzero(first)
    rank = np.arange(offsets.size) - np.repeat(group, np.diff(np.append(group, offsets.size)))
    by_rank = np.argsort(rank, kind="stable")
    return np.split(order[by_rank], np.cumsum(np.bincount(rank))[:-1])


@lru_cache(1 << 10)
def last_writers(dims):
    """For each element the number of the last element with the same address."""
    offsets = element_offsets(0, 1, dims)
    _, place = np.unique(offsets, return_inverse=True)
    last = np.zeros(place.max() + 1, np.int64)
    last[place] = np.arange(offsets.size)  # numpy keeps the last of repeated indices
    return last[place]


def load_bits(memory, access):
    """Element codes, unsigned [partitions, elements]; may be a view of the memory."""
    return access.view(memory).reshape(access.partitions, access.elements)


def load(memory, access):
    """Element values as float32 [partitions, elements].

    Floats widen exactly: FP32 and BF16 keep the codes of NaNs, those of other formats become
    canonical. Integers give the nearest float32, ties to even.
    """
    bits, dtype = load_bits(memory, access), access.dtype
    if dtype == DType.FP32:
        return np.ascontiguousarray(bits).view(np.float32)
    if dtype == DType.BF16:
        return bfloat16.widen(bits)
    if dtype in _FORMATS:
        return convert.widen(bits, _FORMATS[dtype])
    return convert.from_integer(bits.view(dtype.numpy))


def load_words(memory, access):
    """Elements as words, uint32 [partitions, elements]: signed integers extended by their sign,
    the codes of all others with zeros.
    """
    bits = load_bits(memory, access)
    if access.dtype in _SIGNED:
        return bits.view(access.dtype.numpy).astype(np.int32).view(np.uint32)
    return bits.astype(np.uint32)


def store_bits(memory, access, bits):
    """Writes element codes [partitions, elements] in order: of a repeated address the last one
    stays. An axis of length 1 is repeated.
    """
    view = access.view(memory)
    bits = np.broadcast_to(bits, (access.partitions, access.elements))
    if access.repeats:
        bits = bits[:, last_writers(access.dims)]
    view[...] = bits.reshape(view.shape)


def store(memory, access, values, sat=False, random=None):
    """Writes float32 [partitions, elements] narrowed to the dtype: nearest, ties to even, or
    stochastically with `random`, uint32 of the shape of the operand (see `convert.narrow`).

    sat: the largest finite number instead of infinity, or of NaN in a format without one. Both
    are for short floats; FP32 stays as it is, integers saturate always, NaN gives 0. An axis of
    length 1 of `values` is repeated.
    """
    store_bits(memory, access, to_bits(values, access.dtype, sat, random))


def store_words(memory, access, words):
    """Writes the low bytes of words, uint32 [partitions, elements]."""
    store_bits(memory, access, words.astype(_BITS[access.itemsize]))


def to_bits(values, dtype, sat=False, random=None):
    """float32 values as the codes of `dtype`, rounded as `store` says."""
    values = np.ascontiguousarray(values)
    if dtype == DType.FP32:
        return values.view(np.uint32)
    if dtype not in _FORMATS:
        return convert.to_integer(values, dtype.numpy).view(_BITS[dtype.itemsize])
    if random is not None:
        values = np.broadcast_to(values, random.shape)
    return convert.narrow(values, _FORMATS[dtype], saturate=bool(sat), random=random)
