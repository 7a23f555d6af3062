"""TriggerRouter: DMA triggers of the sequencers to the DMA engines that they name."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.dma.layout import Trigger
from hdl.lib.merge import StreamMerge
from hdl.sequencer.ports import DmaTrigger


class TriggerRouter(wiring.Component):
    """Round robin per engine; a full queue of one engine does not hold up triggers for another.
    Combinational.

    Members: i0, i1, ...: In streams of DmaTrigger, whose `engine` is below `engines`; o0, o1, ...:
    Out streams of Trigger.
    """

    def __init__(self, *, sources, engines):
        self.sources, self.engines = sources, engines
        super().__init__(
            {
                **{f"i{i}": In(stream.Signature(DmaTrigger)) for i in range(sources)},
                **{f"o{e}": Out(stream.Signature(Trigger)) for e in range(engines)},
            }
        )

    def elaborate(self, platform):
        m = Module()
        inputs = [getattr(self, f"i{i}") for i in range(self.sources)]
        merges = []
        for e in range(self.engines):
            m.submodules[f"merge{e}"] = merge = StreamMerge(Trigger, self.sources)
            merges.append(merge)
            wiring.connect(m, merge.o, wiring.flipped(getattr(self, f"o{e}")))
            for i, source in enumerate(inputs):
                port = getattr(merge, f"i{i}")
                m.d.comb += [
                    port.valid.eq(source.valid & (source.p.engine == e)),
                    port.p.address.eq(source.p.address),
                    port.p.count.eq(source.p.count),
                ]
        for i, source in enumerate(inputs):
            taken = [
                getattr(merge, f"i{i}").ready & (source.p.engine == e)
                for e, merge in enumerate(merges)
            ]
            m.d.comb += source.ready.eq(Cat(taken).any())
        return m
