"""Small structs that travel beside the data."""

from amaranth.hdl import Signal


def delayed(m, value, stages, name):
    """The struct `value` as it was `stages` cycles ago, all zero after reset."""
    for stage in range(stages):
        register = Signal(value.shape(), name=f"{name}{stage}")
        m.d.sync += register.eq(value)
        value = register
    return value
