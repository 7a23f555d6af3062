"""The coefficients of the table functions as a ROM, from the tables that are their specification.

A word holds c0, c1 and c2 of a segment (`golden.arith.functions.segment`) in 28, 20 and 11 bits.
c1 and c2 are two's complement without their sign bit, as the sign is constant over a table.
"""

from golden.arith.functions.segment import SEGMENTS
from golden.arith.functions.tables import TABLES
from hdl.lib.rom import BlockRom, Rom

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


def table_rom(*, registered):
    """A `BlockRom` (two RAMB36) or, not registered, a `Rom` (about 1750 LUT6).

    Address: 7 bits of the segment, then the number of the table; data: c0, c1, c2.
    """
    rom = BlockRom if registered else Rom
    return rom("tables", width=WORD_BITS, words=rom_words())
