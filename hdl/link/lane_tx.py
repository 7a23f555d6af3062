"""Transmit lanes: training frames, or beats scrambled and striped over the lanes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.tile import add_tile
from hdl.link.inject import BURST_BITS, RATE_BITS, Inject
from hdl.link.ports import FRAME_LAYOUT
from hdl.link.prbs import PrbsGenerator, prbs_seed
from hdl.link.scrambler import Scrambler, seed_window
from hdl.link.stripe import Stripe, WidthDecode
from isa.link import FRAME_WORDS, MARKER_WORD, SKIP_WORD, WORD_BITS, FrameType

SEND_BITS = 2
SILENT, FRAMES, DATA, PRBS = range(4)
"""Values of `send`."""

_MARKER, _SKIP = Const(MARKER_WORD, WORD_BITS), Const(SKIP_WORD, WORD_BITS)


class LaneTransmit(wiring.Component):
    """Lanes of one direction, from beats to symbols.

    A beat taken in cycle n is in `tx_data` from cycle n + 1 on.  Everything stands while
    `tx_ready` is low.  Takes a beat every 1, 2 or 4 steps by the width; between two steps of data
    a skip step is put every `skip_cycles` steps, and whenever no beat is offered at the start of
    one.

    Members
    -------
    i : In, stream of beats
        Taken in the last of the steps it is sent in.
    send : In(2)
        0 silent, 1 training frames, 2 data, 3 PRBS-31 on all lanes.
    frame : In(FRAME_LAYOUT)
        Sampled when a frame starts; its `lane` is replaced by the lane's number.
    start : In(1)
        Level: send a START frame behind the present frame, then data.  So does `send` = 2.  Data
        end when both are gone.
    started : Out(1)
        Data are sent.
    frame_sent : Out(1)
        Pulse: the last step of a frame has gone into `tx_data`.
    width : In(3)
        Width in data.
    loopback, loopback_data : In
        High: `loopback_data` goes out, a symbol of each lane every step.
    inject_rate, inject_burst, inject_stuck, inject_drop, inject_drop_count : In
        See `hdl.link.inject`.
    skips : Out(1)
        Pulse: a skip step has gone into `tx_data`.
    clear : In(1)
        All state as after reset, but for the random numbers of `hdl.link.inject`.
    tx_data, tx_enable, tx_ready
        Of `PhyPort`.
    """

    def __init__(self, link):
        self.link = link
        bits = 8 * link.beat_bytes
        super().__init__(
            {
                "clear": In(1),
                "i": In(stream.Signature(bits)),
                "send": In(SEND_BITS),
                "frame": In(FRAME_LAYOUT),
                "start": In(1),
                "started": Out(1),
                "frame_sent": Out(1),
                "width": In(3),
                "loopback": In(1),
                "loopback_data": In(bits),
                "inject_rate": In(RATE_BITS),
                "inject_burst": In(BURST_BITS),
                "inject_stuck": In(32),
                "inject_drop": In(1),
                "inject_drop_count": In(32),
                "skips": Out(1),
                "tx_data": Out(bits),
                "tx_enable": Out(link.lanes),
                "tx_ready": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        link = self.link
        m.submodules.decode = decode = WidthDecode(lanes=link.lanes)
        m.submodules.stripe = stripe = Stripe(link)
        m.submodules.inject = inject = Inject(link)
        step = self.tx_ready
        ordered, data, skip, training = Signal(), Signal(), Signal(), Signal()
        part = Signal.like(stripe.part)
        since_skip = Signal(range(link.skip_cycles + 1))
        m.d.comb += [
            decode.width.eq(self.width),
            ordered.eq((self.send == DATA) | ((self.send == FRAMES) & self.start)),
            data.eq(self.started & ordered),
            training.eq(((self.send == DATA) | (self.send == FRAMES)) & ~data),
            skip.eq((since_skip == link.skip_cycles) | ~self.i.valid),
            self.i.ready.eq(step & data & ~skip & (part == decode.last_part)),
            stripe.beat.eq(self.i.p),
            stripe.part.eq(part),
            stripe.half.eq(decode.half),
            stripe.quarter.eq(decode.quarter),
        ]

        starting, last_of_frame, frames = self._frames(m, step, training, ordered)
        loading = Signal()
        m.d.comb += loading.eq(step & training & starting & last_of_frame)
        m.d.sync += [self.frame_sent.eq(step & training & last_of_frame), self.skips.eq(0)]
        with m.If(step):
            m.d.sync += self.started.eq(data | loading)
            with m.If(~data):
                m.d.sync += [part.eq(0), since_skip.eq(0)]
            with m.Elif(skip):
                m.d.sync += [since_skip.eq(0), self.skips.eq(1)]
            with m.Else():
                m.d.sync += [
                    since_skip.eq(since_skip + 1),
                    part.eq(Mux(part == decode.last_part, 0, part + 1)),
                ]

        symbols = []
        for lane in range(link.lanes):
            scrambler = add_tile(
                m, platform, f"scrambler{lane}", Scrambler(symbol_bits=link.symbol_bits)
            )
            prbs = add_tile(m, platform, f"prbs{lane}", PrbsGenerator(symbol_bits=link.symbol_bits))
            symbol = Signal(link.symbol_bits, name=f"symbol{lane}")
            m.d.comb += [
                scrambler.load.eq(loading),
                scrambler.seed.eq(seed_window(lane)),
                scrambler.step.eq(step & data & ~skip),
                prbs.load.eq(self.send != PRBS),
                prbs.seed.eq(prbs_seed(lane)),
                prbs.step.eq(step),
            ]
            with m.If(self.loopback):
                m.d.comb += symbol.eq(self.loopback_data.word_select(lane, link.symbol_bits))
            with m.Elif(self.send == PRBS):
                m.d.comb += symbol.eq(prbs.symbol)
            with m.Elif(training):
                m.d.comb += symbol.eq(frames[lane])
            with m.Elif(data & decode.active[lane] & skip):
                m.d.comb += symbol.eq(Cat([_SKIP] * link.symbol_words))
            with m.Elif(data & decode.active[lane]):
                m.d.comb += symbol.eq(
                    stripe.symbols.word_select(lane, link.symbol_bits) ^ scrambler.mask
                )
            symbols.append(symbol)

        m.d.comb += [
            inject.i.eq(Cat(symbols)),
            inject.step.eq(step),
            inject.rate.eq(self.inject_rate),
            inject.burst.eq(self.inject_burst),
            inject.stuck.eq(self.inject_stuck),
            inject.drop.eq(self.inject_drop),
            inject.drop_count.eq(self.inject_drop_count),
            inject.clear.eq(self.clear),
        ]
        silent = Signal()
        m.d.comb += silent.eq((self.send == SILENT) & ~self.loopback)
        with m.If(step):
            m.d.sync += [
                self.tx_data.eq(Mux(silent, 0, inject.o)),
                self.tx_enable.eq((~silent).replicate(link.lanes)),
            ]
        with m.If(self.clear):
            m.d.sync += [
                self.started.eq(0),
                self.frame_sent.eq(0),
                self.skips.eq(0),
                self.tx_data.eq(0),
                self.tx_enable.eq(0),
                part.eq(0),
                since_skip.eq(0),
            ]
        return m

    def _frames(self, m, step, training, ordered):
        """Whether the present frame is START, its step is its last; its symbols by lane."""
        link, words = self.link, self.link.symbol_words
        steps = FRAME_WORDS // words
        number = Signal(range(steps))
        content, kept = Signal(FRAME_LAYOUT), Signal(FRAME_LAYOUT)
        starting, starting_kept = Signal(), Signal()
        last = Signal()
        first = Signal()
        m.d.comb += [
            first.eq(number == 0),
            last.eq(number == steps - 1),
            starting.eq(Mux(first, ordered, starting_kept)),
            content.eq(Mux(first, self.frame, kept)),
        ]
        with m.If(first & ordered):
            m.d.comb += content.type.eq(FrameType.START)
        with m.If(step):
            m.d.sync += number.eq(Mux(training, number + 1, 0))
            with m.If(first):
                m.d.sync += [kept.eq(content), starting_kept.eq(starting)]
        with m.If(self.clear):
            m.d.sync += number.eq(0)
        symbols = []
        for lane in range(link.lanes):
            filled = Signal(FRAME_LAYOUT, name=f"filled{lane}")
            frame = Signal(FRAME_WORDS * WORD_BITS, name=f"frame{lane}")
            m.d.comb += [filled.eq(content), frame.eq(Cat(_MARKER, filled, ~Cat(_MARKER, filled)))]
            m.d.comb += filled.lane.eq(lane)
            symbols.append(frame.word_select(number, words * WORD_BITS))
        return starting, last, symbols
