"""The tensor engine alone, compiled with Verilator, with memories in C++ round it.

The memories refuse read requests at random, hold PSUM writes back for as long as the contract
allows, and overwrite the source of an instruction as soon as it is reported as read.
"""

import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hdl.emit import emit
from hdl.lib.issue import Issue
from hdl.tensor.engine import TensorEngine
from isa.dtypes import DType
from isa.fields import Part, Space
from isa.instructions import BY_NAME
from verif.verilated import build

_SOURCE = Path(__file__).with_suffix(".cpp")
_EVENT = np.dtype([("kind", "<u4"), ("cycle", "<u4"), ("columns", "<u4")])
_KINDS = ("issue", "read_done", "complete", "column", "beat")


@dataclass(frozen=True)
class Access:
    """An access pattern in elements: `start` from the beginning of the partition, dimension 0
    innermost."""

    partition: int
    partition_count: int
    start: int
    count: tuple
    step: tuple

    @property
    def elements(self):
        """Element indices in order, 1-D."""
        index = np.zeros(1, np.int64)
        for count, step in zip(self.count, self.step, strict=True):
            index = (step * np.arange(count)[:, None] + index[None, :]).ravel()
        return self.start + index

    def span(self, itemsize):
        """[low, high) in bytes."""
        elements = self.elements
        return int(elements.min()) * itemsize, (int(elements.max()) + 1) * itemsize


@dataclass(frozen=True)
class Load:
    """load_stationary of `source` [K, M]."""

    source: Access
    dtype: DType = DType.BF16
    part: Part = Part.FULL
    double_row: int = 0
    transpose: int = 0
    spoil: tuple = (0, 0)

    @property
    def itemsize(self):
        """Bytes of an element of the source: with double_row of a pair."""
        return self.dtype.itemsize << self.double_row


@dataclass(frozen=True)
class Multiply:
    """multiply_moving of `source` [K, N] into `result` [M, N]."""

    source: Access
    result: Access
    accumulate: bool
    dtype: DType = DType.BF16
    part: Part = Part.FULL
    double_row: int = 0
    transpose: int = 0
    spoil: tuple = (0, 0)

    itemsize = Load.itemsize


@dataclass
class Run:
    """What came out: PSUM as uint32 [P, words], and for each kind of event its cycles and the
    columns in PSUM by then."""

    psum: np.ndarray
    cycles: dict = field(default_factory=dict)
    columns: dict = field(default_factory=dict)


def pack_issue(instruction):
    """The Issue of a Load or Multiply as an int."""
    load = isinstance(instruction, Load)
    fields = {
        "src0": _pattern(instruction.source, Space.SBUF, instruction.dtype, instruction.itemsize),
        "elements": int(np.prod(instruction.source.count)),
        **{name: int(getattr(instruction, name)) for name in ("part", "double_row", "transpose")},
    }
    if load:
        fields["opcode"] = BY_NAME["load_stationary"].opcode
    else:
        fields["opcode"] = BY_NAME["multiply_moving"].opcode
        fields["dst"] = _pattern(instruction.result, Space.PSUM, DType.FP32, 4)
        fields["accumulate"] = int(instruction.accumulate)
    return Issue.const(fields).as_bits()


def _pattern(access, space, dtype, itemsize):
    low, high = access.span(itemsize)
    return {
        "space": int(space),
        "dtype": int(dtype),
        "size": itemsize.bit_length() - 1,
        "partition": access.partition,
        "partition_count": access.partition_count,
        "offset": access.start * itemsize,
        "step": list(access.step),
        "count": list(access.count),
        "low": low,
        "high": high,
    }


class TensorBench:
    """The engine of one configuration, built once per content of the sources."""

    def __init__(self, config):
        self.config = config
        self._issue_bytes = (Issue.as_shape().size + 7) // 8
        verilog = emit(TensorEngine(config), "tensor", checks=True)
        defines = {
            "PARTITIONS": config.partitions,
            "SBUF_BYTES": config.sbuf_bytes,
            "PSUM_WORDS": config.psum_words,
            "VISIBLE": config.psum_accumulate_cycles,
            "ISSUE_BYTES": self._issue_bytes,
        }
        self._program = build("tensor", verilog, _SOURCE, defines)

    def run(self, instructions, sbuf, psum, *, cycle_limit, deny=0, issue_gap=0, seed=1):
        """Run `instructions` on memory images (uint8 [P, SBUF bytes], uint32 [P, PSUM words]).

        deny: chance of 256 that a read request is refused in a cycle.  issue_gap: cycles between
        two issues. RuntimeError when a check of the bench or of the engine fails, or the limit is
        reached.
        """
        header = np.array([len(instructions), cycle_limit, issue_gap, deny, seed], "<u4")
        parts = [header.tobytes()]
        padding = -self._issue_bytes % 4
        for instruction in instructions:
            parts.append(
                pack_issue(instruction).to_bytes(self._issue_bytes, "little") + bytes(padding)
            )
            parts.append(np.array(instruction.spoil, "<u4").tobytes())
        shape = (
            (self.config.partitions, self.config.sbuf_bytes),
            (self.config.partitions, self.config.psum_words),
        )
        if (sbuf.shape, psum.shape) != shape or (sbuf.dtype, psum.dtype) != (np.uint8, np.uint32):
            raise ValueError(f"memory images of shapes {shape}, uint8 and uint32, expected")
        parts += [sbuf.tobytes(), psum.astype("<u4").tobytes()]
        with tempfile.TemporaryDirectory() as directory:
            source, target = Path(directory, "in"), Path(directory, "out")
            source.write_bytes(b"".join(parts))
            done = subprocess.run(
                [self._program, source, target], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(
                    f"tensor bench, seed {seed}, status {done.returncode}: "
                    f"{done.stdout}{done.stderr}"
                )
            raw = target.read_bytes()
        result = Run(np.frombuffer(raw, "<u4", psum.size).reshape(psum.shape).astype(np.uint32))
        events = np.frombuffer(raw, _EVENT, offset=4 * psum.size)
        for number, kind in enumerate(_KINDS):
            chosen = events[events["kind"] == number]
            result.cycles[kind] = chosen["cycle"].astype(np.int64)
            result.columns[kind] = chosen["columns"].astype(np.int64)
        return result
