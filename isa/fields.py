"""Bit fields of the 1024-bit instruction word and of the descriptor: the one place where positions
are written.

Words are little-endian: bit n of the word is bit n % 8 of byte n // 8.  Bits that no field of an
instruction's layout covers are reserved: they must be zero and every reader checks them.
"""

from dataclasses import dataclass
from enum import IntEnum


@dataclass(frozen=True)
class Field:
    """`width` bits at bit `low`; signed fields are two's complement."""

    name: str
    low: int
    width: int
    doc: str
    signed: bool = False

    @property
    def mask(self):
        return ((1 << self.width) - 1) << self.low

    def at(self, base, prefix):
        """The same field of a block that starts at bit `base`, named `prefix.name`."""
        return Field(f"{prefix}.{self.name}", base + self.low, self.width, self.doc, self.signed)


class Space(IntEnum):
    """Memory of an operand."""

    NONE = 0
    SBUF = 1
    PSUM = 2


class Update(IntEnum):
    """What an instruction or descriptor does to its update semaphore."""

    NONE = 0
    INCREMENT = 1
    DECREMENT = 2
    ADD = 3
    SET = 4


class AluOp(IntEnum):
    """Operators of the vector engine: a op b.

    Below 32 they work on FP32 values; comparisons and logical operators give 1.0 or 0.0, a
    comparison with NaN is false except NOT_EQUAL, everything but +-0 is true.  From 32 on they are
    raw: they work on 32-bit words, to which integers are extended by their sign and all other
    elements with zeros, and store the low bytes of the result.
    """

    BYPASS = 0
    ADD = 1
    SUBTRACT = 2
    MULTIPLY = 3
    MAX = 4
    MIN = 5
    DIVIDE = 6
    POWER = 7
    ABS_MAX = 8
    ABS_MIN = 9
    EQUAL = 10
    NOT_EQUAL = 11
    GREATER = 12
    GREATER_EQUAL = 13
    LESS = 14
    LESS_EQUAL = 15
    LOGICAL_AND = 16
    LOGICAL_OR = 17
    LOGICAL_XOR = 18
    BITWISE_AND = 32
    BITWISE_OR = 33
    BITWISE_XOR = 34
    SHIFT_LEFT = 35
    SHIFT_RIGHT = 36
    SHIFT_RIGHT_ARITHMETIC = 37
    INT_ADD = 40
    INT_SUBTRACT = 41
    INT_MULTIPLY = 42
    INT_MAX = 43
    INT_MIN = 44
    INT_EQUAL = 45
    INT_NOT_EQUAL = 46
    INT_GREATER = 47
    INT_GREATER_EQUAL = 48
    INT_LESS = 49
    INT_LESS_EQUAL = 50
    UINT_GREATER = 51
    UINT_GREATER_EQUAL = 52
    UINT_LESS = 53
    UINT_LESS_EQUAL = 54

    @property
    def raw(self):
        """Works on words, not on FP32 values."""
        return self >= 32


SLOW_CYCLES = 17
"""Cycles of an element of DIVIDE and POWER."""


class Function(IntEnum):
    """Functions of the scalar engine, defined in `isa.functions`."""

    COPY = 0
    RELU = 1
    EXP = 2
    LOG = 3
    SQRT = 4
    RSQRT = 5
    RECIPROCAL = 6
    SIGMOID = 7
    TANH = 8
    GELU = 9
    GELU_TANH = 10
    GELU_DERIVATIVE = 11
    SILU = 12
    SILU_DERIVATIVE = 13
    SOFTPLUS = 14
    MISH = 15
    ERF = 16
    SIN = 17
    COS = 18
    ARCTAN = 19
    SQUARE = 20
    ABS = 21
    SIGN = 22
    PRELU = 23


class Part(IntEnum):
    """What of an operand of the tensor engine takes part: all of it, or of FP32 a half of 12
    significant bits, high = bits & FFFFF000 and low = value - high.  Infinity and NaN count in
    HIGH alone and read as zero in the other two.
    """

    FULL = 0
    HIGH = 1
    LOW = 2
    HIGH_FINITE = 3


class RegOp(IntEnum):
    """Operators of reg_alu on 32-bit registers, modulo 2^32; shifts take the low 5 bits of the
    second operand.
    """

    MOVE = 0
    ADD = 1
    SUBTRACT = 2
    MULTIPLY = 3
    AND = 4
    OR = 5
    XOR = 6
    SHIFT_LEFT = 7
    SHIFT_RIGHT = 8


class Condition(IntEnum):
    """Conditions of branch: ra against rb or immediate."""

    ALWAYS = 0
    EQ = 1
    NE = 2
    LT = 3
    GE = 4
    LTU = 5
    GEU = 6


HEADER = (
    Field("opcode", 0, 8, "what the instruction does"),
    Field("version", 8, 8, "ISA version"),
    Field("wait", 16, 1, "1: start only when semaphore wait_semaphore >= wait_value (signed)"),
    Field("wait_reg", 17, 1, "1: wait_value holds the number of a register that holds the value"),
    Field("wait_semaphore", 24, 8, "semaphore waited for"),
    Field("wait_value", 32, 32, "value waited for", signed=True),
    Field("update_kind", 64, 3, "Update"),
    Field("update_at_read", 67, 1, "1: update when the inputs have been read, 0: when complete"),
    Field("update_reg", 68, 1,
          "1: update_value holds the number of a register that holds the value"),
    Field("update_semaphore", 72, 8, "semaphore updated"),
    Field("update_value", 96, 32, "value of Update.ADD and Update.SET", signed=True),
)

