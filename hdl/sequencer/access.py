"""Access: the control instructions that have an address: reg_load, reg_store, dma_trigger."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.lib.localbus import LocalBus
from hdl.sequencer.address import AddressCheck
from hdl.sequencer.layout import bind
from hdl.sequencer.ports import CAUSE_BITS, DmaTrigger
from isa.address_map import Cause
from isa.geometry import WORD_BYTES

_WORDS = WORD_BYTES // 4


class Access(wiring.Component):
    """Checks the address and does the access.  One at a time.

    Members
    -------
    start : In(1), base, offset : In
        Pulse: begin at the address base + offset (modulo 2^64).
    store, queue : In(1)
        It is a reg_store, a dma_trigger; constant until the end, like those that follow.
    value : In(32)
        Word to store.
    engine : In(4), count : In(32)
        DMA engine; descriptors, signed.
    done : Out(1)
        Pulse: complete.  `word`: what was loaded.
    fail : Out(1), cause : Out
        Pulse: not possible.
    bus : Out(LocalBus), trigger : Out stream of DmaTrigger
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "base": In(64),
                "offset": In(32),
                "store": In(1),
                "queue": In(1),
                "value": In(32),
                "engine": In(4),
                "count": In(32),
                "done": Out(1),
                "word": Out(32),
                "fail": Out(1),
                "cause": Out(CAUSE_BITS),
                "bus": Out(LocalBus()),
                "trigger": Out(stream.Signature(DmaTrigger)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        address = Signal(64)
        m.submodules.check = check = AddressCheck(self.config)
        request, response = self.bus.req, self.bus.resp
        place = bind(m, "place", address[exact_log2(4) : exact_log2(WORD_BYTES)])
        m.d.comb += [
            check.address.eq(address),
            request.p.address.eq(address & ~Const(WORD_BYTES - 1, len(address))),
            request.p.write.eq(self.store),
            request.p.strb.word_select(place, 4).eq(-1),
            request.p.data.eq(self.value.replicate(_WORDS)),
            self.trigger.p.engine.eq(self.engine),
            self.trigger.p.address.eq(address),
            self.trigger.p.count.eq(self.count),
            self.word.eq(response.p.data.word_select(place, 32)),
        ]
        with m.FSM(name="access"):
            with m.State("START"), m.If(self.start):
                m.d.sync += address.eq(self.base + self.offset)
                m.next = "CHECK"
            with m.State("CHECK"):
                self._check(m, check)
            with m.State("QUEUE"):
                m.d.comb += [self.trigger.valid.eq(1), self.done.eq(self.trigger.ready)]
                with m.If(self.trigger.ready):
                    m.next = "START"
            with m.State("REQUEST"):
                m.d.comb += request.valid.eq(1)
                with m.If(request.ready):
                    m.next = "RESPOND"
            with m.State("RESPOND"):
                m.d.comb += response.ready.eq(1)
                with m.If(response.valid & response.p.error):
                    self._fail(m, Cause.BUS_ERROR)
                with m.Elif(response.valid):
                    m.d.comb += self.done.eq(1)
                    m.next = "START"
        return m

    def _check(self, m, check):
        with m.If(~self.queue & ~check.word):
            self._fail(m, Cause.BAD_ADDRESS)
        with m.Elif(~self.queue):
            m.next = "REQUEST"
        with m.Elif(~check.descriptor):
            self._fail(m, Cause.BAD_ADDRESS)
        with m.Elif(self.engine >= self.config.dma_engines):
            self._fail(m, Cause.BAD_DMA_ENGINE)
        with m.Elif(self.count.as_signed() <= 0):
            m.d.comb += self.done.eq(1)
            m.next = "START"
        with m.Else():
            m.next = "QUEUE"

    def _fail(self, m, cause):
        m.d.comb += [self.fail.eq(1), self.cause.eq(cause)]
        m.next = "START"
