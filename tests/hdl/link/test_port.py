# amaranth: UnusedElaboratable=no
"""Two link ports with their real lanes on a channel: training, packets both ways, recovery, reset.

Small: Amaranth's simulator does some hundred cycles a second here.  Campaigns run in
`verif/link_bench.py`.
"""

import random

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Mux, ResetInserter, Signal
from amaranth.sim import Simulator

from hdl.lib.delay import DelayLine
from hdl.link.port import LinkPort
from isa.link import (
    COUNTERS,
    HEADER,
    LINK_REGISTERS,
    Control,
    LinkConfig,
    LinkState,
    PacketKind,
    Reason,
    counter_offset,
    pack_bits,
)


def link_of(beat_bytes):
    return LinkConfig(
        beat_bytes=beat_bytes,
        lanes=4,
        replay_bytes=2048,
        vc_units=(32,) * 8,
        training_timeout_cycles=2048,
    )


LINK = link_of(16)
OFFSET = {r.name: r.offset for r in LINK_REGISTERS}
CONTROL = Control.ENABLE | Control.AUTO_RESTART
GRANULE = (1 << 128) - 1


class Cable(Elaboratable):
    """Two ports and the wires between them.

    delays: cycles there and back.  inverted: mask of lanes from port 0 to port 1 with swapped
    polarity; reverse: these lanes are wired in the opposite order.
    """

    def __init__(self, *, link=LINK, delays=(2, 3), inverted=0, reverse=False):
        self.link = link
        self.ports = [LinkPort(link, restart_cycles=200) for _ in range(2)]
        self.resets = [Signal(name=f"reset{i}") for i in range(2)]
        self.plugged = Signal(init=1)
        self.delays, self.inverted, self.reverse = delays, inverted, reverse

    def elaborate(self, platform):
        m = Module()
        link, width = self.link, self.link.symbol_bits
        for i, port in enumerate(self.ports):
            peer = self.ports[1 - i]
            m.submodules[f"port{i}"] = ResetInserter(self.resets[i])(port)
            m.submodules[f"wires{i}"] = wires = DelayLine(
                width=8 * link.beat_bytes, cycles=self.delays[i]
            )
            lanes = [wires.o.word_select(lane, width) for lane in range(link.lanes)]
            if i == 0:
                lanes = [~lane if self.inverted >> n & 1 else lane for n, lane in enumerate(lanes)]
                lanes = lanes[::-1] if self.reverse else lanes
            m.d.comb += [
                wires.i.eq(port.phy.tx_data),
                port.phy.tx_ready.eq(1),
                peer.phy.rx_data.eq(Mux(self.plugged, Cat(lanes), 0)),
                peer.phy.rx_valid.eq((1 << link.lanes) - 1),
            ]
        return m


def packet(rng, kind=PacketKind.WRITE):
    """Granules of a packet with random data."""
    length = rng.choice([1, 2, 3, 5, 17])
    header = {"kind": kind, "granules": length, "bytes": 16 * (length - 1),
              "address": rng.getrandbits(48)}  # fmt: skip
    return [pack_bits(HEADER, header)] + [rng.getrandbits(128) for _ in range(length - 1)]


