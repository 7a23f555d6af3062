"""The instruction set, declared once.

Encoder, decoder, assembler, argument checks, RTL layout and reserved-bit masks, golden dispatch,
random program generator and the reference page are all derived from INSTRUCTIONS.

Order of checks (the first that fails gives the Cause, in RTL and golden model alike): BAD_VERSION,
ILLEGAL_OPCODE, RESERVED_BITS, BAD_OPERATOR, BAD_SPACE, BAD_DTYPE, BAD_PARTITION, MISALIGNED,
OUT_OF_RANGE, SHAPE_MISMATCH; control instructions: BAD_ADDRESS, BAD_DMA_ENGINE, PC_OUT_OF_RANGE,
LOOP_DEPTH when executed. Operand checks see register-substituted values.  When any count or
partition_count of any operand is 0 the instruction does no work: it passes the checks up to
BAD_DTYPE, then waits, updates and retires.

The checks in detail
* An instruction is checked before it waits; one that fails neither waits nor updates nor counts as
  retired.
* RESERVED_BITS: a bit outside the instruction's used_mask; or a field that holds a register number
  (its flag is 1, used or not: wait_value, update_value, operand and column fields, immediates) with
  a bit above the low 6; or imm_regs bit 1 in an instruction without imm1.
* BAD_OPERATOR: update_kind, alu_op, cond or a field of `enums` without a legal value.
* BAD_SPACE, BAD_DTYPE: every operand; a column may have space NONE, and then its other fields mean
  nothing.
* Register values are unsigned 32-bit numbers and are checked before they are cut to their field: a
  count above 65535 is OUT_OF_RANGE.
* BAD_PARTITION, with P = config.partitions: start + count <= P; start 0 when count > P/2, 0 or P/2
  when count > P/4, else a multiple of P/4.  A column counts the partitions of src0.
* MISALIGNED: offset of an operand or used column is not a multiple of its element size.
* OUT_OF_RANGE, each operand: more than 65536 elements (product of the counts), or a byte of the box
  [low, high) before 0 or beyond the space's bytes in a partition; a used column likewise;
  load_stationary: M > P; multiply_moving: elements of src0 > config.max_moving, or the dst box not
  within one PSUM bank.
* SHAPE_MISMATCH: "same": partition counts or elements of the operands differ; "reduce": partition
  counts differ, or dst has other than the product of src0's counts outside the innermost
  reduce_dims elements; "matmul": K, M differ from those of the last load_stationary that passed its
  checks and did work (none since START fails too), or the elements of src0 and dst differ.

Execution in detail
* START with a stream that is not 128-byte aligned or not wholly inside HBM: BAD_ADDRESS at pc 0.
  An instruction that cannot be fetched: BUS_ERROR.  Running past the last instruction:
  PC_OUT_OF_RANGE with pc = LENGTH.
* reg_load, reg_store: BAD_ADDRESS when the sum (modulo 2^64) is not 4-byte aligned or not a byte of
  HBM, SBUF or PSUM (gaps between partitions included); BUS_ERROR when the access fails.
* dma_trigger: BAD_ADDRESS when the sum is not 128-byte aligned or not in HBM; then BAD_DMA_ENGINE;
  a count (signed) at or below 0 then appends nothing.
* branch: a target at or beyond LENGTH is PC_OUT_OF_RANGE when taken.  A taken branch ends every
  loop whose body does not contain its target (so a branch to the target of a loop leaves that
  loop).
* loop: PC_OUT_OF_RANGE, whatever the count, unless pc < target < LENGTH and target is not beyond
  the target of the enclosing loop; then a count at or below 0 or an empty body continues at target;
  else LOOP_DEPTH when LOOP_DEPTH loops are active.  A loop repeats or ends when its target is
  reached other than by a taken branch, the innermost first.
* An update fires in order after those of all earlier instructions of the same kind (at read or
  complete).  Control instructions other than nop and sem_wait fire theirs when they execute, at
  once, ignoring update_at_read, and what comes after them in their stream finds it done; fenced
  ones execute when everything before is complete.  A nop, a sem_wait and an instruction without
  work update as if their reads and results followed those of the instruction before.  sem_wait
  without wait and sem_update with Update.NONE are a nop (sem_update stays fenced).
* A sequencer that stops (ERROR) leaves issued work running: it completes and updates.  Semaphores
  wrap modulo 2^32; a semaphore that leaves the signed range is latched in SEMAPHORE_ERROR and stops
  nobody.
"""

