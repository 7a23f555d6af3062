"""A program as one object: what lies where in HBM, what each sequencer runs, and the names people
use.

`Program.check` holds the rules of placement; the words of instructions and descriptors are data
here, which the chip judges when it executes them (`isa.check` judges them before).  Files:
`isa.program_file`.
"""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from isa.address_map import Sequencer
from isa.dtypes import DType
from isa.geometry import DESCRIPTOR_BYTES, INSTRUCTION_BYTES, Config
from isa.placement import ROLES, SPACES, ProgramError, check_placement

__all__ = [
    "ROLES",
    "SPACES",
    "DescriptorBlock",
    "Program",
    "ProgramError",
    "Stream",
    "Tensor",
    "tensor_bytes",
]


@dataclass
class Tensor:
    """A named piece of memory.

    space hbm: `address` is a byte address, elements are row-major and dense.  space sbuf, psum:
    shape[0] partitions from `partition` on, the other dimensions row-major and dense at byte
    `address` of each partition. data: initial bytes (hbm only), None when the program writes it or
    the caller supplies it.
    """

    name: str
    space: str
    address: int
    shape: tuple
    dtype: DType
    role: str = "scratch"
    partition: int = 0
    data: bytes | None = None

    @property
    def size_bytes(self):
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self):
        """sbuf, psum: bytes in each partition."""
        return prod(self.shape[1:]) * self.dtype.itemsize

    def array(self):
        """Initial data as a numpy array (read-only); None without data."""
        if self.data is None:
            return None
        return np.frombuffer(self.data, dtype=self.dtype.numpy).reshape(self.shape)


@dataclass
class Stream:
    """What one sequencer executes: 128-byte words at an HBM address; lines: where each comes
    from, for messages.
    """

    sequencer: Sequencer
    address: int
    words: list = field(default_factory=list)
    lines: list = field(default_factory=list)

    @property
    def size_bytes(self):
        """Bytes in HBM."""
        return len(self.words) * INSTRUCTION_BYTES

    def line(self, index):
        """Source of an instruction, "" when not known."""
        return self.lines[index] if index < len(self.lines) else ""


@dataclass
class DescriptorBlock:
    """Consecutive DMA descriptors (128-byte words) at an HBM address."""

    name: str
    address: int
    words: list = field(default_factory=list)

    @property
    def size_bytes(self):
        """Bytes in HBM."""
        return len(self.words) * DESCRIPTOR_BYTES


@dataclass
class Program:
    """Everything a chip of `config` needs to run once.

    labels: {sequencer: {name: index}}; semaphores: {name: index}.  Both serve people only.
    windows: what the peers of the link ports may reach, a list of `isa.windows.IngressWindow`.
    """

    config: Config
    streams: list = field(default_factory=list)
    descriptors: list = field(default_factory=list)
    tensors: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)
    semaphores: dict = field(default_factory=dict)
    windows: list = field(default_factory=list)

    @property
    def config_name(self):
        """Name of the configuration."""
        return self.config.name

    @property
    def arch_hash(self):
        """Hash of the architectural configuration, as the chip reports it."""
        return self.config.arch_hash

    def stream(self, sequencer):
        """The Stream of a sequencer, None when it has none."""
        return next((s for s in self.streams if s.sequencer == sequencer), None)

    def tensor(self, name):
        """The Tensor of that name; KeyError lists what exists."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(
            f"no tensor {name!r}; there are {', '.join(t.name for t in self.tensors) or 'none'}"
        )

    def with_role(self, role):
        """Tensors of a role, in order."""
        return [t for t in self.tensors if t.role == role]

    def launch(self):
        """{Sequencer: (stream address, instructions)} for STREAM and LENGTH registers."""
        return {s.sequencer: (s.address, len(s.words)) for s in self.streams if s.words}

    def hbm_image(self, data=None):
        """[(address, bytes)] to be written to HBM before START: streams, descriptors, initial data.

        data: {tensor name: array or bytes} that replaces or supplies initial data of hbm tensors;
        ValueError when shape or dtype differ.
        """
        data = dict(data or {})
        image = [(s.address, b"".join(s.words)) for s in self.streams]
        image += [(d.address, b"".join(d.words)) for d in self.descriptors]
        for tensor in self.tensors:
            given = data.pop(tensor.name, None)
            if given is not None:
                image.append((tensor.address, tensor_bytes(tensor, given)))
            elif tensor.data is not None:
                image.append((tensor.address, tensor.data))
        if data:
            raise ValueError(
                f"data for {', '.join(map(repr, data))}: no such tensor in the program"
            )
        return [(address, content) for address, content in image if content]

    def check(self, file=None):
        """ProgramError when something lies outside its memory, overlaps in HBM, or a name is bad
        or used twice.
        """
        check_placement(self, file)


def tensor_bytes(tensor, data):
    """Bytes of an array (or of bytes) for a tensor; ValueError when shape, dtype or size differ."""
    if tensor.space != "hbm":
        raise ValueError(
            f"tensor {tensor.name!r} lies in {tensor.space}: only hbm tensors have initial data"
        )
    if isinstance(data, (bytes, bytearray, memoryview)):
        content = bytes(data)
        if len(content) != tensor.size_bytes:
            raise ValueError(
                f"tensor {tensor.name!r} has {tensor.size_bytes} bytes, the data has {len(content)}"
            )
        return content
    array = np.asarray(data)
    if array.shape != tuple(tensor.shape) or array.dtype != tensor.dtype.numpy:
        raise ValueError(
            f"tensor {tensor.name!r} is {tensor.dtype.text} {tuple(tensor.shape)}, "
            f"the data is {array.dtype} {array.shape}"
        )
    return np.ascontiguousarray(array).tobytes()
