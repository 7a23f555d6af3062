"""Which word of a beat travels on which lane, by width.

A step carries a contiguous part of the beat: all of it, half `part`, quarter `part`.  Word k of
the part is word k div A of the lane at position k mod A of the A active ones.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.select import select_value
from isa.link import WORD_BITS, Width

PART_BITS = 2
DIVISORS = (1, 2, 4)


class WidthDecode(wiring.Component):
    """A width, decoded; combinational.

    Members: `width`: In, Width; `half`, `quarter`: divisor 2, 4; `last_part`: divisor - 1;
    `high`, `odd`: the group lies in the upper half, is the upper quarter of its half; `active`:
    the group by logical lanes; `lowest`: its lowest lane, one-hot; `threshold`: half as many
    lanes as it has, rounded down: more than that are most of its lanes.
    """

    def __init__(self, *, lanes):
        self.lanes = lanes
        super().__init__(
            {
                "width": In(3),
                "half": Out(1),
                "quarter": Out(1),
                "last_part": Out(PART_BITS),
                "high": Out(1),
                "odd": Out(1),
                "active": Out(lanes),
                "lowest": Out(lanes),
                "threshold": Out(range(lanes // 2 + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        with m.Switch(self.width):
            for width in Width:
                group, divisor = width.lanes(self.lanes), width.divisor
                with m.Case(width):
                    m.d.comb += [
                        self.half.eq(divisor == 2),
                        self.quarter.eq(divisor == 4),
                        self.last_part.eq(divisor - 1),
                        self.high.eq(group[0] >= self.lanes // 2),
                        self.odd.eq(divisor == 4 and group[0] // len(group) % 2),
                        self.active.eq(sum(1 << lane for lane in group)),
                        self.lowest.eq(1 << group[0]),
                        self.threshold.eq(len(group) // 2),
                    ]
        return m


class Stripe(wiring.Component):
    """Symbols of all lanes from a beat and the number of the step in it; combinational.

    Members: `beat`; `part`; `half`, `quarter` of `WidthDecode`; `symbols`: lane i in bits
    [i * symbol_bits, ...).  Lanes outside the group get the data of a lane in it.
    """

    def __init__(self, link):
        self.link = link
        bits = 8 * link.beat_bytes
        super().__init__(
            {
                "beat": In(bits),
                "part": In(PART_BITS),
                "half": In(1),
                "quarter": In(1),
                "symbols": Out(bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, words, bits = self.link.lanes, self.link.symbol_words, 8 * self.link.beat_bytes
        parts = []
        for divisor in DIVISORS:
            size = bits // divisor
            part = Signal(size, name=f"part{divisor}")
            chosen = self.part[: divisor.bit_length() - 1]
            m.d.comb += part.eq(
                select_value(chosen, [self.beat[i * size : (i + 1) * size] for i in range(divisor)])
            )
            parts.append(part)
        for lane in range(lanes):
            for word in range(words):
                full, half, quarter = (
                    part.word_select(lanes // divisor * word + lane % (lanes // divisor), WORD_BITS)
                    for part, divisor in zip(parts, DIVISORS, strict=True)
                )
                m.d.comb += self.symbols.word_select(lane * words + word, WORD_BITS).eq(
                    Mux(self.quarter, quarter, Mux(self.half, half, full))
                )
        return m


class Unstripe(wiring.Component):
    """Gathers beats from the symbols of logical lanes.

    Members: `step`: a step with `symbols` is here, number `part` of its beat; `half`, `quarter`,
    `high`, `odd` of `WidthDecode`; `beat`: register, complete one cycle after the last part.
    """

    def __init__(self, link):
        self.link = link
        bits = 8 * link.beat_bytes
        super().__init__(
            {
                "step": In(1),
                "symbols": In(bits),
                "part": In(PART_BITS),
                "half": In(1),
                "quarter": In(1),
                "high": In(1),
                "odd": In(1),
                "beat": Out(bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = self.link.symbol_words
        full = self.symbols
        half = Signal(len(full) // 2)
        quarter = Signal(len(half) // 2)
        m.d.comb += [
            half.eq(Mux(self.high, full[len(half) :], full[: len(half)])),
            quarter.eq(Mux(self.odd, half[len(quarter) :], half[: len(quarter)])),
        ]

        def in_beat_order(symbols):
            lanes = len(symbols) // WORD_BITS // words
            return Cat(
                symbols.word_select(lane * words + word, WORD_BITS)
                for word in range(words)
                for lane in range(lanes)
            )

        quarters, size = [in_beat_order(s) for s in (full, half, quarter)], len(quarter)
        for index in range(4):
            take, data = Signal(name=f"take{index}"), Signal(size, name=f"data{index}")
            m.d.comb += [
                take.eq(
                    Mux(
                        self.quarter,
                        self.part == index,
                        ~self.half | (self.part[0] == index // 2),
                    )
                ),
                data.eq(
                    Mux(
                        self.quarter,
                        quarters[2],
                        Mux(
                            self.half,
                            quarters[1].word_select(index % 2, size),
                            quarters[0].word_select(index, size),
                        ),
                    )
                ),
            ]
            with m.If(self.step & take):
                m.d.sync += self.beat.word_select(index, size).eq(data)
        return m
