"""Shifters and the leading-zero count: logarithmic, every level bound to a signal."""

from amaranth.hdl import Cat, Const, Mux
from amaranth.utils import ceil_log2

from hdl.arith.pipeline import bind


def shift_left(m, name, value, amount):
    """`value` shifted left by `amount`, same width; bits leaving at the top are lost."""
    width = len(value)
    for level, selected in reversed(list(enumerate(amount))):
        step = min(1 << level, width)
        moved = Cat(Const(0, step), value[: width - step])
        value = bind(m, f"{name}_by_{1 << level}", Mux(selected, moved, value))
    return value


def shift_right_sticky(m, name, value, amount):
    """`(shifted, sticky)`: `value` shifted right by `amount`, and the OR of what fell out."""
    sticky = Const(0, 1)
    for level, selected in enumerate(amount):
        step = min(1 << level, len(value))
        lost = selected & value[:step].any()
        sticky = bind(m, f"{name}_sticky_{1 << level}", sticky | lost)
        value = bind(m, f"{name}_by_{1 << level}", Mux(selected, value[step:], value))
    return value, sticky


def leading_zeros(m, name, value):
    """Number of zeros above the highest one of `value`.

    The width is rounded up to a power of two W, with zeros below the value. The top bit of the
    result, worth W, is set exactly if the value is zero; the bits below it are then all ones.
    """
    width = 1 << ceil_log2(len(value))
    if width == 1:
        return bind(m, f"{name}_count", ~value)
    padded = Cat(Const(0, width - len(value)), value)
    # A node is (count below its width, is zero) of a slice; two neighbours make one of the next.
    nodes = [
        (~padded[low + 1], bind(m, f"{name}_zero_2_{low}", ~padded[low : low + 2].any()))
        for low in range(0, width, 2)
    ]
    span = 2
    while len(nodes) > 1:
        span *= 2
        nodes = [
            _join(m, f"{name}_{{}}_{span}_{index * span}", nodes[2 * index], nodes[2 * index + 1])
            for index in range(len(nodes) // 2)
        ]
    count, zero = nodes[0]
    return bind(m, f"{name}_count", Cat(count, zero))


def _join(m, name, low, high):
    (low_count, low_zero), (high_count, high_zero) = low, high
    count = bind(m, name.format("count"), Cat(Mux(high_zero, low_count, high_count), high_zero))
    zero = bind(m, name.format("zero"), high_zero & low_zero)
    return count, zero
