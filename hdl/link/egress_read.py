"""EgressRead: AXI read bursts to READ packets, COMPLETION packets to their data."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.axi import AxiRead, Resp
from hdl.lib.ram import BlockRam
from hdl.lib.tile import add_tile
from hdl.link.packet import (
    BURST_WORDS,
    GRANULE_BITS,
    READS,
    SESSION_BITS,
    SLOT_BITS,
    granule_in_layout,
    granule_out_layout,
    tag_of,
)
from hdl.link.ports import HEADER_LAYOUT, REASON_BITS
from isa.address_map import PEER_WINDOW_BITS
from isa.link import PacketKind, PacketStatus, Reason

_WORD_BITS = ceil_log2(BURST_WORDS)


class EgressRead(wiring.Component):
    """READS bursts at a time, answered in the order of their requests.  Each has room for its data,
    so a completion never waits for whoever asked.

    A burst is answered SLVERR in all its beats when its completion says so, is not what was asked
    for, or carries poison; when the session is lost before it has come; while `failed` is high.

    Members
    -------
    read : In(AxiRead) with `id_bits`, addresses below 2^45
    o : Out stream of granules, the READ packets
        The port takes what is offered in the cycle of `lost`, and throws it away.
    i : In stream of granules, the COMPLETION packets, always taken
        One with a tag of no read under way is dropped.
    lost : In pulse, failed : In, session : In
        `session` changes when `lost` comes or `failed` rises.
    outstanding : Out
        Reads without an answer.
    error : Out(5)
        Reason for a cycle: a packet that is not what it should be.
    """

    def __init__(self, config, *, id_bits):
        self.config, self.id_bits = config, id_bits
        super().__init__(
            {
                "read": In(AxiRead(config, id_bits)),
                "o": Out(stream.Signature(granule_out_layout())),
                "i": In(stream.Signature(granule_in_layout())),
                "lost": In(1),
                "failed": In(1),
                "session": In(SESSION_BITS),
                "outstanding": Out(range(READS + 1)),
                "error": Out(REASON_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        data = add_tile(
            m, platform, "data", BlockRam(width=GRANULE_BITS, depth=READS * BURST_WORDS)
        )
        ids = Array(Signal(self.id_bits, name=f"id{i}") for i in range(READS))
        lasts = Array(Signal(_WORD_BITS, name=f"last{i}") for i in range(READS))
        # Of each slot: the completion is awaited; it has come; it is an error.
        pending, done, bad = Signal(READS), Signal(READS), Signal(READS)
        finish, slot, finish_bad = self._receive(m, data, lasts, pending)
        with m.If(finish):
            m.d.sync += [
                pending.bit_select(slot, 1).eq(0),
                done.bit_select(slot, 1).eq(1),
                bad.bit_select(slot, 1).eq(finish_bad),
            ]
        with m.If(self.lost | self.failed):
            m.d.sync += [pending.eq(0), done.eq(done | pending), bad.eq(bad | pending)]
        # A burst accepted in the cycle of `lost` belongs to the new session.
        self._request(m, ids, lasts, pending)
        self._answer(m, data, ids, lasts, done, bad)
        return m

    def _request(self, m, ids, lasts, pending):
        ar, slot, header = self.read.ar, Signal(SLOT_BITS), Signal(HEADER_LAYOUT)
        address, words = Signal(PEER_WINDOW_BITS), Signal(_WORD_BITS + 1)
        offered, current, was_failed = Signal(), Signal(SLOT_BITS), Signal()
        m.d.sync += was_failed.eq(self.failed)
        m.d.comb += [
            ar.ready.eq(~offered & (self.outstanding != READS)),
            self.o.valid.eq(offered & ~was_failed),
            header.kind.eq(PacketKind.READ),
            header.granules.eq(1),
            header.tag.eq(tag_of(self.session, current)),
            header.bytes.eq(words << 4),
            header.address.eq(address),
            self.o.p.data.eq(header),
            self.o.p.last.eq(1),
        ]
        with m.If(self.o.ready | self.lost | self.failed):
            m.d.sync += offered.eq(0)
        with m.If(ar.valid & ar.ready):
            m.d.sync += [
                offered.eq(1),
                slot.eq(slot + 1),
                current.eq(slot),
                address.eq(ar.p.addr),
                words.eq(ar.p.len + 1),
                ids[slot].eq(ar.p.id),
                lasts[slot].eq(ar.p.len),
            ]
            m.d.sync += pending.bit_select(slot, 1).eq(1)

    def _receive(self, m, data, lasts, pending):
        """Completions into `data`; (a read is finished, its slot, with an error)."""
        finish, slot, failed = Signal(), Signal(SLOT_BITS), Signal()
        granule, header = self.i.p, Signal(HEADER_LAYOUT)
        here, held, index = Signal(SLOT_BITS), Signal(SLOT_BITS), Signal(_WORD_BITS + 1)
        poison, ours, whole, empty, right = (Signal() for _ in range(5))
        m.d.comb += [
            header.eq(granule.data),
            here.eq(header.tag),
            right.eq(header.tag == tag_of(self.session, here)),
            ours.eq(right & pending.bit_select(here, 1).bool()),
            whole.eq(
                (header.status == PacketStatus.OKAY)
                & (header.granules == lasts[here] + 2)
                & (header.bytes == (lasts[here] + 1) << 4)
                & ~granule.last
            ),
            empty.eq(
                (header.status != PacketStatus.OKAY)
                & (header.granules == 1)
                & (header.bytes == 0)
                & granule.last
            ),
            data.w_addr.eq(Cat(index[:_WORD_BITS], held)),
            data.w_data.eq(granule.data),
        ]

        def end(place, *, error):
            m.d.comb += [finish.eq(1), slot.eq(place), failed.eq(error)]

        def broken_off():
            with m.If(self.lost | self.failed):
                m.next = "HEADER"

        with m.FSM(name="receive"):
            with m.State("HEADER"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [held.eq(here), index.eq(0), poison.eq(granule.poison)]
                with m.If(self.i.valid):
                    with m.If(~granule.last):
                        m.next = "SKIP"
                    with m.If(~granule.first):
                        m.next = "HEADER"  # the rest of a packet that was cut off
                    with m.Elif(header.kind != PacketKind.COMPLETION):
                        m.d.comb += self.error.eq(Reason.BAD_TYPE)
                    with m.Elif(ours & whole):
                        m.next = "DATA"
                    with m.Elif(ours):
                        end(here, error=1)
                        with m.If(~empty):
                            m.d.comb += self.error.eq(Reason.PACKET_LENGTH)
                broken_off()
            with m.State("DATA"):
                with m.If(granule.first), m.If(self.i.valid):
                    m.d.comb += self.error.eq(Reason.PACKET_LENGTH)
                    end(held, error=1)
                    m.next = "HEADER"
                with m.Else():
                    m.d.comb += [self.i.ready.eq(1), data.w_en.eq(self.i.valid)]
                    with m.If(self.i.valid):
                        m.d.sync += [index.eq(index + 1), poison.eq(poison | granule.poison)]
                        with m.If(granule.last & (index == lasts[held])):
                            end(held, error=poison | granule.poison)
                            m.next = "HEADER"
                        with m.Elif(granule.last | (index == lasts[held])):
                            m.d.comb += self.error.eq(Reason.PACKET_LENGTH)
                            end(held, error=1)
                            m.next = "SKIP"
                            with m.If(granule.last):
                                m.next = "HEADER"
                broken_off()
            with m.State("SKIP"):
                with m.If(granule.first), m.If(self.i.valid):
                    m.next = "HEADER"
                with m.Else():
                    m.d.comb += self.i.ready.eq(1)
                    with m.If(self.i.valid & granule.last):
                        m.next = "HEADER"
                broken_off()
        return finish, slot, failed

    def _answer(self, m, data, ids, lasts, done, bad):
        r, slot, beat = self.read.r, Signal(SLOT_BITS), Signal(_WORD_BITS)
        load, fetch, final, accepted = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            load.eq(~r.valid | r.ready),
            fetch.eq(load & done.bit_select(slot, 1).bool()),
            final.eq(fetch & (beat == lasts[slot])),
            data.r_en.eq(fetch),
            data.r_addr.eq(Cat(beat, slot)),
            r.p.data.eq(data.r_data),
            accepted.eq(self.read.ar.valid & self.read.ar.ready),
        ]
        with m.If(load):
            m.d.sync += [
                r.valid.eq(fetch),
                r.p.id.eq(ids[slot]),
                r.p.last.eq(beat == lasts[slot]),
                r.p.resp.eq(Mux(bad.bit_select(slot, 1).bool(), Resp.SLVERR, Resp.OKAY)),
            ]
        with m.If(fetch):
            m.d.sync += beat.eq(Mux(final, 0, beat + 1))
        with m.If(final):
            m.d.sync += [
                slot.eq(slot + 1),
                done.bit_select(slot, 1).eq(0),
                bad.bit_select(slot, 1).eq(0),
            ]
        m.d.sync += self.outstanding.eq(self.outstanding + accepted - final)
