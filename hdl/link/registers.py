"""LinkRegisters: the register block of a link port, its statistics, the latched reason."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.counters import Statistics
from hdl.link.ports import REASON_BITS, VC_BITS, RegisterAccess
from isa.link import (
    COUNTER_OFFSET,
    COUNTERS,
    LANE_ERRORS_OFFSET,
    LINK_REGISTERS,
    LONG_GRANULES,
    VC_GRANULES_OFFSET,
    VCS,
    Control,
    LinkState,
)

MIN_TIMEOUT = 256
"""Least TRAINING_TIMEOUT; less written counts as this."""
WEIGHTS_RESET = 0x11111111
_LEVEL_BITS = 16
_RTT_BITS = 16
_BRIDGE = 0x100
"""Offsets from here to COUNTER_OFFSET are the transaction layer's."""


class LinkRegisters(wiring.Component):
    """Registers of `isa.link.LINK_REGISTERS` outside the transaction layer, and `COUNTERS`.

    Unknown offsets and those of the transaction layer read 0; writes there and to read-only
    registers do nothing.  Only a chip reset clears the registers.

    Members
    -------
    port : In(RegisterAccess)
    control, to Training: `enable`, `loopback_mode`, `prbs_mode`, `auto_restart`, `retrain`,
        `restart`, `timeout`, `min_width`; strobes are pulses one cycle after the write.
    weights : Out(32), to the transmitter.
    inject_rate, inject_burst, inject_stuck : Out; inject_drop : Out, pulse; inject_drop_count :
        Out(32), held behind it.
    status: `state`, `tx_width`, `rx_width`, `reversed`, `overflow`, `fresh`, `locked`, `inverted`,
        `session`, `epoch`, `peer_version`, `peer_capability`, `rtt`, `rtt_valid` : In.
    reason : In(5)
        A Reason for one cycle, or 0: the first one since CLEAR and the last one are kept.
    events: one `In(1)` for each of `COUNTERS`, in lower case, but for `replay_peak`, which is
        `replay_level` In(16), beats held; `lane_error` : In(lanes).
    sent_vc, sent_granules : In
        Payload sent the first time, with `tx_data`.
    accepted, accepted_vc, accepted_granules : In
        Payload accepted in this cycle.
    """

    def __init__(self, link, *, counter_init=0):
        self.link, self.counter_init = link, counter_init
        self._events = [name.lower() for name in COUNTERS if name != "REPLAY_PEAK"]
        super().__init__(
            {
                "port": In(RegisterAccess()),
                "enable": Out(1),
                "loopback_mode": Out(1),
                "prbs_mode": Out(1),
                "auto_restart": Out(1),
                "retrain": Out(1),
                "restart": Out(1),
                "timeout": Out(24),
                "min_width": Out(2),
                "weights": Out(32),
                "inject_rate": Out(32),
                "inject_burst": Out(6),
                "inject_stuck": Out(32),
                "inject_drop": Out(1),
                "inject_drop_count": Out(32),
                "state": In(4, init=LinkState.RESET),
                "tx_width": In(3),
                "rx_width": In(3),
                "reversed": In(1),
                "overflow": In(1),
                "fresh": In(1),
                "locked": In(link.lanes),
                "inverted": In(link.lanes),
                "session": In(32),
                "epoch": In(2),
                "peer_version": In(4),
                "peer_capability": In(8),
                "rtt": In(_RTT_BITS),
                "rtt_valid": In(1),
                "reason": In(REASON_BITS),
                **{name: In(1) for name in self._events},
                "replay_level": In(_LEVEL_BITS),
                "lane_error": In(link.lanes),
                "sent_vc": In(VC_BITS),
                "sent_granules": In(6),
                "accepted": In(1),
                "accepted_vc": In(VC_BITS),
                "accepted_granules": In(range(link.beat_granules + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        offset = Signal(10)
        clear, snapshot = Signal(), Signal()
        m.d.comb += offset.eq(self.port.offset)
        values = self._stored(m, offset, clear, snapshot)
        values |= self._status(m, clear)
        addresses = {r.name: r.offset for r in LINK_REGISTERS if r.offset < _BRIDGE}
        counted = self._statistics(m, offset, clear, snapshot)
        with m.Switch(offset):
            for name, address in addresses.items():
                if name in values:
                    with m.Case(address):
                        m.d.comb += self.port.value.eq(values[name])
            with m.Default():
                m.d.comb += self.port.value.eq(counted)
        return m

    def _stored(self, m, offset, clear, snapshot):
        """Registers that software writes; returns {name: value read}."""
        data = self.port.data
        enable, auto_restart = Signal(init=1), Signal(init=1)
        timeout = Signal(24, init=self.link.training_timeout_cycles)
        min_width = Signal(2, init=2)
        weights = Signal(32, init=WEIGHTS_RESET)
        strobes = {
            Control.RETRAIN: self.retrain,
            Control.RESTART: self.restart,
            Control.CLEAR: clear,
            Control.SNAPSHOT: snapshot,
        }
        levels = {
            Control.ENABLE: enable,
            Control.LOOPBACK: self.loopback_mode,
            Control.PRBS: self.prbs_mode,
            Control.AUTO_RESTART: auto_restart,
        }
        at = {r.name: self.port.write & (offset == r.offset) for r in LINK_REGISTERS}
        m.d.sync += [strobe.eq(0) for strobe in strobes.values()]
        m.d.sync += self.inject_drop.eq(0)
        with m.If(at["CONTROL"]):
            m.d.sync += [
                signal.eq(data[bit.bit_length() - 1]) for bit, signal in (strobes | levels).items()
            ]
        with m.If(at["TRAINING_TIMEOUT"]):
            m.d.sync += timeout.eq(Mux(data[8:24].any(), data[:24], MIN_TIMEOUT))
        with m.If(at["MIN_WIDTH"]):
            m.d.sync += min_width.eq(Mux(data[1], 2, data[0]))
        for name, signal in (
            ("WEIGHTS", weights),
            ("INJECT_RATE", self.inject_rate),
            ("INJECT_BURST", self.inject_burst),
            ("INJECT_STUCK", self.inject_stuck),
        ):
            with m.If(at[name]):
                m.d.sync += signal.eq(data)
        with m.If(at["INJECT_DROP"]):
            m.d.sync += [self.inject_drop.eq(1), self.inject_drop_count.eq(data)]
        m.d.comb += [
            self.enable.eq(enable),
            self.auto_restart.eq(auto_restart),
            self.timeout.eq(timeout),
            self.min_width.eq(min_width),
            self.weights.eq(weights),
        ]
        control = Signal(32)
        m.d.comb += [control[bit.bit_length() - 1].eq(signal) for bit, signal in levels.items()]
        return {
            "CONTROL": control,
            "TRAINING_TIMEOUT": timeout,
            "MIN_WIDTH": min_width,
            "WEIGHTS": weights,
            "INJECT_RATE": self.inject_rate,
            "INJECT_BURST": self.inject_burst,
            "INJECT_STUCK": self.inject_stuck,
        }

    def _status(self, m, clear):
        """Registers that software only reads; returns {name: value read}."""
        first, last = Signal(REASON_BITS), Signal(REASON_BITS)
        overflow = Signal()
        largest, smallest = Signal(_RTT_BITS), Signal(_RTT_BITS)
        measured = Signal()
        with m.If(clear):
            m.d.sync += [
                first.eq(0), last.eq(0), overflow.eq(0), largest.eq(0), smallest.eq(0),
                measured.eq(0),
            ]  # fmt: skip
        with m.If(self.reason.any()):
            m.d.sync += last.eq(self.reason)
            with m.If(clear | ~first.any()):
                m.d.sync += first.eq(self.reason)
        with m.If(self.overflow):
            m.d.sync += overflow.eq(1)
        with m.If(self.rtt_valid):
            m.d.sync += measured.eq(1)
            with m.If(clear | ~measured | (self.rtt > largest)):
                m.d.sync += largest.eq(self.rtt)
            with m.If(clear | ~measured | (self.rtt < smallest)):
                m.d.sync += smallest.eq(self.rtt)
        zero = Const(0, 1)
        return {
            "STATUS": Cat(
                self.state, self.tx_width, zero, self.rx_width, zero, self.reversed, overflow,
                self.fresh, zero, first, Const(0, 3), last,
            ),
            "LANES": Cat(self.locked, Const(0, 16 - self.link.lanes), self.inverted),
            "SESSION": self.session,
            "EPOCH": self.epoch,
            "PEER": Cat(self.peer_version, self.peer_capability),
            "RTT": Cat(self.rtt, largest),
            "RTT_MIN": smallest,
        }  # fmt: skip

    def _statistics(self, m, offset, clear, snapshot):
        """All counters; returns the value at `offset`, 0 where there is none."""
        lanes = self.link.lanes
        amounts, where = [], {}
        for i, name in enumerate(COUNTERS):
            where[COUNTER_OFFSET + 4 * i] = len(amounts)
            peak = name == "REPLAY_PEAK"
            amounts.append(self.replay_level if peak else getattr(self, name.lower()))
        for lane in range(lanes):
            where[LANE_ERRORS_OFFSET + 4 * lane] = len(amounts)
            amounts.append(self.lane_error[lane])
        for vc in range(VCS):
            where[VC_GRANULES_OFFSET + 4 * vc] = len(amounts)
            amounts.append(Mux(self.tx_data & (self.sent_vc == vc), self.sent_granules, 0))
        for vc in range(VCS):
            where[VC_GRANULES_OFFSET + 0x20 + 4 * vc] = len(amounts)
            amounts.append(Mux(self.accepted & (self.accepted_vc == vc), self.accepted_granules, 0))
        assert 1 << len(self.sent_granules) > LONG_GRANULES
        m.submodules.statistics = statistics = Statistics(
            [len(amount) for amount in amounts],
            peaks=(COUNTERS.index("REPLAY_PEAK"),),
            init=self.counter_init,
        )
        m.d.comb += [statistics.clear.eq(clear), statistics.snapshot.eq(snapshot)]
        m.d.comb += [
            getattr(statistics, f"amount{i}").eq(amount) for i, amount in enumerate(amounts)
        ]
        known = Signal()
        with m.Switch(offset):
            for address, index in where.items():
                with m.Case(address):
                    m.d.comb += [known.eq(1), statistics.index.eq(index)]
        return Mux(known, statistics.value, 0)
