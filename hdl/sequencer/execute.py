"""Execute: stage 2 of a sequencer.  Waits, executes control instructions, issues the others."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.lib.issue import Issue
from hdl.lib.localbus import LocalBus
from hdl.sequencer.access import Access
from hdl.sequencer.alu import RegisterAlu
from hdl.sequencer.layout import bind, has_datapath, work_layout
from hdl.sequencer.ports import CAUSE_BITS, PC_BITS, REGISTER_BITS, DmaTrigger, SemaphoreUpdate
from hdl.sequencer.updates import ENTRY
from isa.address_map import Cause
from isa.fields import Update
from isa.instructions import BY_NAME, INSTRUCTIONS


class Execute(wiring.Component):
    """Takes the next instruction when the last one has been issued or executed.

    An engine instruction takes 3 cycles at best, one of them to wait; a control instruction 3, one
    more with an update, and 2 more for an address.

    Members
    -------
    work : In stream of `work_layout`
    run : In(1)
        0: take nothing.
    watchdog : In(32)
    semaphore_value : In(32)
        Value of the semaphore `current.wait_semaphore`, combinational.
    current : Out of `work_layout`
        The instruction held; the last one after a stop.
    issue : Out stream of Issue
    entry : Out stream of ENTRY
        The instruction is in flight.
    control_update : Out stream of SemaphoreUpdate
    nothing_in_flight, quiet, unseen : In(1)
        From `Updates`.  While an update of its own is unseen no wait ends and no address is
        accessed: what follows a control instruction finds the semaphore as it left it.
    a, b : In(32)
        Registers `current.ra` and `current.rb`.
    w_en, w_index, w_value : Out
        Write port of the registers.
    hold : Out(1)
        A register may still be written.
    branch, taken, enter, target, count : Out, flow_cause : In
        See `Flow`.
    notify, retire, halt : Out(1)
        Pulses: `current.imm` is notified; a control instruction is complete; it is a halt.
    fail : Out(1), cause : Out
        Pulse: the sequencer stops because of `cause`.
    waiting, passed : Out(1)
        It has waited for a cycle and more; pulse: the wait, if any, is over.
    bus : Out(LocalBus), trigger : Out stream of DmaTrigger
    """

    def __init__(self, config, sequencer):
        self.config, self.sequencer = config, sequencer
        layout = work_layout(sequencer)
        super().__init__(
            {
                "work": In(stream.Signature(layout)),
                "run": In(1),
                "watchdog": In(32),
                "semaphore_value": In(32),
                "current": Out(layout),
                "issue": Out(stream.Signature(Issue)),
                "entry": Out(stream.Signature(ENTRY)),
                "control_update": Out(stream.Signature(SemaphoreUpdate)),
                "nothing_in_flight": In(1),
                "quiet": In(1),
                "unseen": In(1),
                "a": In(32),
                "b": In(32),
                "w_en": Out(1),
                "w_index": Out(REGISTER_BITS),
                "w_value": Out(32),
                "hold": Out(1),
                "target": Out(PC_BITS),
                "count": Out(32),
                "branch": Out(1),
                "taken": Out(1),
                "enter": Out(1),
                "flow_cause": In(CAUSE_BITS),
                "notify": Out(1),
                "retire": Out(1),
                "halt": Out(1),
                "fail": Out(1),
                "cause": Out(CAUSE_BITS),
                "waiting": Out(1),
                "passed": Out(1),
                "bus": Out(LocalBus()),
                "trigger": Out(stream.Signature(DmaTrigger)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        current = self.current
        self._names = {
            name: bind(m, f"is_{name}", current.opcode == i.opcode)
            for name, i in BY_NAME.items()
            if not i.datapath
        }
        is_ = self._names
        fenced = bind(m, "fenced", _any(is_[i.name] for i in INSTRUCTIONS if i.fenced))
        datapath = bind(m, "datapath", ~_any(is_.values()))
        # Takes part in the order of updates without engine work.
        instant = bind(m, "instant", is_["nop"] | is_["sem_wait"] | current.no_work)
        addressed = bind(m, "addressed", is_["reg_load"] | is_["reg_store"] | is_["dma_trigger"])
        flowing = bind(m, "flowing", is_["branch"] | is_["loop"])

        # Registers follow `current` by a cycle, the one in which it waits at least.
        a, b = Signal(32), Signal(32)
        m.d.sync += [a.eq(self.a), b.eq(Mux(current.use_imm, current.imm, self.b))]
        stored = Signal(32)
        m.d.sync += stored.eq(self.b)
        m.submodules.alu = alu = RegisterAlu()
        m.submodules.access = access = Access(self.config)
        m.d.comb += [alu.op.eq(current.alu_op), alu.cond.eq(current.cond), alu.a.eq(a), alu.b.eq(b)]

        waited = Signal(32)
        enough = self.semaphore_value.as_signed() >= current.wait_value
        reached = bind(m, "reached", ~current.wait | (enough & ~self.unseen))
        expired = bind(m, "expired", (self.watchdog != 0) & (waited >= self.watchdog))
        m.d.comb += [
            self.entry.p.update.semaphore.eq(current.update_semaphore),
            self.entry.p.update.kind.eq(current.update_kind),
            self.entry.p.update.value.eq(current.update_value),
            self.entry.p.at_read.eq(current.update_at_read),
            self.entry.p.instant.eq(instant),
            self.control_update.p.eq(self.entry.p.update),
            self.target.eq(current.target),
            self.count.eq(b),
            self.taken.eq(alu.holds),
            self.w_index.eq(current.rd),
            self.w_value.eq(Mux(is_["reg_load"], access.word, alu.o)),
            access.base.eq(current.address),
            access.offset.eq(Mux(current.address_reg, a, 0)),
            access.store.eq(is_["reg_store"]),
            access.queue.eq(is_["dma_trigger"]),
            access.value.eq(stored),
            access.engine.eq(current.dma_engine),
            access.count.eq(b),
        ]
        connect(m, access.bus, flipped(self.bus))
        connect(m, access.trigger, flipped(self.trigger))
        if has_datapath(self.sequencer):
            m.d.comb += self.issue.p.eq(current.issue)

        executes = bind(
            m, "executes", (~fenced | self.nothing_in_flight) & ~(addressed & self.unseen)
        )
        with m.FSM(name="execute") as fsm:
            with m.State("TAKE"):
                m.d.comb += self.work.ready.eq(self.run)
                with m.If(self.work.valid & self.run):
                    m.d.sync += [current.eq(self.work.p), waited.eq(0)]
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += waited.eq(waited + 1)
                with m.If(current.cause != Cause.NONE):
                    self._fail(m, current.cause)
                with m.Elif(~reached):
                    m.d.comb += self.waiting.eq(waited != 0)
                    with m.If(expired):
                        self._fail(m, Cause.WAIT_TIMEOUT)
                with m.Else():
                    m.d.comb += self.passed.eq(1)
                    with m.If(instant):
                        m.next = "ENTER"
                    with m.Elif(datapath):
                        m.next = "ISSUE"
                    with m.Else():
                        m.next = "EXECUTE"
            with m.State("ENTER"):
                m.d.comb += self.entry.valid.eq(1)
                with m.If(self.entry.ready):
                    m.next = "TAKE"
            with m.State("ISSUE"):
                m.d.comb += [
                    self.issue.valid.eq(self.entry.ready),
                    self.entry.valid.eq(self.issue.valid & self.issue.ready),
                ]
                with m.If(self.entry.valid):
                    m.next = "TAKE"
            with m.State("EXECUTE"), m.If(executes):
                with m.If(addressed):
                    m.d.comb += access.start.eq(1)
                    m.next = "ACCESS"
                with m.Elif(flowing):
                    m.d.comb += [self.branch.eq(is_["branch"]), self.enter.eq(is_["loop"])]
                    with m.If(self.flow_cause != Cause.NONE):
                        self._fail(m, self.flow_cause)
                    with m.Else():
                        self._executed(m)
                with m.Else():
                    m.d.comb += [
                        self.w_en.eq(is_["reg_alu"]),
                        self.notify.eq(is_["notify"]),
                    ]
                    self._executed(m)
            with m.State("ACCESS"):
                m.d.comb += self.w_en.eq(access.done & is_["reg_load"])
                with m.If(access.fail):
                    self._fail(m, access.cause)
                with m.Elif(access.done):
                    self._executed(m)
            with m.State("UPDATE"):
                m.d.comb += self.control_update.valid.eq(1)
                with m.If(self.control_update.ready):
                    self._finish(m)
            with m.State("DRAIN"), m.If(self.quiet):
                m.d.comb += [self.halt.eq(1), self.retire.eq(1)]
                m.next = "TAKE"
        m.d.comb += self.hold.eq(~fsm.ongoing("TAKE") & (is_["reg_alu"] | is_["reg_load"]))
        return m

    def _fail(self, m, cause):
        m.d.comb += [self.fail.eq(1), self.cause.eq(cause)]
        m.next = "TAKE"

    def _executed(self, m):
        """The control instruction has done its work; its update follows."""
        with m.If(self.current.update_kind != Update.NONE):
            m.next = "UPDATE"
        with m.Else():
            self._finish(m)

    def _finish(self, m):
        """The control instruction is complete; a halt waits until its updates have been taken."""
        with m.If(self._names["halt"]):
            m.next = "DRAIN"
        with m.Else():
            m.d.comb += self.retire.eq(1)
            m.next = "TAKE"


def _any(conditions):
    found = Const(0, 1)
    for condition in conditions:
        found = found | condition
    return found
