"""VC buffers: accepted payload waits here, by virtual channel, and leaves as packets."""

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.arbiter import RoundRobin, one_hot_index, one_hot_mux
from hdl.lib.check import check, check_stream
from hdl.lib.ram import BlockRam, LutRam
from hdl.lib.select import select_value
from hdl.lib.tile import add_tile
from hdl.link.credit_rx import CreditReturn
from hdl.link.ports import REASON_BITS, VC_BITS, Deliver, Limits, received_beat
from hdl.link.unpacker import Unpacker
from isa.link import GRANULE_BYTES, UNIT_GRANULES, VCS, Reason

GRANULE_BITS = 8 * GRANULE_BYTES


def regions(sizes):
    """First granule of each VC's region, and the granules of all: the largest first, so that each
    region is aligned to its own size (a power of two).
    """
    base, total = {}, 0
    for vc in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        base[vc] = total
        total += sizes[vc]
    return [base[vc] for vc in range(len(sizes))], total


def rotate(items, offset, sign):
    """Item (i + sign * offset) mod n at each place i, of n items."""
    n = len(items)
    if n == 1:
        return list(items)
    return [select_value(offset, [items[(i + sign * k) % n] for k in range(n)]) for i in range(n)]


class VcBuffers(wiring.Component):
    """A FIFO of granules for each VC; packets come out back to back in beats.

    A packet leaves while it arrives, but its last granules so far stay until more of it is there:
    so even a packet that is cut short (see Unpacker) ends with `last`, and then with `poison`.

    Members
    -------
    clear : In, pulse: full initialisation, all buffers are empty.
    deliver : In(Deliver): payload; may come in every cycle.
    rx : Out stream of `received_beat`; VCs take turns by beats.  `poison`: the granule was, or the
        packet ends too early with it; what such a packet holds is not to be used.
    rx_open : In(8): VCs whose consumer takes beats now.  A beat that was chosen before its bit fell
        is still offered: at most one.
    limits : Out(Limits): own credit; granules count as gone when they are chosen for `rx`.
    error : Out: Reason for one cycle, else 0: OVERFLOW (the beat is dropped and its credit comes
        back; the VC goes on at the next beginning that a flit names) or PACKET_LENGTH.

    A beat on `deliver` is on `rx` 2 cycles later at the earliest; one beat a cycle each way.
    """

    def __init__(self, link):
        self.link = link
        self.sizes = tuple(UNIT_GRANULES * units for units in link.vc_units)
        super().__init__(
            {
                "clear": In(1),
                "deliver": In(Deliver(link)),
                "rx": Out(stream.Signature(received_beat(link))),
                "rx_open": In(VCS),
                "limits": Out(Limits()),
                "error": Out(REASON_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        deliver, count = self.deliver, self.link.beat_granules
        base, total = regions(self.sizes)
        m.submodules.unpacker = unpacker = Unpacker(self.link)
        wiring.connect(m, unpacker.deliver, wiring.flipped(deliver))

        # What goes in, and what comes out (`taken` granules of VC `chosen`)
        write = Signal()
        chosen, taken = Signal(VC_BITS), Signal(range(count + 1))
        full, eligible = Signal(VCS), Signal(VCS)
        overflow = Signal()
        m.d.comb += [
            overflow.eq(deliver.valid & (full & (1 << deliver.vc)).any()),
            write.eq(deliver.valid & ~overflow),
            unpacker.skip.eq(overflow),
        ]
        m.d.sync += self.error.eq(
            Mux(
                overflow,
                Reason.OVERFLOW,
                Mux(unpacker.error, Reason.PACKET_LENGTH, Reason.NONE),
            )
        )
        writes, reads, quarters, whole = [], [], [], []
        for vc, size in enumerate(self.sizes):
            write_at = Signal(range(size), name=f"write_at{vc}")
            read_at = Signal(range(size), name=f"read_at{vc}")
            level = Signal(range(size + 1), name=f"level{vc}")
            closed = Signal(range(size + 1), name=f"closed{vc}")
            mine, put = Signal(name=f"mine{vc}"), Signal.like(taken, name=f"put{vc}")
            gone, lost = Signal.like(taken, name=f"gone{vc}"), Signal.like(taken, name=f"lost{vc}")
            m.submodules[f"credit{vc}"] = credit = CreditReturn(size // UNIT_GRANULES)
            m.d.comb += [
                mine.eq(deliver.vc == vc),
                put.eq(Mux(write & mine, deliver.granules, 0)),
                lost.eq(Mux(overflow & mine, deliver.granules, 0)),
                gone.eq(Mux(chosen == vc, taken, 0)),
                full[vc].eq(level + deliver.granules > size),
                # The last granules of a packet stay until its end, or another packet, is there
                eligible[vc].eq((level > count) | (closed != 0)),
                credit.freed.eq(gone + lost),
                getattr(self.limits, f"limit{vc}").eq(credit.limit),
            ]
            m.d.sync += [
                write_at.eq(write_at + put),
                read_at.eq(read_at + gone),
                level.eq(level + put - gone),
            ]
            with m.If(write & mine & unpacker.any_closed):
                m.d.sync += closed.eq(level + unpacker.closed - gone)
            with m.Elif(closed >= gone):
                m.d.sync += closed.eq(closed - gone)
            with m.Else():
                m.d.sync += closed.eq(0)
            check(m, platform, gone <= level, f"VC {vc}: more taken than there is")
            # Granules that may leave: the marks of these and of what follows them are there
            known = Signal.like(taken, name=f"known{vc}")
            m.d.comb += known.eq(Mux(level > count, count, closed))
            whole.append(Cat(known, level <= count))
            writes.append(write_at)
            reads.append(read_at)
            quarters.append(Mux(level[-1], 3, level[-3:-1]))

        fullest = Signal(2)
        m.d.comb += [
            fullest[1].eq(Cat(quarter[1] for quarter in quarters).any()),
            fullest[0].eq(
                Cat(quarter[0] & (quarter[1] | ~fullest[1]) for quarter in quarters).any()
            ),
        ]
        m.d.sync += self.limits.congestion.eq(fullest)

        def place(side, vc, pointers, banks):
            """(bank of a VC's pointer, its row, the row behind it) in `banks` banks."""
            here = Signal(range(total), name=f"{side}_here{banks}")
            behind = Signal(range(total), name=f"{side}_behind{banks}")
            nexts = []
            for pointer in pointers:
                following = Signal.like(pointer, name=f"{side}_following{banks}")
                m.d.comb += following.eq(pointer + banks)
                nexts.append(following)
            for signal, values in ((here, pointers), (behind, nexts)):
                wholes = [
                    Cat(value, Const(first // size, len(here) - len(value)))
                    for value, first, size in zip(values, base, self.sizes, strict=True)
                ]
                m.d.comb += signal.eq(select_value(vc, wholes))
            bits = ceil_log2(banks)
            return here[:bits] if bits else Const(0, 1), here[bits:], behind[bits:]

        # Choice of a VC; its next granules by their marks
        m.submodules.arbiter = arbiter = RoundRobin(VCS)
        advance, choose = Signal(), Signal()
        m.d.comb += [
            advance.eq(~self.rx.valid | self.rx.ready),
            arbiter.request.eq(eligible & self.rx_open),
            arbiter.advance.eq(advance),
            chosen.eq(one_hot_index(arbiter.grant, VCS)),
            choose.eq(advance & (arbiter.grant != 0)),
        ]
        known, closing = Signal.like(taken), Signal()
        m.d.comb += Cat(known, closing).eq(one_hot_mux(arbiter.grant, whole))
        first, last, cut, granules, opens = self._window(
            m, platform, write, unpacker, place, writes, reads, chosen, total, known, closing
        )
        offered, goes_on = Signal(), Signal()
        m.d.comb += [
            taken.eq(Mux(choose, granules, 0)),
            # Refuse is taken and not offered
            offered.eq(choose & (first[0] | one_hot_mux(arbiter.grant, opens))),
            goes_on.eq(~(last << 1).bit_select(granules, 1)),
        ]
        with m.If(choose):
            for vc, opened in enumerate(opens):
                with m.If(arbiter.grant[vc]):
                    m.d.sync += opened.eq(offered & goes_on)

        # Data: granule p of the memory in bank p mod `count`
        w_offset, w_row, w_next = place("w", deliver.vc, writes, count)
        r_offset, r_row, r_next = place("r", chosen, reads, count)
        words = [
            Cat(deliver.data.word_select(i, GRANULE_BITS), deliver.poison) for i in range(count)
        ]
        enables = [write & (deliver.granules > i) for i in range(count)]
        words, enables = rotate(words, w_offset, -1), rotate(enables, w_offset, -1)
        stored = []
        for bank in range(count):
            ram = add_tile(
                m, platform, f"data{bank}", BlockRam(width=GRANULE_BITS + 1, depth=total // count)
            )
            m.d.comb += [
                ram.w_en.eq(enables[bank]),
                ram.w_addr.eq(Mux(w_offset > bank, w_next, w_row)),
                ram.w_data.eq(words[bank]),
                ram.r_en.eq(choose),
                ram.r_addr.eq(Mux(r_offset > bank, r_next, r_row)),
            ]
            stored.append(ram.r_data)

        # The beat offered: the RAM's read register, and what goes with it
        names = ("vc", "granules", "first", "last")
        beat, held = self.rx.p, {name: Signal.like(self.rx.p[name], name=name) for name in names}
        offset, cut_short = Signal.like(r_offset, name="offset"), Signal(count)
        with m.If(advance):
            m.d.sync += [
                self.rx.valid.eq(offered),
                offset.eq(r_offset),
                cut_short.eq(cut),
                held["vc"].eq(chosen),
                held["granules"].eq(granules),
                held["first"].eq(first),
                held["last"].eq(last),
            ]
        m.d.comb += [beat[name].eq(held[name]) for name in names]
        poisons = []
        for i, word in enumerate(rotate(stored, offset, 1)):
            m.d.comb += beat.data.word_select(i, GRANULE_BITS).eq(word)
            poisons.append(word[GRANULE_BITS] & (held["granules"] > i))
        m.d.comb += beat.poison.eq(cut_short | Cat(*poisons))
        check_stream(m, platform, self.rx, "rx")
        return ResetInserter(self.clear)(m)

    def _window(
        self, m, platform, write, unpacker, place, writes, reads, chosen, total, known, closing
    ):
        """Next beat of VC `chosen`, of which `known` granules may leave, the last of them being an
        end if `closing`: bits (first, last, cut) of its granules, their number, per VC: a packet is
        under way.

        The marks are read in front of the data, and one granule further: where a packet is cut
        short only the next header shows it.  Twice as many banks as granules in a beat do that.
        """
        count = self.link.beat_granules
        banks = 2 * count
        w_offset, w_row, w_next = place("w", self.deliver.vc, writes, banks)
        r_offset, r_row, r_next = place("r", chosen, reads, banks)
        marks = [
            Cat(unpacker.starts[i], unpacker.ends[i], unpacker.refuse[i]) for i in range(count)
        ]
        marks += [Const(0, 3)] * count
        enables = [write & (self.deliver.granules > i) for i in range(count)]
        enables += [Const(0, 1)] * count
        marks, enables = rotate(marks, w_offset, -1), rotate(enables, w_offset, -1)
        stored = []
        for bank in range(banks):
            ram = add_tile(m, platform, f"marks{bank}", LutRam(width=3, depth=total // banks))
            m.d.comb += [
                ram.w_en.eq(enables[bank]),
                ram.w_addr.eq(Mux(w_offset > bank, w_next, w_row)),
                ram.w_data.eq(marks[bank]),
                ram.r_addr.eq(Mux(r_offset > bank, r_next, r_row)),
            ]
            stored.append(ram.r_data)
        window = [Signal(3, name=f"window{i}") for i in range(count + 1)]
        for signal, value in zip(window, rotate(stored, r_offset, 1), strict=False):
            m.d.comb += signal.eq(value)
        first, last, cut = Signal(count), Signal(count), Signal(count)
        granules = Signal(range(count + 1), init=count)
        m.d.comb += granules.eq(known)
        for i in reversed(range(count)):
            (starts, ends, refuse), there = window[i], Signal(name=f"there{i}")
            follows = window[i + 1]
            m.d.comb += [
                there.eq(granules > i),
                first[i].eq(starts & there),
                last[i].eq((ends | follows[0] | follows[2] | (known == i + 1) & closing) & there),
                cut[i].eq(last[i] & ~ends),
            ]
            # Refuse leaves by itself.
            with m.If((refuse | follows[2]) & (known > i)):
                m.d.comb += granules.eq(i + 1)
        opens = [Signal(name=f"under_way{vc}") for vc in range(VCS)]
        return first, last, cut, granules, opens
