"""Deskew: symbols of the same step from all lanes of the group, in the same cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.ram import LutRam
from hdl.lib.select import or_tree
from hdl.lib.tile import add_tile
from hdl.link.lane_lock import STAMP_BITS

MARGIN = 8
"""Skew is allowed up to the depth less this many symbols."""


def stamp_bit(link):
    """Bit of the stamp whose changes mark the frame to align by.

    Changes are 4 x depth cycles of the sender apart: more than twice the skew even at half rate, so
    that one change on all lanes is told from the next.
    """
    return ceil_log2(link.deskew_depth) + 2


class Deskew(wiring.Component):
    """A buffer for each lane.

    All lanes carry the same stamps.  Once no lane has met the marked frame (`LaneLock.cross`) for
    as long as the skew may be, the next one on any lane begins to align: each lane writes what
    follows its marked frame from address 0 on.  If all of the group have met it in time, and with
    the same stamp, one address reads them all, as soon as all hold a symbol.  Twice in a row not:
    `overflow`.

    Members
    -------
    valid, cross : In(lanes); tag{i} : In
        Of `LaneLock`; a lane's symbol is written in the cycle it is valid.
    w_data{i} : In(width)
        Symbol of lane i, with what goes with it.
    pace : In(1)
        A lane has a symbol: the measure of time.
    active : In(lanes)
        The group, by physical lanes.
    align : In(1)
        Level: align, then hold the alignment.  Low: forget it.
    aligned : Out(1)
    overflow : Out(1)
        Level until `align` falls: more skew than allowed, or a lane stopped delivering.
    step : Out(1)
        A step is read in this cycle; not under a condition.
    r_data{i} : Out(width)
        Of this step.
    """

    def __init__(self, link, *, width):
        self.link, self.width = link, width
        lanes = range(link.lanes)
        super().__init__(
            {
                "valid": In(link.lanes),
                "cross": In(link.lanes),
                **{f"tag{i}": In(STAMP_BITS - stamp_bit(link)) for i in lanes},
                **{f"w_data{i}": In(width) for i in lanes},
                "pace": In(1),
                "active": In(link.lanes),
                "align": In(1),
                "aligned": Out(1),
                "overflow": Out(1),
                "step": Out(1),
                **{f"r_data{i}": Out(width) for i in lanes},
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, depth = self.link.lanes, self.link.deskew_depth
        limit = depth - MARGIN
        bits = ceil_log2(depth)
        r_addr = Signal(bits)
        filled, late, full = Signal(lanes), Signal(lanes), Signal(lanes)
        crossed, crossing = Signal(lanes), Signal(lanes)
        gathering, armed = Signal(), Signal()
        tag, common = Signal(len(self.tag0)), Signal(len(self.tag0))

        here, foremost = Signal(lanes), Signal(lanes)
        m.d.comb += [
            here.eq(self.cross & self.active),
            foremost.eq(here & ~(here - 1)),
            # Of several lanes that are first together one speaks for all.
            common.eq(
                Mux(
                    gathering,
                    tag,
                    or_tree(Mux(foremost[i], getattr(self, f"tag{i}"), 0) for i in range(lanes)),
                )
            ),
        ]
        for lane in range(lanes):
            ram = add_tile(m, platform, f"ram{lane}", LutRam(width=self.width, depth=depth))
            w_addr = Signal(bits, name=f"w_addr{lane}")
            after = Signal(bits, name=f"after{lane}")
            m.d.comb += [
                ram.w_en.eq(self.valid[lane]),
                ram.w_addr.eq(w_addr),
                ram.w_data.eq(getattr(self, f"w_data{lane}")),
                ram.r_addr.eq(r_addr),
                getattr(self, f"r_data{lane}").eq(ram.r_data),
                after.eq(w_addr + 1),
                filled[lane].eq(w_addr != r_addr),
                full[lane].eq(self.valid[lane] & (after == r_addr)),
                late[lane].eq(crossed[lane] & self.valid[lane] & (w_addr == limit)),
                crossing[lane].eq(
                    here[lane]
                    & ~crossed[lane]
                    & (armed | gathering)
                    & (getattr(self, f"tag{lane}") == common)
                ),
            ]
            with m.If(crossing[lane]):
                m.d.sync += w_addr.eq(0)
            with m.Elif(self.valid[lane]):
                m.d.sync += w_addr.eq(after)

        complete = Signal()
        m.d.comb += [
            complete.eq(gathering & (crossed == self.active)),
            self.step.eq(self.aligned & (filled | ~self.active).all()),
        ]
        quiet = Signal(range(limit + 1))
        failed = Signal()
        with m.If(self.aligned):
            with m.If(self.step):
                m.d.sync += r_addr.eq(r_addr + 1)
            with m.Elif((full & self.active).any()):
                m.d.sync += [self.aligned.eq(0), self.overflow.eq(1)]
        with m.Elif(gathering):
            m.d.sync += crossed.eq(crossed | crossing)
            with m.If(complete):
                m.d.sync += [self.aligned.eq(1), gathering.eq(0), failed.eq(0)]
            with m.Elif(late.any()):
                m.d.sync += [
                    gathering.eq(0),
                    crossed.eq(0),
                    failed.eq(1),
                    self.overflow.eq(failed),
                ]
        with m.Elif(armed), m.If(here.any()):
            m.d.sync += [
                armed.eq(0),
                quiet.eq(0),
                gathering.eq(1),
                crossed.eq(crossing),
                tag.eq(common),
                r_addr.eq(0),
            ]
        with m.Elif(~self.overflow):
            with m.If(here.any()):
                m.d.sync += quiet.eq(0)
            with m.Elif(self.pace):
                m.d.sync += quiet.eq(quiet + 1)
                with m.If(quiet == limit - 1):
                    m.d.sync += armed.eq(1)
        with m.If(~self.align):
            m.d.sync += [
                signal.eq(0)
                for signal in (
                    self.aligned,
                    self.overflow,
                    gathering,
                    armed,
                    crossed,
                    quiet,
                    failed,
                )
            ]
        return m
