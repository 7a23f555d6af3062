"""A sequencer: takes the instructions of its stream in order, waits, executes, updates."""

from enum import Enum

from golden.control import Control, Stop
from golden.hazard import Origin
from golden.operation import Refused
from isa.address_map import SEQUENCERS, Cause, State
from isa.fields import Update
from isa.geometry import INSTRUCTION_BYTES, REGISTERS

_IN_ORDER = ("nop", "sem_wait")
"""Control instructions whose update does not overtake earlier instructions."""


class Next(Enum):
    """What a sequencer is about to do: nothing, go on, pass a wait that is over, wait."""

    STOPPED = 0
    FREE = 1
    READY = 2
    BLOCKED = 3


class Sequencer:
    """One of the five. Attributes are the status registers of `isa.address_map`, and `registers`.

    `message` says in words why the sequencer stopped with an error.
    """

    def __init__(self, index, chip):
        self.index = index
        self.rank = chip.index * len(SEQUENCERS) + index
        self.name = chip.label + index.text
        self._chip = chip
        self._control = Control(self, chip)
        self._words = []
        self.length = 0
        self.start(0, 0)

    def start(self, address, length):
        """START: takes a stream of `length` instructions at an HBM address; 0 leaves it idle."""
        self.state = State.RUNNING if length else State.IDLE
        self.cause = Cause.NONE
        self.message = ""
        self.pc = 0
        self.length = length
        self.wait_semaphore = 0
        self.wait_value = 0
        self.retired = 0
        self.notify_value = 0
        self.notify_count = 0
        self.registers = [0] * REGISTERS
        self.loops = []
        self._pending = None
        self._words = []
        if length:
            self._fetch(address, length)

    def _fetch(self, address, length):
        size = length * INSTRUCTION_BYTES
        hbm = self._chip.memories.hbm
        if address % INSTRUCTION_BYTES or not hbm.holds(address, size):
            self.stop(
                Cause.BAD_ADDRESS,
                f"stream of {length} instructions at {address:#x}: must be aligned and in HBM",
            )
            return
        content = hbm.flat[address : address + size].tobytes()
        self._words = [
            content[i : i + INSTRUCTION_BYTES] for i in range(0, size, INSTRUCTION_BYTES)
        ]

    @property
    def active(self):
        """Neither idle nor stopped."""
        return self.state in (State.RUNNING, State.WAITING)

    def word(self, index):
        """The instruction at an index, 128 bytes."""
        return self._words[index]

    def stop(self, cause, message):
        """Ends in error at the current instruction."""
        self.state, self.cause, self.message = State.ERROR, cause, message
        self._pending = None
        if self._chip.checker:
            self._chip.checker.order.stop(self.index)

    def peek(self):
        """What the next instruction would do now; decodes it, which may stop the sequencer."""
        prepared = self._prepare()
        if prepared is None:
            return Next.STOPPED
        fields = prepared.fields
        if not fields["wait"]:
            return Next.FREE
        if self._chip.semaphores.values[fields["wait_semaphore"]] < fields["wait_value"]:
            return Next.BLOCKED
        return Next.READY

    def time_out(self):
        """Gives up the wait of the next instruction, which is blocked."""
        assert self._pending is not None
        fields = self._pending.fields
        self.wait_semaphore, self.wait_value = fields["wait_semaphore"], fields["wait_value"]
        value = self._chip.semaphores.values[self.wait_semaphore]
        self.stop(
            Cause.WAIT_TIMEOUT,
            f"waits for semaphore {self.wait_semaphore} >= {self.wait_value}, which is {value}",
        )

    def step(self):
        """Executes one instruction that is not blocked."""
        prepared = self._prepare()
        if prepared is None:
            return
        chip, fields, instruction = self._chip, prepared.fields, prepared.instruction
        self.state = State.RUNNING
        if chip.checker:
            order = chip.checker.order
            order.step(self.index)
            if fields["wait"]:
                order.acquire(self.index, fields["wait_semaphore"], fields["wait_value"])
            if instruction.fenced:
                order.fence(self.index)
        try:
            following = self._execute(prepared)
        except Stop as error:
            self.stop(error.cause, str(error))
            return
        self._update(instruction, fields)
        self._pending = None
        self.retired += 1
        self.pc = following
        if self.state == State.HALTED and chip.checker:
            chip.checker.order.stop(self.index)

    def _prepare(self):
        """The pending instruction, decoded when it is new; None when the sequencer stops."""
        if self._pending is None and self.active:
            if self.pc >= self.length:
                self.stop(
                    Cause.PC_OUT_OF_RANGE,
                    f"ran past the last instruction, {self.length - 1}; a stream ends with halt",
                )
                return None
            found = self._chip.preparer.prepare(
                self._words[self.pc], self.index, self.registers, self._chip.tensor.shape
            )
            if isinstance(found, Refused):
                self.stop(found.cause, found.message)
                return None
            self._pending = found
        return self._pending

    def _execute(self, prepared):
        if not prepared.instruction.datapath:
            return self._control.execute(prepared)
        operation = prepared.operation
        if operation is not None:
            if self._chip.checker:
                origin = Origin(self.name, self.pc)
                self._chip.checker.operation(self.index, operation, origin)
            self._chip.execute[self.index, operation.name](operation)
        return self.advance(self.pc + 1)

    def _update(self, instruction, fields):
        chip, kind = self._chip, Update(fields["update_kind"])
        semaphore, value = fields["update_semaphore"], fields["update_value"]
        if chip.checker:
            order = chip.checker.order
            if kind != Update.NONE:
                in_order = (
                    instruction.datapath or instruction.fenced or instruction.name in _IN_ORDER
                )
                at_read = bool(fields["update_at_read"]) and not instruction.fenced
                order.release(
                    self.index, semaphore, kind, value, at_read=at_read, at_once=not in_order
                )
            if instruction.fenced:
                order.executed(self.index)
        chip.semaphores.update(semaphore, kind, value)

    def advance(self, pc):
        """The program counter after reaching `pc` without a branch: loops that end there repeat or
        end.
        """
        while self.loops and self.loops[-1].target == pc:
            loop = self.loops[-1]
            loop.left -= 1
            if loop.left > 0:
                return loop.start
            self.loops.pop()
        return pc
