"""Registers of the sequencers in random programs: for values of operands, waits and counts."""

from dataclasses import replace

from isa.address_map import SEQUENCERS
from isa.fields import RegOp
from isa.geometry import REGISTERS
from isa.pattern import AccessPattern, ColumnPattern, Reg
from isa.values import Address, Bits

_MASK = (1 << 32) - 1


class Registers:
    """Writes into a ProgramBuilder. rng: `random.Random`."""

    def __init__(self, builder, rng):
        self.builder = builder
        self.rng = rng
        self._busy = {s: set() for s in SEQUENCERS}

    def stream(self, sequencer):
        """StreamBuilder of a sequencer."""
        return self.builder.streams[sequencer]

    def register(self, sequencer):
        """Some register whose content nobody needs."""
        busy = self._busy[sequencer]
        return Reg(self.rng.choice([n for n in range(REGISTERS) if n not in busy]))

    def hold(self, sequencer):
        """A register that nobody else takes until `release`."""
        found = self.register(sequencer)
        self._busy[sequencer].add(found.number)
        return found

    def release(self, sequencer):
        """The registers that were held are free again."""
        self._busy[sequencer].clear()

    def set_register(self, sequencer, register, value):
        """Emits instructions after which the register holds `value` (32 bits)."""
        rng, stream, value = self.rng, self.stream(sequencer), value & _MASK
        part, other = rng.getrandbits(32), self.register(sequencer)
        way = rng.randrange(5)
        if way == 0:
            stream.reg_alu(rd=register, alu_op=RegOp.MOVE, imm=part)
            stream.reg_alu(rd=register, ra=register, alu_op=RegOp.ADD, imm=(value - part) & _MASK)
        elif way == 1 and other != register:
            stream.reg_alu(rd=other, alu_op=RegOp.MOVE, imm=value ^ part)
            stream.reg_alu(rd=register, alu_op=RegOp.MOVE, imm=part)
            stream.reg_alu(rd=register, ra=register, alu_op=RegOp.XOR, rb=other)
        elif way == 2:
            stream.reg_alu(rd=register, alu_op=RegOp.MOVE, imm=(value + part) & _MASK)
            stream.reg_alu(rd=register, ra=register, alu_op=RegOp.SUBTRACT, imm=part)
        else:
            stream.reg_alu(rd=register, alu_op=RegOp.MOVE, imm=value)

    def held_value(self, sequencer, value):
        """A held register that holds `value` from here on."""
        register = self.hold(sequencer)
        self.set_register(sequencer, register, value)
        return register

    def substitute(self, sequencer, arguments, rate=0.12):
        """`arguments` with some values moved to held registers, which are loaded here."""
        return {
            # imm2 cannot be in a register.
            name: value if name == "imm2" else self._substituted(sequencer, value, rate)
            for name, value in arguments.items()
        }

    def _substituted(self, sequencer, value, rate):
        def some(number):
            return self.held_value(sequencer, number) if self.rng.random() < rate else number

        if isinstance(value, AccessPattern):
            dims = tuple((step, some(count)) for step, count in value.dims)
            return replace(
                value,
                partition=some(value.partition),
                offset=some(value.offset),
                partition_count=some(value.partition_count),
                dims=dims,
            )
        if isinstance(value, ColumnPattern):
            return replace(value, partition=some(value.partition), offset=some(value.offset))
        if isinstance(value, Bits):
            found = some(value.value)
            return found if isinstance(found, Reg) else value
        if isinstance(value, Address) and self.rng.random() < 3 * rate:
            part = self.rng.choice((0, value.base, self.rng.randint(0, value.base)))
            part = max(part, value.base - _MASK)
            return Address(part, self.held_value(sequencer, value.base - part))
        return value
