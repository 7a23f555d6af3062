"""IngressWrite: WRITE and SEMAPHORE packets from the link, performed one after the other."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.axi import AxiWrite
from hdl.lib.fifo import StreamFifo
from hdl.lib.localbus import LocalBus
from hdl.link.commit_fifo import CommitFifo
from hdl.link.packet import (
    ADDRESS_BITS,
    BURST_WORDS,
    GRANULE_BITS,
    PAGE_BITS,
    granule_in_layout,
    leaves_page,
    word_strobes,
    words_of,
)
from hdl.link.ports import HEADER_LAYOUT, REASON_BITS
from isa.address_map import CORE_BASE
from isa.link import PacketKind, Reason

_PACKETS = 8
"""Packets checked and not yet performed."""
_CORE_BIT = CORE_BASE.bit_length() - 1


class IngressWrite(wiring.Component):
    """A packet is taken in as a whole, checked, and then performed before the next one: the answer
    of the memory, or of the bus, has come.

    Members
    -------
    i : In stream of granules
    flush : In, pulse
        The packet that is coming in is forgotten; what has come in as a whole is performed.
    hbm : Out(AxiWrite), bus : Out(LocalBus)
    address : Out(48), allowed : In
        Address of the packet in work, and what the windows say of it.
    denied, bus_error : Out, pulses
        The packet at `address` was denied; was not performed, or not as a whole, because of an
        address without memory, an answer with an error, or poison.
    error : Out(5)
        Reason for a cycle, of a packet that is not what it should be: it has no effect.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(granule_in_layout())),
                "flush": In(1),
                "hbm": Out(AxiWrite(config)),
                "bus": Out(LocalBus()),
                "address": Out(ADDRESS_BITS),
                "allowed": In(1),
                "denied": Out(1),
                "bus_error": Out(1),
                "error": Out(REASON_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = CommitFifo(GRANULE_BITS, depth=2 * BURST_WORDS)
        m.submodules.packets = packets = StreamFifo(HEADER_LAYOUT, depth=_PACKETS)
        self._take(m, words, packets)
        self._perform(m, words.o, packets.o)
        return m

    def _take(self, m, words, packets):
        """Whole, checked packets into `packets` (`spare`: poison) and `words`."""
        granule, header = self.i.p, Signal(HEADER_LAYOUT)
        alone, poison, count = Signal(), Signal(), Signal(range(BURST_WORDS + 1))
        wrong, write, good = Signal(), Signal(), Signal()
        m.d.comb += [
            write.eq(header.kind == PacketKind.WRITE),
            words.i.p.eq(granule.data),
            packets.i.p.eq(header),
        ]
        with m.If(write):
            m.d.comb += wrong.eq(
                (header.bytes == 0)
                | leaves_page(header.address, header.bytes)
                | (words_of(header.address, header.bytes) > BURST_WORDS)
                | (header.granules != words_of(header.address, header.bytes) + 1)
                | alone
            )
        with m.Else():
            m.d.comb += wrong.eq(
                (header.bytes != 0) | (header.granules != 1) | (header.address[:2] != 0) | ~alone
            )

        def fail(reason):
            m.d.comb += [self.error.eq(reason), words.rollback.eq(1)]

        with m.FSM(name="take"):
            with m.State("HEADER"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [
                    header.eq(granule.data),
                    alone.eq(granule.last),
                    poison.eq(granule.poison),
                    count.eq(0),
                ]
                with m.If(self.i.valid & granule.first & ~self.flush):
                    m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(~write & (header.kind != PacketKind.SEMAPHORE)):
                    fail(Reason.BAD_TYPE)
                    m.next = "SKIP"
                with m.Elif(wrong):
                    fail(Reason.PACKET_LENGTH)
                    m.next = "SKIP"
                with m.Elif(packets.i.ready):
                    m.next = "DATA"
                    with m.If(alone):
                        m.d.comb += [packets.i.valid.eq(1), packets.i.p.spare.eq(poison)]
                        m.next = "HEADER"
                with m.If(self.flush):
                    m.next = "HEADER"
            with m.State("DATA"):
                m.d.comb += good.eq(granule.last & ~granule.first & (count + 2 == header.granules))
                with m.If(self.flush):
                    m.d.comb += words.rollback.eq(1)
                    m.next = "HEADER"
                with m.Elif(self.i.valid & granule.first):
                    fail(Reason.PACKET_LENGTH)
                    m.next = "HEADER"
                with m.Else():
                    m.d.comb += [words.i.valid.eq(self.i.valid), self.i.ready.eq(words.i.ready)]
                    with m.If(self.i.valid & words.i.ready):
                        m.d.sync += [count.eq(count + 1), poison.eq(poison | granule.poison)]
                        with m.If(good):
                            m.d.comb += [
                                words.commit.eq(1),
                                packets.i.valid.eq(1),
                                packets.i.p.spare.eq(poison | granule.poison),
                            ]
                            m.next = "HEADER"
                        with m.Elif(granule.last):
                            fail(Reason.PACKET_LENGTH)
                            m.next = "HEADER"
                        with m.Elif(count + 2 == header.granules):
                            fail(Reason.PACKET_LENGTH)
                            m.next = "SKIP"
            with m.State("SKIP"):
                # Until the next header, which stays where it is.
                with m.If(~self.i.p.first):
                    m.d.comb += self.i.ready.eq(1)
                with m.If((self.i.valid & granule.first) | self.flush):
                    m.next = "HEADER"

    def _perform(self, m, words, packet):
        header = packet.p
        left, count, first = Signal(range(BURST_WORDS + 1)), Signal(7), Signal()
        write, core, nowhere, strobes = Signal(), Signal(), Signal(), Signal(16)
        aw, w, b = self.hbm.aw, self.hbm.w, self.hbm.b
        req, resp = self.bus.req, self.bus.resp
        word_address, data = Signal(ADDRESS_BITS), Signal(GRANULE_BITS)
        m.d.comb += [
            self.address.eq(header.address),
            write.eq(header.kind == PacketKind.WRITE),
            core.eq(header.address[_CORE_BIT]),
            nowhere.eq(
                ~core & (header.address[PAGE_BITS:_CORE_BIT] >= self.config.hbm_bytes >> PAGE_BITS)
            ),
            count.eq(Mux(write, header.granules - 1, 1)),
            strobes.eq(word_strobes(header.address, Mux(write, header.bytes, 4), first, left == 1)),
            data.eq(Mux(write, words.p, header.value.replicate(GRANULE_BITS // 32))),
            aw.p.addr.eq(header.address & ~Const(15, ADDRESS_BITS)),
            aw.p.len.eq(count - 1),
            w.p.data.eq(data),
            w.p.strb.eq(strobes),
            w.p.last.eq(left == 1),
            req.p.address.eq(word_address),
            req.p.write.eq(1),
            req.p.data.eq(data),
            req.p.strb.eq(strobes),
        ]

        def finish():
            m.d.comb += packet.ready.eq(1)
            m.next = "CHECK"

        def next_word():
            m.d.sync += [left.eq(left - 1), first.eq(0), word_address.eq(word_address + 16)]

        with m.FSM(name="perform"):
            with m.State("CHECK"):
                m.d.sync += [
                    left.eq(count),
                    first.eq(1),
                    word_address.eq(header.address & ~Const(15, ADDRESS_BITS)),
                ]
                with m.If(packet.valid):
                    with m.If(~self.allowed):
                        m.d.comb += self.denied.eq(1)
                        m.next = "DISCARD"
                    with m.Elif(nowhere | (header.spare != 0)):
                        m.d.comb += self.bus_error.eq(1)
                        m.next = "DISCARD"
                    with m.Elif(core):
                        m.next = "REQUEST"
                    with m.Else():
                        m.next = "ADDRESS"
            with m.State("DISCARD"):
                with m.If(write):
                    m.d.comb += words.ready.eq(1)
                    with m.If(words.valid):
                        m.d.sync += left.eq(left - 1)
                        with m.If(left == 1):
                            finish()
                with m.Else():
                    finish()
            with m.State("ADDRESS"):
                m.d.comb += aw.valid.eq(1)
                with m.If(aw.ready):
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += [
                    w.valid.eq(words.valid | ~write),
                    words.ready.eq(w.ready & write),
                ]
                with m.If(w.valid & w.ready):
                    next_word()
                    with m.If(left == 1):
                        m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += b.ready.eq(1)
                with m.If(b.valid):
                    m.d.comb += self.bus_error.eq(b.p.resp[1])
                    finish()
            with m.State("REQUEST"):
                m.d.comb += [
                    req.valid.eq(words.valid | ~write),
                    words.ready.eq(req.ready & write),
                ]
                with m.If(req.valid & req.ready):
                    m.next = "RESPOND"
            with m.State("RESPOND"):
                m.d.comb += resp.ready.eq(1)
                with m.If(resp.valid):
                    m.d.comb += self.bus_error.eq(resp.p.error)
                    next_word()
                    m.next = "REQUEST"
                    with m.If(left == 1):
                        finish()
