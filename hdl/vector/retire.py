"""Tells the sequencer, in issue order, what has read its inputs and what is complete."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.fifo import StreamFifo

NEED_BITS = 2
"""Width of the number of requests that an instruction makes of one reader."""
_COUNT_BITS = 5


class Retire(wiring.Component):
    """Counts what readers and writer report and turns it into `read_done` and `complete`.

    `complete` of an instruction comes at least one cycle after its `read_done`.

    Parameters
    ----------
    readers : int
    depth : int
        Instructions that may be in flight, a power of two; the caller keeps to it.

    Members
    -------
    start : In(1), need : In(2) x `readers`
        An instruction enters, with the number of requests it makes of each reader.
    fetched : In(readers)
        A request of that reader has been read.
    written : In(1)
        The writer has finished a request.
    read_done, complete : Out(1)
    """

    def __init__(self, *, readers, depth=4):
        if readers < 1:
            raise ValueError(f"retirement of {readers} readers")
        self.readers, self.depth = readers, depth
        super().__init__({
            "start": In(1),
            "need": In(data.ArrayLayout(NEED_BITS, readers)),
            "fetched": In(readers),
            "written": In(1),
            "read_done": Out(1),
            "complete": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.needs = needs = StreamFifo(self.need.shape(), depth=self.depth)
        enough = Signal(self.readers)
        m.d.comb += [
            needs.i.valid.eq(self.start),
            needs.i.p.eq(self.need),
            needs.o.ready.eq(self.read_done),
            self.read_done.eq(needs.o.valid & enough.all()),
        ]
        for reader in range(self.readers):
            counted = Signal(_COUNT_BITS, name=f"counted{reader}")
            spent = Signal(NEED_BITS, name=f"spent{reader}")
            m.d.comb += [
                enough[reader].eq(counted >= needs.o.p[reader]),
                spent.eq(needs.o.p[reader] & self.read_done.replicate(NEED_BITS)),
            ]
            m.d.sync += counted.eq(counted + self.fetched[reader] - spent)

        read, written = Signal(_COUNT_BITS), Signal(_COUNT_BITS)
        m.d.comb += self.complete.eq((read != 0) & (written != 0))
        m.d.sync += [
            read.eq(read + self.read_done - self.complete),
            written.eq(written + self.written - self.complete),
        ]
        return m
