"""Instructions of one sequencer, written as Python calls named like the instructions."""

import contextlib
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isa.arguments import fields_of, parameters
from isa.check import check_static
from isa.encoding import EncodeError, decode, encode_int, field_map, instruction_named, pack, unpack
from isa.fields import Update
from isa.geometry import INSTRUCTION_BYTES, REGISTERS
from isa.instructions import INSTRUCTIONS
from isa.pattern import Reg
from isa.values import SemaphoreUpdate, Wait, enum_member
from isa.views import Tile

_SKIPPED = (str(Path(__file__).parent) + os.sep, contextlib.__file__)


class StreamBuilder:
    """Builds the stream of one sequencer; one method per instruction (`b.vector.memset(...)`),
    from its declaration.

    Arguments are those of `isa.arguments`, and besides: a Tile where an operand is expected;
    wait=(semaphore, value); update=(semaphore, kind) or (semaphore, kind, value) with at_read=True
    to fire when the inputs have been read; semaphores by name or index; target by label.
    ValueError when a rule is broken, with the rule.
    """

    def __init__(self, owner, sequencer):
        self.sequencer = sequencer
        self._owner = owner
        self._words = []
        self._lines = []
        self._labels = {}
        self._targets = {}
        self._registers = {}
        self._unnamed = 0

    if TYPE_CHECKING:  # the methods that this module adds below, one per instruction

        def __getattr__(self, name: str) -> Callable[..., int]: ...

    def __len__(self):
        return len(self._words)

    def emit(self, name, *, at_read=False, **arguments):
        """Append the instruction `name`; returns its index in the stream."""
        instruction = instruction_named(name)
        if self.sequencer not in instruction.sequencers:
            where = ", ".join(s.text for s in sorted(instruction.sequencers))
            raise ValueError(
                f"{name} is not an instruction of the {self.sequencer.text} sequencer, only of "
                f"{where}"
            )
        index = len(self._words)
        target = arguments.get("target")
        if isinstance(target, str):
            arguments["target"] = 0
        arguments["wait"] = self._wait(arguments.get("wait"))
        arguments["update"] = self._update(arguments.get("update"), at_read)
        for operand in instruction.operands:
            if isinstance(arguments.get(operand.slot), Tile):
                arguments[operand.slot] = arguments[operand.slot].pattern
        fields = fields_of(name, arguments)
        word = encode_int(name, fields)
        fault = check_static(self._owner.config, instruction, fields)
        if fault is not None:
            raise ValueError(str(fault))
        if isinstance(target, str):
            self._targets[index] = target
        return self._append(word)

    def raw(self, word):
        """Append 128 bytes (or a 1024-bit integer) unchecked: for words that no instruction has."""
        data = word if isinstance(word, int) else int.from_bytes(word, "little")
        return self._append(data)

    def label(self, name):
        """Name the place of the next instruction."""
        if name in self._labels:
            raise ValueError(f"label {name!r} of {self.sequencer.text} is there already")
        self._labels[name] = len(self._words)
        return name

    @contextmanager
    def loop(self, times):
        """`with b.vector.loop(n):` runs what is emitted inside n times (n: integer or Reg) in
        a hardware loop.
        """
        end = f"loop_end{self._unnamed}"
        self._unnamed += 1
        second: dict[str, Any] = {"rb": times} if isinstance(times, Reg) else {"imm": times}
        self.emit("loop", target=end, **second)
        yield
        self.label(end)

    def register(self, name=None):
        """The next unused register, or the one allocated under that name before."""
        if name is not None and name in self._registers:
            return self._registers[name]
        if len(self._registers) == REGISTERS:
            raise ValueError(f"all {REGISTERS} registers of {self.sequencer.text} are in use")
        found = Reg(len(self._registers))
        self._registers[name if name is not None else found.number] = found
        return found

    def finish(self):
        """(words as bytes, lines, labels): targets filled in, a halt at the end."""
        open_end = len(self._words) in self._labels.values()
        if self._words and (open_end or self._words[-1] & 0xFF != instruction_named("halt").opcode):
            self.emit("halt")
        for index, name in self._targets.items():
            if name not in self._labels:
                raise ValueError(
                    f"label {name!r} of {self.sequencer.text} is not defined ({self._lines[index]})"
                )
            self._set_target(index, self._labels[name])
        words = [word.to_bytes(INSTRUCTION_BYTES, "little") for word in self._words]
        return words, list(self._lines), dict(self._labels)

    def _set_target(self, index, target):
        instruction, fields = decode(self._words[index])
        fields["target"] = target
        fault = check_static(
            self._owner.config, instruction, fields, place=(index, len(self._words))
        )
        if fault is not None:
            raise ValueError(f"{fault} ({self._lines[index]})")
        field = field_map(instruction.name)["target"]
        self._words[index] ^= pack(field, unpack(field, self._words[index]), "target") ^ pack(
            field, target, "target"
        )

    def _append(self, word):
        self._words.append(word)
        self._lines.append(caller())
        return len(self._words) - 1

    def _wait(self, wait):
        if wait is None or isinstance(wait, Wait):
            return wait
        if not isinstance(wait, tuple) or len(wait) != 2:
            raise ValueError(f"wait = {wait!r}, must be (semaphore, value)")
        return Wait(self._owner.semaphore_index(wait[0]), wait[1])

    def _update(self, update, at_read):
        made = self._owner.update_of(update, at_read)
        if made is None and at_read:
            raise ValueError("at_read says when the update happens; there is no update")
        return made


def make_update(owner, update, at_read=False):
    """SemaphoreUpdate of None, a SemaphoreUpdate, or (semaphore, kind[, value])."""
    if update is None or isinstance(update, SemaphoreUpdate):
        return update
    if not isinstance(update, tuple) or len(update) not in (2, 3):
        raise ValueError(
            f"update = {update!r}, must be (semaphore, kind) or (semaphore, kind, value)"
        )
    kind = enum_member(Update, update[1], "update kind")
    if kind in (Update.ADD, Update.SET) and len(update) == 2:
        raise EncodeError(
            f"update {kind.name.lower()} needs a value: (semaphore, {kind.name.lower()!r}, value)"
        )
    return SemaphoreUpdate(kind, owner.semaphore_index(update[0]), *update[2:], at_read=at_read)


def caller():
    """ "file:line" of the nearest frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame = frame.f_back
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _method(instruction):
    def emitter(self, **arguments):
        return self.emit(instruction.name, **arguments)

    emitter.__name__ = instruction.name
    needed = ", ".join(
        name if must else f"{name}=..." for name, must in parameters(instruction).items()
    )
    emitter.__doc__ = f"{instruction.doc}\n\nArguments: {needed}, at_read=..."
    return emitter


for _instruction in INSTRUCTIONS:
    if (
        _instruction.name != "loop"
    ):  # a context manager above; emit("loop", ...) is the bare instruction
        setattr(StreamBuilder, _instruction.name, _method(_instruction))
