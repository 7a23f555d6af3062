"""Queues of granules in one banked memory, written and read several granules at a time."""

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.lib.ram import LutRam
from hdl.lib.select import select_value
from hdl.lib.tile import add_tile
from isa.link import GRANULE_BYTES


def _regions(sizes, banks):
    """First row of each queue.  Largest first, so that every region is aligned to its own size and
    an address is base | offset.
    """
    base, row = {}, 0
    for queue in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        base[queue] = row
        row += sizes[queue] // banks
    return [base[queue] for queue in range(len(sizes))], row


class GranuleQueue(wiring.Component):
    """A FIFO of granules for each of several virtual channels, with one write and one read port.

    Granule p of a queue lies in bank p mod `beat_granules`, so any number of granules up to
    `beat_granules` is written or read in one cycle at any pointer; banks are LutRam.

    Parameters
    ----------
    sizes : granules of each queue, powers of two and multiples of `beat_granules`.
    beat_granules : 1, 2 or 4.
    granule_bits : width of a granule, flags of the user included.

    Members
    -------
    clear : In, pulse: all queues are empty.
    w_en, w_vc, w_data, w_granules : In
        Put granules 0..`w_granules` - 1 of `w_data` (1..beat_granules) at the end of queue `w_vc`,
        which must have room for them; the rest of `w_data` is ignored.
    r_vc : In; r_data : Out
        The first `beat_granules` granules of queue `r_vc`, combinational; those beyond its level
        are not meaningful.
    r_count : In
        Granules to take from it at the next clock edge, 0..beat_granules and at most its level.
        `r_data` does not depend on it.
    level0 .. level{n-1} : Out: granules held.

    A granule that is written can be read in the next cycle.  Both ports work in every cycle.
    ValueError for sizes that cannot be built.
    """

    def __init__(self, sizes, beat_granules, granule_bits=8 * GRANULE_BYTES):
        sizes = tuple(sizes)
        if beat_granules not in (1, 2, 4) or len(sizes) < 2:
            raise ValueError(f"{len(sizes)} queues, {beat_granules} banks: 2 or more; 1, 2 or 4")
        for size in sizes:
            if size < 2 * beat_granules or size & (size - 1):
                raise ValueError(
                    f"queue of {size} granules: a power of two, at least {2 * beat_granules}"
                )
        self.sizes, self.banks, self.granule_bits = sizes, beat_granules, granule_bits
        vc_bits = ceil_log2(len(sizes))
        super().__init__(
            {
                "clear": In(1),
                "w_en": In(1),
                "w_vc": In(vc_bits),
                "w_data": In(beat_granules * granule_bits),
                "w_granules": In(range(beat_granules + 1)),
                "r_vc": In(vc_bits),
                "r_count": In(range(beat_granules + 1)),
                "r_data": Out(beat_granules * granule_bits),
                **{f"level{i}": Out(range(size + 1)) for i, size in enumerate(sizes)},
            }
        )

    def level(self, vc):
        return getattr(self, f"level{vc}")

    def elaborate(self, platform):
        m = Module()
        base, rows = _regions(self.sizes, self.banks)
        banks, bank_bits = self.banks, ceil_log2(self.banks)
        w_granules, r_count = Signal.like(self.w_granules), Signal.like(self.r_count)
        m.d.comb += [w_granules.eq(Mux(self.w_en, self.w_granules, 0)), r_count.eq(self.r_count)]
        pointers = {"w": [], "r": []}
        for vc, size in enumerate(self.sizes):
            w_ptr = Signal(range(size), name=f"w_ptr{vc}")
            r_ptr = Signal(range(size), name=f"r_ptr{vc}")
            put = Signal.like(self.w_granules, name=f"put{vc}")
            taken = Signal.like(self.r_count, name=f"taken{vc}")
            m.d.comb += [
                put.eq(Mux(self.w_vc == vc, w_granules, 0)),
                taken.eq(Mux(self.r_vc == vc, r_count, 0)),
            ]
            m.d.sync += [
                w_ptr.eq(w_ptr + put),
                r_ptr.eq(r_ptr + taken),
                self.level(vc).eq(self.level(vc) + put - taken),
            ]
            pointers["w"].append(w_ptr)
            pointers["r"].append(r_ptr)

        def place(side, vc):
            """(bank of the pointer, its row, the row behind it) of queue `vc`."""
            offset = Signal(max(1, bank_bits), name=f"{side}_offset")
            row = Signal(range(rows), name=f"{side}_row")
            next_row = Signal(range(rows), name=f"{side}_next_row")
            here, behind = [], []
            for pointer, first, size in zip(pointers[side], base, self.sizes, strict=True):
                within = pointer[bank_bits:]
                higher = Const(first // (size // banks), max(1, len(row) - len(within)))
                following = Signal.like(within, name=f"{side}_following")
                m.d.comb += following.eq(within + 1)
                here.append(Cat(within, higher)[: len(row)])
                behind.append(Cat(following, higher)[: len(row)])
            m.d.comb += [
                row.eq(select_value(vc, here)),
                next_row.eq(select_value(vc, behind)),
            ]
            if bank_bits:
                m.d.comb += offset.eq(select_value(vc, [p[:bank_bits] for p in pointers[side]]))
            return offset, row, next_row

        w_offset, w_row, w_next = place("w", self.w_vc)
        r_offset, r_row, r_next = place("r", self.r_vc)

        def granule(value, i):
            return value[i * self.granule_bits : (i + 1) * self.granule_bits]

        def rotate(offset, items, sign):
            """Item (i + sign * offset) mod banks, for each i."""
            if not bank_bits:
                return items
            return [
                select_value(offset, [items[(i + sign * k) % banks] for k in range(banks)])
                for i in range(banks)
            ]

        incoming = rotate(w_offset, [granule(self.w_data, i) for i in range(banks)], -1)
        enables = rotate(w_offset, [w_granules > i for i in range(banks)], -1)
        outputs = []
        for bank in range(banks):
            ram = LutRam(width=self.granule_bits, depth=rows)
            ram = add_tile(m, platform, f"bank{bank}", ram)
            m.d.comb += [
                ram.w_en.eq(enables[bank]),
                ram.w_addr.eq(Mux(w_offset > bank, w_next, w_row)),
                ram.w_data.eq(incoming[bank]),
                ram.r_addr.eq(Mux(r_offset > bank, r_next, r_row)),
            ]
            output = Signal(self.granule_bits, name=f"output{bank}")
            m.d.comb += output.eq(ram.r_data)
            outputs.append(output)
        m.d.comb += self.r_data.eq(Cat(*rotate(r_offset, outputs, 1)))
        return ResetInserter(self.clear)(m)
