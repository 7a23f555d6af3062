"""Read-only memory, emitted once per content.

`Rom` reads combinationally and becomes LUTs, `BlockRom` at the clock edge and becomes block RAM.
"""

from amaranth.hdl import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

_VERILOG = """\
module {name}({ports});
{clocks}  input [{address_top}:0] address;
  output [{top}:0] data;
  localparam [{all_top}:0] WORDS = {all_bits}'h{packed:x};
  (* rom_style = "{style}" *)
  reg [{top}:0] words [0:{last}];
  integer word;
  initial
    for (word = 0; word <= {last}; word = word + 1)
      words[word] = WORDS[{width}*word +: {width}];
{read}endmodule
"""


class _Rom(wiring.Component):
    def __init__(self, contents, *, width, words):
        if len(words) < 2 or not all(0 <= word < 1 << width for word in words):
            raise ValueError(f"ROM {contents}: 2 words or more of {width} bits expected")
        self.width, self.words = width, list(words)
        self.tile_parameters = (contents,)
        members = {"address": In(ceil_log2(len(words))), "data": Out(width)}
        if self._domain == "sync":
            members["en"] = In(1)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = memory.Memory(
            shape=self.width, depth=len(self.words), init=self.words
        )
        read = words.read_port(domain=self._domain)
        m.d.comb += [read.addr.eq(self.address), self.data.eq(read.data)]
        if self._domain == "sync":
            m.d.comb += read.en.eq(self.en)
        return m

    def verilog(self, name):
        """The same as `elaborate`, as the text of module `name`; quick to compile many times."""
        ports, clocks, read = "address, data", "", "  assign data = words[address];\n"
        if self._domain == "sync":
            ports = f"clk, rst, en, {ports}"
            clocks = "  input clk;\n  input rst;\n  input en;\n"
            read = (
                f"  reg [{self.width - 1}:0] read_data;\n"
                "  always_ff @(posedge clk) if (en) read_data <= words[address];\n"
                "  assign data = read_data;\n"
            )
        return _VERILOG.format(
            name=name,
            ports=ports,
            clocks=clocks,
            read=read,
            style="block" if self._domain == "sync" else "distributed",
            address_top=ceil_log2(len(self.words)) - 1,
            top=self.width - 1,
            width=self.width,
            last=len(self.words) - 1,
            all_top=self.width * len(self.words) - 1,
            all_bits=self.width * len(self.words),
            packed=sum(word << (self.width * index) for index, word in enumerate(self.words)),
        )


class Rom(_Rom):
    """`data` is word `address`, combinational: a tile without clock.

    Parameters
    ----------
    contents : str
        Name of the contents, which names the tile: one name, one content.
    width : int
        Bits of a word.
    words : list of int
        At least 2. Addresses beyond give an undefined word.

    Members
    -------
    address : In(ceil_log2(len(words)))
    data : Out(width)
    """

    _domain = "comb"
    tile_combinational = True


class BlockRom(_Rom):
    """`data` is word `address` of the last cycle in which `en` was 1; undefined before. As `Rom`.

    Members
    -------
    en : In(1)
    address : In(ceil_log2(len(words)))
    data : Out(width)
    """

    _domain = "sync"
