"""Sequencer: runs one instruction stream."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.lib.axi import AxiRead
from hdl.lib.check import check_stream
from hdl.lib.issue import EngineSignature
from hdl.lib.localbus import LocalBus
from hdl.sequencer.execute import Execute
from hdl.sequencer.fetch import Fetch
from hdl.sequencer.flow import Flow
from hdl.sequencer.layout import bind
from hdl.sequencer.ports import SEMAPHORE_BITS, DmaTrigger, SemaphoreUpdate, SequencerControl
from hdl.sequencer.prepare import Prepare
from hdl.sequencer.registers import RegisterFile
from hdl.sequencer.updates import Updates
from isa.address_map import Cause, State
from isa.address_map import Sequencer as SequencerIndex
from isa.geometry import INSTRUCTION_BYTES


class Sequencer(wiring.Component):
    """Fetches, checks and executes the stream of `index` (`isa.address_map.Sequencer`).

    Meaning of instructions, order of checks: `isa.instructions`.  Out of the buffer an engine
    instruction leaves every 5 cycles, a control instruction takes 6 or less; 64 cycles pass after
    `start` while the registers are cleared.

    Members
    -------
    control : In(SequencerControl)
    fetch : Out(AxiRead)
    engine : Out(EngineSignature)
        Never used by a sequencer without an engine.
    semaphore_index : Out, semaphore_value : In(32)
        Read port of the semaphores, combinational.
    update : Out stream of SemaphoreUpdate
    bus : Out(LocalBus)
    trigger : Out stream of DmaTrigger
    """

    def __init__(self, config, index):
        self.config, self.index = config, SequencerIndex(index)
        super().__init__(
            {
                "control": In(SequencerControl()),
                "fetch": Out(AxiRead(config)),
                "engine": Out(EngineSignature()),
                "semaphore_index": Out(SEMAPHORE_BITS),
                "semaphore_value": In(32),
                "update": Out(stream.Signature(SemaphoreUpdate)),
                "bus": Out(LocalBus()),
                "trigger": Out(stream.Signature(DmaTrigger)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetch = fetch = Fetch(self.config)
        m.submodules.flow = flow = Flow()
        m.submodules.prepare = prepare = Prepare(self.config, self.index)
        m.submodules.execute = execute = Execute(self.config, self.index)
        m.submodules.updates = updates = Updates()
        m.submodules.registers = registers = RegisterFile(reads=4)
        control = self.control
        state = Signal(State)
        running = bind(m, "running", state == State.RUNNING)
        m.d.comb += control.busy.eq(running | ~updates.quiet)
        start = bind(m, "start", control.start & ~control.busy)
        begin = bind(m, "begin", start & (control.length != 0))

        # The whole stream must lie in HBM; longer addresses would alias.
        end = bind(
            m,
            "stream_end",
            control.stream_address + (control.length << ceil_log2(INSTRUCTION_BYTES)),
        )
        misplaced = bind(
            m,
            "misplaced",
            (end > self.config.hbm_bytes)
            | control.stream_address[: ceil_log2(INSTRUCTION_BYTES)].any(),
        )
        bad_stream = Signal()
        with m.If(start):
            m.d.sync += bad_stream.eq(misplaced)

        past_end = bind(m, "past_end", flow.pc >= control.length)
        m.d.comb += [
            fetch.start.eq(begin),
            fetch.stop.eq(~running | bad_stream),
            fetch.address.eq(control.stream_address),
            fetch.length.eq(control.length),
            fetch.pc.eq(flow.pc),
            fetch.settled.eq(flow.settled),
            prepare.i.valid.eq(
                running & ~registers.clearing & flow.settled & (fetch.hit | past_end | bad_stream)
            ),
            prepare.i.p.pc.eq(flow.pc),
            prepare.i.p.word.eq(fetch.word),
            prepare.i.p.cause.eq(
                Mux(
                    bad_stream,
                    Cause.BAD_ADDRESS,
                    Mux(
                        past_end, Cause.PC_OUT_OF_RANGE, Mux(fetch.bad, Cause.BUS_ERROR, Cause.NONE)
                    ),
                )
            ),
            prepare.hold.eq(execute.hold),
            prepare.value.eq(registers.value0),
            prepare.forget.eq(start),
            flow.start.eq(start),
            flow.take.eq(prepare.i.valid & prepare.i.ready),
            flow.flow.eq(prepare.flow),
            flow.branch.eq(execute.branch),
            flow.taken.eq(execute.taken),
            flow.enter.eq(execute.enter),
            flow.target.eq(execute.target),
            flow.count.eq(execute.count),
            flow.length.eq(control.length),
            execute.flow_cause.eq(flow.cause),
            execute.run.eq(running),
            execute.watchdog.eq(control.watchdog),
            self.semaphore_index.eq(execute.current.wait_semaphore),
            execute.semaphore_value.eq(self.semaphore_value),
            execute.nothing_in_flight.eq(updates.empty),
            execute.quiet.eq(updates.quiet),
            execute.unseen.eq(updates.unseen),
            updates.read_done.eq(self.engine.read_done),
            updates.complete.eq(self.engine.complete),
            registers.clear.eq(start),
            registers.w_en.eq(execute.w_en),
            registers.w_index.eq(execute.w_index),
            registers.w_value.eq(execute.w_value),
            registers.index0.eq(prepare.index),
            registers.index1.eq(execute.current.ra),
            execute.a.eq(registers.value1),
            registers.index2.eq(execute.current.rb),
            execute.b.eq(registers.value2),
            registers.index3.eq(control.gpr_index),
            control.gpr_value.eq(registers.value3),
        ]
        connect(m, prepare.o, execute.work)
        connect(m, execute.entry, updates.put)
        connect(m, execute.control_update, updates.control)
        connect(m, fetch.axi, flipped(self.fetch))
        connect(m, execute.bus, flipped(self.bus))
        connect(m, execute.trigger, flipped(self.trigger))
        connect(m, updates.update, flipped(self.update))
        connect(m, execute.issue, flipped(self.engine.issue))
        self._status(m, state, start, execute, updates)
        for port, name in (
            (self.fetch.ar, "fetch"),
            (self.engine.issue, "issue"),
            (self.update, "update"),
            (self.trigger, "trigger"),
            (self.bus.req, "bus"),
        ):
            check_stream(m, platform, port, f"{self.index.text}_{name}")
        return m

    def _status(self, m, state, start, execute, updates):
        control, current = self.control, execute.current
        m.d.comb += control.state.eq(Mux(execute.waiting, State.WAITING, state))
        m.d.sync += control.retired.eq(control.retired + execute.retire + updates.retire)
        taken = bind(m, "taken", execute.work.valid & execute.work.ready)
        waits = bind(m, "waits", execute.work.p.wait & (execute.work.p.cause == Cause.NONE))
        with m.If(execute.passed):
            m.d.sync += [control.wait_semaphore.eq(0), control.wait_value.eq(0)]
        with m.If(taken):
            m.d.sync += control.pc.eq(execute.work.p.pc)
        with m.If(taken & waits):
            m.d.sync += [
                control.wait_semaphore.eq(execute.work.p.wait_semaphore),
                control.wait_value.eq(execute.work.p.wait_value),
            ]
        with m.If(execute.notify):
            m.d.sync += [
                control.notify_value.eq(current.imm),
                control.notify_count.eq(control.notify_count + 1),
            ]
        with m.If(execute.halt):
            m.d.sync += state.eq(State.HALTED)
        with m.If(execute.fail):
            m.d.sync += [state.eq(State.ERROR), control.cause.eq(execute.cause)]
        with m.If(control.clear & (state == State.ERROR)):
            m.d.sync += [state.eq(State.IDLE), control.cause.eq(Cause.NONE)]
        with m.If(start):
            m.d.sync += [
                state.eq(Mux(control.length != 0, State.RUNNING, State.IDLE)),
                *[
                    getattr(control, name).eq(0)
                    for name in (
                        "cause",
                        "pc",
                        "retired",
                        "wait_semaphore",
                        "wait_value",
                        "notify_value",
                        "notify_count",
                    )
                ],
            ]