class Bench:
    """Traffic on some VCs of both ports, and what arrives."""

    def __init__(self, cable, seed=1, vcs=(0, 2, 5)):
        self.cable, self.rng, self.vcs = cable, random.Random(seed), vcs
        self.full = cable.link.beat_granules
        self.sent = [{vc: [] for vc in vcs} for _ in range(2)]
        self.got = [{vc: [] for vc in vcs} for _ in range(2)]
        self.queue = [{vc: [] for vc in vcs} for _ in range(2)]
        self.partial = [{vc: [] for vc in vcs} for _ in range(2)]
        self.offered = [dict.fromkeys(vcs, 0) for _ in range(2)]  # granules of the beat on tx
        self.joints = set()  # granules of a beat on rx behind which a packet follows in it
        self.lost = [0, 0]
        self.sending = False
        self.checking = True
        """False: what arrives is of a life that ends, and may be cut anywhere."""
        self.cycle = 0
        self.trace = [[], []]

    def simulate(self, scenario):
        simulator = Simulator(self.cable)
        simulator.add_clock(1e-6)

        async def main(ctx):
            self.ctx = ctx
            for i, port in enumerate(self.cable.ports):
                ctx.set(port.rx_open, 255)
                ctx.set(port.entropy, 0x9E3779B9 * i)
            await scenario(self)

        simulator.add_testbench(main)
        simulator.run()

    async def step(self, write=None):
        ctx = self.ctx
        for i, port in enumerate(self.cable.ports):
            ctx.set(port.registers.offset, OFFSET["STATUS"])
            for vc in self.vcs:
                stream, queue = getattr(port, f"tx{vc}"), self.queue[i][vc]
                while len(queue) < self.full and self.sending:
                    granules = packet(self.rng)
                    self.sent[i][vc].append(granules)
                    queue.extend((g, n == len(granules) - 1) for n, g in enumerate(granules))
                if not queue:
                    self.offered[i][vc] = 0
                elif not self.offered[i][vc]:
                    # Packets back to back, often in full beats
                    most = min(self.full, len(queue))
                    count = self.rng.choice([most, self.rng.randint(1, most)]) if most > 1 else 1
                    beat = [queue[n] for n in range(count)]
                    ctx.set(stream.p.data, sum(g << 128 * n for n, (g, _) in enumerate(beat)))
                    ctx.set(stream.p.last, sum(last << n for n, (_, last) in enumerate(beat)))
                    ctx.set(stream.p.granules, count)
                    self.offered[i][vc] = count
                ctx.set(stream.valid, bool(queue))
            ctx.set(port.rx.ready, self.rng.random() < 0.9)
        taken = [
            [vc for vc in self.vcs
             if self.queue[i][vc] and ctx.get(getattr(port, f"tx{vc}").ready)]
            for i, port in enumerate(self.cable.ports)
        ]  # fmt: skip
        for i, port in enumerate(self.cable.ports):
            state = LinkState(ctx.get(port.registers.value) & 15)
            if not self.trace[i] or self.trace[i][-1] != state:
                self.trace[i].append(state)
            if self.checking and ctx.get(port.rx.valid) and ctx.get(port.rx.ready):
                beat = port.rx.p
                vc = ctx.get(beat.vc)
                assert not ctx.get(beat.poison)
                data, first, last = ctx.get(beat.data), ctx.get(beat.first), ctx.get(beat.last)
                count = ctx.get(beat.granules)
                for n in range(count):
                    assert first >> n & 1 == (not self.partial[i][vc])
                    self.partial[i][vc].append(data >> 128 * n & GRANULE)
                    if last >> n & 1:
                        self.got[i][vc].append(self.partial[i][vc])
                        self.partial[i][vc] = []
                        if n < count - 1:
                            self.joints.add(n)
            if ctx.get(port.lost):
                self.lost[i] += 1
        if write is not None:
            i, offset, data = write
            registers = self.cable.ports[i].registers
            ctx.set(registers.offset, offset)
            ctx.set(registers.data, data)
            ctx.set(registers.write, 1)
        await ctx.tick()
        if write is not None:
            ctx.set(registers.write, 0)
        for i, vcs in enumerate(taken):
            for vc in vcs:
                del self.queue[i][vc][: self.offered[i][vc]]
                self.offered[i][vc] = 0
        self.cycle += 1

    async def run(self, cycles):
        for _ in range(cycles):
            await self.step()

    async def until(self, condition, limit):
        for _ in range(limit):
            if condition():
                return
            await self.step()
        raise AssertionError(f"not within {limit} cycles: {self.trace}")

    async def up(self, limit=2500):
        await self.run(2)
        await self.until(lambda: all(self.ctx.get(port.up) for port in self.cable.ports), limit)

    async def drain(self, limit=1500):
        self.sending = False
        await self.until(lambda: self.got[1] == self.sent[0] and self.got[0] == self.sent[1], limit)

    def read(self, i, offset):
        port = self.cable.ports[i]
        self.ctx.set(port.registers.offset, OFFSET.get(offset, offset))
        return self.ctx.get(port.registers.value)

    async def write(self, i, offset, data):
        """In a cycle like any other."""
        await self.step((i, OFFSET.get(offset, offset), data))

    async def counters(self, i):
        await self.write(i, "CONTROL", CONTROL | Control.SNAPSHOT)
        await self.run(2)
        return {name: self.read(i, counter_offset(name)) for name in COUNTERS}


