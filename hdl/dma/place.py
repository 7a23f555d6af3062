"""Where a row lies: checks a byte range against the address map."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.dma.layout import place_layout, walk_bits
from isa.address_map import CORE_BASE, PEER_WINDOW_BITS, PSUM_OFFSET, SBUF_OFFSET

_WINDOW_BITS = ceil_log2(PSUM_OFFSET)


class RowPlace(wiring.Component):
    """Checks the range [address, address + bytes), bytes > 0.

    Members: `take`, `address`, `bytes` In; one cycle after `take`: `ok` (inside HBM, inside one
    partition of SBUF, or inside one peer window) and `place` (see `place_layout`), held until the
    next `take`.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "take": In(1),
                "address": In(walk_bits(config)),
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
        bits = walk_bits(config)
        address, end = Signal(bits), Signal(bits + 1)
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
        if config.links:
            port, last = address[PEER_WINDOW_BITS:], Signal(bits + 1)
            m.d.comb += last.eq(end - 1)
            with m.If((port != 0) & (port <= config.links)):
                m.d.comb += self.ok.eq(last[PEER_WINDOW_BITS:] == port)
        return m
