"""The scalar engine without its memory side: instructions and elements in, results out."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.lib.tile import add_tile
from hdl.scalar.control import ScalarLaunch, ScalarOp
from hdl.scalar.lane import ScalarLane

LANE_BITS = 32


class ScalarCore(wiring.Component):
    """`ScalarLaunch` and the lanes. Timing: see `ScalarLaunch`.

    Parameters
    ----------
    stages : int
        See `ScalarLane`.
    partitions : int

    Members
    -------
    op : In(stream of ScalarOp)
    src : In(stream of partitions * 32 bits)
        The columns and then the elements of each instruction, in order.
    o : Out(stream of partitions * 32 bits)
        One result for each element.
    """

    def __init__(self, *, stages, partitions):
        self.stages, self.partitions = stages, partitions
        beat = stream.Signature(partitions * LANE_BITS)
        super().__init__({"op": In(stream.Signature(ScalarOp)), "src": In(beat), "o": Out(beat)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.launch = launch = ScalarLaunch(stages=self.stages)
        connect(m, flipped(self.op), launch.op)
        m.d.comb += [
            launch.src_valid.eq(self.src.valid), self.src.ready.eq(launch.src_ready),
            self.o.valid.eq(launch.output_valid), launch.output_ready.eq(self.o.ready),
        ]
        results = []
        for p in range(self.partitions):
            lane = add_tile(m, platform, f"lane{p}", ScalarLane(stages=self.stages))
            m.d.comb += [
                lane.control.eq(launch.control), lane.immediate.eq(launch.immediate),
                lane.src.eq(self.src.p.word_select(p, LANE_BITS)),
            ]
            results.append(lane.o)
        m.d.comb += self.o.p.eq(Cat(results))
        return m
