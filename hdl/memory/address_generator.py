"""Byte addresses of the elements of an access pattern, one a cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.issue import Pattern
from isa.fields import DIMS

QUAD = 4
"""Elements of one step where neighbours may travel together."""


def address_bits(config):
    """Bits of a byte address in a partition of SBUF or PSUM."""
    return ceil_log2(max(config.sbuf_bytes, config.psum_bytes))


class AddressGenerator(wiring.Component):
    """Walks a pattern, dimension 0 fastest: 1 element a cycle, and requests follow without a gap.

    Each dimension keeps the address at which its current run started.  The next element lies one
    step from there in the innermost dimension that is not at its end, and starts the runs of all
    dimensions inside it: one adder and no multiplier.  The first element is offered in the cycle
    after the request was taken.

    Parameters
    ----------
    config : isa.geometry.Config
    tag_bits : int
        Width of the `tag` that goes with a request and comes out with each of its elements.
    quads : bool
        With quads, 4 elements of 1 or 2 bytes are one step when they are contiguous (step 1 in
        dimension 0), aligned to their 4 or 8 bytes, and left in dimension 0.

    Members
    -------
    request : In(stream)
        {pattern, tag}; no count of the pattern may be 0.
    o : Out(stream)
        {address, last, quad, tag}: bytes from the start of the partition; the last element of its
        request; 4 elements instead of one.
    """

    def __init__(self, config, *, tag_bits=1, quads=False):
        if tag_bits < 1:
            raise ValueError(f"tag_bits = {tag_bits}, must be positive")
        self.bits, self.quads = address_bits(config), quads
        request = data.StructLayout({"pattern": Pattern, "tag": tag_bits})
        element = data.StructLayout({"address": self.bits, "last": 1, "quad": 1, "tag": tag_bits})
        super().__init__({
            "request": In(stream.Signature(request)),
            "o": Out(stream.Signature(element)),
        })

    def elaborate(self, platform):
        m = Module()
        pattern = self.request.p.pattern
        active = Signal()
        tag = Signal(len(self.o.p.tag))
        address = [Signal(self.bits, name=f"address{d}") for d in range(DIMS)]
        step_bytes = [Signal(self.bits, name=f"step{d}_bytes") for d in range(DIMS)]
        first = [Signal(16, name=f"first{d}") for d in range(DIMS)]
        left = [Signal(16, name=f"left{d}") for d in range(DIMS)]  # elements after this one

        # Where this element stands.
        quad = Signal()
        ends = [Signal(name=f"ends{d}") for d in range(DIMS)]
        m.d.comb += [end.eq(after == 0) for end, after in zip(ends, left, strict=True)]
        if self.quads:
            contiguous, half = Signal(), Signal()
            m.d.comb += [
                quad.eq(contiguous & ~address[0][:2].any() & ~(half & address[0][2])
                        & (left[0] >= QUAD - 1)),
                ends[0].eq(Mux(quad, left[0] == QUAD - 1, left[0] == 0)),
            ]
        inner_end = [Const(1, 1)]  # all dimensions inside d are at their end
        for d, end in enumerate(ends):
            inner = Signal(name=f"inner_end{d + 1}")
            m.d.comb += inner.eq(inner_end[d] & end)
            inner_end.append(inner)

        # One step of the innermost dimension that has elements left.
        base, increment, following = Signal(self.bits), Signal(self.bits), Signal(self.bits)
        step0 = Mux(quad, Mux(half, 2 * QUAD, QUAD), step_bytes[0]) if self.quads else step_bytes[0]
        chosen_base, chosen_step = address[-1], step_bytes[-1]
        for d in reversed(range(DIMS - 1)):
            chosen_base = Mux(ends[d], chosen_base, address[d])
            chosen_step = Mux(ends[d], chosen_step, step_bytes[d] if d else step0)
        m.d.comb += [
            base.eq(chosen_base), increment.eq(chosen_step), following.eq(base + increment)]

        take, load, last = Signal(), Signal(), inner_end[DIMS]
        m.d.comb += [
            self.o.valid.eq(active),
            self.o.p.address.eq(address[0]), self.o.p.last.eq(last),
            self.o.p.quad.eq(quad), self.o.p.tag.eq(tag),
            take.eq(active & self.o.ready),
            self.request.ready.eq(~active | (take & last)),
            load.eq(self.request.valid & self.request.ready),
        ]
        with m.If(load):
            m.d.sync += [active.eq(1), tag.eq(self.request.p.tag)]
            if self.quads:
                m.d.sync += [
                    contiguous.eq(~pattern.size[1] & (pattern.step[0] == 1)),
                    half.eq(pattern.size[0]),
                ]
            for d in range(DIMS):
                step = pattern.step[d]
                by_two, by_four = (Cat(Const(0, n), step).as_signed() for n in (1, 2))
                m.d.sync += [
                    address[d].eq(pattern.offset),
                    step_bytes[d].eq(
                        Mux(pattern.size[1], by_four, Mux(pattern.size[0], by_two, step))),
                    first[d].eq(pattern.count[d] - 1),
                    left[d].eq(pattern.count[d] - 1),
                ]
        with m.Elif(take):
            m.d.sync += active.eq(~last)
            for d in range(DIMS):
                with m.If(inner_end[d]):
                    m.d.sync += [address[e].eq(following) for e in range(d + 1)]
                    used = Mux(quad, QUAD, 1) if self.quads and d == 0 else 1
                    m.d.sync += left[d].eq(Mux(ends[d], first[d], left[d] - used))
        return m
