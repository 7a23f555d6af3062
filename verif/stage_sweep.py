"""One unit at every number of stages side by side, results aligned."""

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Flow, Out


class StageSweep(wiring.Component):
    """Instances of a `PipelinedUnit` with 0 to `most_stages` stages on the same inputs.

    Each output `o_<stages>` is delayed to the latency of the slowest, so all are equal to the
    unit's result if, and only if, each has its result right and after exactly its stages.

    Members: the inputs of the unit; `o_0`, `o_1`, ..., packed as plain bits. Latency
    `most_stages` cycles.
    """

    def __init__(self, unit, *, most_stages, **parameters):
        self._units = [unit(stages=stages, **parameters) for stages in range(most_stages + 1)]
        self.latency = most_stages
        members = self._units[0].signature.members
        inputs = {name: member for name, member in members.items() if member.flow == Flow.In}
        width = Shape.cast(members["o"].shape).width
        outputs = {f"o_{stages}": Out(width) for stages in range(most_stages + 1)}
        super().__init__({**inputs, **outputs})
        self._inputs = inputs

    def elaborate(self, platform):
        m = Module()
        for stages, unit in enumerate(self._units):
            m.submodules[f"unit_{stages}"] = unit
            for name in self._inputs:
                m.d.comb += getattr(unit, name).eq(getattr(self, name))
            result = unit.o
            for step in range(self.latency - stages):
                later = Signal.like(result, name=f"align_{stages}_{step}")
                m.d.sync += later.eq(result)
                result = later
            m.d.comb += getattr(self, f"o_{stages}").eq(result)
        return m
