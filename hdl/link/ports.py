"""Layouts and signatures between the parts of a link port.

All numbers are of `isa.link`; `link` is an `isa.link.LinkConfig`.
"""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from isa.link import CREDIT_BITS, FRAME, HEADER, SEQUENCE_BITS, SLOT, VCS, Reason

VC_BITS = 3
LIMIT_BITS = CREDIT_BITS
REASON_BITS = 5
assert max(Reason) < 1 << REASON_BITS


def layout_of(fields):
    """StructLayout of a tuple of `isa.link.SlotField`."""
    return data.StructLayout({f.name: f.width for f in fields})


SLOT_LAYOUT = layout_of(SLOT)
FRAME_LAYOUT = layout_of(FRAME)
HEADER_LAYOUT = layout_of(HEADER)


def packet_beat(link):
    """Beat of packets on their way to the link: `granules` 1..beat_granules of them from granule 0
    on (bits beyond are ignored).  `last`: bit i: a packet ends with granule i, and what follows it
    is the next one, in this beat or the next.  `poison` on any beat marks the flit that carries it.
    """
    return data.StructLayout(
        {
            "data": 8 * link.beat_bytes,
            "granules": range(link.beat_granules + 1),
            "last": link.beat_granules,
            "poison": 1,
        }
    )


def received_beat(link):
    """Beat of packets from the link: `granules` of them, back to back.  Bit i of `first`: granule i
    is a header; of `last`: it ends its packet; of `poison`: it is known to be bad; bits beyond
    `granules` are 0.
    """
    return data.StructLayout(
        {
            "vc": VC_BITS,
            "data": 8 * link.beat_bytes,
            "granules": range(link.beat_granules + 1),
            "first": link.beat_granules,
            "last": link.beat_granules,
            "poison": link.beat_granules,
        }
    )


class Acknowledge(wiring.Signature):
    """Receiver to transmitter, from each good flit: `valid` pulse, `acknowledge`, `nak`."""

    def __init__(self):
        super().__init__({"valid": Out(1), "acknowledge": Out(SEQUENCE_BITS), "nak": Out(1)})


class CreditUpdate(wiring.Signature):
    """Receiver to transmitter, from each good flit: `valid` pulse and two (VC, limit)."""

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "a_vc": Out(VC_BITS),
                "a": Out(LIMIT_BITS),
                "b_vc": Out(VC_BITS),
                "b": Out(LIMIT_BITS),
            }
        )


class Reverse(wiring.Signature):
    """Receiver to transmitter: what flits of the other direction shall say.

    expected: next sequence expected.  nak: a NAK is owed, until `nak_taken` (In) pulses: the
    transmitter has put it into a slot.
    """

    def __init__(self):
        super().__init__({"expected": Out(SEQUENCE_BITS), "nak": Out(1), "nak_taken": In(1)})


class Limits(wiring.Signature):
    """VC buffers to transmitter: own absolute credit limits and the fill of the fullest buffer in
    quarters.
    """

    def __init__(self):
        super().__init__(
            {**{f"limit{vc}": Out(LIMIT_BITS) for vc in range(VCS)}, "congestion": Out(2)}
        )


class Deliver(wiring.Signature):
    """Receiver to VC buffers: accepted payload, a beat at a time, no back-pressure.

    granules: 1..beat_granules from granule 0 on.  start: first beat of a flit; the beats of a flit
    follow each other without those of another.  first_valid, first: granule of this beat at which
    the first packet of the flit begins.
    """

    def __init__(self, link):
        super().__init__(
            {
                "valid": Out(1),
                "vc": Out(VC_BITS),
                "data": Out(8 * link.beat_bytes),
                "granules": Out(range(link.beat_granules + 1)),
                "start": Out(1),
                "first_valid": Out(1),
                "first": Out(range(max(2, link.beat_granules))),
                "poison": Out(1),
            }
        )


class PhyPort(wiring.Signature):
    """Parallel symbols of each lane, from the link's side: where a transceiver or a channel sits.

    tx_data: lane i in bits [i * symbol_bits, ...), lowest bit first on the line; taken in cycles
    with tx_ready.  tx_enable: lane is driven (0 = electrical idle).  rx_valid: lane delivered a
    symbol in this cycle; all lanes of a link run on one clock, so their symbols come at one rate,
    each with its own delay.  rx_slip: pulse, shift the symbol boundary of the lane by one bit.
    """

    def __init__(self, link):
        lanes, width = link.lanes, link.lanes * link.symbol_bits
        super().__init__(
            {
                "tx_data": Out(width),
                "tx_enable": Out(lanes),
                "tx_ready": In(1),
                "rx_data": In(width),
                "rx_valid": In(lanes),
                "rx_slip": Out(lanes),
            }
        )


class RegisterAccess(wiring.Signature):
    """One 32-bit access to the block of a link, from the bus's side (see
    `hdl.chip.registers.RegisterPort`): offset, write pulse with data, value combinational.
    """

    def __init__(self):
        super().__init__({"offset": Out(10), "write": Out(1), "data": Out(32), "value": In(32)})
