"""The scalar engine without its memory side, compiled with Verilator: steps, batches, rates.

Elements and results are refused at random. An instruction is a dict of ScalarOp fields, or one
made by `activation`.
"""

import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from hdl.emit import emit
from hdl.scalar.control import ScalarOp
from hdl.scalar.core import ScalarCore
from hdl.scalar.step import RAW, start_addresses
from verif.verilated import build

PARTITIONS = 2
_SOURCE = Path(__file__).with_suffix(".cpp")
_OP_BYTES = (ScalarOp.as_shape().size + 31) // 32 * 4
_ONE = 0x3F800000


@dataclass(frozen=True)
class Work:
    """An instruction: fields of ScalarOp, its columns and its elements, uint32 [P, n]."""

    op: dict
    data: np.ndarray
    columns: list = field(default_factory=list)


def activation(function, data, *, scale=_ONE, bias=0, slope=0):
    """func(data * scale + bias); scale and bias are FP32 codes, or columns uint32 [P, 1]."""
    starts = start_addresses()
    given = (scale, bias)
    columns = [value for value in given if isinstance(value, np.ndarray)]
    op = {
        "elements": data.shape[1],
        "start": starts[function],
        "columns": sum(isinstance(value, np.ndarray) << i for i, value in enumerate(given)),
        "immediate": [0 if isinstance(value, np.ndarray) else int(value) for value in given],
        "slope": int(slope),
    }
    return Work(op, data, columns)


def raw_words(data):
    """The words `data`, passed through."""
    starts = start_addresses()
    return Work({"elements": data.shape[1], "start": starts[RAW]}, data)


def no_source(elements):
    """Results from no elements; what they are is not defined."""
    starts = start_addresses()
    op = {"elements": elements, "start": starts[RAW], "sourceless": 1}
    return Work(op, np.zeros((PARTITIONS, 0), np.uint32))


@cache
def scalar_bench(stages):
    """The bench of a core with that many stages."""
    return ScalarBench(stages)


class ScalarBench:
    """A ScalarCore, built once per content of the sources."""

    def __init__(self, stages):
        core = ScalarCore(stages=stages, partitions=PARTITIONS)
        defines = {"PARTITIONS": PARTITIONS, "OP_BYTES": _OP_BYTES}
        self._program = build("scalar", emit(core, "scalar", checks=True), _SOURCE, defines)

    def run(self, works, *, cycle_limit=200_000, deny_source=0, deny_result=0, seed=1):
        """(results of each instruction, uint32 [P, n]; cycles in which they left, of each).

        deny_source, deny_result: chance of 256 that no element is offered, no result taken.
        RuntimeError when the bench or a check of the engine fails, or the limit is reached.
        """
        parts = [part for work in works for part in (*work.columns, work.data)]
        beats = np.concatenate(parts, axis=1).astype("<u4")
        counts = [work.op["elements"] for work in works]
        header = [len(works), beats.shape[1], sum(counts), cycle_limit, deny_source, deny_result]
        text = [np.array([*header, seed], "<u4").tobytes()]
        for work in works:
            text.append(ScalarOp.const(work.op).as_bits().to_bytes(_OP_BYTES, "little"))
        text.append(np.ascontiguousarray(beats.T).tobytes())
        with tempfile.TemporaryDirectory() as directory:
            source, target = Path(directory, "in"), Path(directory, "out")
            source.write_bytes(b"".join(text))
            done = subprocess.run(
                [self._program, source, target], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(
                    f"scalar bench, seed {seed}, status {done.returncode}: "
                    f"{done.stdout}{done.stderr}"
                )
            raw = np.frombuffer(target.read_bytes(), "<u4")
        results = raw[: sum(counts) * PARTITIONS].reshape(-1, PARTITIONS).T
        ends = np.cumsum(counts)[:-1]
        cycles = raw[sum(counts) * PARTITIONS :].astype(np.int64)
        return np.split(results, ends, axis=1), np.split(cycles, ends)