DIMS = 4
OPERAND_BITS = 192
OPERAND = (
    Field("space", 0, 2, "Space"),
    Field("dtype", 4, 4, "DType"),
    Field("regs", 8, 7, "fields that hold a register number instead of a value: bit 0 offset, "
          "1 partition, 2 partition_count, 3..6 count0..count3"),
    Field("partition", 16, 8, "first partition, a quadrant boundary"),
    Field("partition_count", 24, 8, "partitions; 0 = no work"),
    Field("offset", 32, 24, "byte offset of the first element in the partition"),
    *(Field(f"step{i}", 64 + 32 * i, 16,
            f"elements between neighbours of dimension {i} (0 innermost)", signed=True)
      for i in range(DIMS)),
    *(Field(f"count{i}", 80 + 32 * i, 16,
            f"elements of dimension {i}; 0 = no work, unused dimensions have 1")
      for i in range(DIMS)),
)
OPERAND_REGS = ("offset", "partition", "partition_count", *(f"count{i}" for i in range(DIMS)))
"""Fields that a bit of `regs` turns into register numbers, by bit."""

COLUMN_BITS = 64
COLUMN = (
    Field("space", 0, 2, "Space; NONE: the immediate is used"),
    Field("dtype", 4, 4, "DType"),
    Field("regs", 8, 2, "bit 0: offset, bit 1: partition hold a register number"),
    Field("partition", 16, 8, "first partition, a quadrant boundary"),
    Field("offset", 32, 24, "byte offset of the element in each partition"),
)
COLUMN_REGS = ("offset", "partition")

OPERAND_AT = {"src0": 128, "src1": 320, "dst": 512}
COLUMN_AT = {"column0": 704, "column1": 768}
OPTIONS = {
    field.name: field
    for field in (
        Field("imm0", 832, 32, "first immediate, FP32 bits"),
        Field("imm1", 864, 32, "second immediate, FP32 bits"),
        Field("imm_regs", 896, 2, "bit i: immediate i holds a register number"),
        Field("op0", 904, 8, "AluOp of the first operation"),
        Field("op1", 912, 8, "AluOp of the second operation"),
        Field("func", 920, 8, "Function"),
        Field("reverse0", 928, 1, "1: operand0 op0 data instead of data op0 operand0"),
        Field("reverse1", 929, 1, "1: operand1 op1 data"),
        Field("accumulate", 930, 1, "1: add to PSUM, 0: overwrite"),
        Field("reduce_dims", 932, 3, "innermost dimensions of src0 that are reduced, 1..4"),
        Field("sat", 935, 1, "1: what rounds beyond the largest finite number, and infinity, "
              "becomes that number, 0: infinity (FP8_E4M3FN: NaN)"),
        Field("stochastic", 936, 1, "1: results are rounded stochastically, 0: to nearest even"),
        Field("part", 938, 2, "Part of an FP32 operand"),
        Field("double_row", 940, 1, "1: two FP8 rows in each row of the array"),
        Field("transpose", 941, 1, "1: bits of the stationary operand pass, nothing is multiplied"),
        Field("imm2", 960, 32, "third immediate, FP32 bits"),
        # control instructions
        Field("rd", 128, 6, "destination register"),
        Field("ra", 136, 6, "first source register"),
        Field("rb", 144, 6, "second source register"),
        Field("use_imm", 152, 1, "1: imm instead of rb"),
        Field("address_reg", 153, 1, "1: register ra (unsigned) is added to address"),
        Field("alu_op", 160, 4, "RegOp"),
        Field("cond", 168, 3, "Condition"),
        Field("dma_engine", 176, 4, "DMA engine"),
        Field("imm", 192, 32, "immediate", signed=True),
        Field("target", 224, 32, "instruction index in the stream"),
        Field("address", 256, 64, "byte address in the 64-bit map"),
    )
}

DESCRIPTOR = (
    Field("kind", 0, 8, "1 = copy"),
    Field("version", 8, 8, "ISA version"),
    Field("update_kind", 64, 3, "Update, applied when all bytes are visible"),
    Field("update_semaphore", 72, 8, "semaphore updated"),
    Field("update_value", 96, 32, "value of Update.ADD and Update.SET", signed=True),
    Field("src_address", 128, 64, "byte address of the first source row"),
    Field("dst_address", 192, 64, "byte address of the first destination row"),
    Field("row_bytes", 256, 32, "contiguous bytes of a row; 0 = no work"),
    *(Field(f"count{i}", 320 + 16 * i, 16,
            f"rows of dimension {i} (0 innermost); 0 = no work, unused have 1")
      for i in range(3)),
    *(Field(f"src_stride{i}", 384 + 32 * i, 32,
            f"bytes between source rows of dimension {i}", signed=True)
      for i in range(3)),
    *(Field(f"dst_stride{i}", 512 + 32 * i, 32,
            f"bytes between destination rows of dimension {i}", signed=True)
      for i in range(3)),
)
DESCRIPTOR_COPY = 1
