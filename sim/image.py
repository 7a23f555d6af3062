"""The whole visible state of a chip behind a run, and its bit-for-bit comparison."""

from dataclasses import dataclass, field

import numpy as np

from isa.address_map import SEQUENCERS, Cause, State


@dataclass
class SequencerState:
    """A sequencer's registers as the host reads them."""

    state: State
    cause: Cause
    pc: int
    wait_semaphore: int
    wait_value: int
    retired: int
    notify_value: int
    notify_count: int
    registers: np.ndarray
    """uint32 [64]"""


@dataclass
class DmaState:
    """A DMA engine's registers as the host reads them."""

    cause: int
    error_address: int
    descriptors: int
    bytes_written: int


@dataclass
class Image:
    """Memories as uint8 arrays (hbm flat, sbuf and psum [partitions, bytes]), semaphores int32
    [256], engine states.
    """

    hbm: np.ndarray
    sbuf: np.ndarray
    psum: np.ndarray
    semaphores: np.ndarray
    sequencers: dict
    dma: list
    semaphore_error: int = 0


@dataclass(frozen=True)
class Mismatch:
    """One place where two images differ: where, how many bytes or items there, the first with both
    values.
    """

    where: str
    count: int
    first: str
    got: str
    expected: str

    def __str__(self):
        return (
            f"{self.where}: {self.count} differ, first at {self.first}: "
            f"got {self.got}, expected {self.expected}"
        )


@dataclass
class Comparison:
    """Result of comparing an image with the expected one."""

    mismatches: list = field(default_factory=list)

    @property
    def match(self):
        return not self.mismatches

    @property
    def count(self):
        """Differing bytes and items, all places together."""
        return sum(m.count for m in self.mismatches)

    def __str__(self):
        return "equal" if self.match else "\n".join(str(m) for m in self.mismatches)


def compare(got, expected, program=None):
    """Compare two Images; `program` gives names to places in HBM.  Returns a Comparison."""
    found = Comparison()
    for name in ("hbm", "sbuf", "psum"):
        _compare_bytes(found, name, getattr(got, name), getattr(expected, name), program)
    _compare_items(found, "semaphores", got.semaphores, expected.semaphores)
    if got.semaphore_error != expected.semaphore_error:
        found.mismatches.append(
            Mismatch(
                "semaphore error",
                1,
                "register",
                hex(got.semaphore_error),
                hex(expected.semaphore_error),
            )
        )
    for sequencer in SEQUENCERS:
        a, b = got.sequencers[sequencer], expected.sequencers[sequencer]
        where = f"sequencer {sequencer.text}"
        for name in (
            "state",
            "cause",
            "pc",
            "wait_semaphore",
            "wait_value",
            "retired",
            "notify_value",
            "notify_count",
        ):
            _compare_value(found, f"{where} {name}", getattr(a, name), getattr(b, name))
        _compare_items(found, f"{where} registers", a.registers, b.registers)
    for index, (a, b) in enumerate(zip(got.dma, expected.dma, strict=True)):
        for name in ("cause", "error_address", "descriptors", "bytes_written"):
            _compare_value(found, f"dma {index} {name}", getattr(a, name), getattr(b, name))
    return found


def _compare_value(found, where, got, expected):
    if got != expected:
        found.mismatches.append(Mismatch(where, 1, "register", _text(got), _text(expected)))


def _text(value):
    return getattr(value, "name", None) or f"{int(value):#x}"


def _compare_items(found, where, got, expected):
    different = np.flatnonzero(got != expected)
    if different.size:
        first = different[0]
        found.mismatches.append(
            Mismatch(
                where,
                int(different.size),
                str(first),
                hex(int(got[first])),
                hex(int(expected[first])),
            )
        )


def _compare_bytes(found, where, got, expected, program):
    if got.shape != expected.shape:
        raise ValueError(f"{where}: shapes {got.shape} and {expected.shape} cannot be compared")
    different = np.flatnonzero(got.reshape(-1) != expected.reshape(-1))
    if not different.size:
        return
    first = int(different[0])
    low = first - first % 4
    place = f"byte {first:#x}"
    if got.ndim == 2:
        row, column = divmod(first, got.shape[1])
        low = row * got.shape[1] + column - column % 4
        place = f"partition {row} byte {column:#x}"
    elif program is not None:
        place += _tensor_place(program, first)
    words = (image.reshape(-1)[low : low + 4][::-1].tobytes().hex() for image in (got, expected))
    found.mismatches.append(Mismatch(where, int(different.size), place, *words))


def _tensor_place(program, address):
    for tensor in program.tensors:
        if tensor.space == "hbm" and tensor.address <= address < tensor.address + tensor.size_bytes:
            element = (address - tensor.address) // tensor.dtype.itemsize
            index = tuple(int(i) for i in np.unravel_index(element, tensor.shape))
            return f" = {tensor.name}{list(index)}"
    return ""
