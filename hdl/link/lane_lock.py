"""One receive lane before deskew: bit slip, polarity, frame lock."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.ram import LutRam
from hdl.lib.tile import add_tile
from isa.link import FRAME, FRAME_WORDS, MARKER_WORD, SKIP_WORD, WORD_BITS, FrameType

LOCK_FRAMES = 4
"""Good frames in a row that lock a lane, bad ones that lose it."""
SLIP_WORDS = 64
"""Words without a good frame until the lane asks for a slip."""
SETTLE_WORDS = 32
"""Words behind a slip that are not looked at."""

_FIELDS = {f.name: f for f in FRAME}
STAMP_BITS = _FIELDS["stamp"].width
# Where the lane finds what it needs: type and lane in word 1 of a frame, the stamp in word 3.
assert _FIELDS["type"].low == 0 and _FIELDS["lane"].low + _FIELDS["lane"].width <= WORD_BITS
assert _FIELDS["stamp"].low == 2 * WORD_BITS


class LaneLock(wiring.Component):
    """Finds training frames on a lane and follows them; all but `slip` without latency.

    A stream of frames, inverted, is the same stream half a frame later, but for what differs from
    frame to frame: the stamp.  Without it the polarity could not be told.  A lane that has begun
    with the wrong view finds the frame bad and passes over one symbol, so as not to begin the same.

    Parameters
    ----------
    words : int
        Words of a symbol.
    lanes : int
        Lanes of the link, a power of two.
    stamp_bit : int
        `cross` marks the first frame behind a change of this bit of the stamp: the same frame on
        all lanes.

    Members
    -------
    valid, symbol : In
        From the PHY.
    position : In(5)
        Physical number of the lane.
    unlock : In(1)
        Pulse: begin anew.
    clear : In(1)
        Pulse: that, and forget the polarity.
    hold : In(1)
        Level: lock, boundary and polarity stay as they are.
    o : Out
        Symbol in its right polarity.
    skip, marker : Out(1)
        Words of `o`: all are skip words; the first one is the marker.
    running, step : Out
        The symbol is number `step` of a frame, the marker in symbol 0.
    good : Out(1)
        With the last symbol of a good frame of a locked lane.
    start : Out(1)
        So, and it is a START frame.
    cross, tag : Out
        So, and its stamp is the first behind a change of bit `stamp_bit`, the one before it was
        good as well; `tag`: bits `stamp_bit` and higher of the stamp.
    locked, inverted : Out(1)
    normal, mirrored : Out(1)
        The last good frame carried the number of this lane; of lane lanes - 1 - position.
    bad : Out(1)
        With the last symbol of a frame that is not good, on a locked lane that has not had START.
    slip : Out(1)
        Pulse, one cycle later: shift the symbol boundary by a bit.
    """

    def __init__(self, *, words, lanes, stamp_bit):
        self.words, self.lanes, self.stamp_bit = words, lanes, stamp_bit
        self.tile_parameters = (words, lanes, stamp_bit)
        bits = words * WORD_BITS
        super().__init__(
            {
                "valid": In(1),
                "symbol": In(bits),
                "position": In(_FIELDS["lane"].width),
                "unlock": In(1),
                "clear": In(1),
                "hold": In(1),
                "o": Out(bits),
                "skip": Out(1),
                "marker": Out(1),
                "running": Out(1),
                "step": Out(range(FRAME_WORDS // words)),
                "good": Out(1),
                "start": Out(1),
                "cross": Out(1),
                "tag": Out(STAMP_BITS - stamp_bit),
                "locked": Out(1),
                "inverted": Out(1),
                "normal": Out(1),
                "mirrored": Out(1),
                "bad": Out(1),
                "slip": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = self.words
        steps = FRAME_WORDS // words
        step, upper = self.step, self.step[-1]
        inverted, locked = self.inverted, self.locked
        in_frame, pass_over, waiting = Signal(), Signal(), Signal()
        is_marker, is_inverted, begin, flip = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_marker.eq(self.symbol[:WORD_BITS] == MARKER_WORD),
            is_inverted.eq(self.symbol[:WORD_BITS] == MARKER_WORD ^ (1 << WORD_BITS) - 1),
            begin.eq(
                self.valid
                & ~(in_frame | pass_over | waiting | self.hold)
                & (is_marker | is_inverted)
            ),
            flip.eq(Mux(begin, is_inverted, inverted)),
            self.o.eq(self.symbol ^ flip.replicate(len(self.symbol))),
            self.marker.eq(Mux(flip, is_inverted, is_marker)),
            self.skip.eq(Cat(self._word(i) == SKIP_WORD for i in range(words)).all()),
            self.running.eq(in_frame | begin),
        ]

        # The second half of a frame is compared with the first one.
        half = add_tile(m, platform, "half", LutRam(width=len(self.o), depth=max(2, steps // 2)))
        place = step[: len(half.w_addr)] if steps > 2 else 0
        wrong_now, wrong, mismatch = Signal(), Signal(), Signal()
        complement = Signal()
        m.d.comb += [
            half.w_en.eq(self.valid & self.running & ~upper),
            half.w_addr.eq(place),
            half.r_addr.eq(place),
            half.w_data.eq(self.o),
            complement.eq(self.o == ~half.r_data),
            wrong_now.eq(Mux(upper, ~complement, (step == 0) & ~self.marker)),
            wrong.eq(wrong_now | mismatch),
        ]

        # Type and lane come with word 1.
        content = Signal(WORD_BITS)
        holds_content = Signal()
        is_start, normal, mirrored = Signal(), Signal(), Signal()
        kind = content[: _FIELDS["type"].width]
        number = content[_FIELDS["lane"].low :][: _FIELDS["lane"].width]
        m.d.comb += [
            content.eq(self._word(1 % words)),
            holds_content.eq(self.valid & self.running & (step == 1 // words)),
        ]
        with m.If(holds_content):
            m.d.sync += [
                is_start.eq(kind == FrameType.START),
                normal.eq(number == self.position),
                mirrored.eq(number == (self.position ^ (self.lanes - 1))),
            ]

        end, good = Signal(), Signal()
        after_start, count = Signal(), Signal(range(LOCK_FRAMES))
        # The complement of the stamp is in the frame's last word.
        stamp = Signal(STAMP_BITS)
        stamp_before, good_before = Signal(), Signal()
        m.d.comb += [
            end.eq(self.valid & in_frame & (step == steps - 1)),
            good.eq(end & ~wrong),
            self.good.eq(good & locked),
            self.start.eq(self.good & is_start),
            stamp.eq(~self._word(words - 1)),
            self.tag.eq(stamp[self.stamp_bit :]),
            self.cross.eq(self.good & good_before & (self.tag[0] != stamp_before)),
            self.bad.eq(end & ~good & locked & ~after_start),
        ]

        age = Signal(range(SLIP_WORDS // words))
        m.d.sync += self.slip.eq(0)
        with m.If(self.valid & self.running):
            m.d.sync += [
                in_frame.eq(1),
                inverted.eq(flip),
                step.eq(step + 1),
                mismatch.eq(wrong & ~end),
            ]
        with m.If(self.valid & ~self.running & ~self.hold):
            m.d.sync += pass_over.eq(0)
        with m.If(self.valid & ~locked & ~self.hold):
            m.d.sync += age.eq(age + 1)
            with m.If(waiting & (age == SETTLE_WORDS // words - 1)):
                m.d.sync += [waiting.eq(0), age.eq(0)]
            with m.Elif(age == SLIP_WORDS // words - 1):
                m.d.sync += [
                    self.slip.eq(1),
                    waiting.eq(1),
                    age.eq(0),
                    count.eq(0),
                    in_frame.eq(0),
                    step.eq(0),
                    mismatch.eq(0),
                ]
        with m.If(good):
            m.d.sync += [
                age.eq(0),
                self.normal.eq(normal),
                self.mirrored.eq(mirrored),
                after_start.eq(after_start | is_start),
                stamp_before.eq(self.tag[0]),
                good_before.eq(1),
                # A slip falls due in the same cycle at the latest.
                self.slip.eq(0),
                waiting.eq(0),
                in_frame.eq(1),
            ]
            with m.If(locked | (count == LOCK_FRAMES - 1)):
                m.d.sync += [locked.eq(1), count.eq(0)]
            with m.Else():
                m.d.sync += count.eq(count + 1)
        with m.Elif(end):
            m.d.sync += good_before.eq(0)
            with m.If(locked & (self.hold | (count != LOCK_FRAMES - 1))):
                m.d.sync += count.eq(Mux(count == LOCK_FRAMES - 1, count, count + 1))
            with m.Else():
                # What begins next would be this frame over again: look elsewhere first.
                m.d.sync += [
                    locked.eq(0),
                    count.eq(0),
                    in_frame.eq(0),
                    pass_over.eq(1),
                    after_start.eq(0),
                ]

        with m.If(self.unlock | self.clear):
            m.d.sync += [
                signal.eq(0)
                for signal in (
                    locked, count, in_frame, pass_over, waiting, age, step, mismatch, after_start,
                    good_before, self.slip,
                )
            ]  # fmt: skip
        with m.If(self.clear):
            m.d.sync += [inverted.eq(0), self.normal.eq(0), self.mirrored.eq(0)]
        return m

    def _word(self, index):
        return self.o.word_select(index, WORD_BITS)
