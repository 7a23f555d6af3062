"""Rotation by quadrants: lane 0 of an engine meets the first partition of its operand."""

from amaranth.hdl import Mux, Signal


def rotate_to_lanes(m, name, value, rotation, quadrant_bits):
    """Partitions to lanes: lane i is partition i + `rotation` quadrants of `value` (cyclic)."""
    return _rotate(m, name, value, rotation, quadrant_bits, lambda v, bits: v.rotate_right(bits))


def rotate_to_partitions(m, name, value, rotation, quadrant_bits):
    """The inverse of `rotate_to_lanes`: lanes to partitions."""
    return _rotate(m, name, value, rotation, quadrant_bits, lambda v, bits: v.rotate_left(bits))


def _rotate(m, name, value, rotation, quadrant_bits, turn):
    if len(value) != 4 * quadrant_bits or len(rotation) != 2:
        raise ValueError(f"cannot rotate {len(value)} bits by quadrants of {quadrant_bits} bits, "
                         f"{len(rotation)} bits of rotation")
    for bit in range(2):
        source = Signal(len(value), name=f"{name}_by{bit}")
        m.d.comb += source.eq(value)
        value = Mux(rotation[bit], turn(source, quadrant_bits << bit), source)
    result = Signal(len(source), name=name)
    m.d.comb += result.eq(value)
    return result
