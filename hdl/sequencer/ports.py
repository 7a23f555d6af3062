"""Payloads between sequencers, semaphores and DMA engines, and the control port of a sequencer."""

from amaranth.hdl import signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from isa.geometry import REGISTERS, SEMAPHORES

SEMAPHORE_BITS = ceil_log2(SEMAPHORES)
REGISTER_BITS = ceil_log2(REGISTERS)
PC_BITS = 32
CAUSE_BITS = 8


class SemaphoreUpdate(data.Struct):
    """One change of a semaphore.  kind: `isa.fields.Update`; value counts for ADD and SET only."""

    semaphore: SEMAPHORE_BITS
    kind: 3
    value: signed(32)


class DmaTrigger(data.Struct):
    """`count` descriptors that lie at `address` (128-byte aligned), for DMA engine `engine`."""

    engine: 4
    address: 64
    count: 32


class SequencerControl(wiring.Signature):
    """Control and status of a sequencer, from the side of the control registers (Out = they drive).

    Members
    -------
    start : Out(1)
        Pulse: forget the last run and begin the stream (`length` 0: only forget).  Ignored while
        `busy`. The semaphores must be clear by then.
    clear : Out(1)
        Pulse: an ERROR becomes IDLE without Cause.
    stream_address, length, watchdog : Out
        STREAM, LENGTH and WATCHDOG of `isa.address_map`; constant while `busy`.
    state, cause, pc, wait_semaphore, wait_value, retired, notify_value, notify_count : In
        The registers of these names of `isa.address_map`; the wait is that of the instruction that
        waits or has timed out, else 0.
    busy : In(1)
        Runs or waits, or work that it issued is not complete, or an update has not been taken.
    gpr_index : Out, gpr_value : In
        Read port of the registers, combinational, at any time.
    """

    def __init__(self):
        super().__init__(
            {
                "start": Out(1),
                "clear": Out(1),
                "stream_address": Out(64),
                "length": Out(PC_BITS),
                "watchdog": Out(32),
                "state": In(3),
                "cause": In(CAUSE_BITS),
                "pc": In(PC_BITS),
                "wait_semaphore": In(SEMAPHORE_BITS),
                "wait_value": In(32),
                "retired": In(32),
                "notify_value": In(32),
                "notify_count": In(32),
                "busy": In(1),
                "gpr_index": Out(REGISTER_BITS),
                "gpr_value": In(32),
            }
        )