from dataclasses import dataclass

from isa.address_map import Cause, Sequencer
from isa.dtypes import FP8, MATMUL, NARROW, SUPPORTED, TRANSPOSED, DType
from isa.fields import (
    COLUMN,
    COLUMN_AT,
    HEADER,
    OPERAND,
    OPERAND_AT,
    OPTIONS,
    SLOW_CYCLES,
    AluOp,
    Function,
    Part,
    Space,
)

ALL_SEQUENCERS = frozenset(Sequencer)
ANY_SPACE = (Space.SBUF, Space.PSUM)


@dataclass(frozen=True)
class Operand:
    """An access-pattern operand: which block of the word, allowed spaces and dtypes, meaning."""

    slot: str
    doc: str
    spaces: tuple = ANY_SPACE
    dtypes: tuple = SUPPORTED


@dataclass(frozen=True)
class Column:
    """An operand that is one value per partition ([P, 1] in memory) or an immediate."""

    slot: str
    imm: str
    doc: str
    default: float


@dataclass(frozen=True)
class Rule:
    """Refused with `cause` where every field of `when`, ((path, values), ...), has one of its
    values; `doc` says what would be right.
    """

    cause: Cause
    doc: str
    when: tuple


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    shape: rule between the operands, checked everywhere: "same" (equal partition counts and equal
    element counts of all operands), "matmul", "stationary", "reduce", "fill" or "control".
    cost: cycles that it occupies its engine, N = elements per partition, text for the reference
    page.
    fenced: a control instruction that waits until all earlier instructions of its sequencer are
    complete.
    rules: combinations of fields that are refused, in their order behind the other checks with the
    same Cause.
    """

    name: str
    opcode: int
    sequencers: frozenset
    doc: str
    cost: str
    operands: tuple = ()
    columns: tuple = ()
    options: tuple = ()
    enums: tuple = ()
    shape: str = "control"
    fenced: bool = False
    rules: tuple = ()

    @property
    def datapath(self):
        return self.shape != "control"

    @property
    def fields(self):
        """Every Field of its word."""
        found = list(HEADER)
        for operand in self.operands:
            found += [f.at(OPERAND_AT[operand.slot], operand.slot) for f in OPERAND]
        for column in self.columns:
            found += [f.at(COLUMN_AT[column.slot], column.slot) for f in COLUMN]
            found.append(OPTIONS[column.imm])
        if self.columns or "imm0" in self.options:
            found.append(OPTIONS["imm_regs"])
        found += [OPTIONS[name] for name in self.options]
        return tuple(found)

    @property
    def used_mask(self):
        """1024-bit mask of the bits that may be non-zero."""
        mask = 0
        for field in self.fields:
            mask |= field.mask
        return mask


_FAST = tuple(op for op in AluOp if not op.raw and op not in
              (AluOp.BYPASS, AluOp.DIVIDE, AluOp.POWER))
_RAW = tuple(op for op in AluOp if op.raw)
_VALUE = tuple(op for op in AluOp if not op.raw and op != AluOp.BYPASS)
_SCAN = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)
_ROUNDING = ("sat", "stochastic")


def _without(values, allowed):
    return tuple(value for value in values if value not in allowed)


_ROUNDS = tuple(
    Rule(Cause.BAD_DTYPE, f"{name} needs a dst of {', '.join(d.text for d in NARROW)}",
         ((name, (1,)), ("dst.dtype", _without(DType, NARROW))))
    for name in _ROUNDING
)
_RAW_EXACT = tuple(
    Rule(Cause.BAD_OPERATOR, f"{name} needs an operator on FP32 values, raw ones do not round",
         ((name, (1,)), ("op0", _RAW)))
    for name in _ROUNDING
)
_ONE_KIND = tuple(
    Rule(Cause.BAD_OPERATOR, "op0 and op1 must both be raw or both work on FP32 values",
         (("op0", first), ("op1", second)))
    for first, second in ((_RAW, _FAST), (_VALUE, _RAW))
)
_COPY_EXACT = tuple(
    Rule(Cause.BAD_DTYPE, f"{name} needs a cast, between equal dtypes nothing is rounded",
         ((name, (1,)), ("src0.dtype", (dtype,)), ("dst.dtype", (dtype,))))
    for name in _ROUNDING for dtype in NARROW
)
_PARTS = (
    Rule(Cause.BAD_DTYPE, "part must be high, low or high_finite with fp32",
         (("part", (Part.FULL,)), ("src0.dtype", (DType.FP32,)))),
    Rule(Cause.BAD_DTYPE, "part must be full with a dtype other than fp32",
         (("part", _without(Part, (Part.FULL,))), ("src0.dtype", _without(DType, (DType.FP32,))))),
    Rule(Cause.BAD_DTYPE, f"double_row needs {', '.join(d.text for d in FP8)}",
         (("double_row", (1,)), ("src0.dtype", _without(DType, FP8)))),
)
_ENGINE_COST = "max(start-up, N)"
_ALU_COST = f"max(start-up, N); divide, power: N * {SLOW_CYCLES}"

INSTRUCTIONS = (
    Instruction("nop", 0x00, ALL_SEQUENCERS, "Nothing, apart from its wait and update.", "1"),
    Instruction("sem_wait", 0x01, ALL_SEQUENCERS,
                "Wait for a semaphore (a nop whose wait is required).", "1"),
    Instruction("sem_update", 0x02, ALL_SEQUENCERS,
                "Update a semaphore once everything before it in this stream is complete.", "1",
                fenced=True),
    Instruction("halt", 0x03, ALL_SEQUENCERS,
                "End of the stream, once everything before it is complete.", "1", fenced=True),
    Instruction("notify", 0x04, ALL_SEQUENCERS,
                "Write imm into NOTIFY_VALUE and count it in NOTIFY_COUNT, "
                "once everything before it is complete.", "1",
                options=("imm",), fenced=True),
    Instruction("reg_alu", 0x08, ALL_SEQUENCERS,
                "rd = ra alu_op (imm or rb); MOVE ignores ra.", "1",
                options=("rd", "ra", "rb", "use_imm", "alu_op", "imm")),
    Instruction("reg_load", 0x09, ALL_SEQUENCERS,
                "rd = 32-bit word at address (+ ra when address_reg), 4-byte aligned, HBM, "
                "SBUF or PSUM; fenced.",
                "bus round trip", options=("rd", "ra", "address_reg", "address"), fenced=True),
    Instruction("reg_store", 0x0A, ALL_SEQUENCERS,
                "32-bit word at address (+ ra when address_reg) = rb; HBM, SBUF or PSUM; "
                "fenced; complete when visible.",
                "bus round trip", options=("rb", "ra", "address_reg", "address"), fenced=True),
    Instruction("branch", 0x0B, ALL_SEQUENCERS,
                "Continue at target when ra cond (imm or rb) holds.",
                "1 + refill outside the buffer",
                options=("ra", "rb", "use_imm", "cond", "imm", "target")),
    Instruction("loop", 0x0C, ALL_SEQUENCERS,
                "Run the instructions from the next one up to target (exclusive) imm (or, with "
                "use_imm = 0, register rb) times, signed; at or below 0 continue at target.  "
                "Nests 4 deep; target lies after the loop instruction.", "1",
                options=("rb", "use_imm", "imm", "target")),
    Instruction("dma_trigger", 0x10, ALL_SEQUENCERS,
                "Append imm (or register rb) descriptors at address (+ ra when address_reg) to the "
                "queue of a DMA engine, once everything before it in this stream is complete.  "
                "Complete when queued.", "1 when the queue has room",
                options=("ra", "rb", "use_imm", "address_reg", "dma_engine", "imm", "address"),
                fenced=True),
    Instruction("load_stationary", 0x20, frozenset({Sequencer.TENSOR}),
                "Load weights [K, M] for the next multiply_moving: K partitions, M elements "
                "per partition, M <= array.",
                "M/4 with elements of 2 bytes, contiguous and 8-byte aligned, else M; "
                "hidden behind the running multiply",
                operands=(Operand("src0", "stationary [K, M]; with double_row an element is a pair "
                                  "of adjacent FP8", (Space.SBUF,), _without(DType, (
                                      DType.INT32, DType.UINT32))),),
                options=("part", "double_row", "transpose"), shape="stationary",
                rules=(*_PARTS,
                       Rule(Cause.BAD_DTYPE, "without transpose the dtype must be one of "
                            f"{', '.join(d.text for d in MATMUL)}",
                            (("transpose", (0,)), ("src0.dtype", _without(DType, MATMUL)))),
                       Rule(Cause.BAD_DTYPE, "transpose needs a dtype of 1 or 2 bytes",
                            (("transpose", (1,)), ("src0.dtype", _without(DType, TRANSPOSED)))),
                       Rule(Cause.BAD_OPERATOR, "transpose and double_row exclude each other",
                            (("transpose", (1,)), ("double_row", (1,)))))),
    Instruction("multiply_moving", 0x21, frozenset({Sequencer.TENSOR}),
                "dst[m, n] = (accumulate: dst[m, n] +) "
                "sum over k of stationary[k, m] * src0[k, n]; rows in order from +0; "
                "K equals the stationary's K, dst has M partitions and lies in one PSUM bank.  "
                "double_row: each term is stationary[k, m, 0] * src0[k, n, 0] + "
                "stationary[k, m, 1] * src0[k, n, 1], rounded.  transpose: each term is the word "
                "of the stationary element's bits, zero-extended, where src0[k, n] is not zero.  "
                "double_row and transpose are those of the load_stationary.",
                _ENGINE_COST,
                operands=(Operand("src0", "moving [K, N]; with double_row an element is a pair of "
                                  "adjacent FP8", (Space.SBUF,), MATMUL),
                          Operand("dst", "result [M, N]", (Space.PSUM,), (DType.FP32,))),
                options=("accumulate", "part", "double_row", "transpose"), shape="matmul",
                rules=(*_PARTS,
                       Rule(Cause.BAD_OPERATOR, "transpose and double_row exclude each other",
                            (("transpose", (1,)), ("double_row", (1,)))))),
    Instruction("tensor_tensor", 0x30, frozenset({Sequencer.VECTOR}),
                "dst = src0 op0 src1.", _ALU_COST,
                operands=(Operand("src0", "first operand"), Operand("src1", "second operand"),
                          Operand("dst", "result")),
                options=("op0", *_ROUNDING), enums=(("op0", (*_VALUE, *_RAW)),), shape="same",
                rules=(*_RAW_EXACT, *_ROUNDS)),
    Instruction("tensor_scalar", 0x31, frozenset({Sequencer.VECTOR}),
                "dst = (src0 op0 operand0) op1 operand1.", _ALU_COST,
                operands=(Operand("src0", "data"), Operand("dst", "result")),
                columns=(Column("column0", "imm0", "operand0", 0.0),
                         Column("column1", "imm1", "operand1", 0.0)),
                options=("op0", "op1", "reverse0", "reverse1", *_ROUNDING),
                enums=(("op0", (*_VALUE, *_RAW)), ("op1", (AluOp.BYPASS, *_FAST, *_RAW))),
                shape="same", rules=(*_ONE_KIND, *_RAW_EXACT, *_ROUNDS)),
    Instruction("tensor_copy", 0x32, frozenset({Sequencer.VECTOR}),
                "dst = src0, cast when the dtypes differ; the same dtype moves bits, NaN patterns "
                "included.", _ENGINE_COST,
                operands=(Operand("src0", "source"), Operand("dst", "destination")),
                options=_ROUNDING, shape="same", rules=(*_COPY_EXACT, *_ROUNDS)),
    Instruction("tensor_reduce", 0x33, frozenset({Sequencer.VECTOR}),
                "dst = src0 reduced by op0 (add: 8 interleaved partials; max; min) over its "
                "reduce_dims innermost dimensions.",
                "max(start-up, N) + join",
                operands=(Operand("src0", "data"), Operand("dst", "one element per reduction")),
                options=("op0", "reduce_dims", *_ROUNDING),
                enums=(("op0", (AluOp.ADD, AluOp.MAX, AluOp.MIN)), ("reduce_dims", (1, 2, 3, 4))),
                shape="reduce", rules=_ROUNDS),
    Instruction("memset", 0x34, frozenset({Sequencer.VECTOR}),
                "dst = imm0, narrowed to the dtype.", _ENGINE_COST,
                operands=(Operand("dst", "destination"),), options=("imm0", *_ROUNDING),
                shape="fill", rules=_ROUNDS),
    Instruction("tensor_tensor_scan", 0x35, frozenset({Sequencer.VECTOR}),
                "dst[i] = (src0[i] op0 dst[i - 1]) op1 src1[i] over all elements of a partition in "
                "order, dst[-1] = initial; what is carried on is not rounded to the dtype.",
                "N * (2 * vector_stages + 1)",
                operands=(Operand("src0", "first operand"), Operand("src1", "second operand"),
                          Operand("dst", "result")),
                columns=(Column("column0", "imm0", "initial", 0.0),),
                options=("op0", "op1", *_ROUNDING),
                enums=(("op0", _SCAN), ("op1", _SCAN)), shape="same", rules=_ROUNDS),
    Instruction("rand_set_state", 0x36, frozenset({Sequencer.VECTOR, Sequencer.SCALAR}),
                "The generators of this engine in the partitions of src0 continue from its six "
                "words x, y, z, w, v, d.", "start-up",
                operands=(Operand("src0", "state [P, 6]", dtypes=(DType.UINT32,)),),
                shape="state"),
    Instruction("rand_get_state", 0x37, frozenset({Sequencer.VECTOR, Sequencer.SCALAR}),
                "dst = the six words of the generators of this engine in its partitions.",
                "start-up",
                operands=(Operand("dst", "state [P, 6]", dtypes=(DType.UINT32,)),),
                shape="state"),
    Instruction("activation", 0x40, frozenset({Sequencer.SCALAR}),
                "dst = func(src0 * scale + bias), a product and a sum, each rounded to FP32; imm2 "
                "is the slope of prelu.",
                "max(start-up, N * n), n steps; with n > 1 a last batch (of 32) counts as at least "
                "4 * vector_stages + 3 elements in all steps but the last",
                operands=(Operand("src0", "data"), Operand("dst", "result")),
                columns=(Column("column0", "imm0", "scale", 1.0),
                         Column("column1", "imm1", "bias", 0.0)),
                options=("func", "imm2", *_ROUNDING), enums=(("func", tuple(Function)),),
                shape="same", rules=_ROUNDS),
)

BY_NAME = {instruction.name: instruction for instruction in INSTRUCTIONS}
BY_OPCODE = {instruction.opcode: instruction for instruction in INSTRUCTIONS}
