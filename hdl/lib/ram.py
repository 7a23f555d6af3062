"""The only way to memory: one write port, one read port, emitted once per size.

`BlockRam` reads at the clock edge and maps to block RAM; `LutRam` reads combinationally and maps to
distributed RAM.  A read of the word being written gives the old value.  Contents start at zero; a read register has
no reset: qualify it with a valid bit.
"""

from amaranth.hdl import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2


def _signature(width, depth, granularity, *, read_enable):
    lanes = width // granularity
    members = {
        "w_en": In(lanes),
        "w_addr": In(ceil_log2(depth)),
        "w_data": In(width),
        "r_addr": In(ceil_log2(depth)),
        "r_data": Out(width),
    }
    if read_enable:
        members["r_en"] = In(1)
    return members


class _Ram(wiring.Component):
    def __init__(self, *, width, depth, granularity=None):
        granularity = granularity or width
        if depth < 1 or width < 1 or width % granularity:
            raise ValueError(f"RAM of {depth} x {width} bits with granularity {granularity}: sizes must be positive, "
                             "width a multiple of granularity")
        self.width, self.depth, self.granularity = width, depth, granularity
        self.tile_parameters = (width, depth, granularity)
        super().__init__(_signature(width, depth, granularity, read_enable=self._domain == "sync"))

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = mem = memory.Memory(shape=self.width, depth=self.depth, init=[])
        write = mem.write_port(granularity=self.granularity)
        read = mem.read_port(domain=self._domain)
        m.d.comb += [
            write.en.eq(self.w_en), write.addr.eq(self.w_addr), write.data.eq(self.w_data),
            read.addr.eq(self.r_addr), self.r_data.eq(read.data),
        ]
        if self._domain == "sync":
            m.d.comb += read.en.eq(self.r_en)
        return m


class BlockRam(_Ram):
    """RAM with a registered read port.

    Members: `w_en` (one bit per `granularity` bits), `w_addr`, `w_data`; `r_en`, `r_addr`; `r_data`, valid one cycle
    after `r_en` and held until the next `r_en`.
    """

    _domain = "sync"


class LutRam(_Ram):
    """RAM with a combinational read port.  Members as BlockRam without `r_en`; `r_data` follows `r_addr`."""

    _domain = "comb"
