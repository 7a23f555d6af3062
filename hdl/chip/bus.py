"""Bus: single accesses of host and sequencers to the 64-bit address map."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.chip.registers import RegisterPort, window_bits
from hdl.lib.axi import AxiRead, AxiWrite
from hdl.lib.localbus import BUS_BITS, BusRequest, LocalBus
from hdl.lib.merge import StreamMerge
from hdl.memory.ports import PsumNarrow, SbufNarrow
from hdl.sequencer.ports import SEMAPHORE_BITS, SemaphoreUpdate
from isa.address_map import (
    CORE_BASE,
    CORE_WINDOW_BYTES,
    PSUM_OFFSET,
    PSUM_STRIDE_BYTES,
    REGISTER_OFFSET,
    SBUF_OFFSET,
    SEMAPHORE_OFFSET,
    SEMAPHORE_VIEW_BYTES,
    SEQUENCERS,
    SemaphoreView,
)
from isa.fields import Update
from isa.geometry import WORD_BYTES

_LANES = WORD_BYTES // 4
_UPDATES = {
    SemaphoreView.SET: Update.SET,
    SemaphoreView.INCREMENT: Update.INCREMENT,
    SemaphoreView.DECREMENT: Update.DECREMENT,
    SemaphoreView.ADD: Update.ADD,
}


class Bus(wiring.Component):
    """One access at a time, round robin over the masters.

    PSUM, semaphores and registers are accessed in lanes of 4 bytes, one after the other; a write to
    semaphores or registers takes the lanes whose four strobes are set.  Sequencers reach HBM, SBUF
    and PSUM, bridges of links SBUF, PSUM and semaphores; everything else, and every address without
    a target, answers with an error and disturbs nothing.

    Members
    -------
    master0 : In(LocalBus)
        The host; master1 ..: the sequencers; behind them the bridges.
    hbm_read, hbm_write : Out(AxiRead), Out(AxiWrite)
    sbuf : Out(SbufNarrow), psum : Out(PsumNarrow)
    update : Out stream of SemaphoreUpdate
    semaphore_index, semaphore_value : Out, In(32)
    register : Out(RegisterPort)
    """

    def __init__(self, config):
        self.config = config
        self.masters = 1 + len(SEQUENCERS) + config.links
        super().__init__(
            {
                **{f"master{i}": In(LocalBus()) for i in range(self.masters)},
                "hbm_read": Out(AxiRead(config)),
                "hbm_write": Out(AxiWrite(config)),
                "sbuf": Out(SbufNarrow(config)),
                "psum": Out(PsumNarrow(config)),
                "update": Out(stream.Signature(SemaphoreUpdate)),
                "semaphore_index": Out(SEMAPHORE_BITS),
                "semaphore_value": In(32),
                "register": Out(RegisterPort(window_bits(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        masters = [getattr(self, f"master{i}") for i in range(self.masters)]
        m.submodules.merge = merge = StreamMerge(BusRequest, self.masters)
        for i, master in enumerate(masters):
            wiring.connect(m, wiring.flipped(master.req), getattr(merge, f"i{i}"))

        request, source = Signal(BusRequest), Signal(self.masters)
        result, error, lane = Signal(BUS_BITS), Signal(), Signal(range(_LANES))
        offset = Signal(exact_log2(CORE_WINDOW_BYTES))
        m.d.comb += offset.eq(request.address)
        lane_data, lane_strobes = Signal(32), Signal(4)
        m.d.comb += [
            lane_data.eq(request.data.word_select(lane, 32)),
            lane_strobes.eq(request.strb.word_select(lane, 4)),
        ]

        def finish(*, value=None, failed=0):
            if value is not None:
                m.d.sync += result.eq(value)
            m.d.sync += error.eq(failed)
            m.next = "ANSWER"

        def next_lane(state):
            m.d.sync += lane.eq(lane + 1)
            with m.If(lane == _LANES - 1):
                finish()
            with m.Else():
                m.next = state

        with m.FSM(name="bus"):
            with m.State("ACCEPT"):
                m.d.comb += merge.o.ready.eq(1)
                m.d.sync += [
                    request.eq(merge.o.p),
                    source.eq(merge.source),
                    lane.eq(0),
                    result.eq(0),
                ]
                with m.If(merge.o.valid):
                    m.next = "DECODE"
            with m.State("DECODE"):
                self._decode(m, request, source, offset, finish)
            self._hbm(m, request, finish)
            self._sbuf(m, request, offset, finish)
            self._psum(m, request, offset, lane, lane_data, lane_strobes, result, next_lane)
            self._semaphores(m, request, offset, lane, lane_data, lane_strobes, result, next_lane)
            self._registers(m, request, offset, lane, lane_data, lane_strobes, result, next_lane)
            with m.State("ANSWER"):
                for i, master in enumerate(masters):
                    m.d.comb += master.resp.valid.eq(source[i])
                    with m.If(source[i] & master.resp.ready):
                        m.next = "ACCEPT"
        for master in masters:
            m.d.comb += [master.resp.p.data.eq(result), master.resp.p.error.eq(error)]
        return m

    def _decode(self, m, request, source, offset, finish):
        config = self.config
        in_core = Signal()
        m.d.comb += in_core.eq(
            (request.address >= CORE_BASE) & (request.address < CORE_BASE + CORE_WINDOW_BYTES)
        )
        sbuf_end = SBUF_OFFSET + config.partitions * config.sbuf_stride_bytes
        psum_end = PSUM_OFFSET + config.partitions * PSUM_STRIDE_BYTES
        semaphore_end = SEMAPHORE_OFFSET + SEMAPHORE_VIEW_BYTES * len(SemaphoreView)
        in_view = SEMAPHORE_VIEW_BYTES // 4
        in_hbm, may_update = request.address < config.hbm_bytes, source[0]
        if config.links:
            bridge = Signal()
            m.d.comb += bridge.eq(source[1 + len(SEQUENCERS) :].any())
            in_hbm, may_update = in_hbm & ~bridge, source[0] | bridge
        with m.If(in_hbm):
            with m.If(request.write):
                m.next = "WRITE_HBM"
            with m.Else():
                m.next = "READ_HBM"
        with m.Elif(
            in_core
            & (offset < sbuf_end)
            & ((offset & (config.sbuf_stride_bytes - 1)) < config.sbuf_bytes)
        ):
            with m.If(request.write):
                m.next = "WRITE_SBUF"
            with m.Else():
                m.next = "READ_SBUF"
        with m.Elif(
            in_core
            & (offset >= PSUM_OFFSET)
            & (offset < psum_end)
            & ((offset & (PSUM_STRIDE_BYTES - 1)) < config.psum_bytes)
        ):
            with m.If(request.write):
                m.next = "WRITE_PSUM"
            with m.Else():
                m.next = "READ_PSUM"
        with m.Elif(
            in_core
            & may_update
            & (offset >= SEMAPHORE_OFFSET)
            & (offset < semaphore_end)
            & ((offset & (SEMAPHORE_VIEW_BYTES - 1)) < in_view)
        ):
            m.next = "SEMAPHORE"
        with m.Elif(
            in_core
            & source[0]
            & (offset >= REGISTER_OFFSET)
            & (offset < REGISTER_OFFSET + (1 << window_bits(config)))
        ):
            m.next = "REGISTER"
        with m.Else():
            finish(failed=1)

    def _hbm(self, m, request, finish):
        read, write = self.hbm_read, self.hbm_write
        m.d.comb += [
            read.ar.p.addr.eq(request.address),
            write.aw.p.addr.eq(request.address),
            write.w.p.data.eq(request.data),
            write.w.p.strb.eq(request.strb),
            write.w.p.last.eq(1),
        ]
        with m.State("READ_HBM"):
            m.d.comb += read.ar.valid.eq(1)
            with m.If(read.ar.ready):
                m.next = "AWAIT_READ"
        with m.State("AWAIT_READ"):
            m.d.comb += read.r.ready.eq(1)
            with m.If(read.r.valid):
                finish(value=read.r.p.data, failed=read.r.p.resp[1])
        with m.State("WRITE_HBM"):
            m.d.comb += write.aw.valid.eq(1)
            with m.If(write.aw.ready):
                m.next = "WRITE_HBM_DATA"
        with m.State("WRITE_HBM_DATA"):
            m.d.comb += write.w.valid.eq(1)
            with m.If(write.w.ready):
                m.next = "AWAIT_WRITE"
        with m.State("AWAIT_WRITE"):
            m.d.comb += write.b.ready.eq(1)
            with m.If(write.b.valid):
                finish(failed=write.b.p.resp[1])

    def _sbuf(self, m, request, offset, finish):
        port = self.sbuf
        stride_bits = exact_log2(self.config.sbuf_stride_bytes)
        for payload in (port.read.p, port.write.p):
            m.d.comb += [
                payload.partition.eq(offset >> stride_bits),
                payload.word.eq(offset[exact_log2(WORD_BYTES) : stride_bits]),
            ]
        m.d.comb += [port.write.p.bytes.eq(request.strb), port.write.p.data.eq(request.data)]
        with m.State("READ_SBUF"):
            m.d.comb += port.read.valid.eq(1)
            with m.If(port.read.ready):
                m.next = "AWAIT_SBUF"
        with m.State("AWAIT_SBUF"), m.If(port.valid):
            finish(value=port.data)
        with m.State("WRITE_SBUF"):
            m.d.comb += port.write.valid.eq(1)
            with m.If(port.write.ready):
                finish()

    def _psum(self, m, request, offset, lane, lane_data, lane_strobes, result, next_lane):
        port = self.psum
        stride_bits = exact_log2(PSUM_STRIDE_BYTES)
        word = Signal(stride_bits - 2)
        m.d.comb += word.eq(offset[2:stride_bits] | lane)
        for payload in (port.read.p, port.write.p):
            m.d.comb += [
                payload.partition.eq((offset - PSUM_OFFSET) >> stride_bits),
                payload.word.eq(word),
            ]
        m.d.comb += [port.write.p.bytes.eq(lane_strobes), port.write.p.data.eq(lane_data)]
        with m.State("READ_PSUM"):
            m.d.comb += port.read.valid.eq(1)
            with m.If(port.read.ready):
                m.next = "AWAIT_PSUM"
        with m.State("AWAIT_PSUM"), m.If(port.valid):
            m.d.sync += result.word_select(lane, 32).eq(port.data)
            next_lane("READ_PSUM")
        with m.State("WRITE_PSUM"):
            m.d.comb += port.write.valid.eq(lane_strobes.any())
            with m.If(port.write.ready | ~port.write.valid):
                next_lane("WRITE_PSUM")

    def _semaphores(self, m, request, offset, lane, lane_data, lane_strobes, result, next_lane):
        view_bits = exact_log2(SEMAPHORE_VIEW_BYTES)
        index = Signal(SEMAPHORE_BITS)
        m.d.comb += [
            index.eq(offset[2:] | lane),
            self.semaphore_index.eq(index),
            self.update.p.semaphore.eq(index),
            self.update.p.value.eq(lane_data),
        ]
        with m.State("SEMAPHORE"):
            with m.Switch(offset[view_bits : view_bits + 2]):
                for view, kind in _UPDATES.items():
                    with m.Case(int(view)):
                        m.d.comb += self.update.p.kind.eq(kind)
            m.d.comb += self.update.valid.eq(request.write & lane_strobes.all())
            m.d.sync += result.word_select(lane, 32).eq(self.semaphore_value)
            with m.If(self.update.ready | ~self.update.valid):
                next_lane("SEMAPHORE")

    def _registers(self, m, request, offset, lane, lane_data, lane_strobes, result, next_lane):
        port = self.register
        bits = window_bits(self.config)
        m.d.comb += [port.offset.eq(offset[:bits] | (lane << 2)), port.data.eq(lane_data)]
        with m.State("REGISTER"):
            m.d.comb += port.write.eq(request.write & lane_strobes.all())
            m.d.sync += result.word_select(lane, 32).eq(port.value)
            next_lane("REGISTER")
