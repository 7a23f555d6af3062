"""Packets of all virtual channels on their way into flits."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import RoundRobin, one_hot_index, one_hot_mux
from hdl.lib.check import check_stream
from hdl.link.granule_queue import GranuleQueue
from hdl.link.ports import VC_BITS, packet_beat
from isa.link import GRANULE_BYTES, VCS

GRANULE_BITS = 8 * GRANULE_BYTES


def _ends(beat):
    """The last granule of a beat is the end of a packet."""
    return (beat.last << 1).bit_select(beat.granules, 1)


class TransmitQueues(wiring.Component):
    """Eight queues of `link.queue_granules`, filled by a stream each, one beat a cycle together.

    The stream that is served is chosen round robin among those with room for a whole beat.  When
    `clear` cuts off the beginning of a packet, all beats up to the first one that ends with the end
    of a packet are taken and thrown away: the rest of a packet must not be taken for one.

    Members
    -------
    clear : In, pulse: all queues are empty.  A beat that is offered in this cycle is taken, and
        thrown away with the rest of its packet.
    tx0 .. tx7 : In, streams of `packet_beat`.
    vc, count : In: queue to be read; granules to take from it at the clock edge.
    data : Out: its first granules, combinational.
    begins, poison : Out: bit for each of them: a packet begins with it; it is known to be bad.
    level0 .. level7 : Out: granules held.

    A beat that is taken can be read in the next cycle.
    """

    def __init__(self, link):
        self.link = link
        granules = link.beat_granules
        super().__init__(
            {
                "clear": In(1),
                **{f"tx{vc}": In(stream.Signature(packet_beat(link))) for vc in range(VCS)},
                "vc": In(VC_BITS),
                "count": In(range(granules + 1)),
                "data": Out(GRANULE_BITS * granules),
                "begins": Out(granules),
                "poison": Out(granules),
                **{f"level{vc}": Out(range(link.queue_granules + 1)) for vc in range(VCS)},
            }
        )

    def elaborate(self, platform):
        m = Module()
        link, granules = self.link, self.link.beat_granules
        streams = [getattr(self, f"tx{vc}") for vc in range(VCS)]
        m.submodules.queue = queue = GranuleQueue(
            (link.queue_granules,) * VCS, granules, GRANULE_BITS + 2
        )
        m.submodules.arbiter = arbiter = RoundRobin(VCS)
        put = Signal(packet_beat(link))
        inside, dropping = Signal(VCS), Signal(VCS)  # of a packet; one that is thrown away
        end, skip, begins = Signal(), Signal(), Signal(granules)
        m.d.comb += [
            queue.clear.eq(self.clear),
            arbiter.advance.eq(1),
            put.eq(one_hot_mux(arbiter.grant, [tx.payload.as_value() for tx in streams])),
            skip.eq((arbiter.grant & dropping) != 0),
            begins.eq(Cat((arbiter.grant & inside) == 0, put.last)),
            end.eq(_ends(put)),
            queue.w_en.eq((arbiter.grant != 0) & ~skip),
            queue.w_vc.eq(one_hot_index(arbiter.grant, VCS)),
            queue.w_granules.eq(put.granules),
            queue.w_data.eq(
                Cat(
                    Cat(
                        put.data.word_select(i, GRANULE_BITS),
                        begins[i],
                        put.poison,
                    )
                    for i in range(granules)
                )
            ),
            queue.r_vc.eq(self.vc),
            queue.r_count.eq(self.count),
        ]
        for vc, tx in enumerate(streams):
            level = queue.level(vc)
            m.d.comb += [
                arbiter.request[vc].eq(
                    tx.valid & (level <= link.queue_granules - granules) & ~self.clear
                ),
                tx.ready.eq(arbiter.grant[vc] | self.clear),
                getattr(self, f"level{vc}").eq(level),
            ]
            with m.If(self.clear & tx.valid):
                m.d.sync += [inside[vc].eq(~_ends(tx.p)), dropping[vc].eq(~_ends(tx.p))]
            with m.Elif(self.clear):
                m.d.sync += dropping[vc].eq(inside[vc])
            with m.Elif(arbiter.grant[vc]):
                m.d.sync += inside[vc].eq(~end)
                with m.If(end):
                    m.d.sync += dropping[vc].eq(0)
            check_stream(m, platform, tx, f"tx{vc}")
        for i in range(granules):
            word = queue.r_data[i * (GRANULE_BITS + 2) : (i + 1) * (GRANULE_BITS + 2)]
            m.d.comb += [
                self.data.word_select(i, GRANULE_BITS).eq(word),
                self.begins[i].eq(word[GRANULE_BITS]),
                self.poison[i].eq(word[GRANULE_BITS + 1]),
            ]
        return m
