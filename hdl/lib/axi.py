"""AXI4 as Amaranth streams: the subset that the chip speaks, once.

128-bit data, 64-bit addresses, INCR bursts of whole 16-byte beats from 16-byte aligned addresses,
at most `MAX_BURST_BEATS` beats and never across a `BURST_BOUNDARY`.  Constant AXI signals (size =
4, burst = INCR, cache, prot) appear only on the pins of the chip.  Source: ARM IHI 0022, AMBA AXI4.
"""

from enum import IntEnum

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from isa.geometry import WORD_BYTES

ADDRESS_BITS = 64
DATA_BITS = 8 * WORD_BYTES
LENGTH_BITS = 8
MAX_BURST_BEATS = 64
BURST_BOUNDARY = 4096
"""Bytes; a burst never crosses a multiple of it."""


class Resp(IntEnum):
    """Response code of a beat or of a write burst; bit 1 set means error."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


def address_layout(id_bits=0):
    """Payload of `ar` and `aw`: id, byte address, beats - 1."""
    return data.StructLayout({"id": id_bits, "addr": ADDRESS_BITS, "len": LENGTH_BITS})


def read_data_layout(id_bits=0):
    """Payload of `r`."""
    return data.StructLayout({"id": id_bits, "data": DATA_BITS, "resp": 2, "last": 1})


def write_data_layout():
    """Payload of `w`; bit i of `strb` enables byte i."""
    return data.StructLayout({"data": DATA_BITS, "strb": WORD_BYTES, "last": 1})


def write_response_layout(id_bits=0):
    """Payload of `b`."""
    return data.StructLayout({"id": id_bits, "resp": 2})


class _Axi(wiring.Signature):
    def __init__(self, config, id_bits, members):
        if id_bits < 0:
            raise ValueError(f"AXI id of {id_bits} bits")
        self.config, self.id_bits = config, id_bits
        super().__init__(members)

    def __eq__(self, other):
        return type(self) is type(other) and self.id_bits == other.id_bits

    def __repr__(self):
        return f"{type(self).__name__}(id_bits={self.id_bits})"


class AxiRead(_Axi):
    """Read half of an AXI4 port, from the master's side.

    Members: `ar` Out stream of `{id, addr 64, len 8}`; `r` In stream of `{id, data 128, resp 2,
    last}`.  Beats of one id come in the order of its requests, beats of different ids in any order.
    """

    def __init__(self, config, id_bits=0):
        super().__init__(
            config,
            id_bits,
            {
                "ar": Out(stream.Signature(address_layout(id_bits))),
                "r": In(stream.Signature(read_data_layout(id_bits))),
            },
        )


class AxiWrite(_Axi):
    """Write half of an AXI4 port, from the master's side.

    Members: `aw` Out stream of `{id, addr 64, len 8}`; `w` Out stream of `{data 128, strb 16,
    last}`, in the order of the addresses; `b` In stream of `{id, resp 2}`, one per burst.
    """

    def __init__(self, config, id_bits=0):
        super().__init__(
            config,
            id_bits,
            {
                "aw": Out(stream.Signature(address_layout(id_bits))),
                "w": Out(stream.Signature(write_data_layout())),
                "b": In(stream.Signature(write_response_layout(id_bits))),
            },
        )
