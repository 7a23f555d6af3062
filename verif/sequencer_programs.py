"""Random programs of control instructions that end, and the golden model's account of them."""

import random

from golden.chip import GoldenChip
from isa.address_map import Sequencer, State
from isa.fields import Condition, RegOp, Update
from isa.geometry import INSTRUCTION_BYTES
from verif.sequencer_bench import instruction

DATA = 0x80000
"""HBM address of the words that reg_load and reg_store use."""
DATA_WORDS = 16


class ControlPrograms:
    """Nested loops, branches forwards and out of loops, counted branches backwards, arithmetic,
    loads and stores, notifications and updates.  About one in four ends in an error.
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.code, self.labels = [], {}

    def emit(self, name, target=None, **fields):
        self.code.append((name, target, fields))

    def label(self):
        self.labels[len(self.labels)] = None
        return len(self.labels) - 1

    def place(self, label):
        self.labels[label] = len(self.code)

    def generate(self, size):
        """List of words."""
        rng = self.rng
        for register in range(8):
            value = rng.choice([0, 1, 2, 3, -1, 0x7FFFFFFF, -0x80000000, rng.getrandbits(31)])
            self.emit("reg_alu", rd=register, use_imm=1, imm=value, alu_op=0)
        self.block(size, 0, [])
        if rng.random() < 0.12:
            self.fault()
        if rng.random() < 0.9:
            self.emit("halt", update_kind=rng.choice([0, 1]), update_semaphore=7)
        words = []
        for name, target, fields in self.code:
            if target is not None:
                fields = fields | {"target": self.labels[target]}
            words.append(instruction(name, **fields))
        return words

    def block(self, size, depth, exits):
        rng = self.rng
        while size > 0:
            kind = rng.choice(
                ["alu"] * 4 + ["loop", "loop", "forward", "break", "back", "other", "bus"]
            )
            if kind == "loop" and (depth < 4 or rng.random() < 0.05):
                size -= self.loop(size, depth, exits)
            elif kind == "forward":
                skip = self.label()
                self.branch(skip)
                inner = rng.randint(0, 4)
                self.block(inner, depth, exits)
                self.place(skip)
                # The label must not be the end of a loop that it is meant to be in.
                self.alu()
                size -= inner + 2
            elif kind == "break" and exits:
                self.branch(rng.choice(exits))
                size -= 1
            elif kind == "back":
                self.back()
                size -= 4
            elif kind == "other":
                self.other()
                size -= 1
            elif kind == "bus":
                self.bus()
                size -= 1
            else:
                self.alu()
                size -= 1

    def loop(self, size, depth, exits):
        rng = self.rng
        end, count = self.label(), rng.choice([0, 1, 1, 2, 2, 3, -1])
        if rng.random() < 0.3:
            self.emit("reg_alu", rd=20 + depth, use_imm=1, imm=count, alu_op=0)
            self.emit("loop", end, rb=20 + depth)
        else:
            self.emit("loop", end, use_imm=1, imm=count, **self.update())
        inner = rng.randint(0, max(1, size // 2))
        if inner:
            self.block(inner, depth + 1, [*exits, end])
        self.place(end)
        if rng.random() < 0.7 or depth == 0:
            self.alu()
        return inner + 2

    def branch(self, target):
        rng = self.rng
        self.emit(
            "branch",
            target,
            ra=rng.randrange(8),
            rb=rng.randrange(8),
            use_imm=rng.randint(0, 1),
            imm=rng.choice([0, 1, -1, 0x7FFFFFFF]),
            cond=rng.choice(list(Condition)),
        )

    def back(self):
        counter = 30 + self.rng.randrange(4)
        self.emit("reg_alu", rd=counter, use_imm=1, imm=self.rng.randint(1, 3), alu_op=0)
        top = self.label()
        self.place(top)
        self.alu()
        self.emit("reg_alu", rd=counter, ra=counter, use_imm=1, imm=1, alu_op=RegOp.SUBTRACT)
        self.emit("branch", top, ra=counter, use_imm=1, imm=0, cond=Condition.NE)

    def update(self):
        rng = self.rng
        if rng.random() < 0.8:
            return {}
        if rng.random() < 0.3:
            return {
                "update_kind": Update.ADD,
                "update_semaphore": rng.randrange(7),
                "update_reg": 1,
                "update_value": rng.randrange(8),
            }
        return {
            "update_kind": rng.choice([1, 2, 3]),
            "update_semaphore": rng.randrange(7),
            "update_value": rng.randint(-5, 5),
            "update_at_read": rng.randint(0, 1),
        }

    def alu(self):
        rng = self.rng
        self.emit(
            "reg_alu",
            rd=rng.randrange(8),
            ra=rng.randrange(8),
            rb=rng.randrange(8),
            use_imm=rng.randint(0, 1),
            imm=rng.getrandbits(31) * rng.choice([1, -1]),
            alu_op=rng.choice(list(RegOp)),
            **self.update(),
        )

    def other(self):
        rng = self.rng
        name = rng.choice(["nop", "notify", "sem_update", "sem_wait", "dma_trigger"])
        fields = self.update()
        if name == "notify":
            fields |= {"imm": rng.getrandbits(31)}
        elif name == "dma_trigger":
            fields |= {"use_imm": 1, "imm": rng.choice([0, -1]), "address": 0x1000}
        elif name == "sem_wait":
            fields |= {
                "wait": 1,
                "wait_semaphore": 9,
                "wait_value": rng.choice([0, -1, -0x80000000]),
            }
        self.emit(name, **fields)

    def bus(self):
        rng = self.rng
        address = DATA + 4 * rng.randrange(DATA_WORDS)
        fields = {"address": address}
        if rng.random() < 0.3:
            self.emit("reg_alu", rd=40, use_imm=1, imm=-8, alu_op=0)
            fields = {"address": (address + 8 - (1 << 32)) % (1 << 64), "address_reg": 1, "ra": 40}
        if rng.random() < 0.5:
            self.emit("reg_load", rd=rng.randrange(8), **fields, **self.update())
        else:
            self.emit("reg_store", rb=rng.randrange(8), **fields, **self.update())

    def fault(self):
        rng = self.rng
        end = self.label()
        self.place(end)
        choice = rng.randrange(6)
        if choice == 0:
            self.labels[end] = 1 << 20
            self.emit("branch", end)
        elif choice == 1:
            self.emit("loop", end, use_imm=1, imm=1)
        elif choice == 2:
            self.emit("reg_load", address=DATA + 2)
        elif choice == 3:
            self.emit("reg_store", address=1 << 40)
        elif choice == 4:
            self.emit("dma_trigger", dma_engine=9, use_imm=1, imm=1)
        else:
            self.emit("sem_wait", wait=1, wait_semaphore=250, wait_value=1)


def golden_result(config, index, program, *, address=0, memory=None, length=None):
    """Status of the sequencer `index`, semaphores and chip after `program` on the golden model."""
    chip = GoldenChip(config, races=False, uninitialised=False, overlap=False)
    for place, value in (memory or {}).items():
        chip.write(place, value.to_bytes(4, "little"))
    for i, word in enumerate(program):
        chip.write(address + INSTRUCTION_BYTES * i, word.to_bytes(INSTRUCTION_BYTES, "little"))
    result = chip.launch(
        {Sequencer(index): (address, length or len(program))}, max_instructions=20000
    )
    return result[index], result.semaphores, chip


def assert_same(result, status, semaphores):
    """The bench's Result against what the golden model says."""
    for name in (
        "state",
        "cause",
        "pc",
        "retired",
        "wait_semaphore",
        "notify_value",
        "notify_count",
    ):
        assert getattr(result, name) == getattr(status, name), (
            f"{name}: {getattr(result, name)!r}, expected {getattr(status, name)!r}; {status}"
        )
    assert result.wait_value == status.wait_value % (1 << 32)
    assert result.gpr == [int(value) for value in status.gpr]
    for index, value in result.semaphores.items():
        assert value == semaphores[index], f"semaphore {index}"
    assert result.state in (State.HALTED, State.ERROR)
