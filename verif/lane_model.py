"""What the vector and scalar engines do to memory: the golden engines, driven by Issue fields.

Instructions are dicts of Issue fields as in `verif.lane_bench`.
"""

import numpy as np

from golden.access import Access
from golden.engines.scalar import ScalarEngine
from golden.engines.vector import VectorEngine
from golden.memory import Partitioned
from golden.operation import Operation
from isa.address_map import Sequencer
from isa.dtypes import DType
from isa.fields import Space
from isa.instructions import BY_OPCODE

_OPTIONS = (
    *("imm0", "imm1", "imm2", "op0", "op1", "func", "reverse0", "reverse1", "reduce_dims"),
    *("sat", "stochastic"),
)


class _Memories:
    def __init__(self, sbuf, psum):
        self.sbuf, self.psum = (
            Partitioned(space, *image.shape, image.shape[1], 0)
            for space, image in ((Space.SBUF, sbuf), (Space.PSUM, psum))
        )
        self.sbuf.bytes[...], self.psum.bytes[...] = sbuf, psum

    def __getitem__(self, space):
        return {Space.SBUF: self.sbuf, Space.PSUM: self.psum}[space]


class Model:
    """Memories with the content of the uint8 [P, bytes] images, and both engines in reset."""

    def __init__(self, sbuf, psum):
        self.memories = _Memories(sbuf, psum)
        self._engines = {
            Sequencer.VECTOR: VectorEngine(self.memories),
            Sequencer.SCALAR: ScalarEngine(self.memories),
        }

    def execute(self, instruction, engine=Sequencer.VECTOR):
        """All sources of the instruction are read, then its results are written in order.

        engine: of an instruction that both have.
        """
        declared = BY_OPCODE[instruction["opcode"]]
        used = {operand.slot for operand in declared.operands}
        operands = {
            slot: _access(instruction[slot]) if slot in used else None
            for slot in ("src0", "src1", "dst")
        }
        named = {column.slot for column in declared.columns}
        columns = {
            slot: _column(instruction.get(slot), operands["src0"]) if slot in named else None
            for slot in ("column0", "column1")
        }
        operation = Operation(
            name=declared.name,
            options={name: instruction.get(name, 0) for name in _OPTIONS},
            element_wise=False,
            **operands,
            **columns,
        )
        if engine not in declared.sequencers:
            (engine,) = declared.sequencers
        getattr(self._engines[engine], declared.name)(operation)


def _access(pattern):
    dims = tuple(zip(reversed(pattern["step"]), reversed(pattern["count"]), strict=True))
    return Access(
        pattern["space"],
        DType(pattern["dtype"]),
        pattern["partition"],
        pattern["partition_count"],
        pattern["offset"],
        dims,
    )


def _column(column, source):
    if not column or not column["space"]:
        return None
    return Access(
        column["space"],
        DType(column["dtype"]),
        column["partition"],
        source.partitions,
        column["offset"],
        ((0, 1),),
    )


def expected(program, sbuf, psum, engine=Sequencer.VECTOR):
    """The memories after the instructions, one after the other."""
    model = Model(sbuf, psum)
    for instruction in program:
        model.execute(instruction, engine)
    return model.memories.sbuf.bytes, model.memories.psum.bytes


def assert_run(run, program, sbuf, psum, engine=Sequencer.VECTOR):
    """Memories as after sequential execution; each instruction reported once, in order."""
    for name, found, want in zip(
        ("SBUF", "PSUM"), (run.sbuf, run.psum), expected(program, sbuf, psum, engine), strict=True
    ):
        wrong = np.argwhere(found != want)
        if len(wrong):
            p, byte = wrong[0]
            raise AssertionError(
                f"{len(wrong)} bytes of {name} differ, the first in partition {p} at {byte}: "
                f"{found[p, byte]:02x}, not {want[p, byte]:02x}"
            )
    for cycles in (run.issued, run.read_done, run.completed):
        assert len(cycles) == len(program)
        assert (np.diff(cycles) > 0).all()
    assert (run.read_done > run.issued).all()
    assert (run.completed > run.read_done).all()
