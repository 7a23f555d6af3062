"""Packets of the transaction layer as streams of granules, and the way to and from beats."""

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.fifo import StreamFifo
from hdl.link.ports import REASON_BITS, packet_beat, received_beat
from isa.geometry import WORD_BYTES
from isa.link import GRANULE_BYTES, VC_POSTED, VC_REQUEST, VC_RESPONSE, VCS, Reason

GRANULE_BITS = 8 * GRANULE_BYTES
BURST_WORDS = 64
"""Most 16-byte words of data in a packet, and beats in an AXI burst."""
BYTES_BITS = 11
ADDRESS_BITS = 48
SESSION_BITS = 4
SLOT_BITS = 2
READS = 1 << SLOT_BITS
"""Reads outstanding.  A tag is the slot in bits 0..1 and the session in bits 4..7."""
PAGE_BITS = 12
"""A packet stays in one page of 4 KiB: so does an AXI burst."""

_BEAT_FIFO = 8
_BEATS_COMING = 4
"""Beats that may still arrive after a VC has been closed."""


def tag_of(session, slot):
    """Tag of a READ."""
    return Cat(slot, Const(0, 4 - SLOT_BITS), session)


def granule_out_layout():
    """A granule on its way to the link."""
    return data.StructLayout({"data": GRANULE_BITS, "last": 1})


def granule_in_layout():
    """A granule from the link: `first` is the header, `poison` marks data known to be bad."""
    return data.StructLayout({"data": GRANULE_BITS, "first": 1, "last": 1, "poison": 1})


def words_of(address, length):
    """16-byte words that `length` bytes from `address` on touch (8 bits)."""
    return ((address[:4] + length + (WORD_BYTES - 1)) >> 4)[:8]


def leaves_page(address, length):
    """1 when [address, address + length) reaches beyond its page."""
    return (address[:PAGE_BITS] + length) > (1 << PAGE_BITS)


def word_strobes(address, length, first, last):
    """Strobes of a word of [address, address + length) that is the first, the last of them."""
    end = (address[:4] + length)[:4]
    ones = (1 << WORD_BYTES) - 1
    head = Mux(first, (Const(ones, WORD_BYTES) << address[:4])[:WORD_BYTES], ones)
    tail = Mux(last & (end != 0), ((Const(1, 1) << end) - 1)[:WORD_BYTES], ones)
    return head & tail


def byte_mask(strobes):
    """A bit per bit from a bit per byte."""
    return Cat(strobes[i].replicate(8) for i in range(WORD_BYTES))


