"""What the vector and scalar engines do to memory, in numpy, for tests of the engines alone.

Instructions are dicts of Issue fields as in `verif.lane_bench`.
"""

import numpy as np

from golden.arith import bfloat16, float32
from isa.dtypes import DType
from isa.fields import AluOp, Function, Space
from isa.instructions import BY_OPCODE
from verif.memory_bench import element_offsets, load_lanes

_BINARY = {
    AluOp.ADD: float32.add,
    AluOp.SUBTRACT: float32.subtract,
    AluOp.MULTIPLY: float32.multiply,
    AluOp.MAX: float32.maximum,
    AluOp.MIN: float32.minimum,
}


def execute(instruction, sbuf, psum):
    """Executes one instruction on the uint8 [P, bytes] memories, in place.

    All of its sources are read, then the results are written in order.
    """
    memories = {int(Space.SBUF): sbuf, int(Space.PSUM): psum}
    dst = instruction["dst"]
    bits = _RESULTS[BY_OPCODE[instruction["opcode"]].name](instruction, memories)
    if dst["dtype"] == DType.BF16:
        raw = (
            BY_OPCODE[instruction["opcode"]].name == "tensor_copy"
            and instruction["src0"]["dtype"] == DType.BF16
        )
        codes = (
            (bits >> np.uint32(16)).astype(np.uint16)
            if raw
            else bfloat16.narrow(bits.view(np.float32))
        )
    else:
        codes = bits
    size = codes.dtype.itemsize
    rows = slice(dst["partition"], dst["partition"] + dst["partition_count"])
    for element, offset in enumerate(element_offsets(dst)):
        lanes = np.ascontiguousarray(codes[element, : dst["partition_count"]])
        memories[dst["space"]][rows, offset : offset + size] = lanes.view(np.uint8).reshape(
            -1, size
        )


def _source(pattern, memories):
    """FP32 bits [elements, P]."""
    return load_lanes(memories[pattern["space"]], pattern).astype(np.uint32)


def _values(pattern, memories):
    return _source(pattern, memories).view(np.float32)


def _column(instruction, index, memories):
    column, imm = instruction.get(f"column{index}"), instruction.get(f"imm{index}", 0)
    if not column or not column["space"]:
        return np.uint32(imm).view(np.float32)
    return _values({**column, "step": [0] * 4, "count": [1] * 4}, memories)


def _alu(code, a, b, reverse=False):
    return a if code == AluOp.BYPASS else _BINARY[AluOp(code)](*((b, a) if reverse else (a, b)))


def _tensor_tensor(i, memories):
    return _alu(i["op0"], _values(i["src0"], memories), _values(i["src1"], memories)).view(
        np.uint32
    )


def _tensor_scalar(i, memories):
    x = _values(i["src0"], memories)
    x = _alu(i["op0"], x, _column(i, 0, memories), i.get("reverse0", 0))
    return _alu(i["op1"], x, _column(i, 1, memories), i.get("reverse1", 0)).view(np.uint32)


def _tensor_copy(i, memories):
    return _source(i["src0"], memories)


def _tensor_reduce(i, memories):
    x = _values(i["src0"], memories)
    group = int(np.prod(i["src0"]["count"][: i["reduce_dims"]]))
    x = x.reshape(-1, group, x.shape[1])
    reduce = float32.reduce_add if i["op0"] == AluOp.ADD else float32.reduce_max
    return reduce(x, axis=1).view(np.uint32)


def _memset(i, memories):
    return np.full((int(np.prod(i["dst"]["count"])), memories[1].shape[0]), i["imm0"], np.uint32)


def _activation(i, memories):
    x = float32.multiply(_values(i["src0"], memories), _column(i, 0, memories))
    x = float32.add(x, _column(i, 1, memories))
    return (float32.relu(x) if i["func"] == Function.RELU else x).view(np.uint32)


_RESULTS = {
    "tensor_tensor": _tensor_tensor,
    "tensor_scalar": _tensor_scalar,
    "tensor_copy": _tensor_copy,
    "tensor_reduce": _tensor_reduce,
    "memset": _memset,
    "activation": _activation,
}


def expected(program, sbuf, psum):
    """Copies of the memories after the instructions, one after the other."""
    sbuf, psum = sbuf.copy(), psum.copy()
    for instruction in program:
        execute(instruction, sbuf, psum)
    return sbuf, psum


def assert_run(run, program, sbuf, psum):
    """Memories as after sequential execution; each instruction reported once, in order."""
    for name, found, want in zip(
        ("SBUF", "PSUM"), (run.sbuf, run.psum), expected(program, sbuf, psum), strict=True
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
