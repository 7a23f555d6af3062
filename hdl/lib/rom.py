"""Read-only memory, emitted once per content."""

from amaranth.hdl import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

_VERILOG = """\
module {name}(address, data);
  input [{address_top}:0] address;
  output [{top}:0] data;
  localparam [{all_top}:0] WORDS = {all_bits}'h{words:x};
  reg [{top}:0] words [0:{last}];
  integer word;
  initial
    for (word = 0; word <= {last}; word = word + 1)
      words[word] = WORDS[{width}*word +: {width}];
  assign data = words[address];
endmodule
"""


class Rom(wiring.Component):
    """A tile without clock: `data` is word `address`, combinational.

    A register behind it makes block RAM of it where an FPGA has that, else it becomes LUTs.

    Parameters
    ----------
    contents : str
        Name of the contents, which names the tile.
    width : int
        Bits of a word.
    words : list of int
        At least 2. Addresses beyond give an undefined word.

    Members
    -------
    address : In(ceil_log2(len(words)))
    data : Out(width)
    """

    tile_combinational = True

    def __init__(self, contents, *, width, words):
        if len(words) < 2 or not all(0 <= word < 1 << width for word in words):
            raise ValueError(f"ROM {contents}: 2 words or more of {width} bits expected")
        self.width, self.words = width, list(words)
        self.tile_parameters = (contents,)
        super().__init__({"address": In(ceil_log2(len(words))), "data": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = memory.Memory(
            shape=self.width, depth=len(self.words), init=self.words
        )
        read = words.read_port(domain="comb")
        m.d.comb += [read.addr.eq(self.address), self.data.eq(read.data)]
        return m

    def verilog(self, name):
        """The same as `elaborate`, as the text of module `name`; quick to compile many times."""
        packed = sum(word << (self.width * index) for index, word in enumerate(self.words))
        return _VERILOG.format(
            name=name,
            address_top=ceil_log2(len(self.words)) - 1,
            top=self.width - 1,
            width=self.width,
            last=len(self.words) - 1,
            all_top=self.width * len(self.words) - 1,
            all_bits=self.width * len(self.words),
            words=packed,
        )
