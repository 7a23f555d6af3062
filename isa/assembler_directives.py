"""Directives of assembly text, and the state while a text is read.  Syntax: docs/assembly.md."""

from dataclasses import dataclass, field
from typing import Any, NoReturn

from isa.address_map import Sequencer
from isa.dtypes import parse_dtype
from isa.geometry import SEMAPHORES, Config, preset
from isa.placement import ROLES, SPACES, check_name
from isa.program import DescriptorBlock, Stream, Tensor
from isa.text import Names, parse_integer
from isa.text_data import append_data


class AssemblyError(ValueError):
    """Text that is no program: `file:line: reason; what would be right`."""

    def __init__(self, file, line, reason):
        super().__init__(f"{file}:{line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


@dataclass
class Section:
    """A stream or descriptor block: its part of the program, its lines and labels."""

    part: object
    placed: bool
    lines: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)


class Assembly:
    """State while the lines of one text are read."""

    def __init__(self, file, config):
        self.file = file
        self.line = 0
        self.config: Any = config
        self.fixed_config = config is not None
        self.names: Any = None
        self.sections = []
        self.unplaced = []
        self.declared = {}

    def fail_at_declaration(self, error) -> NoReturn:
        """Raise a ProgramError of placement at the last line that declares what it names."""
        lines = [line for label, line in self.declared.items() if label in error.what]
        self.line = max(lines, default=self.line)
        self.fail(f"{error.what}; {error.right}")

    def fail(self, reason) -> NoReturn:
        """Raise an AssemblyError at the current line."""
        raise AssemblyError(self.file, self.line, reason)


def _config(state, words):
    if not words:
        state.fail(".config has no name; write .config NAME")
    name, *facts = words
    if facts:
        values = dict(fact.split("=", 1) if "=" in fact else (fact, "") for fact in facts)
        config = _custom_config(state, name, values)
    else:
        config = preset(name)
    if state.fixed_config:
        if config.arch_hash != state.config.arch_hash:
            state.fail(
                f"the text is for configuration {name!r}; asked for is {state.config.name!r}"
            )
        return
    if state.config is not None:
        state.fail(".config is there twice; give it once")
    state.config = config
    state.names = Names(config)


def _custom_config(state, name, values):
    try:
        return Config(
            name=name, **{key: parse_integer(value, key) for key, value in values.items()}
        )
    except TypeError as error:
        reason = f".config: {error}; write every field of isa.geometry.Config as FIELD=NUMBER"
        raise AssemblyError(state.file, state.line, reason) from None


def _semaphore(state, words):
    if len(words) not in (1, 2):
        state.fail(".semaphore is not understood; write .semaphore NAME [INDEX]")
    check_name(words[0], "semaphore")
    used = state.names.semaphores
    if words[0] in used:
        state.fail(f"semaphore {words[0]!r} is there twice; give it once")
    free = next((i for i in range(SEMAPHORES) if i not in used.values()), None)
    index = parse_integer(words[1], "semaphore index") if len(words) == 2 else free
    if index is None or not 0 <= index < SEMAPHORES:
        state.fail(f"semaphore {words[0]!r} has index {index}, must be in 0..{SEMAPHORES - 1}")
    used[words[0]] = index


def _tensor(state, words):
    syntax = "write .tensor NAME SPACE [@ADDRESS] DTYPE SHAPE ROLE [partition=N]"
    address = next((word for word in words if word.startswith("@")), None)
    partition = next((word for word in words if word.startswith("partition=")), "partition=0")
    plain = [word for word in words if word not in (address, partition)]
    if len(plain) != 5:
        state.fail(f".tensor is not understood; {syntax}")
    name, space, dtype, shape, role = plain
    if space not in SPACES or role not in ROLES:
        state.fail(
            f".tensor: space {space!r} and role {role!r}, must be of {', '.join(SPACES)} and "
            f"{', '.join(ROLES)}"
        )
    _unused(state, name)
    counts = tuple(parse_integer(part, "shape") for part in shape.split("x"))
    if min(counts) < 1:
        state.fail(f".tensor: shape {shape!r}, must be positive numbers joined by x")
    tensor = Tensor(
        name, space, 0, counts, parse_dtype(dtype), role, parse_integer(partition[10:], "partition")
    )
    if address is not None:
        tensor.address = parse_integer(address[1:], "address")
    elif space == "hbm":
        state.unplaced.append(tensor)
    else:
        state.fail(f".tensor: {name!r} in {space} has no place; write @BYTE (in each partition)")
    state.names.tensors[name] = tensor
    state.declared[f"tensor {name!r}"] = state.line


def _data(state, words):
    if len(words) < 2 or words[0] not in state.names.tensors:
        state.fail(
            f".data {' '.join(words[:1])!r} is not understood; write .data TENSOR "
            "hex|values|zero ... after .tensor TENSOR"
        )
    append_data(state.names.tensors[words[0]], words[1], words[2:])


def _descriptors(state, words):
    if not 1 <= len(words) <= 2:
        state.fail(".descriptors is not understood; write .descriptors NAME [@ADDRESS]")
    _unused(state, words[0])
    block = DescriptorBlock(words[0], 0)
    state.names.blocks[words[0]] = block
    state.declared[f"descriptor block {words[0]!r}"] = state.line
    _open(state, block, words[1:])


def _stream(state, words):
    names = [sequencer.text for sequencer in Sequencer]
    if not 1 <= len(words) <= 2 or words[0] not in names:
        state.fail(
            f".stream {' '.join(words)!r} is not understood; write .stream {'|'.join(names)} "
            "[@ADDRESS]"
        )
    sequencer = Sequencer[words[0].upper()]
    if any(isinstance(s.part, Stream) and s.part.sequencer == sequencer for s in state.sections):
        state.fail(f"stream {words[0]} is there twice; a sequencer has one stream")
    state.declared[f"stream of {words[0]}"] = state.line
    _open(state, Stream(sequencer, 0), words[1:])


def _open(state, part, words):
    if words and not words[0].startswith("@"):
        state.fail(f"address {words[0]!r} is not understood; write @ADDRESS")
    if words:
        part.address = parse_integer(words[0][1:], "address")
    state.sections.append(Section(part, bool(words)))


def _unused(state, name):
    check_name(name, "tensor or descriptor block")
    if name in state.names.tensors or name in state.names.blocks:
        state.fail(f"name {name!r} is there twice; choose another")


DIRECTIVES = {
    ".config": _config,
    ".semaphore": _semaphore,
    ".tensor": _tensor,
    ".data": _data,
    ".descriptors": _descriptors,
    ".stream": _stream,
}