class Packer(wiring.Component):
    """Granules to beats: full beats, but for the last one of a packet.

    Members: `i` In stream of `granule_out_layout`, `o` Out stream of `packet_beat`; `flush` In,
    pulse: a packet of which `o` has not given anything away is dropped, now and as far as its end;
    the others go on.  One granule a cycle; latency 0 with beats of one granule (where `flush` has
    no meaning), else 1 from the granule that fills the beat.
    """

    def __init__(self, link):
        self.link = link
        super().__init__(
            {
                "i": In(stream.Signature(granule_out_layout())),
                "o": Out(stream.Signature(packet_beat(link))),
                "flush": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count = self.link.beat_granules
        if count == 1:
            m.d.comb += [
                self.o.valid.eq(self.i.valid),
                self.i.ready.eq(self.o.ready),
                self.o.p.data.eq(self.i.p.data),
                self.o.p.granules.eq(1),
                self.o.p.last.eq(self.i.p.last),
            ]
            return m
        held = Signal.like(self.o.p, name="held")
        place, put, give = Signal.like(held.granules, name="place"), Signal(), Signal()
        begun, dropping, ends, closed = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            self.o.p.eq(held),
            self.o.p.last.eq((closed << held.granules)[1:]),
            self.o.valid.eq(closed | (held.granules == count)),
            self.i.ready.eq(~self.o.valid | self.o.ready),
            put.eq(self.i.valid & self.i.ready),
            give.eq(self.o.valid & self.o.ready),
            place.eq(Mux(self.o.valid, 0, held.granules)),
            # The packet whose granules are held is there to its end.
            ends.eq(Mux(put, self.i.p.last, closed)),
        ]
        with m.If(give):
            m.d.sync += [held.granules.eq(0), closed.eq(0), begun.eq(~closed)]
        with m.If(put & dropping):
            m.d.sync += dropping.eq(~self.i.p.last)
        with m.Elif(put):
            m.d.sync += [
                held.data.word_select(place, GRANULE_BITS).eq(self.i.p.data),
                held.granules.eq(place + 1),
                closed.eq(self.i.p.last),
            ]
        with m.If(self.flush & ~begun & ~give & ~dropping):
            m.d.sync += [held.granules.eq(0), closed.eq(0)]
            with m.If(put | (held.granules != 0)):
                m.d.sync += dropping.eq(~ends)
        return m


class BeatSplitter(wiring.Component):
    """Beats of one VC to granules, one a cycle, latency 0.

    Members: `i` In stream of `received_beat`, `o` Out stream of `granule_in_layout`; `flush` In.
    """

    def __init__(self, link):
        self.link = link
        super().__init__(
            {
                "i": In(stream.Signature(received_beat(link))),
                "o": Out(stream.Signature(granule_in_layout())),
                "flush": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        beat = self.i.p
        index = Signal.like(beat.granules, name="index")
        final = Signal()
        m.d.comb += [
            final.eq(index + 1 == beat.granules),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & final),
            self.o.p.data.eq(beat.data.word_select(index, GRANULE_BITS)),
            self.o.p.first.eq(beat.first.bit_select(index, 1)),
            self.o.p.last.eq(beat.last.bit_select(index, 1)),
            self.o.p.poison.eq(beat.poison.bit_select(index, 1)),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += index.eq(Mux(final, 0, index + 1))
        with m.If(self.flush):
            m.d.sync += index.eq(0)
        return m


class PacketDemux(wiring.Component):
    """The stream from the link, taken apart by class: no class waits for another one.

    Members
    -------
    rx : In stream of `received_beat`, rx_open : Out(8)
        As of `LinkPort`; a VC is open while its queue has room for what may be on its way.
    posted, response, request : Out streams of `granule_in_layout`
    flush : In, pulse
        Forget everything: what comes next begins with a header.
    error : Out(5)
        BAD_TYPE for a cycle: a packet on a VC that nobody serves, which is dropped.
    """

    def __init__(self, link):
        self.link = link
        granules = stream.Signature(granule_in_layout())
        super().__init__(
            {
                "rx": In(stream.Signature(received_beat(link))),
                "rx_open": Out(VCS),
                "posted": Out(granules),
                "response": Out(granules),
                "request": Out(granules),
                "flush": In(1),
                "error": Out(REASON_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        served = {"posted": VC_POSTED, "response": VC_RESPONSE, "request": VC_REQUEST}
        m.d.comb += self.rx_open.eq(-1)
        queues = {}
        for name, vc in served.items():
            queues[vc] = fifo = StreamFifo(received_beat(self.link), depth=_BEAT_FIFO)
            unpack = BeatSplitter(self.link)
            m.submodules[f"{name}_fifo"] = ResetInserter(self.flush)(fifo)
            m.submodules[f"{name}_unpack"] = unpack
            wiring.connect(m, fifo.o, unpack.i)
            wiring.connect(m, unpack.o, wiring.flipped(getattr(self, name)))
            m.d.comb += [
                unpack.flush.eq(self.flush),
                fifo.i.p.eq(self.rx.p),
                self.rx_open[vc].eq(fifo.level <= _BEAT_FIFO - _BEATS_COMING),
            ]
        with m.Switch(self.rx.p.vc):
            for vc, fifo in queues.items():
                with m.Case(vc):
                    m.d.comb += [fifo.i.valid.eq(self.rx.valid), self.rx.ready.eq(fifo.i.ready)]
            with m.Default():
                m.d.comb += self.rx.ready.eq(1)
                with m.If(self.rx.valid & self.rx.p.first.any()):
                    m.d.comb += self.error.eq(Reason.BAD_TYPE)
        return m
