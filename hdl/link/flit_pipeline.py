"""From composed beats to beats with CRC."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.check import check
from hdl.link.crc import BeatCrc
from isa.link import CRC_BITS


class FlitPipeline(wiring.Component):
    """A register for the composed beat and two stages of CRC, which goes into the last beat.

    Members
    -------
    clear, flush : In, pulses: all beats inside are dropped, `o.valid` falls.
    move : Out: the pipeline moves; a beat offered in this cycle is taken.
    valid, first, last, data : In: a beat, the first or last one of its flit, its CRC field zero.
    session : In(32): of this end.
    o : Out, stream of beats.  Three cycles behind `data`.
    empty : Out: no beat is inside.
    """

    def __init__(self, link):
        self.link = link
        bits = 8 * link.beat_bytes
        super().__init__(
            {
                "clear": In(1),
                "flush": In(1),
                "move": Out(1),
                "valid": In(1),
                "first": In(1),
                "last": In(1),
                "data": In(bits),
                "session": In(32),
                "o": Out(stream.Signature(bits)),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = 8 * self.link.beat_bytes
        m.submodules.crc = crc = BeatCrc(self.link)
        drop = Signal()
        valid, last, first = Signal(3), Signal(3), Signal(reset_less=True)
        beats = [Signal(bits, name=f"beat{i}", reset_less=True) for i in range(3)]
        m.d.comb += [
            drop.eq(self.flush | self.clear),
            self.move.eq(~valid[2] | self.o.ready),
            self.empty.eq(valid == 0),
            crc.en.eq(self.move),
            crc.valid.eq(valid[0]),
            crc.first.eq(first),
            crc.data.eq(beats[0]),
        ]
        with m.If(self.move):
            m.d.sync += [
                valid.eq(Cat(self.valid, valid)),
                last.eq(Cat(self.last, last)),
                first.eq(self.first),
                *(
                    beat.eq(before)
                    for beat, before in zip(beats, [self.data, *beats], strict=False)
                ),
            ]
        with m.If(drop):
            m.d.sync += valid.eq(0)
        field = Signal(CRC_BITS)
        m.d.comb += [
            field.eq(crc.crc ^ Cat(self.session, self.session[: CRC_BITS - len(self.session)])),
            self.o.valid.eq(valid[2]),
            self.o.payload.eq(
                Cat(
                    beats[2][: bits - CRC_BITS],
                    Mux(last[2], field, beats[2][bits - CRC_BITS :]),
                )
            ),
        ]
        # `flush` and `clear` are the only reasons for an offered beat to change
        held, kept, stable = Signal(), Signal(bits), Signal()
        m.d.sync += [held.eq(self.o.valid & ~self.o.ready & ~drop), kept.eq(self.o.payload)]
        m.d.comb += stable.eq(~held | (self.o.valid & (self.o.payload == kept)))
        check(m, platform, stable, "stream o: valid or payload changed before it was taken")
        return m
