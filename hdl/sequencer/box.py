"""OperandBox: elements and bounding box of one access pattern, with serial multipliers."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.element import SIZE_BITS
from hdl.lib.issue import ELEMENT_BITS
from hdl.sequencer.layout import bind
from isa.fields import DIMS

BOX_BITS = 38
"""Signed width that holds every byte position of every pattern, legal or not."""
MAX_ELEMENTS = 1 << (ELEMENT_BITS - 1)
_SUM_BITS = 34
"""Sum of four products of a signed 16-bit step and an unsigned 16-bit count."""


class OperandBox(wiring.Component):
    """elements = product of the counts; the pattern touches the bytes [low, last] of a partition.

    Dimensions 0 and 1 are multiplied in the cycle of `phase` bit 0, 2 and 3 in that of bit 1, and
    bit 2 makes the sums; the three cycles may follow each other.  Inputs stay constant from the
    first to the last. Counts are at least 1 (what comes out otherwise means nothing).

    Members
    -------
    offset : In(24)
    size : In(2)
        Elements of 1 << size bytes, 4 at most.
    step, count : In
        Four signed, four unsigned 16-bit numbers, dimension 0 in the low bits.
    reduced : In(3)
        Innermost dimensions that `outer` leaves out, 1..4.
    phase : In(3)
    elements, outer : Out(17)
        Products of all counts and of those outside the reduced dimensions; `outer` only when not
        `many`.
    many : Out(1)
        More than 65536 elements.
    low, last : Out(signed 38)
        First and last byte.
    """

    tile_parameters = ()

    def __init__(self):
        super().__init__(
            {
                "offset": In(24),
                "size": In(SIZE_BITS),
                "step": In(16 * DIMS),
                "count": In(16 * DIMS),
                "reduced": In(3),
                "phase": In(3),
                "elements": Out(ELEMENT_BITS),
                "outer": Out(ELEMENT_BITS),
                "many": Out(1),
                "low": Out(signed(BOX_BITS)),
                "last": Out(signed(BOX_BITS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        upper = self.phase[1]
        steps = [self.step.word_select(i, 16) for i in range(DIMS)]
        counts = [self.count.word_select(i, 16) for i in range(DIMS)]
        spans = [Signal(signed(33), name=f"span{i}") for i in range(2)]
        for i, span in enumerate(spans):
            step = bind(m, f"step{i}", Mux(upper, steps[2 + i], steps[i]).as_signed())
            count = bind(m, f"count{i}", Mux(upper, counts[2 + i], counts[i]))
            # A count of 0 does no work, so the wrap of 0 - 1 does not matter.
            reach = bind(m, f"reach{i}", (count - 1)[:16])
            m.d.sync += span.eq(step * reach)

        pair = bind(m, "pair", Mux(upper, counts[2], counts[0]) * Mux(upper, counts[3], counts[1]))
        inner, rest = Signal(ELEMENT_BITS), Signal(ELEMENT_BITS)
        inner_many, rest_many = Signal(), Signal()
        pair_many = bind(m, "pair_many", pair > MAX_ELEMENTS)
        with m.If(self.phase[0]):
            m.d.sync += [inner.eq(pair), inner_many.eq(pair_many)]
        with m.If(self.phase[1]):
            m.d.sync += [rest.eq(pair), rest_many.eq(pair_many)]

        below = bind(m, "below", _negative(spans[0]) + _negative(spans[1]))
        above = bind(m, "above", _positive(spans[0]) + _positive(spans[1]))
        below_inner, above_inner = Signal(signed(_SUM_BITS)), Signal(signed(_SUM_BITS))
        with m.If(self.phase[1]):
            m.d.sync += [below_inner.eq(below), above_inner.eq(above)]

        low = bind(m, "low_elements", below_inner + below)
        high = bind(m, "high_elements", above_inner + above)
        product = bind(m, "product", inner * rest)
        outer = bind(
            m,
            "outer_product",
            Mux(self.reduced == 1, counts[1], 1)
            * Mux(self.reduced[1] & self.reduced[0], counts[3], Mux(self.reduced[2], 1, rest)),
        )
        with m.If(self.phase[2]):
            m.d.sync += [
                self.elements.eq(product),
                self.outer.eq(outer),
                self.many.eq(inner_many | rest_many | (product > MAX_ELEMENTS)),
                self.low.eq(self.offset + _scaled(low, self.size)),
                self.last.eq(
                    self.offset + _scaled(high, self.size) + Cat(self.size.any(), self.size[1])
                ),
            ]
        return m


def _negative(value):
    return Mux(value < 0, value, 0)


def _positive(value):
    return Mux(value < 0, 0, value)


def _scaled(value, size):
    return Mux(size[1], value << 2, Mux(size[0], value << 1, value))
