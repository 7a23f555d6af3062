"""EgressWrite: AXI write bursts to WRITE and SEMAPHORE packets."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.axi import LENGTH_BITS, AxiWrite, Resp, address_layout, write_response_layout
from hdl.lib.fifo import StreamFifo
from hdl.link.commit_fifo import CommitFifo
from hdl.link.packet import (
    BURST_WORDS,
    BYTES_BITS,
    GRANULE_BITS,
    PAGE_BITS,
    SESSION_BITS,
    byte_mask,
    granule_out_layout,
)
from hdl.link.ports import HEADER_LAYOUT
from isa.address_map import (
    CORE_BASE,
    PEER_WINDOW_BITS,
    SEMAPHORE_OFFSET,
    SEMAPHORE_VIEW_BYTES,
    SemaphoreView,
)
from isa.geometry import WORD_BYTES
from isa.link import PacketKind

_BURSTS = 4
"""Bursts held: collected, and not yet sent."""
_SEMAPHORES = CORE_BASE + SEMAPHORE_OFFSET
assert len(SemaphoreView) * SEMAPHORE_VIEW_BYTES == 1 << PAGE_BITS + 2
assert _SEMAPHORES % (1 << PAGE_BITS + 2) == 0


class EgressWrite(wiring.Component):
    """Each burst becomes one packet, in the order of their addresses.

    The bytes whose strobes are set must be contiguous over the burst: else SLVERR and nothing is
    sent.  A burst without any is answered OKAY, and nothing is sent.  One that writes 4 aligned
    bytes of the peer's semaphores becomes a SEMAPHORE packet, any other a WRITE packet.

    A burst is answered when its packet has been taken at `o`, in order.  While `failed` is high,
    and when the session is lost while a burst is under way, it is answered SLVERR.  So is, without
    being sent, the first burst after a lost session of each id that has sent something in it: what
    had been answered may not have arrived.

    Members
    -------
    write : In(AxiWrite) with `id_bits`, addresses below 2^45
    o : Out stream of granules
        The port takes what is offered in the cycle of `lost`, and throws it away, and the rest of
        that packet with it.
    lost : In pulse, failed : In, session : In
        `session` changes when `lost` comes or `failed` rises.

    Throughput: a burst of n beats takes n + 1 cycles.
    """

    def __init__(self, config, *, id_bits):
        self.config, self.id_bits = config, id_bits
        super().__init__(
            {
                "write": In(AxiWrite(config, id_bits)),
                "o": Out(stream.Signature(granule_out_layout())),
                "lost": In(1),
                "failed": In(1),
                "session": In(SESSION_BITS),
            }
        )
        # What is known of a burst when its last beat has come; words: data granules held for it.
        self._burst = data.StructLayout(
            {
                "id": id_bits,
                "session": SESSION_BITS,
                "bad": 1,
                "semaphore": 1,
                "address": PEER_WINDOW_BITS,
                "bytes": BYTES_BITS,
                "words": range(BURST_WORDS + 1),
                "value": 32,
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = CommitFifo(GRANULE_BITS, depth=2 * BURST_WORDS)
        m.submodules.bursts = bursts = StreamFifo(self._burst, depth=_BURSTS)
        m.submodules.answers = answers = StreamFifo(
            write_response_layout(self.id_bits), depth=_BURSTS
        )
        wiring.connect(m, answers.o, wiring.flipped(self.write.b))
        # Ids that were answered OKAY in this session; ids that have not been told that what they
        # sent may not have arrived.
        sent, distrusted = Signal(1 << self.id_bits), Signal(1 << self.id_bits)
        self._collect(m, words, bursts, distrusted)
        self._send(m, words, bursts.o, answers.i, sent)
        with m.If(self.lost):
            m.d.sync += [distrusted.eq(distrusted | sent), sent.eq(0)]
        return m

    def _collect(self, m, words, bursts, distrusted):
        """Beats into `words`; a cycle behind the last one its burst into `bursts`."""
        m.submodules.addresses = addresses = StreamFifo(address_layout(self.id_bits), depth=2)
        wiring.connect(m, wiring.flipped(self.write.aw), addresses.i)
        w, burst = self.write.w, Signal(self._burst, name="burst")
        closing, beat = Signal(), Signal(LENGTH_BITS)
        # begun: a strobe was set; open: the bytes so far reach to the end of the last beat.
        begun, open_, gap, closed = Signal(), Signal(), Signal(), Signal()
        lowest, contiguous, used = Signal(4), Signal(), Signal()
        lowest_bit, taken = Signal(WORD_BYTES), Signal()
        strb = w.p.strb
        with m.Switch(strb):
            for i in reversed(range(WORD_BYTES)):
                with m.Case("-" * (WORD_BYTES - 1 - i) + "1" + "0" * i):
                    m.d.comb += lowest.eq(i)
        m.d.comb += [
            lowest_bit.eq(strb & (~strb + 1)[:WORD_BYTES]),
            contiguous.eq((strb & (strb + lowest_bit)[:WORD_BYTES]) == 0),
            used.eq(strb.any()),
            closed.eq(begun & ~(open_ & strb[0])),
            words.i.p.eq(w.p.data & byte_mask(strb)),
            words.i.valid.eq(taken & used),
            taken.eq(w.valid & w.ready),
        ]
        with m.FSM(name="collect"):
            with m.State("ADDRESS"):
                m.d.comb += addresses.o.ready.eq(
                    (words.free >= BURST_WORDS) & (bursts.level < _BURSTS - 1)
                )
                with m.If(addresses.o.valid & addresses.o.ready):
                    m.d.sync += [
                        burst.id.eq(addresses.o.p.id),
                        burst.session.eq(self.session),
                        burst.address.eq(addresses.o.p.addr),
                        burst.bytes.eq(0),
                        burst.words.eq(0),
                        beat.eq(0),
                        begun.eq(0),
                        gap.eq(0),
                    ]
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += w.ready.eq(1)
                with m.If(w.valid):
                    m.d.sync += beat.eq(beat + 1)
                    with m.If(used):
                        m.d.sync += [
                            begun.eq(1),
                            open_.eq(strb[-1]),
                            gap.eq(gap | closed | ~contiguous),
                            burst.bytes.eq(burst.bytes + sum(strb[i] for i in range(WORD_BYTES))),
                            burst.words.eq(burst.words + 1),
                            burst.value.eq(w.p.data.word_select(lowest[2:], 32)),
                        ]
                        with m.If(~begun):
                            m.d.sync += burst.address.eq((burst.address + (beat << 4)) | lowest)
                    with m.Else():
                        m.d.sync += open_.eq(0)
                    with m.If(w.p.last):
                        m.d.sync += closing.eq(1)
                        m.next = "ADDRESS"
        semaphore, bad = Signal(), Signal()
        m.d.comb += [
            semaphore.eq(
                (burst.address[PAGE_BITS + 2 :] == _SEMAPHORES >> PAGE_BITS + 2)
                & (burst.bytes == 4)
                & (burst.address[:2] == 0)
            ),
            bursts.i.valid.eq(closing),
            bursts.i.p.eq(burst),
            bursts.i.p.semaphore.eq(semaphore),
            bad.eq(gap | self.failed | distrusted.bit_select(burst.id, 1)),
            bursts.i.p.bad.eq(bad),
        ]
        # Words go along with a packet that will have data.
        with m.If(closing):
            m.d.sync += closing.eq(0)
            with m.If(bad | semaphore):
                m.d.comb += [words.rollback.eq(1), bursts.i.p.words.eq(0)]
            with m.Else():
                m.d.comb += words.commit.eq(1)
            m.d.sync += distrusted.bit_select(burst.id, 1).eq(0)

    def _send(self, m, words, burst, answers, sent):
        left, cut, abort, header = Signal(7), Signal(), Signal(), Signal(HEADER_LAYOUT)
        broken, was_failed = Signal(), Signal()
        m.d.sync += was_failed.eq(self.failed)
        m.d.comb += [
            abort.eq(self.lost | self.failed),
            # From registers: an offer stands in the cycle of `lost`, when the port takes it.
            broken.eq(burst.p.bad | was_failed | (burst.p.session != self.session)),
            header.kind.eq(Mux(burst.p.semaphore, PacketKind.SEMAPHORE, PacketKind.WRITE)),
            header.granules.eq(burst.p.words + 1),
            header.bytes.eq(Mux(burst.p.semaphore, 0, burst.p.bytes)),
            header.address.eq(burst.p.address),
            header.value.eq(Mux(burst.p.semaphore, burst.p.value, 0)),
            answers.p.id.eq(burst.p.id),
        ]

        def answer(resp):
            # There is room: it was looked for when the burst was begun.
            m.d.comb += [answers.valid.eq(1), answers.p.resp.eq(resp), burst.ready.eq(1)]

        with m.If(self.o.valid & self.o.ready & self.o.p.last):
            m.d.sync += sent.bit_select(burst.p.id, 1).eq(1)
        with m.FSM(name="send"):
            with m.State("HEADER"):
                m.d.sync += [left.eq(burst.p.words), cut.eq(abort)]
                with m.If(burst.valid & answers.ready):
                    with m.If(broken):
                        with m.If(burst.p.words == 0):
                            answer(Resp.SLVERR)
                        with m.Else():
                            m.next = "DISCARD"
                    with m.Elif(burst.p.bytes == 0):
                        answer(Resp.OKAY)
                    with m.Else():
                        m.d.comb += [
                            self.o.valid.eq(1),
                            self.o.p.data.eq(header),
                            self.o.p.last.eq(burst.p.semaphore),
                        ]
                        with m.If(self.o.ready):
                            with m.If(burst.p.semaphore):
                                answer(Mux(abort, Resp.SLVERR, Resp.OKAY))
                            with m.Else():
                                m.next = "DATA"
            with m.State("DATA"):
                # A packet that is cut off goes on: what follows its beginning is thrown away by the
                # port as far as its end.
                m.d.comb += [
                    self.o.valid.eq(words.o.valid),
                    self.o.p.data.eq(words.o.p),
                    self.o.p.last.eq(left == 1),
                    words.o.ready.eq(self.o.ready),
                ]
                m.d.sync += cut.eq(cut | abort)
                with m.If(words.o.valid & self.o.ready):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 1):
                        answer(Mux(cut | abort, Resp.SLVERR, Resp.OKAY))
                        m.next = "HEADER"
            with m.State("DISCARD"):
                m.d.comb += words.o.ready.eq(1)
                with m.If(words.o.valid):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 1):
                        answer(Resp.SLVERR)
                        m.next = "HEADER"
