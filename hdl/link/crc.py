"""CRC-40 of flits, a beat a cycle: matrices over GF(2) and the two-stage pipeline.

A step of the CRC register s by one bit d is s = s >> 1, XORed with the reflected polynomial when
bit 0 of (s ^ d) is set.  It is linear, so a whole beat is one matrix over the register and one over
the data.

The pipeline keeps z = A^-40 s (A: a step by a zero bit) instead of s.  In this basis the last 40
bits of a beat are simply XORed onto the register: behind the last beat of a flit z is
`crc(bits before the field) ^ field`.  So one circuit serves both ends, and the beat that holds the
field is no special case: a transmitter leaves the field zero and reads the CRC, a receiver reads
the sender's salt if the flit is good.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.link import CRC_BITS, CRC_INIT, CRC_POLYNOMIAL

_TOP = 1 << CRC_BITS - 1
REFLECTED = int(f"{CRC_POLYNOMIAL:0{CRC_BITS}b}"[::-1], 2)


def step(value, count=1):
    """Register `count` zero bits later (A^count); a negative count goes back."""
    for _ in range(count):
        value = value >> 1 ^ (REFLECTED if value & 1 else 0)
    for _ in range(-count):
        value = (value ^ REFLECTED) << 1 | 1 if value & _TOP else value << 1
    return value


def rows_of(columns):
    """Masks of the inputs of each output bit, of a matrix given by the image of each input bit."""
    return tuple(
        sum((column >> bit & 1) << i for i, column in enumerate(columns)) for bit in range(CRC_BITS)
    )


def register_rows(bits):
    """Rows of the matrix from the register before `bits` bits to the one behind them."""
    return rows_of([step(1 << i, bits) for i in range(CRC_BITS)])


def data_rows(bits):
    """Rows of the matrix from `bits` bits of data (bit 0 first) to the register z behind them."""
    column, columns = step(REFLECTED, -CRC_BITS), []
    for _ in range(bits):
        columns.append(column)
        column = step(column)
    return rows_of(columns[::-1])


def multiply(rows, value):
    """Matrix times the signal `value`, as an expression.  Masks, as simulators do them by words."""
    return Cat((value & Const(row, len(value))).xor() for row in rows)


class BeatCrc(wiring.Component):
    """CRC of a flit, a beat of `link.beat_bytes` a cycle.

    Members
    -------
    en : In(1)
        The pipeline moves; while low, everything holds.
    valid, first, data : In
        A beat, the first of its flit or not.
    crc : Out(40)
        Two (enabled) cycles later, behind this beat: CRC of all bits of the flit before the last 40
        of this beat, XORed with these 40.  Behind the last beat of a flit that is: the CRC where
        the field was zero; `crc_salt` of the sender for a good flit that carries its field.
        Holds until the next valid beat.

    Latency 2, throughput one beat a cycle; flits may follow each other without a gap and be
    interrupted.  A valid beat that does not belong to a flit just spoils the register up to the
    next `first`.
    """

    def __init__(self, link):
        self.bits = 8 * link.beat_bytes
        self.tile_parameters = (self.bits,)
        super().__init__(
            {
                "en": In(1),
                "valid": In(1),
                "first": In(1),
                "data": In(self.bits),
                "crc": Out(CRC_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        part = Signal(CRC_BITS, reset_less=True)
        part_valid, part_first = Signal(), Signal(reset_less=True)
        before = Signal(CRC_BITS)
        register = Signal(CRC_BITS, reset_less=True)
        m.d.comb += [
            before.eq(Mux(part_first, step(CRC_INIT, -CRC_BITS), register)),
            self.crc.eq(register),
        ]
        with m.If(self.en):
            m.d.sync += [
                part_valid.eq(self.valid),
                part_first.eq(self.first),
                part.eq(multiply(data_rows(self.bits), self.data)),
            ]
            with m.If(part_valid):
                m.d.sync += register.eq(multiply(register_rows(self.bits), before) ^ part)
        return m
