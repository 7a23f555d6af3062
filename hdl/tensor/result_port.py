"""From the array to PSUM: rotation, mask and tags of the results."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.delay import DelayLine
from hdl.lib.tile import add_tile
from hdl.memory.ports import PsumAccumulate
from hdl.tensor.moving import tag_layout

_QUADRANTS = 4
DONE_TAG = 1
"""Tag of the last column of an instruction."""


class ResultPort(wiring.Component):
    """Delays the tag of a column until its results leave the array, and hands both to PSUM one
    cycle later.

    Result m goes to partition quadrant * P / 4 + m.

    Parameters
    ----------
    config : isa.geometry.Config
    latency : int
        Of the array, in cycles.

    Members
    -------
    tag : In(tag_layout(config))
    results : In(P * 32)
        Of the column whose tag came `latency` cycles before.
    accumulate : Out(PsumAccumulate(config))
    complete : Out(1)
        The last column of an instruction is visible in PSUM.
    """

    def __init__(self, config, *, latency):
        self._config, self._latency = config, latency
        super().__init__(
            {
                "tag": In(tag_layout(config)),
                "results": In(32 * config.partitions),
                "accumulate": Out(PsumAccumulate(config)),
                "complete": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, port = self._config, self.accumulate
        width = len(self.tag.as_value())
        line = add_tile(m, platform, "tags", DelayLine(width=width, cycles=self._latency))
        tag = Signal(tag_layout(config))
        m.d.comb += [line.i.eq(self.tag), tag.eq(line.o)]

        # The line keeps what was in it before a reset: nothing is valid until that has left.
        stale = Signal(range(self._latency + 1), init=self._latency)
        with m.If(stale != 0):
            m.d.sync += stale.eq(stale - 1)

        columns = Signal(config.partitions)
        m.d.comb += Cat(*columns).eq(Cat(tag.columns > k for k in range(config.partitions)))
        data, mask = self.results, columns
        for level in range(2):
            quadrants = 1 << level
            moved = Signal(32 * config.partitions, name=f"data_by_{quadrants}")
            moved_mask = Signal(config.partitions, name=f"mask_by_{quadrants}")
            lanes = quadrants * config.quadrant
            select = tag.rotation[level]
            m.d.comb += [
                moved.eq(Mux(select, data.rotate_left(32 * lanes), data)),
                moved_mask.eq(Mux(select, mask.rotate_left(lanes), mask)),
            ]
            data, mask = moved, moved_mask
        m.d.sync += [
            port.valid.eq(tag.valid & (stale == 0)),
            port.word.eq(tag.word),
            port.partitions.eq(mask),
            port.accumulate.eq(tag.accumulate),
            port.data.eq(data),
            port.tag.eq(Mux(tag.last, DONE_TAG, 0)),
        ]
        m.d.comb += self.complete.eq(port.done & (port.done_tag == DONE_TAG))
        return m
