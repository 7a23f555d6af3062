"""Agreement with the peer: what its training frames say, once several in a row say the same."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.ports import FRAME_LAYOUT
from isa.link import ATTEMPTS, LINK_VERSION, FrameType

AGREE_FRAMES = 4
"""Frames in a row with equal content."""
assert AGREE_FRAMES == ATTEMPTS == 4

_SAME = ("version", "capability", "want", "epoch", "fresh", "session")
"""Fields that must not change; type, `seen` and stamps may."""


class Agreement(wiring.Component):
    """Counts TS1 and TS2 frames with equal content.

    Members
    -------
    frame_valid, frame : In
        Good frame.
    restart : In(1)
        Level, counts stay 0.
    agreed : Out(1)
        The last AGREE_FRAMES good frames were TS1 or TS2 of the content in `peer`.
    confirmed : Out(1)
        As `agreed`, and all of them were TS2 with `seen`.
    peer : Out(FRAME_LAYOUT)
        Last TS1 or TS2 frame.
    differs : Out(1)
        Version or capability of `peer` are not ours.
    """

    def __init__(self, link):
        self.link = link
        super().__init__(
            {
                "frame_valid": In(1),
                "frame": In(FRAME_LAYOUT),
                "restart": In(1),
                "agreed": Out(1),
                "confirmed": Out(1),
                "peer": Out(FRAME_LAYOUT),
                "differs": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        row, seen_row = Signal(range(AGREE_FRAMES + 1)), Signal(range(AGREE_FRAMES + 1))
        equal, training, confirming = Signal(), Signal(), Signal()
        frame, peer = self.frame, self.peer
        m.d.comb += [
            equal.eq(Cat(frame[name] == peer[name] for name in _SAME).all()),
            confirming.eq((frame.type == FrameType.TS2) & frame.seen),
            training.eq((frame.type == FrameType.TS1) | (frame.type == FrameType.TS2)),
            self.agreed.eq(row == AGREE_FRAMES),
            self.confirmed.eq(seen_row == AGREE_FRAMES),
            self.differs.eq(
                (peer.version != LINK_VERSION) | (peer.capability != self.link.capability)
            ),
        ]
        with m.If(self.frame_valid):
            with m.If(~training):
                m.d.sync += [row.eq(0), seen_row.eq(0)]
            with m.Else():
                m.d.sync += peer.eq(frame)
                with m.If(~equal):
                    m.d.sync += [row.eq(1), seen_row.eq(confirming)]
                with m.Else():
                    with m.If(~self.agreed):
                        m.d.sync += row.eq(row + 1)
                    with m.If(~confirming):
                        m.d.sync += seen_row.eq(0)
                    with m.Elif(~self.confirmed):
                        m.d.sync += seen_row.eq(seen_row + 1)
        with m.If(self.restart):
            m.d.sync += [row.eq(0), seen_row.eq(0)]
        return m
