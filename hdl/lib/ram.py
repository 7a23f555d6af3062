"""The only way to memory: one write port, one read port, emitted once per size.

`BlockRam` reads at the clock edge and maps to block RAM; `LutRam` reads combinationally and maps to
distributed RAM.  A read of the word being written gives the old value.  Contents start at zero; a
read register has no reset: qualify it with a valid bit.

In emitted Verilog a RAM is the module below instead of Amaranth's own: that one sets every word in
a line of its own, which simulators compile for minutes, once for each copy of the RAM.
"""

from amaranth.hdl import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

_VERILOG = """\
module {name}({ports});
  input clk;
  input rst;
  input [{lane_top}:0] w_en;
  input [{address_top}:0] w_addr;
  input [{top}:0] w_data;
  input [{address_top}:0] r_addr;
{read_enable}  output [{top}:0] r_data;
  (* ram_style = "{style}" *)
  reg [{top}:0] memory [0:{last}];
  integer word;
  initial for (word = 0; word <= {last}; word = word + 1) memory[word] = {width}'b0;
  always_ff @(posedge clk) begin
{writes}  end
{read}endmodule
"""
_WRITE = "    if (w_en[{lane}]) memory[w_addr][{high}:{low}] <= w_data[{high}:{low}];\n"


class _Ram(wiring.Component):
    def __init__(self, *, width, depth, granularity=None):
        granularity = granularity or width
        if depth < 2 or width < 1 or width % granularity:
            raise ValueError(
                f"RAM of {depth} x {width} bits with granularity {granularity}: needs 2 words or "
                "more, and a positive width that is a multiple of granularity"
            )
        self.width, self.depth, self.granularity = width, depth, granularity
        self.tile_parameters = (width, depth, granularity)
        members = {
            "w_en": In(width // granularity),
            "w_addr": In(ceil_log2(depth)),
            "w_data": In(width),
            "r_addr": In(ceil_log2(depth)),
            "r_data": Out(width),
        }
        if self._domain == "sync":
            members["r_en"] = In(1)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = mem = memory.Memory(shape=self.width, depth=self.depth, init=[])
        write = mem.write_port(granularity=self.granularity)
        read = mem.read_port(domain=self._domain)
        m.d.comb += [
            write.en.eq(self.w_en),
            write.addr.eq(self.w_addr),
            write.data.eq(self.w_data),
            read.addr.eq(self.r_addr),
            self.r_data.eq(read.data),
        ]
        if self._domain == "sync":
            m.d.comb += read.en.eq(self.r_en)
        return m

    def verilog(self, name):
        """The same as `elaborate`, as the text of module `name`."""
        lanes = self.width // self.granularity
        writes = "".join(
            _WRITE.format(
                lane=lane, low=self.granularity * lane, high=self.granularity * (lane + 1) - 1
            )
            for lane in range(lanes)
        )
        ports = ["clk", "rst", "w_en", "w_addr", "w_data", "r_addr", "r_data"]
        if self._domain == "sync":
            ports.append("r_en")
            read_enable = "  input r_en;\n"
            read = (
                f"  reg [{self.width - 1}:0] read_data;\n"
                "  always_ff @(posedge clk) if (r_en) read_data <= memory[r_addr];\n"
                "  assign r_data = read_data;\n"
            )
        else:
            read_enable, read = "", "  assign r_data = memory[r_addr];\n"
        return _VERILOG.format(
            name=name,
            ports=", ".join(ports),
            lane_top=lanes - 1,
            top=self.width - 1,
            address_top=ceil_log2(self.depth) - 1,
            last=self.depth - 1,
            width=self.width,
            read_enable=read_enable,
            writes=writes,
            read=read,
            style="block" if self._domain == "sync" else "distributed",
        )


class BlockRam(_Ram):
    """RAM with a registered read port.

    Members: `w_en` (one bit per `granularity` bits), `w_addr`, `w_data`; `r_en`, `r_addr`;
    `r_data`, valid one cycle after `r_en` and held until the next `r_en`.
    """

    _domain = "sync"


class LutRam(_Ram):
    """RAM with a combinational read port.

    Members as BlockRam without `r_en`; `r_data` follows `r_addr`.
    """

    _domain = "comb"
