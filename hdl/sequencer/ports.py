"""Payloads between sequencers, semaphores and DMA engines."""

from amaranth.hdl import signed
from amaranth.lib import data
from amaranth.utils import ceil_log2

from isa.geometry import SEMAPHORES

SEMAPHORE_BITS = ceil_log2(SEMAPHORES)


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
