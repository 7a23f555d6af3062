"""Unpacker: where packets begin and end in the payload of the VCs.

Works on what is written into the VC buffers, a beat at a time, and gives every granule a mark, so
that the reading side looks at no header.
"""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.select import select_value
from hdl.link.ports import HEADER_LAYOUT, Deliver
from isa.link import GRANULE_BYTES, MAX_PACKET_GRANULES, VCS


class Unpacker(wiring.Component):
    """Marks the granules of delivered payload; combinational, the state of a VC moves behind it.

    Packets of a VC follow each other by the `granules` of their headers, and the first beginning in
    a flit must lie where the flit says.  Where that fails, all up to the next beginning that a flit
    names is refuse: granules that belong to no packet, each an end of its own.

    Members
    -------
    clear : In, pulse: every VC stands in front of a header.
    deliver : In(Deliver)
    skip : In: the beat on `deliver` is not stored; what follows is refuse.
    starts, ends, refuse : Out, a bit per granule of the beat, 0 beyond its `granules`: header of a
        packet; last granule of a packet, or refuse; refuse.
    closed, any_closed : Out: granules of this beat up to the last end in it; there is one.  A
        packet that is cut short ends in front of the header or the refuse behind it.
    error : Out: a packet is longer or shorter than its header says, or a header gives a length that
        no packet has.
    """

    def __init__(self, link):
        self.link = link
        granules = link.beat_granules
        super().__init__(
            {
                "clear": In(1),
                "deliver": In(Deliver(link)),
                "skip": In(1),
                "starts": Out(granules),
                "ends": Out(granules),
                "refuse": Out(granules),
                "closed": Out(range(granules + 1)),
                "any_closed": Out(1),
                "error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        deliver, count = self.deliver, self.link.beat_granules

        # State of each VC: granules up to the next header; refuse; the last packet has no end yet
        lefts = [Signal(range(MAX_PACKET_GRANULES), name=f"left{vc}") for vc in range(VCS)]
        losts = [Signal(name=f"lost{vc}") for vc in range(VCS)]
        opens = [Signal(name=f"open{vc}") for vc in range(VCS)]
        left = Signal(range(MAX_PACKET_GRANULES))
        begun = Signal()

        def steps(name, first):
            """A state in front of each granule of the beat, and behind the last."""
            signals = [Signal(name=f"{name}_{i}") for i in range(count + 1)]
            m.d.comb += signals[0].eq(first)
            return signals

        begun_at = steps("begun_at", begun & ~deliver.start)
        lost_at = steps("lost_at", select_value(deliver.vc, losts))
        open_at = steps("open_at", select_value(deliver.vc, opens))
        header_at = [Signal(name=f"header_at_{i}") for i in range(count + 1)]
        m.d.comb += left.eq(select_value(deliver.vc, lefts))

        length, named, start, wrong = [], [], [], []
        for i in range(count + 1):
            # The packet in front of granule i is over: one from before the beat, or one of the beat
            over = ~lost_at[0] & (left == i)
            for p in range(i):
                over = (over & ~named[p]) | (start[p] & (length[p] == i - p))
            m.d.comb += header_at[i].eq(over)
            if i == count:
                break
            header = Signal(HEADER_LAYOUT, name=f"header_{i}")
            inside, proper = Signal(name=f"inside_{i}"), Signal(name=f"proper_{i}")
            begins, end = Signal(name=f"begins_{i}"), Signal(name=f"end_{i}")
            for name, signals in (("named", named), ("start", start), ("wrong", wrong)):
                signals.append(Signal(name=f"{name}_{i}"))
            length.append(header.granules)
            m.d.comb += [
                header.eq(deliver.data.word_select(i, 8 * GRANULE_BYTES)),
                inside.eq(deliver.granules > i),
                proper.eq((length[i] != 0) & (length[i] <= MAX_PACKET_GRANULES)),
                named[i].eq(inside & deliver.first_valid & (deliver.first == i)),
                begins.eq(named[i] | (inside & header_at[i] & begun_at[i])),
                start[i].eq(begins & proper),
                wrong[i].eq(
                    (begins & ~proper)
                    | (named[i] & ~header_at[i] & ~lost_at[i])
                    | (inside & header_at[i] & ~begins)
                ),
                end.eq(inside & (header_at[i + 1] | lost_at[i + 1])),
                begun_at[i + 1].eq(begun_at[i] | named[i]),
                lost_at[i + 1].eq(Mux(begins, ~proper, lost_at[i] | (inside & header_at[i]))),
                open_at[i + 1].eq(Mux(inside, ~end, open_at[i])),
                self.starts[i].eq(start[i]),
                self.ends[i].eq(end),
                self.refuse[i].eq(inside & lost_at[i + 1]),
            ]
            with m.If(start[i] & open_at[i]):
                m.d.comb += [self.closed.eq(i), self.any_closed.eq(1)]
            with m.If(end):
                m.d.comb += [self.closed.eq(i + 1), self.any_closed.eq(1)]
        m.d.comb += self.error.eq(deliver.valid & ~self.skip & Cat(*wrong).any())

        left_behind = Signal(range(MAX_PACKET_GRANULES))
        m.d.comb += left_behind.eq(left - deliver.granules)
        for p in range(count):
            with m.If(start[p]):
                m.d.comb += left_behind.eq(length[p] + p - deliver.granules)
        with m.If(deliver.valid):
            m.d.sync += begun.eq(begun_at[count])
            with m.Switch(deliver.vc):
                for vc in range(VCS):
                    with m.Case(vc):
                        m.d.sync += losts[vc].eq(lost_at[count] | self.skip)
                        with m.If(~self.skip):
                            m.d.sync += [
                                lefts[vc].eq(left_behind),
                                opens[vc].eq(open_at[count]),
                            ]
        return ResetInserter(self.clear)(m)
