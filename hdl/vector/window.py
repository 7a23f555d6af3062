"""Places for results on their way through lanes that cannot stall, and the buffer at the end."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

OUTPUTS = 16
"""Results that may be on their way or wait for the writer."""


class OutputWindow(wiring.Component):
    """Control of the result buffers in the lanes.

    Parameters
    ----------
    places : int
        Results that may be on their way or wait, a power of two.

    Members
    -------
    room : Out(1)
        Something that gives a result may be launched.
    launch : In(1)
        It is launched; only with `room`.
    arrive : In(1)
        Its result is written at `at`.
    idle : Out(1)
        Nothing is between launch and arrival.
    at, take_from : Out(log2 places)
        Place of the result that arrives and of the one that waits longest.
    valid : Out(1), ready : In(1)
        Handshake of the result at `take_from`.
    """

    def __init__(self, places=OUTPUTS):
        self._places = places
        bits = exact_log2(places)
        super().__init__({
            "room": Out(1), "launch": In(1), "arrive": In(1), "idle": Out(1),
            "at": Out(bits), "take_from": Out(bits),
            "valid": Out(1), "ready": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        counter = range(self._places + 1)
        flying, stored, free = Signal(counter), Signal(counter), Signal(counter, init=self._places)
        take = Signal()
        m.d.comb += [
            self.room.eq(free != 0),
            self.idle.eq(flying == 0),
            self.valid.eq(stored != 0),
            take.eq(self.valid & self.ready),
        ]
        m.d.sync += [
            flying.eq(flying + self.launch - self.arrive),
            stored.eq(stored + self.arrive - take),
            free.eq(free + take - self.launch),
            self.at.eq(self.at + self.arrive),
            self.take_from.eq(self.take_from + take),
        ]
        return m


def check_window(stages):
    """ValueError when the round trip of a launch takes more places than there are.

    It is two ALUs, the buffer and the return of the place.
    """
    if 2 * stages + 2 > OUTPUTS:
        raise ValueError(f"two ALUs of {stages} stages need {2 * stages + 2} results in flight, "
                         f"and there are places for {OUTPUTS}")