@pytest.mark.parametrize("beat_bytes", [16, pytest.param(64, marks=pytest.mark.nightly)])
def test_packets_through_a_retrain_on_crossed_lanes(beat_bytes):
    """Lanes to port 1 reversed and two of them inverted.  Under traffic on three VCs software
    retrains: every packet arrives once, in order, whole; state, polarity and order of lanes stay.
    """
    cable = Cable(link=link_of(beat_bytes), inverted=0b0101, reverse=True, delays=(3, 9))

    async def scenario(bench):
        await bench.up()
        sessions = [bench.read(i, "SESSION") for i in range(2)]
        assert sessions[0] != sessions[1]
        rtt = [bench.read(i, "RTT") & 0xFFFF for i in range(2)]
        assert rtt[0] == rtt[1]
        bench.sending = True
        await bench.run(80)
        await bench.write(0, "CONTROL", CONTROL | Control.RETRAIN)
        await bench.until(lambda: bench.trace[0][-1] == LinkState.RECOVERY, 200)
        await bench.run(5)
        await bench.up()
        await bench.run(50)
        await bench.drain()
        assert sum(len(p) for side in bench.got for p in side.values()) > 20
        assert sessions == [bench.read(i, "SESSION") for i in range(2)]
        assert bench.lost == [1, 1], "at the start only"
        assert bench.joints == set(range(bench.full - 1)), "packets back to back in beats"
        lanes = [bench.read(i, "LANES") for i in range(2)]
        assert lanes == [0xF, 0xF | 0b1010 << 16], "inverted, by physical lane of the receiver"
        assert [bench.read(i, "STATUS") >> 12 & 1 for i in range(2)] == [0, 1]
        counters = [await bench.counters(i) for i in range(2)]
        for i in range(2):
            assert counters[i]["RECOVERIES"] == 1 and counters[i]["INITIALISATIONS"] == 1
            assert counters[i]["PROTOCOL_ERRORS"] == counters[i]["WIDTH_CHANGES"] == 0
            assert counters[i]["RX_DATA"] == counters[1 - i]["TX_DATA"] > 0
            granules = sum(len(p) for vc in bench.sent[i].values() for p in vc)
            sent = [bench.read(i, 0x340 + 4 * vc) for vc in range(8)]
            got = [bench.read(1 - i, 0x360 + 4 * vc) for vc in range(8)]
            assert sent == got and sum(sent) == granules
        reasons = [bench.read(i, "STATUS") >> 16 & 31 for i in range(2)]
        assert reasons == [Reason.SOFTWARE, Reason.PEER_TRAINING]

    Bench(cable).simulate(scenario)


@pytest.mark.parametrize(
    "delays",
    [
        (1, 6),
        pytest.param((1, 1), marks=pytest.mark.nightly),
        pytest.param((12, 12), marks=pytest.mark.nightly),
    ],
)
def test_round_trip_of_the_real_lanes(delays):
    """Twice the channel's delay and a constant: here from the sampling of a frame to its last
    symbol on the line 8 cycles (it is 8 symbols long; the register is one of them), to the pulse
    that it is good 1, each way: 18.  Alignment adds nothing to it: frames are read before it.
    """

    async def scenario(bench):
        await bench.up()
        for i in range(2):
            assert bench.read(i, "RTT") == (sum(delays) + 18) * 0x10001
            assert bench.read(i, "RTT_MIN") == sum(delays) + 18

    Bench(Cable(delays=delays)).simulate(scenario)


@pytest.mark.nightly
def test_reset_of_one_side_under_traffic():
    """Port 1 is reset: both ends start from nothing, say `lost`, and what is sent afterwards
    arrives.  A packet that was half in `tx` of port 0 is ended as usual and comes to nothing.
    """

    async def scenario(bench):
        ctx = bench.ctx
        await bench.up()
        bench.sending = True
        await bench.run(120)
        session = bench.read(1, "SESSION")
        ctx.set(bench.cable.resets[1], 1)
        bench.sending = bench.checking = False
        for vc in bench.vcs:
            bench.queue[1][vc].clear()
        await bench.step()
        ctx.set(bench.cable.resets[1], 0)
        lost = list(bench.lost)
        await bench.until(lambda: bench.lost[0] > lost[0], 2500)
        await bench.up()
        await bench.until(lambda: not any(bench.queue[0].values()), 200)
        assert bench.lost[1] > lost[1]
        assert bench.read(1, "SESSION") != session
        await bench.run(150)  # what was taken whole behind `lost` arrives
        for i in range(2):
            for table in (bench.sent, bench.got, bench.partial):
                for vc in bench.vcs:
                    table[i][vc].clear()
        bench.sending = bench.checking = True
        await bench.run(120)
        await bench.drain()
        assert sum(len(p) for side in bench.got for p in side.values()) > 10
        assert bench.read(0, "STATUS") >> 24 & 31 == Reason.PEER_RESET

    Bench(Cable()).simulate(scenario)
