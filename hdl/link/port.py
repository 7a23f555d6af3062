"""A link port: transmitter, receiver, lanes, training, registers put together."""

from dataclasses import astuple

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.link.lane_rx import LaneReceive
from hdl.link.lane_tx import LaneTransmit
from hdl.link.ports import (
    REASON_BITS,
    Deliver,
    Limits,
    PhyPort,
    RegisterAccess,
    packet_beat,
    received_beat,
)
from hdl.link.receiver import EVENTS as RECEIVER_EVENTS
from hdl.link.receiver import Receiver
from hdl.link.registers import LinkRegisters
from hdl.link.training import Training
from hdl.link.transmitter import EVENTS as TRANSMITTER_EVENTS
from hdl.link.transmitter import Transmitter
from hdl.link.vc_buffers import VcBuffers
from isa.link import RESTART_CYCLES, VCS


def _common(link):
    return {
        **{f"tx{vc}": In(stream.Signature(packet_beat(link))) for vc in range(VCS)},
        "up": Out(1),
        "lost": Out(1),
        "failed": Out(1),
        "registers": In(RegisterAccess()),
        "entropy": In(32),
        "phy": Out(PhyPort(link)),
        "packet_error": In(REASON_BITS),
        "window_denied": In(1),
    }


class LinkCore(wiring.Component):
    """A link port without its VC buffers.

    Members besides those of LinkPort
    -------
    deliver : Out(Deliver)
        Accepted payload.
    limits : In(Limits)
    buffer_error : In(5)
        Reason from the VC buffers for one cycle, or 0.
    clear : Out(1)
        Pulse: the VC buffers are to be emptied.
    """

    def __init__(self, link, *, restart_cycles=RESTART_CYCLES):
        self.link, self.restart_cycles = link, restart_cycles
        super().__init__(
            {
                **_common(link),
                "deliver": Out(Deliver(link)),
                "limits": In(Limits()),
                "buffer_error": In(REASON_BITS),
                "clear": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        link = self.link
        m.submodules.transmitter = transmitter = Transmitter(link)
        m.submodules.receiver = receiver = Receiver(link)
        m.submodules.lanes_tx = lanes_tx = LaneTransmit(link)
        m.submodules.lanes_rx = lanes_rx = LaneReceive(link)
        m.submodules.training = training = Training(link, restart_cycles=self.restart_cycles)
        m.submodules.registers = registers = LinkRegisters(link)

        self._payload(m, transmitter, receiver, lanes_tx, lanes_rx)
        _connect(m, training, self, "entropy buffer_error packet_error")
        _connect(m, self, training, "up lost failed clear")
        self._training(m, training, transmitter, receiver, lanes_tx, lanes_rx)
        self._registers(m, registers, training, transmitter, receiver, lanes_tx, lanes_rx)
        return m

    def _payload(self, m, transmitter, receiver, lanes_tx, lanes_rx):
        """From packets to symbols and back."""
        phy = self.phy
        for vc in range(VCS):
            name = f"tx{vc}"
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(transmitter, name))
        wiring.connect(m, transmitter.o, lanes_tx.i)
        wiring.connect(m, receiver.acknowledge, transmitter.acknowledge)
        wiring.connect(m, receiver.credit, transmitter.credit)
        wiring.connect(m, receiver.reverse, transmitter.reverse)
        wiring.connect(m, wiring.flipped(self.limits), transmitter.limits)
        wiring.connect(m, receiver.deliver, wiring.flipped(self.deliver))
        m.d.comb += [
            receiver.i_valid.eq(lanes_rx.o_valid),
            receiver.i_data.eq(lanes_rx.o_data),
            phy.tx_data.eq(lanes_tx.tx_data),
            phy.tx_enable.eq(lanes_tx.tx_enable),
            lanes_tx.tx_ready.eq(phy.tx_ready),
            lanes_tx.loopback_data.eq(phy.rx_data),
            lanes_rx.rx_data.eq(phy.rx_data),
            lanes_rx.rx_valid.eq(phy.rx_valid),
            phy.rx_slip.eq(lanes_rx.rx_slip),
        ]

    @staticmethod
    def _training(m, training, transmitter, receiver, lanes_tx, lanes_rx):
        _connect(m, training, lanes_tx, "started frame_sent")
        _connect(m, lanes_tx, training, "send start loopback")
        _connect(
            m,
            training,
            lanes_rx,
            "locked reversed aligned overflow order_bad frame_valid frame training_seen",
        )
        _connect(m, lanes_rx, training, "unlock align prbs")
        _connect(m, training, transmitter, "credits_known replay_limit")
        _connect(m, transmitter, training, "clear stop_command flush session epoch timer_cycles")
        _connect(m, training, receiver, "nak_limit peer_command")
        _connect(m, receiver, training, "clear peer_session peer_epoch rtt")
        m.d.comb += [
            lanes_tx.frame.eq(training.tx_frame),
            lanes_tx.width.eq(training.tx_width),
            lanes_rx.width.eq(training.rx_width),
            training.rx_start.eq(lanes_rx.start),
            transmitter.enable.eq(training.tx_enable),
            training.tx_idle.eq(transmitter.idle),
            training.tx_progress.eq(transmitter.progress),
            training.tx_error.eq(transmitter.error),
            receiver.enable.eq(training.rx_enable),
            training.rx_progress.eq(receiver.progress),
            training.rx_error.eq(receiver.error),
        ]

    def _registers(self, m, registers, training, transmitter, receiver, lanes_tx, lanes_rx):
        wiring.connect(m, wiring.flipped(self.registers), registers.port)
        _connect(
            m,
            training,
            registers,
            "enable loopback_mode prbs_mode auto_restart retrain restart timeout min_width",
        )
        _connect(
            m,
            registers,
            training,
            "state tx_width rx_width fresh session epoch peer_version peer_capability rtt "
            "rtt_valid reason recoveries width_changes initialisations protocol_errors "
            "training_cycles active_cycles",
        )
        _connect(m, transmitter, registers, "weights")
        _connect(m, registers, transmitter, " ".join(TRANSMITTER_EVENTS))
        _connect(m, registers, transmitter, "sent_vc sent_granules replay_level")
        _connect(m, registers, receiver, " ".join(RECEIVER_EVENTS))
        _connect(
            m,
            lanes_tx,
            registers,
            "inject_rate inject_burst inject_stuck inject_drop inject_drop_count",
        )
        _connect(m, registers, lanes_tx, "skips")
        _connect(
            m,
            registers,
            lanes_rx,
            "locked inverted reversed overflow lane_error skips_received",
        )
        _connect(m, registers, self, "window_denied")
        m.d.comb += [
            registers.accepted.eq(self.deliver.valid),
            registers.accepted_vc.eq(self.deliver.vc),
            registers.accepted_granules.eq(self.deliver.granules),
        ]


class LinkPort(wiring.Component):
    """One port of the link between chips (docs/link.md).

    Members
    -------
    tx0 .. tx7 : In, streams of `packet_beat`
        Packets to the peer, by virtual channel.
    rx : Out, stream of `received_beat`
        Packets from the peer, checked, in order within their VC.
    rx_open : In(8)
        VCs whose consumer takes beats now.
    up : Out(1)
        ACTIVE.
    lost : Out(1)
        Pulse: both ends begin from nothing; what was under way will never arrive.  A packet that is
        half in `tx` is to be ended as usual; one that is half out of `rx` is not.
    failed : Out(1)
        Nothing will come of a packet: FAILED, DISABLED or a test mode.
    registers : In(RegisterAccess)
        Offsets below 0x100 and from 0x200 on.
    entropy : In(32)
        Anything that differs between chips and from power-up to power-up.
    phy : Out(PhyPort)
    packet_error : In(5)
        Reason from the transaction layer for one cycle, or 0: counted and latched.
    window_denied : In(1)
        Pulse of the transaction layer: counted.

    A beat taken on `tx` is on the peer's `rx` 13 cycles later at the earliest, the channel not
    counted (beat of a cell, full width).  One beat a cycle.
    """

    def __init__(self, link, *, restart_cycles=RESTART_CYCLES):
        self.link, self.restart_cycles = link, restart_cycles
        self.tile_parameters = (*_flat(astuple(link)), restart_cycles)
        super().__init__(
            {
                **_common(link),
                "rx": Out(stream.Signature(received_beat(link))),
                "rx_open": In(VCS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = LinkCore(self.link, restart_cycles=self.restart_cycles)
        m.submodules.buffers = buffers = VcBuffers(self.link)
        for name in (*(f"tx{vc}" for vc in range(VCS)), "registers"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(core, name))
        wiring.connect(m, core.phy, wiring.flipped(self.phy))
        wiring.connect(m, buffers.rx, wiring.flipped(self.rx))
        wiring.connect(m, core.deliver, buffers.deliver)
        wiring.connect(m, buffers.limits, core.limits)
        _connect(m, self, core, "up lost failed")
        _connect(m, core, self, "entropy packet_error window_denied")
        m.d.comb += [
            buffers.clear.eq(core.clear),
            buffers.rx_open.eq(self.rx_open),
            core.buffer_error.eq(buffers.error),
        ]
        return m


def _connect(m, target, source, names):
    """Members of the same name: target's from source's."""
    m.d.comb += [getattr(target, name).eq(getattr(source, name)) for name in names.split()]


def _flat(values):
    """Values of tuples in place of the tuples."""
    return [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
