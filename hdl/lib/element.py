"""Sizes of elements by their dtype."""

from amaranth.hdl import Signal

from isa.dtypes import DType

SIZE_BITS = 2


def element_size(m, name, dtype):
    """A signal of 2 bits: an element of the dtype with this code has 1 << size bytes, 0 for codes
    without a dtype.
    """
    size = Signal(SIZE_BITS, name=name)
    with m.Switch(dtype):
        for bits in (1, 2):
            with m.Case(*(int(d) for d in DType if d.itemsize == 1 << bits)):
                m.d.comb += size.eq(bits)
    return size
