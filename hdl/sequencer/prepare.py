"""Prepare: stage 1 of a sequencer.  Decodes, substitutes registers and checks one instruction."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.issue import Issue
from hdl.sequencer.check import OperandCheck
from hdl.sequencer.decode import Decoder
from hdl.sequencer.layout import (
    FETCHED,
    IMMEDIATES,
    WORD_BITS,
    bind,
    column_slots,
    has_datapath,
    operand_slots,
    word_layout,
    work_layout,
)
from hdl.sequencer.ports import CAUSE_BITS, REGISTER_BITS
from hdl.sequencer.resolve import Resolver
from isa.address_map import Cause
from isa.fields import DIMS


class Step(enum.Enum, shape=3):
    """What stage 1 does."""

    EMPTY = 0
    DECODE = 1
    RESOLVE = 2
    MULTIPLY_INNER = 3
    MULTIPLY_OUTER = 4
    SUM = 5
    HAND_OVER = 6


class Prepare(wiring.Component):
    """One instruction at a time; it goes to stage 2 with its Cause.

    An engine instruction takes 5 cycles, a control instruction 2, and 1 more for each register that
    is substituted.  The next one is taken in the cycle in which stage 2 takes this one.

    Members
    -------
    i : In stream of FETCHED
    o : Out stream of `work_layout`
    hold : In(1)
        Stage 2 may still write a register: substitute nothing.
    index : Out, value : In
        Register read port, combinational.
    flow : Out(1)
        In the cycle after `i` was taken: it is one of `decode.FLOW`.
    forget : In(1)
        Drop everything (start of a stream).
    """

    def __init__(self, config, sequencer):
        self.config, self.sequencer = config, sequencer
        self.layout = word_layout(sequencer)
        super().__init__(
            {
                "i": In(stream.Signature(FETCHED)),
                "o": Out(stream.Signature(work_layout(sequencer))),
                "hold": In(1),
                "index": Out(REGISTER_BITS),
                "value": In(32),
                "flow": Out(1),
                "forget": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder = decoder = Decoder(self.sequencer)
        m.submodules.resolver = resolver = Resolver(self.sequencer)
        step = Signal(Step)
        raw = Signal(WORD_BITS, name="word")
        fetched_cause, static_cause = Signal(CAUSE_BITS), Signal(CAUSE_BITS)
        pc = Signal.like(self.i.p.pc)
        load = bind(m, "load", self.i.valid & self.i.ready)
        decoded = bind(m, "decoded", Mux(fetched_cause != Cause.NONE, fetched_cause, decoder.cause))
        m.d.comb += [
            self.i.ready.eq((step == Step.EMPTY) | ((step == Step.HAND_OVER) & self.o.ready)),
            self.o.valid.eq(step == Step.HAND_OVER),
            resolver.word.eq(raw),
            resolver.flags.eq(decoder.flags),
            resolver.arm.eq(step == Step.DECODE),
            resolver.value.eq(self.value),
            self.index.eq(resolver.index),
            decoder.word.eq(raw),
            self.flow.eq((step == Step.DECODE) & decoder.flow & (decoded == Cause.NONE)),
        ]

        after = Signal(Step)  # Where an instruction goes whose registers are substituted.
        m.d.comb += after.eq(Mux(decoder.datapath, Step.MULTIPLY_INNER, Step.HAND_OVER))
        work, checked_cause, no_work = self._datapath(m, raw, decoder, resolver, step)
        with m.Switch(step):
            with m.Case(Step.DECODE):
                m.d.sync += static_cause.eq(decoded)
                with m.If(decoded != Cause.NONE):
                    m.d.sync += step.eq(Step.HAND_OVER)
                with m.Elif(decoder.flags.any()):
                    m.d.sync += step.eq(Step.RESOLVE)
                with m.Else():
                    m.d.sync += step.eq(after)
            with m.Case(Step.RESOLVE):
                m.d.comb += resolver.step.eq(~self.hold)
                with m.If(~self.hold & resolver.last):
                    m.d.sync += step.eq(after)
            with m.Case(Step.MULTIPLY_INNER):
                m.d.sync += step.eq(Mux(no_work, Step.HAND_OVER, Step.MULTIPLY_OUTER))
            with m.Case(Step.MULTIPLY_OUTER):
                m.d.sync += step.eq(Step.SUM)
            with m.Case(Step.SUM):
                m.d.sync += step.eq(Step.HAND_OVER)
            with m.Case(Step.HAND_OVER), m.If(self.o.ready):
                m.d.sync += step.eq(Step.EMPTY)
        with m.If(load):
            m.d.sync += [
                step.eq(Step.DECODE),
                raw.eq(self.i.p.word),
                pc.eq(self.i.p.pc),
                fetched_cause.eq(self.i.p.cause),
            ]
        with m.If(self.forget):
            m.d.sync += step.eq(Step.EMPTY)

        word = data.View(self.layout, raw)
        resolved = ("wait_value", "update_value")
        copied = set(self.o.p.shape().members) - {"cause", "pc", "no_work", "issue", *resolved}
        m.d.comb += [self.o.p[name].eq(word[name]) for name in sorted(copied)]
        m.d.comb += [self.o.p[name].eq(resolver.fields[name]) for name in resolved]
        m.d.comb += [
            self.o.p.cause.eq(Mux(static_cause != Cause.NONE, static_cause, checked_cause)),
            self.o.p.pc.eq(pc),
            self.o.p.no_work.eq(no_work),
            *work,
        ]
        return m

    def _datapath(self, m, raw, decoder, resolver, step):
        """(assignments of the issue, Cause of the operands, no work)."""
        if not has_datapath(self.sequencer):
            return [], Cause.NONE, 0
        m.submodules.check = check = OperandCheck(self.config, self.sequencer)
        phases = (Step.MULTIPLY_INNER, Step.MULTIPLY_OUTER, Step.SUM)
        cause = bind(
            m, "checked_cause", Mux(decoder.datapath & ~check.no_work, check.cause, Cause.NONE)
        )
        accept = bind(
            m,
            "accept",
            self.o.valid
            & self.o.ready
            & decoder.datapath
            & ~check.no_work
            & (self.o.p.cause == Cause.NONE),
        )
        m.d.comb += [
            check.word.eq(raw),
            check.fields.eq(resolver.fields),
            check.big.eq(resolver.big),
            check.operands.eq(decoder.operands),
            check.columns.eq(decoder.columns),
            check.phase.eq(Cat(step == phase for phase in phases)),
            check.accept.eq(accept),
            check.forget.eq(self.forget),
        ]
        return self._issue(raw, resolver.fields, check), cause, decoder.datapath & check.no_work

    def _issue(self, raw, fields, check):
        word = data.View(self.layout, raw)
        issue = self.o.p.issue
        present = self.layout.fields
        # Blocks of operands that this instruction has not are zero, because its reserved bits are.
        plain = [
            name
            for name, _ in Issue.as_shape()
            if name in present
            and name not in IMMEDIATES
            and name not in ("src0", "src1", "dst", "column0", "column1")
        ]
        found = [issue[name].eq(word[name]) for name in plain]
        found += [issue[name].eq(fields[name]) for name in IMMEDIATES if name in present]
        found.append(issue.elements.eq(check.elements))
        for i, slot in enumerate(operand_slots(self.sequencer)):
            pattern = issue[slot]
            found += [pattern[name].eq(word[slot][name]) for name in ("space", "dtype")]
            found += [
                pattern[name].eq(fields[f"{slot}_{name}"])
                for name in ("partition", "partition_count", "offset")
            ]
            for dim in range(DIMS):
                found += [
                    pattern.step[dim].eq(word[slot][f"step{dim}"]),
                    pattern.count[dim].eq(fields[f"{slot}_count{dim}"]),
                ]
            found += [
                pattern.size.eq(check.size[i]),
                pattern.low.eq(check.low[i]),
                pattern.high.eq(check.high[i]),
            ]
        for slot in column_slots(self.sequencer):
            found += [issue[slot][name].eq(word[slot][name]) for name in ("space", "dtype")]
            found += [
                issue[slot][name].eq(fields[f"{slot}_{name}"]) for name in ("partition", "offset")
            ]
        return found
