"""Elements of access patterns by memory word: the common front of Reader and Writer."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.element import SIZE_BITS
from hdl.lib.issue import Pattern
from hdl.memory.address_generator import AddressGenerator, address_bits
from isa.fields import Space
from isa.geometry import PSUM_WORD_BYTES, WORD_BYTES


def word_element_layout(config, extra_bits):
    """What is known of an element.

    word: index in its memory; place: its first byte in the word, a word of PSUM being as the first
    4 bytes of one of SBUF; psum: which memory; size: it has 1 << size bytes; rotation: quadrant of
    the pattern's first partition; opens, ends: first and last element of a run in one word, in one
    request; last: of the request; quad: 4 elements; extra: from the request.
    """
    return data.StructLayout({
        "word": range(max(config.sbuf_words, config.psum_words)),
        "place": range(WORD_BYTES),
        "psum": 1,
        "size": SIZE_BITS,
        "rotation": 2,
        "opens": 1,
        "ends": 1,
        "last": 1,
        "quad": 1,
        "extra": extra_bits,
    })


class WordStream(wiring.Component):
    """Patterns in, elements with their word out: 1 a cycle, requests without a gap, latency 2.

    Parameters
    ----------
    config : isa.geometry.Config
    extra_bits : int
        Width of `extra`, handed from the request to each of its elements.
    quads : bool
        See `AddressGenerator`.

    Members
    -------
    request : In(stream)
        {pattern, extra}
    o : Out(stream)
        `word_element_layout`
    """

    def __init__(self, config, *, extra_bits=1, quads=False):
        self.config, self.extra_bits, self.quads = config, extra_bits, quads
        self._element = word_element_layout(config, extra_bits)
        super().__init__({
            "request": In(stream.Signature(
                data.StructLayout({"pattern": Pattern, "extra": extra_bits}))),
            "o": Out(stream.Signature(self._element)),
        })

    def elaborate(self, platform):
        m = Module()
        tag_layout = data.StructLayout(
            {"psum": 1, "size": SIZE_BITS, "rotation": 2, "extra": self.extra_bits})
        m.submodules.addresses = addresses = AddressGenerator(
            self.config, tag_bits=tag_layout.size, quads=self.quads)
        pattern = self.request.p.pattern
        quadrant_bit = ceil_log2(self.config.quadrant)
        tag = data.View(tag_layout, addresses.o.p.tag)
        m.d.comb += [
            addresses.request.valid.eq(self.request.valid),
            self.request.ready.eq(addresses.request.ready),
            addresses.request.p.pattern.eq(pattern),
            addresses.request.p.tag.eq(Cat(
                pattern.space == Space.PSUM, pattern.size,
                pattern.partition[quadrant_bit:quadrant_bit + 2], self.request.p.extra)),
        ]

        # Word and place of the element that the generator shows.
        word, place = Signal(len(self.o.p.word)), Signal(len(self.o.p.place))
        sbuf_shift, psum_shift = ceil_log2(WORD_BYTES), ceil_log2(PSUM_WORD_BYTES)
        assert len(word) >= address_bits(self.config) - sbuf_shift
        address = addresses.o.p.address
        m.d.comb += [
            word.eq(Mux(tag.psum, address[psum_shift:], address[sbuf_shift:])),
            place.eq(Mux(tag.psum, address[:psum_shift], address[:sbuf_shift])),
        ]

        # The element on offer is one behind the generator, which always shows the next one of the
        # same request: so the end of a run is known without waiting for anything.
        valid, held = Signal(), Signal(self._element, init={"last": 1})
        more_in_word = Signal()
        m.d.comb += [
            more_in_word.eq(~held.last & (word == held.word)),
            self.o.valid.eq(valid),
            self.o.p.eq(held),
            self.o.p.ends.eq(~more_in_word),
            addresses.o.ready.eq(~valid | self.o.ready),
        ]
        with m.If(addresses.o.ready):
            m.d.sync += valid.eq(addresses.o.valid)
            with m.If(addresses.o.valid):
                m.d.sync += [
                    held.word.eq(word), held.place.eq(place),
                    held.psum.eq(tag.psum), held.size.eq(tag.size),
                    held.rotation.eq(tag.rotation), held.extra.eq(tag.extra),
                    held.opens.eq(~more_in_word),
                    held.last.eq(addresses.o.p.last), held.quad.eq(addresses.o.p.quad),
                ]
        return m
