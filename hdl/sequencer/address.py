"""AddressCheck: which addresses a sequencer may use."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.sequencer.layout import bind
from isa.address_map import (
    CORE_BASE,
    CORE_WINDOW_BYTES,
    PEER_WINDOW_BITS,
    PSUM_OFFSET,
    PSUM_STRIDE_BYTES,
    SBUF_OFFSET,
)
from isa.geometry import DESCRIPTOR_BYTES

_WORD = 4


class AddressCheck(wiring.Component):
    """Combinational.

    Members
    -------
    address : In(64)
    word : Out(1)
        A 4-byte aligned word of HBM, SBUF, PSUM or a peer window.
    descriptor : Out(1)
        Aligned like a descriptor, in HBM.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({"address": In(64), "word": Out(1), "descriptor": Out(1)})

    def elaborate(self, platform):
        m = Module()
        config, address = self.config, self.address
        window = exact_log2(CORE_WINDOW_BYTES)
        hbm = bind(m, "hbm", address < config.hbm_bytes)
        core = bind(m, "core", address[window:] == CORE_BASE >> window)
        offset = address[:window]
        sbuf = _inside(
            m,
            "sbuf",
            offset,
            SBUF_OFFSET,
            config.sbuf_stride_bytes,
            config.partitions,
            config.sbuf_bytes,
        )
        psum = _inside(
            m, "psum", offset, PSUM_OFFSET, PSUM_STRIDE_BYTES, config.partitions, config.psum_bytes
        )
        place = hbm | (core & (sbuf | psum))
        if config.links:
            port = bind(m, "port", address[PEER_WINDOW_BITS:])
            place |= (port != 0) & (port <= config.links)
        m.d.comb += [
            self.word.eq(place & ~address[: exact_log2(_WORD)].any()),
            self.descriptor.eq(hbm & ~address[: exact_log2(DESCRIPTOR_BYTES)].any()),
        ]
        return m


def _inside(m, name, offset, base, stride, rows, row_bytes):
    """1 when `offset` lies in one of `rows` rows of `row_bytes`, `stride` apart from `base`."""
    local = bind(m, f"{name}_local", (offset - base)[: len(offset)])
    bits = exact_log2(stride)
    return (local[bits:] < rows) & (local[:bits] < row_bytes)
