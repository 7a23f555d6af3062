"""Control instructions: registers, branches, hardware loops, bus accesses, DMA triggers."""

from dataclasses import dataclass

import numpy as np

from golden.hazard import Origin
from golden.port import Access, BusError, Port
from isa.address_map import Cause, State
from isa.check_control import control_problem, effective_address, peer_place
from isa.fields import Condition, RegOp
from isa.geometry import LOOP_DEPTH

_MASK = (1 << 32) - 1
_SHIFT_MASK = 31


class Stop(Exception):
    """The instruction fails: its sequencer ends in State.ERROR."""

    def __init__(self, cause, message):
        super().__init__(message)
        self.cause = cause


@dataclass
class Loop:
    """A hardware loop whose body is [start, target); `left` passes remain, the current one
    included.
    """

    start: int
    target: int
    left: int


def signed(value):
    """A 32-bit register as a signed number."""
    return value - (1 << 32) if value >> 31 else value


_ALU = {
    RegOp.MOVE: lambda a, b: b,
    RegOp.ADD: lambda a, b: a + b,
    RegOp.SUBTRACT: lambda a, b: a - b,
    RegOp.MULTIPLY: lambda a, b: a * b,
    RegOp.AND: lambda a, b: a & b,
    RegOp.OR: lambda a, b: a | b,
    RegOp.XOR: lambda a, b: a ^ b,
    RegOp.SHIFT_LEFT: lambda a, b: a << (b & _SHIFT_MASK),
    RegOp.SHIFT_RIGHT: lambda a, b: a >> (b & _SHIFT_MASK),
}
_CONDITIONS = {
    Condition.ALWAYS: lambda a, b: True,
    Condition.EQ: lambda a, b: a == b,
    Condition.NE: lambda a, b: a != b,
    Condition.LT: lambda a, b: signed(a) < signed(b),
    Condition.GE: lambda a, b: signed(a) >= signed(b),
    Condition.LTU: lambda a, b: a < b,
    Condition.GEU: lambda a, b: a >= b,
}


class Control:
    """Executes control instructions of one sequencer.

    `execute` returns the next program counter. `unit`: the Sequencer with pc, registers, loops and
    notify state; `chip`: memories, dma, checker, config.
    """

    def __init__(self, unit, chip):
        self._unit = unit
        self._chip = chip

    def execute(self, prepared):
        """Next program counter; Stop when the instruction fails."""
        unit, fields = self._unit, prepared.fields
        name = prepared.instruction.name
        if name != "branch":
            place = (unit.pc, unit.length)
            self._require(
                control_problem(
                    self._chip.config, prepared.instruction, fields, place, unit.registers
                )
            )
        method = getattr(self, f"_{name}", None)
        if method is None:
            return unit.advance(unit.pc + 1)
        return method(prepared.instruction, fields)

    @staticmethod
    def _require(problem):
        if problem is not None:
            raise Stop(*problem)

    def _second(self, fields):
        return fields["imm"] & _MASK if fields["use_imm"] else self._unit.registers[fields["rb"]]

    def _halt(self, _instruction, _fields):
        self._unit.state = State.HALTED
        return self._unit.pc

    def _notify(self, _instruction, fields):
        self._unit.notify_value = fields["imm"] & _MASK
        self._unit.notify_count += 1
        return self._next()

    def _reg_alu(self, _instruction, fields):
        first = self._unit.registers[fields["ra"]]
        result = _ALU[RegOp(fields["alu_op"])](first, self._second(fields))
        self._unit.registers[fields["rd"]] = result & _MASK
        return self._next()

    def _reg_load(self, _instruction, fields):
        far = self._far(fields)
        if far is not None:
            word = self._through_link(far, Port.read, 4)
        else:
            memory, place = self._word(fields, write=False)
            word = memory.flat[place : place + 4]
        self._unit.registers[fields["rd"]] = int.from_bytes(word.tobytes(), "little")
        return self._next()

    def _reg_store(self, _instruction, fields):
        far, value = self._far(fields), self._unit.registers[fields["rb"]].to_bytes(4, "little")
        if far is not None:
            content = np.frombuffer(value, np.uint8)
            self._through_link(far, Port.write, content)
        else:
            memory, place = self._word(fields, write=True)
            memory.flat[place : place + 4] = list(value)
        return self._next()

    def _far(self, fields):
        """(port, address at the peer) when the instruction reaches into a peer window."""
        return peer_place(self._chip.config, effective_address(fields, self._unit.registers))

    def _through_link(self, far, action, what):
        port, address = far
        try:
            return action(self._chip.ports[port], address, what, self._access(what))
        except BusError as error:
            raise Stop(Cause.BUS_ERROR, str(error)) from None

    def _access(self, what):
        unit, checker = self._unit, self._chip.checker
        if not checker:
            return None
        order = checker.order
        component = order.reads_of if isinstance(what, int) else order.writes_of

        def release(port, peer, semaphore, kind, value):
            order.release_posted(unit.index, port, peer, semaphore, kind, value)

        stamp = component(unit.index), order.epoch[unit.index], order.clock(unit.index)
        return Access(order, stamp, release, self._origin())

    def _origin(self):
        return Origin(self._unit.name, self._unit.pc)

    def _word(self, fields, *, write):
        unit, checker = self._unit, self._chip.checker
        address = effective_address(fields, unit.registers)
        memory = self._chip.memories.find(address, 4)
        if checker:
            checker.bus(unit.index, memory, address, 4, self._origin(), write=write)
        return memory, address - memory.base

    def _branch(self, instruction, fields):
        unit = self._unit
        if not _CONDITIONS[Condition(fields["cond"])](
            unit.registers[fields["ra"]], self._second(fields)
        ):
            return self._next()
        place = (unit.pc, unit.length)
        self._require(
            control_problem(self._chip.config, instruction, fields, place, unit.registers)
        )
        target = fields["target"]
        unit.loops = [loop for loop in unit.loops if loop.start <= target < loop.target]
        return target

    def _loop(self, _instruction, fields):
        unit, target = self._unit, fields["target"]
        end = unit.loops[-1].target if unit.loops else unit.length - 1
        if not unit.pc < target <= end:
            raise Stop(
                Cause.PC_OUT_OF_RANGE, f"loop: target = {target}, must be in {unit.pc + 1}..{end}"
            )
        count = signed(self._second(fields))
        if count <= 0 or target == unit.pc + 1:
            return unit.advance(target)
        if len(unit.loops) == LOOP_DEPTH:
            raise Stop(Cause.LOOP_DEPTH, f"loop: {LOOP_DEPTH} loops are active already")
        unit.loops.append(Loop(unit.pc + 1, target, count))
        return unit.pc + 1

    def _dma_trigger(self, _instruction, fields):
        unit = self._unit
        count = signed(self._second(fields))
        if count > 0:
            address, engine = effective_address(fields, unit.registers), fields["dma_engine"]
            if self._chip.checker:
                self._chip.checker.order.trigger(unit.index, engine, count)
            self._chip.dma[engine].trigger(address, count)
        return self._next()

    def _next(self):
        return self._unit.advance(self._unit.pc + 1)
