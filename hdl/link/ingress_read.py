"""IngressRead: READ packets from the link, answered by COMPLETION packets."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.axi import AxiRead
from hdl.lib.fifo import StreamFifo
from hdl.lib.localbus import LocalBus
from hdl.link.commit_fifo import CommitFifo
from hdl.link.packet import (
    ADDRESS_BITS,
    BURST_WORDS,
    BYTES_BITS,
    GRANULE_BITS,
    PAGE_BITS,
    byte_mask,
    granule_in_layout,
    granule_out_layout,
    leaves_page,
    word_strobes,
    words_of,
)
from hdl.link.ports import HEADER_LAYOUT, REASON_BITS
from isa.address_map import CORE_BASE
from isa.link import PacketKind, PacketStatus, Reason

_REQUESTS = 4
"""Requests held in front of the memory, and behind it."""
_CORE_BIT = CORE_BASE.bit_length() - 1


class _Job(data.Struct):
    """A read that is to be performed (status OKAY), or that is answered without."""

    tag: 8
    status: 3
    address: ADDRESS_BITS
    bytes: BYTES_BITS
    words: 7


class IngressRead(wiring.Component):
    """Reads in order; a read of HBM is asked for while the data of the one before still come.

    Memory answers are taken at once: room for them was kept before they were asked for.  While a
    read of the core window is under way nothing is asked of HBM.

    Members
    -------
    i : In stream of granules
    o : Out stream of granules, the COMPLETION packets
    flush : In, pulse
        What comes next begins with a header.  Reads under way are answered all the same: the tags
        of a lost session match nothing.
    hbm : Out(AxiRead), bus : Out(LocalBus)
    address : Out(48), allowed : In
        Address of the packet in work, and what the windows say of it.
    denied : Out, pulse
    error : Out(5)
        Reason for a cycle, of a packet that is not what it should be.  A READ among them is
        answered BUS_ERROR, as one is that finds no memory or carries poison.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(granule_in_layout())),
                "o": Out(stream.Signature(granule_out_layout())),
                "flush": In(1),
                "hbm": Out(AxiRead(config)),
                "bus": Out(LocalBus()),
                "address": Out(ADDRESS_BITS),
                "allowed": In(1),
                "denied": Out(1),
                "error": Out(REASON_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.asked = asked = StreamFifo(_Job, depth=_REQUESTS)
        m.submodules.answers = answers = StreamFifo(_Job, depth=_REQUESTS)
        m.submodules.words = words = CommitFifo(GRANULE_BITS, depth=2 * BURST_WORDS)
        # Words of room that nobody has asked for.
        room = Signal(range(2 * BURST_WORDS + 1), init=2 * BURST_WORDS)
        taken, given = Signal(7), Signal(7)
        m.d.sync += room.eq(room - taken + given)
        core_done = Signal()
        self._ask(m, asked.i, room, taken, core_done)
        refund = self._collect(m, asked.o, answers.i, words, core_done)
        sent = self._send(m, answers.o, words.o)
        m.d.comb += given.eq(refund + sent)
        return m

    def _ask(self, m, asked, room, taken, core_done):
        header, alone, poison = Signal(HEADER_LAYOUT), Signal(), Signal()
        core, nowhere, wrong, core_under_way = Signal(), Signal(), Signal(), Signal()
        job, count, may_ask = Signal(_Job), Signal(7), Signal()
        ar = self.hbm.ar
        m.d.comb += [
            self.address.eq(header.address),
            core.eq(header.address[_CORE_BIT]),
            nowhere.eq(
                ~core & (header.address[PAGE_BITS:_CORE_BIT] >= self.config.hbm_bytes >> PAGE_BITS)
            ),
            wrong.eq(
                (header.bytes == 0)
                | leaves_page(header.address, header.bytes)
                | (words_of(header.address, header.bytes) > BURST_WORDS)
                | (header.granules != 1)
                | ~alone
            ),
            count.eq(words_of(header.address, header.bytes)),
            ar.p.addr.eq(job.address & ~Const(15, ADDRESS_BITS)),
            ar.p.len.eq(job.words - 1),
            asked.p.eq(job),
            may_ask.eq((room >= job.words) & asked.ready & ~core_under_way),
        ]
        with m.If(core_done):
            m.d.sync += core_under_way.eq(0)
        with m.FSM(name="ask"):
            with m.State("HEADER"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [
                    header.eq(self.i.p.data),
                    alone.eq(self.i.p.last),
                    poison.eq(self.i.p.poison),
                ]
                with m.If(self.i.valid & self.i.p.first & ~self.flush):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.d.sync += [
                    job.tag.eq(header.tag),
                    job.address.eq(header.address),
                    job.bytes.eq(header.bytes),
                    job.words.eq(count),
                    job.status.eq(PacketStatus.OKAY),
                ]
                m.next = "ASK"
                with m.If(header.kind != PacketKind.READ):
                    m.d.comb += self.error.eq(Reason.BAD_TYPE)
                    m.next = "HEADER"
                with m.Elif(wrong):
                    m.d.comb += self.error.eq(Reason.PACKET_LENGTH)
                    m.d.sync += job.status.eq(PacketStatus.BUS_ERROR)
                    m.next = "HAND_ON"
                with m.Elif(~self.allowed):
                    m.d.comb += self.denied.eq(1)
                    m.d.sync += job.status.eq(PacketStatus.DENIED)
                    m.next = "HAND_ON"
                with m.Elif(nowhere | poison):
                    m.d.sync += job.status.eq(PacketStatus.BUS_ERROR)
                    m.next = "HAND_ON"
            # What ASK waits for holds on once it holds: only this state takes room.
            with m.State("ASK"), m.If(may_ask):
                with m.If(core):
                    m.d.comb += [asked.valid.eq(1), taken.eq(job.words)]
                    m.d.sync += core_under_way.eq(1)
                    m.next = "HEADER"
                with m.Else():
                    m.d.comb += ar.valid.eq(1)
                    with m.If(ar.ready):
                        m.d.comb += [asked.valid.eq(1), taken.eq(job.words)]
                        m.next = "HEADER"
            with m.State("HAND_ON"):
                m.d.comb += asked.valid.eq(1)
                with m.If(asked.ready):
                    m.next = "HEADER"

    def _collect(self, m, job, answer, words, core_done):
        """Data into `words`; gives the room that an error has no use for."""
        first, left, failed, refund = Signal(init=1), Signal(7), Signal(), Signal(7)
        core, req, resp, r = Signal(), self.bus.req, self.bus.resp, self.hbm.r
        mask, value, error, arrived = Signal(16), Signal(GRANULE_BITS), Signal(), Signal()
        remaining, final, word_address = Signal(7), Signal(), Signal(ADDRESS_BITS)
        asking = Signal(init=1)
        m.d.comb += [
            core.eq(job.p.address[_CORE_BIT]),
            remaining.eq(Mux(first, job.p.words, left)),
            final.eq(remaining == 1),
            mask.eq(word_strobes(job.p.address, job.p.bytes, first, final)),
            word_address.eq(
                (job.p.address & ~Const(15, ADDRESS_BITS)) + ((job.p.words - remaining) << 4)
            ),
            req.p.address.eq(word_address),
            words.i.p.eq(value & byte_mask(mask)),
            words.i.valid.eq(arrived),
            answer.p.eq(job.p),
        ]
        with m.If(job.valid & answer.ready):
            with m.If(job.p.status != PacketStatus.OKAY):
                m.d.comb += [job.ready.eq(1), answer.valid.eq(1)]
            with m.Elif(core):
                m.d.comb += [
                    req.valid.eq(asking),
                    resp.ready.eq(~asking),
                    arrived.eq(~asking & resp.valid),
                    value.eq(resp.p.data),
                    error.eq(resp.p.error),
                ]
            with m.Else():
                m.d.comb += [
                    r.ready.eq(1),
                    arrived.eq(r.valid),
                    value.eq(r.p.data),
                    error.eq(r.p.resp[1]),
                ]
        with m.If(req.valid & req.ready):
            m.d.sync += asking.eq(0)
        with m.If(arrived):
            m.d.sync += [first.eq(0), left.eq(remaining - 1), failed.eq(failed | error)]
            m.d.sync += asking.eq(1)
            with m.If(final):
                m.d.comb += [
                    job.ready.eq(1),
                    answer.valid.eq(1),
                    core_done.eq(core),
                    words.commit.eq(1),
                ]
                m.d.sync += [first.eq(1), failed.eq(0)]
                with m.If(failed | error):
                    m.d.comb += [
                        words.rollback.eq(1),
                        refund.eq(job.p.words),
                        answer.p.status.eq(PacketStatus.BUS_ERROR),
                    ]
        return refund

    def _send(self, m, answer, words):
        header, left, okay, sent = Signal(HEADER_LAYOUT), Signal(7), Signal(), Signal()
        m.d.comb += [
            okay.eq(answer.p.status == PacketStatus.OKAY),
            header.kind.eq(PacketKind.COMPLETION),
            header.granules.eq(Mux(okay, answer.p.words, 0) + 1),
            header.tag.eq(answer.p.tag),
            header.status.eq(answer.p.status),
            header.bytes.eq(Mux(okay, answer.p.bytes, 0)),
            header.address.eq(answer.p.address),
        ]
        with m.FSM(name="send"):
            with m.State("HEADER"):
                m.d.comb += [
                    self.o.valid.eq(answer.valid),
                    self.o.p.data.eq(header),
                    self.o.p.last.eq(~okay),
                ]
                m.d.sync += left.eq(answer.p.words)
                with m.If(answer.valid & self.o.ready):
                    with m.If(okay):
                        m.next = "DATA"
                    with m.Else():
                        m.d.comb += answer.ready.eq(1)
            with m.State("DATA"):
                m.d.comb += [
                    self.o.valid.eq(words.valid),
                    self.o.p.data.eq(words.p),
                    self.o.p.last.eq(left == 1),
                    words.ready.eq(self.o.ready),
                ]
                with m.If(words.valid & self.o.ready):
                    m.d.comb += sent.eq(1)
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 1):
                        m.d.comb += answer.ready.eq(1)
                        m.next = "HEADER"
        return sent
