"""The coefficients of the table functions as a ROM, from the tables that are their specification.

A word holds c0, c1 and c2 of a segment (`golden.arith.functions.segment`) in 28, 20 and 11 bits.
c1 and c2 are two's complement without their sign bit, as the sign is constant over a table.
"""

from amaranth.hdl import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from golden.arith.functions.segment import INDEX_BITS, SEGMENTS
from golden.arith.functions.tables import TABLES

C0_BITS, C1_BITS, C2_BITS = 28, 20, 11
WORD_BITS = C0_BITS + C1_BITS + C2_BITS
TABLE_BITS = 3

TABLE_AT = {
    "exp2": 0,
    "log2": 1,
    "reciprocal": 2,
    "rsqrt_even": 4,
    "rsqrt_odd": 5,
    "sqrt_even": 6,
    "sqrt_odd": 7,
}
"""Number of a table: upper bits of the address. Number 3 is left out."""

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


def is_negative(table, column):
    """Whether c1 (column 1) or c2 (column 2) of the table is negative, in all segments."""
    signs = {value < 0 for value in TABLES[table][:, column].tolist()}
    if len(signs) != 1:
        raise ValueError(f"table {table}: c{column} changes its sign between segments")
    return signs.pop()


def rom_words():
    """The words by address: 1 << (TABLE_BITS + 7) integers."""
    words = [0] * (SEGMENTS << TABLE_BITS)
    for table, number in TABLE_AT.items():
        negative = (False, is_negative(table, 1), is_negative(table, 2))
        for index, row in enumerate(TABLES[table].tolist()):
            word, low = 0, 0
            for value, bits, below in zip(row, (C0_BITS, C1_BITS, C2_BITS), negative, strict=True):
                if not -(below << bits) <= value < (not below) << bits:
                    raise ValueError(
                        f"table {table}, segment {index}: {value} needs over {bits} bits"
                    )
                word |= (value & ((1 << bits) - 1)) << low
                low += bits
            words[number * SEGMENTS + index] = word
    return words


class TableRom(wiring.Component):
    """A tile without clock: data follows address.

    With a register behind it an FPGA makes two block RAMs of it, without one about 700 LUT6.

    Members
    -------
    address : In(10)
        Number of the table (`TABLE_AT`), then 7 bits of the segment.
    data : Out(59)
        c0, c1, c2 from the low end; 0 for a table that is not there.
    """

    tile_combinational = True
    tile_parameters = ()

    def __init__(self):
        super().__init__({"address": In(TABLE_BITS + INDEX_BITS), "data": Out(WORD_BITS)})

    def elaborate(self, platform):
        m = Module()
        words = rom_words()
        m.submodules.words = words = memory.Memory(shape=WORD_BITS, depth=len(words), init=words)
        read = words.read_port(domain="comb")
        m.d.comb += [read.addr.eq(self.address), self.data.eq(read.data)]
        return m

    def verilog(self, name):
        """The same as `elaborate`, as the text of module `name`; quick to compile many times."""
        words = rom_words()
        packed = sum(word << (WORD_BITS * index) for index, word in enumerate(words))
        return _VERILOG.format(
            name=name,
            address_top=TABLE_BITS + INDEX_BITS - 1,
            top=WORD_BITS - 1,
            width=WORD_BITS,
            last=len(words) - 1,
            all_top=WORD_BITS * len(words) - 1,
            all_bits=WORD_BITS * len(words),
            words=packed,
        )
