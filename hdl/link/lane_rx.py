"""Receive lanes: from symbols with their own delays to training frames and beats."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.select import or_tree
from hdl.lib.tile import add_tile
from hdl.link.deskew import Deskew, stamp_bit
from hdl.link.lane_lock import LaneLock
from hdl.link.ports import FRAME_LAYOUT
from hdl.link.prbs import PrbsChecker
from hdl.link.scrambler import Scrambler, seed_window
from hdl.link.stripe import Unstripe, WidthDecode
from isa.link import FRAME_WORDS, WORD_BITS


class LaneReceive(wiring.Component):
    """Lanes of one direction, from symbols to beats.

    Symbols of a step that come in cycle n, on the latest lane, are a beat in cycle n + 2 if they
    complete one.

    Members
    -------
    unlock : In(1)
        Pulse: drop locks and alignment; lanes keep their polarity until a marker says otherwise.
    align : In(1)
        Level: align the lanes of the group, then hold the alignment.  Locks, symbol boundaries and
        polarity of all lanes stay as they are while aligned.
    width : In(3)
        The group, in logical lanes of the sender.
    locked, inverted : Out(lanes)
        By physical lane.
    lane_error : Out(lanes)
        Pulses: bad frame on a locked lane before data; wrong symbol while `prbs`.
    reversed : Out(1)
        Physical lane i is the sender's lane lanes - 1 - i.
    order_bad : Out(1)
        Locked lanes are neither in order nor reversed.
    aligned, overflow : Out(1)
        See `hdl.link.deskew`.
    frame_valid, frame : Out
        Good frame of the lowest lane of the group, one cycle after its last symbol; before
        alignment of the lowest locked physical lane.
    start : Out(1)
        Pulse: a lane of the group had a good START frame; the next step is the first of data.
    o_valid, o_data : Out
        A beat.
    training_seen : Out(1)
        Pulse, in data: markers on most lanes of the group, twice, a frame apart.
    skips_received : Out(1)
        Pulse: a step was taken out because most lanes of the group held skip words.
    prbs : In(1)
        Level: check PRBS-31.
    clear : In(1)
        All state as after reset.
    rx_data, rx_valid, rx_slip
        Of `PhyPort`.
    """

    def __init__(self, link):
        self.link = link
        bits, lanes = 8 * link.beat_bytes, link.lanes
        super().__init__(
            {
                "clear": In(1),
                "unlock": In(1),
                "align": In(1),
                "width": In(3),
                "locked": Out(lanes),
                "inverted": Out(lanes),
                "lane_error": Out(lanes),
                "reversed": Out(1),
                "aligned": Out(1),
                "overflow": Out(1),
                "order_bad": Out(1),
                "frame_valid": Out(1),
                "frame": Out(FRAME_LAYOUT),
                "start": Out(1),
                "o_valid": Out(1),
                "o_data": Out(bits),
                "training_seen": Out(1),
                "skips_received": Out(1),
                "prbs": In(1),
                "rx_data": In(bits),
                "rx_valid": In(lanes),
                "rx_slip": Out(lanes),
            }
        )
        self.tagged = data.StructLayout(
            {"symbol": link.symbol_bits, "skip": 1, "marker": 1, "start": 1}
        )

    def elaborate(self, platform):
        m = Module()
        link = self.link
        lanes = range(link.lanes)
        m.submodules.decode = decode = WidthDecode(lanes=link.lanes)
        m.submodules.deskew = deskew = Deskew(link, width=self.tagged.size)
        in_data = Signal()
        m.d.comb += decode.width.eq(self.width)
        parts = [self._lane(m, platform, lane, in_data) for lane in lanes]

        normal, mirrored = Signal(link.lanes), Signal(link.lanes)
        m.d.comb += [
            self.locked.eq(Cat(part.locked for part in parts)),
            self.inverted.eq(Cat(part.inverted for part in parts)),
            self.rx_slip.eq(Cat(part.slip for part in parts)),
            normal.eq(Cat(part.normal for part in parts)),
            mirrored.eq(Cat(part.mirrored for part in parts)),
            self.aligned.eq(deskew.aligned),
            self.overflow.eq(deskew.overflow),
            deskew.align.eq(self.align & ~self.unlock & ~self.clear),
            deskew.valid.eq(self.rx_valid),
            deskew.cross.eq(Cat(part.cross for part in parts)),
            deskew.active.eq(self._physical(decode.active)),
        ]
        order, mirror = Signal(), Signal()
        m.d.comb += [order.eq((normal | ~self.locked).all())]
        m.d.comb += [mirror.eq((mirrored | ~self.locked).all())]
        with m.If(self.locked.any() & ~self.aligned):
            m.d.sync += [
                self.reversed.eq(mirror & ~order),
                self.order_bad.eq(~mirror & ~order),
            ]

        self._collect(m, parts, decode, deskew, in_data)
        self._steps(m, platform, decode, deskew, in_data)
        with m.If(self.clear):
            m.d.sync += [self.reversed.eq(0), self.order_bad.eq(0)]
        return m

    def _physical(self, mask):
        """Physical lanes of a mask of logical lanes, and the other way round."""
        return Mux(self.reversed, Cat(reversed(list(mask))), mask)

    def _lane(self, m, platform, lane, in_data):
        """Lock and PRBS check of a lane; writes its deskew buffer."""
        link, deskew = self.link, m.submodules.deskew
        symbol_bits = link.symbol_bits
        lock = add_tile(
            m,
            platform,
            f"lock{lane}",
            LaneLock(words=link.symbol_words, lanes=link.lanes, stamp_bit=stamp_bit(link)),
        )
        prbs = add_tile(m, platform, f"prbs{lane}", PrbsChecker(symbol_bits=symbol_bits))
        tagged = data.View(self.tagged, getattr(deskew, f"w_data{lane}"))
        m.d.comb += [
            lock.valid.eq(self.rx_valid[lane]),
            lock.symbol.eq(self.rx_data.word_select(lane, symbol_bits)),
            lock.position.eq(lane),
            lock.unlock.eq(self.unlock),
            lock.clear.eq(self.clear),
            lock.hold.eq(deskew.aligned | deskew.overflow | self.prbs),
            getattr(deskew, f"tag{lane}").eq(lock.tag),
            tagged.symbol.eq(lock.o),
            tagged.skip.eq(lock.skip),
            tagged.marker.eq(lock.marker),
            tagged.start.eq(lock.start),
            prbs.enable.eq(self.prbs),
            prbs.valid.eq(lock.valid),
            prbs.symbol.eq(lock.symbol),
        ]
        m.d.sync += self.lane_error[lane].eq(prbs.error | (lock.bad & ~in_data & ~self.prbs))
        return lock

    def _collect(self, m, parts, decode, deskew, in_data):
        """Content of the frames of one lane."""
        link, words = self.link, self.link.symbol_words
        chosen, before = Signal(link.lanes), Signal(link.lanes)
        lowest = Signal(link.lanes)
        symbol = Signal(link.symbol_bits)
        step = Signal.like(parts[0].step)
        running, good, whole = Signal(), Signal(), Signal()
        content = Signal(3 * WORD_BITS)
        m.d.comb += [
            lowest.eq(self.locked & ~(self.locked - 1)),
            chosen.eq(Mux(self.aligned, self._physical(decode.lowest), lowest)),
            deskew.pace.eq((chosen & self.rx_valid).any()),
            symbol.eq(self._pick(chosen, [part.o for part in parts])),
            step.eq(self._pick(chosen, [part.step for part in parts])),
            running.eq((chosen & self.rx_valid & Cat(part.running for part in parts)).any()),
            good.eq((chosen & Cat(part.good for part in parts)).any()),
            self.frame.eq(content),
        ]
        m.d.sync += [before.eq(chosen), self.frame_valid.eq(0)]
        # A frame is whole if all of it came from the lane chosen now.
        with m.If(before != chosen):
            m.d.sync += whole.eq(0)
        with m.Elif(running):
            with m.If(step == 0):
                m.d.sync += whole.eq(1)
            m.d.sync += self.frame_valid.eq(good & whole & ~in_data)
        for word in range(1, FRAME_WORDS // 2):
            with m.If(running & (step == word // words)):
                m.d.sync += content.word_select(word - 1, WORD_BITS).eq(
                    symbol.word_select(word % words, WORD_BITS)
                )
        with m.If(self.clear):
            m.d.sync += [self.frame_valid.eq(0), whole.eq(0)]

    @staticmethod
    def _pick(chosen, values):
        return or_tree(
            value & select.replicate(len(value))
            for select, value in zip(chosen, values, strict=True)
        )

    def _steps(self, m, platform, decode, deskew, in_data):
        """Aligned steps: START, skip steps, markers; data descrambled and gathered."""
        link = self.link
        m.submodules.unstripe = unstripe = Unstripe(link)
        tagged = [
            data.View(self.tagged, getattr(deskew, f"r_data{lane}")) for lane in range(link.lanes)
        ]
        skip, marker, start = Signal(), Signal(), Signal()
        part, take = Signal.like(unstripe.part), Signal()
        frame_steps = FRAME_WORDS // link.symbol_words
        since = Signal(range(frame_steps + 1), init=frame_steps)
        m.d.comb += [
            skip.eq(self._most(m, decode, deskew, [lane.skip for lane in tagged], "skips")),
            marker.eq(self._most(m, decode, deskew, [lane.marker for lane in tagged], "markers")),
            start.eq((deskew.active & Cat(lane.start for lane in tagged)).any()),
            take.eq(deskew.step & in_data & ~skip),
        ]
        symbols = []
        for lane in range(link.lanes):
            scrambler = add_tile(
                m, platform, f"scrambler{lane}", Scrambler(symbol_bits=link.symbol_bits)
            )
            logical = Signal(link.symbol_bits, name=f"logical{lane}")
            m.d.comb += [
                scrambler.load.eq(~in_data),
                scrambler.seed.eq(seed_window(lane)),
                scrambler.step.eq(take),
                logical.eq(
                    Mux(self.reversed, tagged[link.lanes - 1 - lane].symbol, tagged[lane].symbol)
                    ^ scrambler.mask
                ),
            ]
            symbols.append(logical)
        m.d.comb += [
            unstripe.step.eq(take),
            unstripe.symbols.eq(Cat(symbols)),
            unstripe.part.eq(part),
            unstripe.half.eq(decode.half),
            unstripe.quarter.eq(decode.quarter),
            unstripe.high.eq(decode.high),
            unstripe.odd.eq(decode.odd),
            self.o_data.eq(unstripe.beat),
        ]
        stop = Signal()
        m.d.comb += stop.eq(self.clear | self.unlock | ~self.align | ~deskew.aligned)
        m.d.sync += [
            self.o_valid.eq(take & (part == decode.last_part) & ~stop),
            self.start.eq(deskew.step & start & ~in_data & ~stop),
            self.skips_received.eq(deskew.step & in_data & skip & ~stop),
            self.training_seen.eq(take & marker & (since == frame_steps - 1) & ~stop),
        ]
        with m.If(take):
            m.d.sync += part.eq(Mux(part == decode.last_part, 0, part + 1))
            with m.If(marker):
                m.d.sync += since.eq(0)
            with m.Elif(since != frame_steps):
                m.d.sync += since.eq(since + 1)
        with m.If(~in_data):
            m.d.sync += [part.eq(0), since.eq(frame_steps), in_data.eq(deskew.step & start)]
        with m.If(stop):
            m.d.sync += in_data.eq(0)

    def _most(self, m, decode, deskew, flags, name):
        """More than half of the lanes of the group have their flag set."""
        seen = Signal(self.link.lanes, name=f"{name}_seen")
        count = Signal(range(self.link.lanes + 1), name=name)
        m.d.comb += [seen.eq(deskew.active & Cat(flags)), count.eq(sum(seen))]
        return count > decode.threshold
