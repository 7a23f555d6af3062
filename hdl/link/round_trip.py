"""Round trip time from the stamps of training frames, and the timers that follow from it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.ports import FRAME_LAYOUT

STAMP_BITS = 16
REPLAY_TIMER_EXTRA = 500
REPLAY_TIMER_MAX = 65535


class RoundTrip(wiring.Component):
    """Stamp, echo, and what comes back.

    The round trip is counted from the cycle in which a frame takes its `stamp` to the cycle in
    which a frame with its echo is seen; the time that the stamp lay at the peer is not in it.

    Members
    -------
    clear : In(1)
        Pulse: what was measured is of another session.
    frame_valid, frame : In
        Good frame.
    measure : In(1)
        Frames that carry `seen` are measured.
    stamp, echo : Out(16)
        Fields of a frame that begins in this cycle.
    rtt : Out(16)
        Last round trip in cycles, 0 until one has been measured since `clear`.
    rtt_valid : Out(1)
        Pulse with a new `rtt`.
    timer_cycles : Out(16)
        Replay timer: min(3 x rtt + 500, 65535), one cycle behind `rtt`.
    """

    def __init__(self):
        super().__init__(
            {
                "clear": In(1),
                "frame_valid": In(1),
                "frame": In(FRAME_LAYOUT),
                "measure": In(1),
                "stamp": Out(STAMP_BITS),
                "echo": Out(STAMP_BITS),
                "rtt": Out(STAMP_BITS),
                "rtt_valid": Out(1),
                "timer_cycles": Out(16, init=REPLAY_TIMER_EXTRA),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # The peer's counter runs as fast as ours: its stamp plus the cycles since is our counter
        # plus a constant.
        offset = Signal(STAMP_BITS)
        wanted = Signal(STAMP_BITS + 2)
        m.d.sync += [
            self.stamp.eq(self.stamp + 1),
            self.rtt_valid.eq(0),
            self.timer_cycles.eq(Mux(wanted > REPLAY_TIMER_MAX, REPLAY_TIMER_MAX, wanted)),
        ]
        m.d.comb += [
            self.echo.eq(self.stamp + offset),
            # Three times without a multiplier
            wanted.eq((self.rtt << 1) + self.rtt + REPLAY_TIMER_EXTRA),
        ]
        with m.If(self.frame_valid):
            m.d.sync += offset.eq(self.frame.stamp - self.stamp)
            with m.If(self.measure & self.frame.seen):
                m.d.sync += [self.rtt.eq(self.stamp - self.frame.echo), self.rtt_valid.eq(1)]
        with m.If(self.clear):
            m.d.sync += [self.rtt.eq(0), self.rtt_valid.eq(0)]
        return m
