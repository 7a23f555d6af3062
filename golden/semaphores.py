"""256 signed 32-bit counters; a counter that leaves its range wraps and is latched."""

from isa.fields import Update
from isa.geometry import SEMAPHORES

_OVERFLOWED = 1 << 31


class Semaphores:
    """`values`: list of 256 integers. `error`: the SEMAPHORE_ERROR register."""

    def __init__(self):
        self.start()

    def start(self):
        """START: all zero, no error."""
        self.values = [0] * SEMAPHORES
        self.error = 0

    def update(self, semaphore, kind, value):
        """Applies an `Update`."""
        if kind == Update.NONE:
            return
        old = self.values[semaphore]
        new = {
            Update.INCREMENT: old + 1,
            Update.DECREMENT: old - 1,
            Update.ADD: old + value,
            Update.SET: value,
        }[kind]
        wrapped = (new + (1 << 31)) % (1 << 32) - (1 << 31)
        if wrapped != new and not self.error:
            self.error = _OVERFLOWED | semaphore
        self.values[semaphore] = wrapped
