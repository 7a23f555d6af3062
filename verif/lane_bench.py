"""The vector or the scalar engine alone, compiled with Verilator, with memories in C++ round it.

The memories refuse requests at random, can read as late as the contract allows, and can overwrite a
source as soon as it is reported as read.  An instruction is a dict of Issue fields
(`hdl.lib.issue`), with patterns as in `verif.memory_bench`.
"""

import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from hdl.emit import emit
from hdl.lib.issue import Issue
from hdl.scalar.engine import ScalarEngine
from hdl.vector.engine import VectorEngine
from isa.dtypes import DType
from isa.geometry import preset
from verif.verilated import build

_SOURCE = Path(__file__).with_suffix(".cpp")
_EVENT = np.dtype([("kind", "<u4"), ("cycle", "<u4")])
_ISSUE_BYTES = (Issue.as_shape().size + 31) // 32 * 4


@dataclass(frozen=True)
class Run:
    """What came out.

    sbuf, psum: uint8 [P, bytes].  kept: per instruction its destination at `complete`, uint8
    [P, size], or None where not asked for.  The rest: cycle of the event, per instruction.
    """

    sbuf: np.ndarray
    psum: np.ndarray
    kept: list
    issued: np.ndarray
    read_done: np.ndarray
    completed: np.ndarray


@cache
def lane_bench(engine, stages, name="tiny"):
    """The bench of "vector" or "scalar" with that many ALU stages."""
    return LaneBench(preset(name).with_(vector_stages=stages), vector=engine == "vector")


class LaneBench:
    """The vector (else the scalar) engine of `config`, built once per content of the sources."""

    def __init__(self, config, *, vector):
        self.config = config
        component = VectorEngine(config) if vector else ScalarEngine(config)
        verilog = emit(component, "lanes", checks=True)
        defines = {
            "VECTOR": int(vector),
            "PARTITIONS": config.partitions,
            "SBUF_BYTES": config.sbuf_bytes,
            "PSUM_BYTES": config.psum_bytes,
            "ISSUE_BYTES": _ISSUE_BYTES,
        }
        self._program = build("lanes", verilog, _SOURCE, defines)

    def run(
        self,
        instructions,
        sbuf,
        psum,
        *,
        cycle_limit,
        deny_read=0,
        deny_write=0,
        late=False,
        issue_gap=0,
        spoil=(),
        keep=(),
        seed=1,
    ):
        """Runs `instructions` on copies of the memory images.

        deny_read, deny_write: chance of 256 that a request is refused in a cycle.  late: memory is
        read when the data leaves it.  issue_gap: cycles between two issues.  spoil: index -> up to
        two operand names, overwritten with 0xA5 after read_done.  keep: indices whose destination
        is recorded at complete.  RuntimeError when a check of the bench or of the engine fails, or
        the limit is reached.
        """
        header = [len(instructions), cycle_limit, issue_gap, deny_read, deny_write, int(late), seed]
        parts = [np.array(header, "<u4").tobytes()]
        spoil, shapes = dict(spoil), []
        for index, instruction in enumerate(instructions):
            spans = [_span(instruction[name]) for name in spoil.get(index, ())]
            spans += [(0, 0, 0)] * (2 - len(spans))
            kept = _span(instruction["dst"]) if index in keep else (0, 0, 0)
            shapes.append(kept[2] - kept[1])
            parts.append(Issue.const(instruction).as_bits().to_bytes(_ISSUE_BYTES, "little"))
            parts.append(np.array([*spans, kept], "<u4").tobytes())
        partitions = self.config.partitions
        expected = (partitions, self.config.sbuf_bytes), (partitions, self.config.psum_bytes)
        if (sbuf.shape, psum.shape) != expected or (sbuf.dtype, psum.dtype) != (np.uint8, np.uint8):
            raise ValueError(f"memory images of shapes {expected}, uint8, expected")
        parts += [sbuf.tobytes(), psum.tobytes()]
        with tempfile.TemporaryDirectory() as directory:
            source, target = Path(directory, "in"), Path(directory, "out")
            source.write_bytes(b"".join(parts))
            done = subprocess.run(
                [self._program, source, target], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(
                    f"lane bench, seed {seed}, status {done.returncode}: {done.stdout}{done.stderr}"
                )
            raw = np.frombuffer(target.read_bytes(), np.uint8)
        sizes = [sbuf.size, psum.size, *(partitions * size for size in shapes)]
        pieces = np.split(raw, np.cumsum(sizes))
        events = np.frombuffer(pieces.pop().tobytes(), _EVENT)
        return Run(
            pieces[0].reshape(sbuf.shape),
            pieces[1].reshape(psum.shape),
            [
                piece.reshape(partitions, -1) if size else None
                for piece, size in zip(pieces[2:], shapes, strict=True)
            ],
            *(events["cycle"][events["kind"] == kind].astype(np.int64) for kind in range(3)),
        )


def _span(operand):
    """(space, low, high) of a pattern or a column."""
    low = operand.get("low", operand["offset"])
    return operand["space"], low, operand.get("high", low + DType(operand["dtype"]).itemsize)
