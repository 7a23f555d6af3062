"""StreamMerge: several streams onto one, fairly."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import RoundRobin, one_hot_index, one_hot_mux
from hdl.lib.check import check_stream


class StreamMerge(wiring.Component):
    """Takes payloads of `count` streams round robin.  Combinational, latency 0, one payload a
    cycle.

    A payload that was offered stays offered until it is taken, whoever else asks meanwhile.

    Members: i0, i1, ...: In streams of `shape`; o: Out stream of `shape`; source, index: Out, where
    the payload on `o` comes from, one-hot and as a number.
    """

    def __init__(self, shape, count):
        self.count = count
        super().__init__(
            {
                **{f"i{i}": In(stream.Signature(shape)) for i in range(count)},
                "o": Out(stream.Signature(shape)),
                "source": Out(count),
                "index": Out(range(max(2, count))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        inputs = [getattr(self, f"i{i}") for i in range(self.count)]
        m.submodules.arbiter = arbiter = RoundRobin(self.count)
        held = Signal(self.count)
        m.d.comb += [
            arbiter.request.eq(Mux(held.any(), held, Cat(i.valid for i in inputs))),
            arbiter.advance.eq(self.o.ready),
            self.source.eq(arbiter.grant),
            self.o.valid.eq(self.source.any()),
            self.index.eq(one_hot_index(self.source, self.count)),
        ]
        m.d.sync += held.eq(self.source & (~self.o.ready).replicate(self.count))
        payloads = [i.p.as_value() if hasattr(i.p, "as_value") else i.p for i in inputs]
        m.d.comb += self.o.p.eq(one_hot_mux(self.source, payloads))
        m.d.comb += [i.ready.eq(self.source[n] & self.o.ready) for n, i in enumerate(inputs)]
        for n, port in enumerate(inputs):
            check_stream(m, platform, port, f"merge_i{n}")
        check_stream(m, platform, self.o, "merge_o")
        return m
