"""TriggerRouter: DMA triggers of the sequencers to the DMA engines that they name."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.dma.layout import Trigger
from hdl.lib.arbiter import RoundRobin, one_hot_mux
from hdl.sequencer.ports import DmaTrigger


class TriggerRouter(wiring.Component):
    """Round robin per engine; a full queue of one engine does not hold up triggers for another.  Combinational.

    Members: i0, i1, ...: In streams of DmaTrigger, whose `engine` is below `engines`; o0, o1, ...: Out streams of Trigger.
    """

    def __init__(self, *, sources, engines):
        self.sources, self.engines = sources, engines
        super().__init__({
            **{f"i{i}": In(stream.Signature(DmaTrigger)) for i in range(sources)},
            **{f"o{e}": Out(stream.Signature(Trigger)) for e in range(engines)},
        })

    def elaborate(self, platform):
        m = Module()
        inputs = [getattr(self, f"i{i}") for i in range(self.sources)]
        taken = [[] for _ in inputs]
        for e in range(self.engines):
            output = getattr(self, f"o{e}")
            m.submodules[f"arbiter{e}"] = arbiter = RoundRobin(self.sources)
            # A choice that was offered is kept until it is taken, whoever else asks meanwhile.
            held, kept, chosen = (Signal(self.sources, name=f"{name}{e}") for name in ("held", "kept", "chosen"))
            m.d.comb += [
                arbiter.request.eq(Cat(i.valid & (i.p.engine == e) for i in inputs)),
                kept.eq(held),
                chosen.eq(arbiter.grant),
                output.valid.eq(chosen.any()),
                output.p.address.eq(one_hot_mux(chosen, [i.p.address for i in inputs])),
                output.p.count.eq(one_hot_mux(chosen, [i.p.count for i in inputs])),
                arbiter.advance.eq(output.ready),
            ]
            with m.If(kept.any()):
                m.d.comb += chosen.eq(kept)
            m.d.sync += held.eq(chosen)
            with m.If(output.ready):
                m.d.sync += held.eq(0)
            for i, granted in enumerate(taken):
                granted.append(chosen[i] & output.ready)
        for i, granted in zip(inputs, taken, strict=True):
            m.d.comb += i.ready.eq(Cat(granted).any())
        return m
