"""LocalBus: single 16-byte accesses to the map of `isa.address_map`, one at a time."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from isa.geometry import WORD_BYTES

BUS_BITS = 8 * WORD_BYTES


class BusRequest(data.Struct):
    """One access.  `address` is 16-byte aligned; `strb` bit i enables byte i of a write (reads give
    all bytes).
    """

    address: 64
    write: 1
    strb: WORD_BYTES
    data: BUS_BITS


class BusResponse(data.Struct):
    """Answer of one access: data of a read; `error` when nothing lies at the address or the target
    failed.
    """

    data: BUS_BITS
    error: 1


class LocalBus(wiring.Signature):
    """Bus seen from the master (Out = master drives).

    req: stream of BusRequest.  resp: stream of BusResponse, one per request; a write is answered
    when it is visible. The master has one request outstanding: it asks again only after it has
    taken the answer.
    """

    def __init__(self):
        super().__init__(
            {
                "req": Out(stream.Signature(BusRequest)),
                "resp": In(stream.Signature(BusResponse)),
            }
        )
