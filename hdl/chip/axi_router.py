"""AxiRouter: one AXI master onto HBM and the links, by address."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.axi import AxiRead, AxiWrite, address_layout, write_data_layout
from hdl.lib.fifo import StreamFifo
from isa.address_map import PEER_WINDOW_BITS

_OUTSTANDING_BITS = 8
_BUFFER_BEATS = 64
_BUFFER_BURSTS = 8


class AxiRouter(wiring.Component):
    """Address bits from 45 up choose: 0 is HBM, p + 1 is link port p, which gets the other bits.

    Bursts go to one target at a time: another target waits for all answers of the one before.  So
    no answer waits behind one of a peer, who may wait for us.

    Members
    -------
    read, write : In(AxiRead), In(AxiWrite), without ids, addresses of a target that exists
    read0, write0 : Out
        HBM.  A burst is announced when all its data are here: an HBM port is never held while data
        from a peer are awaited.
    read1, write1 .. : Out
        Link ports.
    """

    def __init__(self, config):
        self.config, self.targets = config, 1 + config.links
        self.tile_parameters = (config.links,)
        super().__init__(
            {
                "read": In(AxiRead(config)),
                "write": In(AxiWrite(config)),
                **{f"read{i}": Out(AxiRead(config)) for i in range(self.targets)},
                **{f"write{i}": Out(AxiWrite(config)) for i in range(self.targets)},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = BurstBuffer(self.config)
        wiring.connect(m, buffer.o, wiring.flipped(self.write0))
        reads = [getattr(self, f"read{i}") for i in range(self.targets)]
        writes = [buffer.i] + [getattr(self, f"write{i}") for i in range(1, self.targets)]
        self._read(m, reads)
        self._write(m, writes)
        return m

    def _choose(self, m, name, channel, sent, answered):
        """(target of the bursts under way, the offered burst may go to the target it is for)."""
        under_way = Signal(_OUTSTANDING_BITS, name=f"{name}_under_way")
        current = Signal(range(self.targets), name=f"{name}_target")
        wanted, may = Signal.like(current, name=f"{name}_wanted"), Signal(name=f"{name}_may")
        m.d.comb += [
            wanted.eq(channel.p.addr >> PEER_WINDOW_BITS),
            may.eq(((under_way == 0) | (wanted == current)) & ~under_way.all()),
        ]
        m.d.sync += under_way.eq(under_way + sent - answered)
        with m.If(sent):
            m.d.sync += current.eq(wanted)
        return current, wanted, may

    def _read(self, m, ports):
        ar, r, sent, answered = self.read.ar, self.read.r, Signal(), Signal()
        current, wanted, may = self._choose(m, "read", ar, sent, answered)
        m.d.comb += [
            sent.eq(ar.valid & ar.ready),
            answered.eq(r.valid & r.ready & r.p.last),
        ]
        for i, port in enumerate(ports):
            m.d.comb += [
                port.ar.valid.eq(ar.valid & may & (wanted == i)),
                port.ar.p.addr.eq(ar.p.addr[:PEER_WINDOW_BITS]),
                port.ar.p.len.eq(ar.p.len),
            ]
            with m.If(wanted == i):
                m.d.comb += ar.ready.eq(port.ar.ready & may)
            with m.If(current == i):
                m.d.comb += [
                    r.valid.eq(port.r.valid),
                    r.p.eq(port.r.p),
                    port.r.ready.eq(r.ready),
                ]

    def _write(self, m, ports):
        aw, w, b = self.write.aw, self.write.w, self.write.b
        sent, answered = Signal(), Signal()
        current, wanted, may = self._choose(m, "write", aw, sent, answered)
        # Bursts whose address has gone and whose data have not; data wait for their address.
        open_, put, ended = Signal(_OUTSTANDING_BITS), Signal(), Signal()
        m.d.comb += [
            sent.eq(aw.valid & aw.ready),
            answered.eq(b.valid & b.ready),
            put.eq(w.valid & w.ready),
            ended.eq(put & w.p.last),
        ]
        m.d.sync += open_.eq(open_ + sent - ended)
        for i, port in enumerate(ports):
            m.d.comb += [
                port.aw.valid.eq(aw.valid & may & (wanted == i)),
                port.aw.p.addr.eq(aw.p.addr[:PEER_WINDOW_BITS]),
                port.aw.p.len.eq(aw.p.len),
                port.w.p.eq(w.p),
            ]
            with m.If(wanted == i):
                m.d.comb += aw.ready.eq(port.aw.ready & may)
            with m.If(current == i):
                m.d.comb += [
                    port.w.valid.eq(w.valid & (open_ != 0)),
                    w.ready.eq(port.w.ready & (open_ != 0)),
                    b.valid.eq(port.b.valid),
                    b.p.eq(port.b.p),
                    port.b.ready.eq(b.ready),
                ]


class BurstBuffer(wiring.Component):
    """Announces a write burst when all its data are here.

    Members: `i` In(AxiWrite), `o` Out(AxiWrite), without ids.  One beat a cycle; bursts of up to
    64 beats; the data of a burst follow each other without a gap.
    """

    def __init__(self, config):
        super().__init__({"i": In(AxiWrite(config)), "o": Out(AxiWrite(config))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.beats = beats = StreamFifo(write_data_layout(), depth=_BUFFER_BEATS)
        m.submodules.bursts = bursts = StreamFifo(address_layout(), depth=_BUFFER_BURSTS)
        wiring.connect(m, wiring.flipped(self.i.w), beats.i)
        wiring.connect(m, wiring.flipped(self.i.aw), bursts.i)
        wiring.connect(m, beats.o, wiring.flipped(self.o.w))
        # Bursts whose last beat has come and whose address has not gone.
        whole, came, gone = Signal(range(_BUFFER_BEATS + 1)), Signal(), Signal()
        m.d.comb += [
            came.eq(beats.i.valid & beats.i.ready & beats.i.p.last),
            self.o.aw.valid.eq(bursts.o.valid & (whole != 0)),
            self.o.aw.p.eq(bursts.o.p),
            bursts.o.ready.eq(self.o.aw.ready & (whole != 0)),
            gone.eq(self.o.aw.valid & self.o.aw.ready),
            self.i.b.valid.eq(self.o.b.valid),
            self.i.b.p.eq(self.o.b.p),
            self.o.b.ready.eq(self.i.b.ready),
        ]
        m.d.sync += whole.eq(whole + came - gone)
        return m
