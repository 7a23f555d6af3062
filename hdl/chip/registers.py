"""ControlRegisters: the register window of `isa.address_map`, start of a run, its counters."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.dma.engine import DmaStatus
from hdl.link.ports import RegisterAccess
from hdl.sequencer.ports import SEMAPHORE_BITS, SequencerControl
from isa.address_map import (
    CTRL_CLEAR,
    CTRL_START,
    DEVICE_ID,
    DMA_BLOCK_BYTES,
    DMA_BLOCK_OFFSET,
    DMA_REGISTERS,
    GLOBAL_REGISTERS,
    LINK_BLOCK_OFFSET,
    SEQUENCER_BLOCK_BYTES,
    SEQUENCER_BLOCK_OFFSET,
    SEQUENCER_REGISTERS,
    SEQUENCERS,
    Cause,
    State,
)
from isa.geometry import ISA_VERSION
from isa.link import LINK_BLOCK_BYTES

WINDOW_BITS = 13
"""Bits of a byte offset in the register window of a chip without links."""
WATCHDOG_RESET = 1 << 20
_LINK_BLOCK_BITS = exact_log2(LINK_BLOCK_BYTES)


def window_bits(config):
    """Bits of a byte offset in the register window."""
    return WINDOW_BITS + 1 if config.links else WINDOW_BITS


class RegisterPort(wiring.Signature):
    """One 32-bit access to the window of `bits` bits, from the bus's side.

    offset: Out, byte offset, a multiple of 4.  write: Out(1), high for one cycle with `data` valid.
    value: In(32), combinational; offsets without a register read 0 and ignore writes.
    """

    def __init__(self, bits=WINDOW_BITS):
        super().__init__(
            {
                "offset": Out(bits),
                "write": Out(1),
                "data": Out(32),
                "value": In(32),
            }
        )


class ControlRegisters(wiring.Component):
    """Everything that the host reads and writes about a run.

    Members
    -------
    port : In(RegisterPort)
    sequencer0 .. sequencer4 : Out(SequencerControl)
    dma0 .. : In(DmaStatus), link0 .. : Out(RegisterAccess)
    clear, clearing : Out, In
        Pulse that clears semaphores, DMA counters and errors; START waits until `clearing` is low
        again.
    clear_errors : Out(1)
        Pulse of CTRL.CLEAR.
    semaphore_overflow, semaphore_overflow_index : In
    column_active, load_active : In
        A moving column, weights entered the array.
    busy, error, irq : Out
        `irq` is high from the end of a run, or an error, until CTRL.CLEAR or START.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "port": In(RegisterPort(window_bits(config))),
                **{f"sequencer{i}": Out(SequencerControl()) for i in range(len(SEQUENCERS))},
                **{f"dma{i}": In(DmaStatus()) for i in range(config.dma_engines)},
                **{f"link{p}": Out(RegisterAccess()) for p in range(config.links)},
                "clear": Out(1),
                "clearing": In(1),
                "clear_errors": Out(1),
                "semaphore_overflow": In(1),
                "semaphore_overflow_index": In(SEMAPHORE_BITS),
                "column_active": In(1),
                "load_active": In(1),
                "busy": Out(1),
                "error": Out(1),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sequencers = [getattr(self, f"sequencer{i}") for i in range(len(SEQUENCERS))]
        engines = [getattr(self, f"dma{i}") for i in range(self.config.dma_engines)]
        watchdog = Signal(32, init=WATCHDOG_RESET)
        cycles, columns, loads = Signal(32), Signal(32), Signal(32)
        start = self._run(m, sequencers, engines, cycles, columns, loads)

        values = {
            "ID": Const(DEVICE_ID, 32),
            "ISA_VERSION": Const(ISA_VERSION, 32),
            "CONFIG_HASH_LO": Const(self.config.arch_hash & 0xFFFFFFFF, 32),
            "CONFIG_HASH_HI": Const(self.config.arch_hash >> 32, 32),
            "CTRL": Const(0, 32),
            "STATUS": Cat(self.busy, self.error),
            "WATCHDOG": watchdog,
            "CYCLES": cycles,
            "TENSOR_COLUMNS": columns,
            "TENSOR_LOADS": loads,
            "SEMAPHORE_ERROR": Mux(
                self.semaphore_overflow,
                Cat(self.semaphore_overflow_index, Const(0, 31 - SEMAPHORE_BITS), Const(1, 1)),
                0,
            ),
        }
        cases = {register.offset: values[register.name] for register in GLOBAL_REGISTERS}
        writes = {"WATCHDOG": (_offset(GLOBAL_REGISTERS, "WATCHDOG"), watchdog)}
        for index, sequencer in enumerate(sequencers):
            self._sequencer(m, index, sequencer, watchdog, start, cases, writes)
        for index, engine in enumerate(engines):
            self._dma(index, engine, cases)

        with m.Switch(self.port.offset):
            for offset, value in sorted(cases.items()):
                with m.Case(offset):
                    m.d.comb += self.port.value.eq(value)
            with m.Default():
                for index, sequencer in enumerate(sequencers):
                    with m.If(self._is_gpr(index)):
                        m.d.comb += self.port.value.eq(sequencer.gpr_value)
                for port in range(self.config.links):
                    self._link(m, port)
        with m.If(self.port.write):
            for offset, target in writes.values():
                with m.If(self.port.offset == offset):
                    m.d.sync += target.eq(self.port.data)
        return m

    def _run(self, m, sequencers, engines, cycles, columns, loads):
        """Start, end and counters of a run; returns the start pulse of the sequencers."""
        working, begin, was_busy, done = Signal(), Signal(), Signal(), Signal()
        command, start = Signal(2), Signal()
        failed = Signal()
        m.d.comb += [
            working.eq(reduce(or_, [s.busy for s in sequencers] + [e.busy for e in engines])),
            command.eq(
                Mux(
                    self.port.write & (self.port.offset == _offset(GLOBAL_REGISTERS, "CTRL")),
                    self.port.data,
                    0,
                )
            ),
            self.clear.eq(command[0] & ~self.busy),
            self.clear_errors.eq((command & CTRL_CLEAR).any() & ~self.clear),
            failed.eq(
                reduce(
                    or_,
                    [s.state == State.ERROR for s in sequencers]
                    + [e.cause != 0 for e in engines]
                    + [self.semaphore_overflow],
                )
            ),
            self.error.eq(failed),
            self.busy.eq(working | begin | start),
            self.irq.eq(done | failed),
        ]
        assert CTRL_START == 1
        m.d.sync += [start.eq(0), was_busy.eq(self.busy)]
        with m.If(self.clear):
            m.d.sync += [begin.eq(1), cycles.eq(0), columns.eq(0), loads.eq(0)]
        with m.Elif(begin & ~self.clearing):
            m.d.sync += [begin.eq(0), start.eq(1)]
        with m.If(~begin & self.busy):
            m.d.sync += [
                cycles.eq(cycles + 1),
                columns.eq(columns + self.column_active),
                loads.eq(loads + self.load_active),
            ]
        with m.If(self.clear | self.clear_errors):
            m.d.sync += done.eq(0)
        with m.Elif(was_busy & ~self.busy):
            m.d.sync += done.eq(1)
        return start

    def _is_gpr(self, index):
        base = (
            SEQUENCER_BLOCK_OFFSET
            + SEQUENCER_BLOCK_BYTES * index
            + _offset(SEQUENCER_REGISTERS, "GPR")
        )
        return self.port.offset[8:] == base >> 8

    def _link(self, m, index):
        access, block = getattr(self, f"link{index}"), LINK_BLOCK_OFFSET >> _LINK_BLOCK_BITS
        mine = Signal(name=f"link{index}_access")
        m.d.comb += [
            mine.eq(self.port.offset[_LINK_BLOCK_BITS:] == block + index),
            access.offset.eq(self.port.offset),
            access.write.eq(self.port.write & mine),
            access.data.eq(self.port.data),
        ]
        with m.If(mine):
            m.d.comb += self.port.value.eq(access.value)

    def _sequencer(self, m, index, sequencer, watchdog, start, cases, writes):
        base = SEQUENCER_BLOCK_OFFSET + SEQUENCER_BLOCK_BYTES * index
        low, high, length = (
            Signal(32, name=f"{name}{index}") for name in ("stream_lo", "stream_hi", "length")
        )
        # A wait that is over is of no interest: its registers read 0.
        waiting = Signal(name=f"waiting{index}")
        m.d.comb += [
            waiting.eq(
                (sequencer.state == State.WAITING) | (sequencer.cause == Cause.WAIT_TIMEOUT)
            ),
            sequencer.start.eq(start),
            sequencer.clear.eq(self.clear_errors),
            sequencer.stream_address.eq(Cat(low, high)),
            sequencer.length.eq(length),
            sequencer.watchdog.eq(watchdog),
            sequencer.gpr_index.eq(self.port.offset[2:]),
        ]
        values = {
            "STREAM_LO": low,
            "STREAM_HI": high,
            "LENGTH": length,
            "STATUS": Cat(sequencer.state, Const(0, 5), sequencer.cause),
            "PC": sequencer.pc,
            "WAIT_SEMAPHORE": Mux(waiting, sequencer.wait_semaphore, 0),
            "WAIT_VALUE": Mux(waiting, sequencer.wait_value, 0),
            "RETIRED": sequencer.retired,
            "NOTIFY_VALUE": sequencer.notify_value,
            "NOTIFY_COUNT": sequencer.notify_count,
        }
        for register in SEQUENCER_REGISTERS:
            if register.name in values:
                cases[base + register.offset] = values[register.name]
        for name, target in (("STREAM_LO", low), ("STREAM_HI", high), ("LENGTH", length)):
            writes[f"{name}{index}"] = (base + _offset(SEQUENCER_REGISTERS, name), target)

    def _dma(self, index, engine, cases):
        base = DMA_BLOCK_OFFSET + DMA_BLOCK_BYTES * index
        values = {
            "STATUS": Cat(engine.busy, Const(0, 7), engine.cause),
            "ERROR_LO": engine.error_address[:32],
            "ERROR_HI": engine.error_address[32:],
            "DESCRIPTORS": engine.descriptors,
            "BYTES_LO": engine.bytes,
        }
        for register in DMA_REGISTERS:
            cases[base + register.offset] = values[register.name]


def _offset(registers, name):
    return next(register.offset for register in registers if register.name == name)
