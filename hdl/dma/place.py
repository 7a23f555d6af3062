"""Where a row lies: checks a byte range against the address map."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.dma.layout import WALK_BITS, place_layout
from isa.address_map import CORE_BASE, PSUM_OFFSET, SBUF_OFFSET

_WINDOW_BITS = ceil_log2(PSUM_OFFSET)


class RowPlace(wiring.Component):
    """Checks the range [address, address + bytes), bytes > 0.

    Members: `take`, `address`, `bytes` In; one cycle after `take`: `ok` (inside HBM, or inside one
    partition of SBUF) and `place` (see `place_layout`), held until the next `take`.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "take": In(1),
                "address": In(WALK_BITS),
                "bytes": In(32),
                "ok": Out(1),
                "place": Out(place_layout(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        stride = ceil_log2(config.sbuf_stride_bytes)
        rows = stride + ceil_log2(config.partitions)
        if SBUF_OFFSET != 0 or rows > _WINDOW_BITS:
            raise ValueError(f"SBUF of {rows} address bits does not fit its window")
        address, end = Signal(WALK_BITS), Signal(WALK_BITS + 1)
        row_end = Signal(33)
        with m.If(self.take):
            m.d.sync += [
                address.eq(self.address),
                end.eq(self.address + self.bytes),
                row_end.eq(self.address[:stride] + self.bytes),
            ]
        in_window = Signal()
        m.d.comb += [
            in_window.eq(address[rows:] == CORE_BASE >> rows),
            self.place.sbuf.eq(in_window),
            self.place.byte.eq(address),
            self.ok.eq((end <= config.hbm_bytes) | (in_window & (row_end <= config.sbuf_bytes))),
        ]
        with m.If(in_window):
            m.d.comb += self.place.byte.eq(address[:rows])
        return m
