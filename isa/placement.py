"""Rules of placement of a program: names, memories, alignment, overlaps.  Called by
`isa.program.Program.check`.
"""

import re

from isa.geometry import DESCRIPTOR_BYTES, INSTRUCTION_BYTES, REGISTERS, SEMAPHORES
from isa.windows import check_windows

SPACES = ("hbm", "sbuf", "psum")
ROLES = ("input", "output", "constant", "scratch")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_RESERVED_NAMES = {*(f"r{i}" for i in range(REGISTERS)), "sbuf", "psum", "hbm", "nan", "inf"}


class ProgramError(ValueError):
    """A program that cannot be used: in which file, what is wrong, what would be right."""

    def __init__(self, what, right, file=None):
        super().__init__(f"{file or 'program'}: {what}; {right}")
        self.what = what
        self.right = right
        self.file = file


def check_placement(program, file=None):
    """ProgramError when something lies outside its memory, overlaps in HBM, or a name is bad or
    used twice.
    """
    try:
        _check_names(program)
        for tensor in program.tensors:
            _check_tensor(program.config, tensor)
        _check_streams(program)
        _check_hbm(program)
        _check_windows(program)
    except ProgramError as error:
        raise ProgramError(error.what, error.right, file) from None


def _check_windows(program):
    try:
        check_windows(program.config, program.windows)
    except ValueError as error:
        raise ProgramError(str(error), "a window belongs to a port of the chip") from None


def check_name(name, what):
    """ProgramError unless `name` can be a name in assembly."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED_NAMES:
        raise ProgramError(
            f"{what} has the name {name!r}",
            "a name has letters, digits, _ and ., starts with no digit and is no register or "
            "memory",
        )


def _check_names(program):
    seen = set()
    for what, items in (("tensor", program.tensors), ("descriptor block", program.descriptors)):
        for item in items:
            check_name(item.name, what)
            if item.name in seen:
                raise ProgramError(
                    f"{what} {item.name!r} is there twice",
                    "tensors and descriptor blocks have different names",
                )
            seen.add(item.name)
    for name, index in program.semaphores.items():
        check_name(name, "semaphore")
        if not 0 <= index < SEMAPHORES:
            raise ProgramError(
                f"semaphore {name!r} has index {index}", f"must be in 0..{SEMAPHORES - 1}"
            )
    for sequencer, labels in program.labels.items():
        stream = program.stream(sequencer)
        length = len(stream.words) if stream else 0
        for name, index in labels.items():
            check_name(name, "label")
            if not 0 <= index <= length:
                raise ProgramError(
                    f"label {name!r} of {sequencer.text} is at {index}", f"must be in 0..{length}"
                )


def _check_tensor(config, tensor):
    label = f"tensor {tensor.name!r}"
    if tensor.space not in SPACES:
        raise ProgramError(
            f"{label} lies in {tensor.space!r}", f"must be one of {', '.join(SPACES)}"
        )
    if tensor.role not in ROLES:
        raise ProgramError(
            f"{label} has role {tensor.role!r}", f"must be one of {', '.join(ROLES)}"
        )
    if not tensor.shape or any(not isinstance(n, int) or n < 1 for n in tensor.shape):
        raise ProgramError(
            f"{label} has shape {tuple(tensor.shape)}", "must be one or more positive integers"
        )
    if tensor.data is not None:
        if tensor.space != "hbm":
            raise ProgramError(
                f"{label} in {tensor.space} has data", "only hbm tensors have initial data"
            )
        if len(tensor.data) != tensor.size_bytes:
            raise ProgramError(
                f"{label} has {len(tensor.data)} bytes of data",
                f"its shape has {tensor.size_bytes}",
            )
    elif tensor.role == "constant":
        raise ProgramError(f"{label} is a constant without data", "a constant needs data")
    if tensor.address % tensor.dtype.itemsize:
        raise ProgramError(
            f"{label} is at {tensor.address:#x}", f"must be a multiple of {tensor.dtype.itemsize}"
        )
    if tensor.space != "hbm":
        if len(tensor.shape) < 2:
            raise ProgramError(
                f"{label} has shape {tuple(tensor.shape)}",
                f"in {tensor.space} it starts with the partitions and has more",
            )
        _check_on_chip(config, tensor, label)
    elif tensor.partition != 0:
        raise ProgramError(
            f"{label} has partition {tensor.partition}", "hbm has no partitions, must be 0"
        )


def _check_on_chip(config, tensor, label):
    size = config.sbuf_bytes if tensor.space == "sbuf" else config.psum_bytes
    end = tensor.address + tensor.row_bytes
    if tensor.address < 0 or end > size:
        raise ProgramError(
            f"{label} has bytes {tensor.address}..{end - 1} of a partition",
            f"{tensor.space} has 0..{size - 1}",
        )
    last = tensor.partition + tensor.shape[0]
    if tensor.partition < 0 or last > config.partitions:
        raise ProgramError(
            f"{label} has partitions {tensor.partition}..{last - 1}",
            f"this chip has 0..{config.partitions - 1}",
        )


def _check_streams(program):
    seen = set()
    for stream in program.streams:
        if stream.sequencer in seen:
            raise ProgramError(
                f"two streams for {stream.sequencer.text}", "a sequencer has one stream"
            )
        seen.add(stream.sequencer)
    parts = [(f"stream of {s.sequencer.text}", s, INSTRUCTION_BYTES) for s in program.streams]
    parts += [(f"descriptor block {d.name!r}", d, DESCRIPTOR_BYTES) for d in program.descriptors]
    for label, part, size in parts:
        if part.address % size:
            raise ProgramError(f"{label} is at {part.address:#x}", f"must be a multiple of {size}")
        if any(len(word) != size for word in part.words):
            raise ProgramError(
                f"{label} has a word of another size", f"every word has {size} bytes"
            )


def hbm_regions(program):
    """[(low, high, label)] of everything in HBM that is not empty, by address."""
    parts = [(s.address, s.size_bytes, f"stream of {s.sequencer.text}") for s in program.streams]
    parts += [
        (d.address, d.size_bytes, f"descriptor block {d.name!r}") for d in program.descriptors
    ]
    parts += [
        (t.address, t.size_bytes, f"tensor {t.name!r}") for t in program.tensors if t.space == "hbm"
    ]
    return sorted((low, low + size, label) for low, size, label in parts if size)


def _check_hbm(program):
    size = program.config.hbm_bytes
    regions = hbm_regions(program)
    for low, high, label in regions:
        if low < 0 or high > size:
            raise ProgramError(
                f"{label} has bytes {low:#x}..{high - 1:#x}", f"HBM has 0..{size - 1:#x}"
            )
    for (low, high, label), (other_low, _, other) in zip(regions, regions[1:], strict=False):
        if other_low < high:
            raise ProgramError(
                f"{label} ({low:#x}..{high - 1:#x}) and {other} (from {other_low:#x}) overlap",
                "everything in HBM has its own place",
            )
