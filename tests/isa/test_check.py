"""Every rule of every instruction: the Cause, the sentence, and the order in which rules are
looked at.
"""

import itertools

import pytest

from isa.address_map import PSUM_BASE, SBUF_BASE, Cause
from isa.arguments import fields_of
from isa.check import (
    UNKNOWN,
    check,
    check_form,
    check_static,
    has_work,
    substitute,
    uses_registers,
)
from isa.check_control import effective_address, locate, target_problem
from isa.dtypes import DType
from isa.encoding import decode, encode
from isa.fields import Space
from isa.geometry import preset
from isa.instructions import BY_NAME, INSTRUCTIONS
from isa.pattern import AccessPattern, ColumnPattern, Reg

SMALL = preset("small")
SBUF, PSUM, NONE = Space.SBUF, Space.PSUM, Space.NONE
FP32, BF16 = DType.FP32, DType.BF16


def ap(space=SBUF, dtype=FP32, partition=0, count=16, offset=0, dims=((1, 8),)):
    return AccessPattern(space, dtype, partition, count, offset, dims)


def words(name, changes=(), **arguments):
    """(instruction, fields) of an instruction, with some fields changed afterwards."""
    fields = fields_of(name, arguments) | dict(changes)
    return decode(encode(name, fields))


def tensor_tensor(**changes):
    patterns = {"src0": ap(), "src1": ap(offset=64), "dst": ap(offset=128)}
    return words("tensor_tensor", op0="add", **patterns | changes)


def matmul(src=None, dst=None):
    return words("multiply_moving", src0=src or ap(dtype=BF16), dst=dst or ap(PSUM))


def expect(fault, cause, *parts):
    assert fault is not None, f"{cause.name} was expected"
    assert fault.cause is cause, str(fault)
    for part in parts:
        assert part in str(fault)


def test_good_instructions_pass():
    assert check(SMALL, *tensor_tensor()) is None
    assert check(SMALL, *matmul(), stationary=(16, 16, 0, 0)) is None
    assert check(SMALL, *matmul(), stationary=UNKNOWN) is None
    assert check(SMALL, *words("load_stationary", src0=ap(dtype=BF16, dims=((1, 16),)))) is None
    assert check(SMALL, *words("memset", dst=ap(), imm0=1.0)) is None
    assert (
        check(
            SMALL,
            *words(
                "activation", src0=ap(), dst=ap(), func="relu", bias=ColumnPattern(SBUF, BF16, 0, 2)
            ),
        )
        is None
    )
    reduce = words(
        "tensor_reduce", src0=ap(dims=((8, 3), (1, 8))), dst=ap(dims=((1, 3),)), op0="max"
    )
    assert check(SMALL, *reduce) is None
    for name in ("nop", "halt"):
        assert check(SMALL, *words(name)) is None


FORM = [
    (
        "nop",
        {"update_kind": 5},
        Cause.BAD_OPERATOR,
        "nop: update_kind = 5, must be one of none (0), increment (1)",
    ),
    (
        "nop",
        {"wait_reg": 1, "wait_value": 64},
        Cause.RESERVED_BITS,
        "wait_value holds register number 64, must be 0..63",
    ),
    (
        "nop",
        {"wait_reg": 1, "wait_value": -1},
        Cause.RESERVED_BITS,
        "wait_value holds register number 4294967295",
    ),
    (
        "nop",
        {"update_reg": 1, "update_value": 1 << 20},
        Cause.RESERVED_BITS,
        "update_value holds register number",
    ),
    ("reg_alu", {"alu_op": 9}, Cause.BAD_OPERATOR, "alu_op = 9, must be one of move (0)"),
    ("branch", {"cond": 7}, Cause.BAD_OPERATOR, "cond = 7"),
    (
        "tensor_tensor",
        {"op0": 0},
        Cause.BAD_OPERATOR,
        "op0 = 0, must be one of add (1), subtract (2)",
    ),
    ("tensor_tensor", {"op0": 19}, Cause.BAD_OPERATOR, "op0 = 19"),
    ("tensor_tensor", {"op0": 55}, Cause.BAD_OPERATOR, "op0 = 55"),
    (
        "tensor_scalar",
        {"op0": 1, "op1": 6},
        Cause.BAD_OPERATOR,
        "op1 = 6, must be one of bypass (0)",
    ),
    (
        "tensor_reduce",
        {"op0": 3, "reduce_dims": 1},
        Cause.BAD_OPERATOR,
        "op0 = 3, must be one of add (1), max (4), min (5)",
    ),
    (
        "tensor_reduce",
        {"op0": 1, "reduce_dims": 0},
        Cause.BAD_OPERATOR,
        "reduce_dims = 0, must be one of 1, 2, 3, 4",
    ),
    ("tensor_reduce", {"op0": 1, "reduce_dims": 5}, Cause.BAD_OPERATOR, "reduce_dims = 5"),
    (
        "activation",
        {"func": 24},
        Cause.BAD_OPERATOR,
        "func = 24, must be one of copy (0), relu (1)",
    ),
    ("memset", {"imm_regs": 2}, Cause.RESERVED_BITS, "imm_regs has bit 1, there is no imm1"),
    ("memset", {"imm_regs": 1, "imm0": 64}, Cause.RESERVED_BITS, "imm0 holds register number 64"),
    (
        "activation",
        {"imm_regs": 2, "imm1": 1 << 31},
        Cause.RESERVED_BITS,
        "imm1 holds register number 2147483648",
    ),
    (
        "activation",
        {"column0.regs": 1, "column0.offset": 64},
        Cause.RESERVED_BITS,
        "column0.offset holds",
    ),
    (
        "activation",
        {"column1.regs": 2, "column1.partition": 255},
        Cause.RESERVED_BITS,
        "column1.partition holds",
    ),
    *(
        (
            "memset",
            {"dst.regs": 1 << bit, f"dst.{field}": 64},
            Cause.RESERVED_BITS,
            f"dst.{field} holds register number 64",
        )
        for bit, field in enumerate(
            ("offset", "partition", "partition_count", "count0", "count1", "count2", "count3")
        )
    ),
    ("memset", {"dst.space": 0}, Cause.BAD_SPACE, "dst lies in space NONE, must be SBUF or PSUM"),
    ("memset", {"dst.space": 3}, Cause.BAD_SPACE, "dst lies in space code 3"),
    (
        "load_stationary",
        {"src0.space": 2},
        Cause.BAD_SPACE,
        "src0 lies in space PSUM, must be SBUF",
    ),
    (
        "multiply_moving",
        {"src0.space": 1, "dst.space": 1},
        Cause.BAD_SPACE,
        "dst lies in space SBUF, must be PSUM",
    ),
    (
        "memset",
        {"dst.space": 1, "dst.dtype": 14},
        Cause.BAD_DTYPE,
        "dst has dtype code 14, must be FP32 or BF16",
    ),
    ("memset", {"dst.space": 1, "dst.dtype": 15}, Cause.BAD_DTYPE, "dst has dtype code 15"),
    (
        "load_stationary",
        {"src0.space": 1, "src0.dtype": 12},
        Cause.BAD_DTYPE,
        "src0 has dtype INT32, must be FP32 or BF16",
    ),
    (
        "multiply_moving",
        {"src0.space": 1, "src0.dtype": 1, "dst.space": 2, "dst.dtype": 1},
        Cause.BAD_DTYPE,
        "dst has dtype BF16, must be FP32",
    ),
    (
        "activation",
        {"src0.space": 1, "dst.space": 1, "column0.space": 3},
        Cause.BAD_SPACE,
        "column0 lies in space code 3",
    ),
    (
        "activation",
        {"src0.space": 1, "dst.space": 1, "column0.space": 1, "column0.dtype": 14},
        Cause.BAD_DTYPE,
        "column0 has dtype code 14",
    ),
]


@pytest.mark.parametrize("name, fields, cause, text", FORM, ids=lambda v: str(v)[:40])
def test_form(name, fields, cause, text):
    instruction, found = decode(encode(name, fields))
    expect(check_form(instruction, found), cause, f"{name}: ", text)
    expect(check(SMALL, instruction, found), cause, text)


def test_an_immediate_column_has_nothing_else_to_be_right():
    instruction, fields = words("activation", src0=ap(), dst=ap(), func="copy")
    assert (
        check(
            SMALL,
            instruction,
            fields | {"column0.dtype": 9, "column0.partition": 3, "column0.offset": 1},
        )
        is None
    )


OPERANDS = [
    ({"count": 17}, Cause.BAD_PARTITION, "src0 has 17 partitions, this chip has 16"),
    (
        {"partition": 4},
        Cause.BAD_PARTITION,
        "src0 starts at partition 4, must be 0 (more than 8 partitions)",
    ),
    ({"partition": 4, "count": 5}, Cause.BAD_PARTITION, "must be 0 or 8 (more than 4 partitions)"),
    ({"partition": 2, "count": 4}, Cause.BAD_PARTITION, "must be a multiple of 4 (a quadrant)"),
    ({"partition": 16, "count": 1}, Cause.BAD_PARTITION, "src0 starts at partition 16"),
    ({"partition": 255, "count": 1}, Cause.BAD_PARTITION, "src0 starts at partition 255"),
    ({"offset": 2}, Cause.MISALIGNED, "src0 has offset 2, must be a multiple of 4 for fp32"),
    ({"offset": 1, "dtype": BF16}, Cause.MISALIGNED, "must be a multiple of 2 for bf16"),
    (
        {"dims": ((0, 300), (0, 300))},
        Cause.OUT_OF_RANGE,
        "src0 has 90000 elements per partition, at most 65536",
    ),
    (
        {"dims": ((-1, 2),)},
        Cause.OUT_OF_RANGE,
        "src0 touches bytes -4..3 of a partition, SBUF has 0..32767",
    ),
    ({"offset": 32768}, Cause.OUT_OF_RANGE, "src0 touches bytes 32768..32799"),
    ({"offset": 32736 + 4}, Cause.OUT_OF_RANGE, "src0 touches bytes 32740..32771"),
    ({"space": PSUM, "offset": 16384 - 28}, Cause.OUT_OF_RANGE, "PSUM has 0..16383"),
    (
        {"dims": ((1, 9),)},
        Cause.SHAPE_MISMATCH,
        "elements per partition differ: src0 9, src1 8, dst 8",
    ),
    ({"count": 8}, Cause.SHAPE_MISMATCH, "partition counts differ: src0 8, src1 16, dst 16"),
]


@pytest.mark.parametrize("changes, cause, text", OPERANDS, ids=lambda v: str(v)[:40])
def test_operands(changes, cause, text):
    expect(check(SMALL, *tensor_tensor(src0=ap(**changes))), cause, "tensor_tensor: ", text)


@pytest.mark.parametrize("slot", ["src0", "src1", "dst"])
def test_every_operand_is_looked_at(slot):
    for changes, cause, _ in OPERANDS:
        expect(check(SMALL, *tensor_tensor(**{slot: ap(**changes)})), cause)


def test_the_last_bytes_are_inside():
    assert check(SMALL, *tensor_tensor(src0=ap(offset=32736))) is None
    assert check(SMALL, *tensor_tensor(src0=ap(space=PSUM, offset=16384 - 32))) is None
    assert check(SMALL, *tensor_tensor(src0=ap(offset=28, dims=((-1, 8),)))) is None
    assert check(SMALL, *words("memset", dst=ap(dims=((0, 256), (0, 256))), imm0=0.0)) is None


@pytest.mark.parametrize(
    "partition, count, good",
    [
        (0, 16, True),
        (0, 9, True),
        (0, 8, True),
        (8, 8, True),
        (8, 5, True),
        (12, 4, True),
        (4, 4, True),
        (4, 1, True),
        (12, 3, True),
        (8, 9, False),
        (4, 8, False),
        (4, 5, False),
        (12, 5, False),
        (2, 1, False),
        (13, 1, False),
    ],
)
def test_quadrants(partition, count, good):
    fault = check(SMALL, *words("memset", dst=ap(partition=partition, count=count), imm0=0.0))
    assert (fault is None) == good
    if fault:
        assert fault.cause is Cause.BAD_PARTITION


def test_quadrants_of_a_column_go_by_the_partitions_of_src0():
    def activation(count, partition):
        column = ColumnPattern(SBUF, FP32, partition, 0)
        return words(
            "activation", src0=ap(count=count), dst=ap(count=count), func="copy", bias=column
        )

    assert check(SMALL, *activation(4, 12)) is None
    expect(check(SMALL, *activation(5, 12)), Cause.BAD_PARTITION, "column1 starts at partition 12")
    expect(check(SMALL, *activation(4, 13)), Cause.BAD_PARTITION, "column1")


@pytest.mark.parametrize(
    "column, cause",
    [
        (ColumnPattern(SBUF, FP32, 0, 2), Cause.MISALIGNED),
        (ColumnPattern(SBUF, FP32, 0, 32768), Cause.OUT_OF_RANGE),
        (ColumnPattern(PSUM, BF16, 0, 16384), Cause.OUT_OF_RANGE),
    ],
)
def test_columns(column, cause):
    for argument in ("scale", "bias"):
        expect(
            check(
                SMALL, *words("activation", src0=ap(), dst=ap(), func="copy", **{argument: column})
            ),
            cause,
            "column",
        )


ORDER = [
    ({"src0.regs": 1, "src0.offset": 64, "op0": 0}, Cause.RESERVED_BITS),
    ({"op0": 0, "src0.space": 0}, Cause.BAD_OPERATOR),
    ({"dst.space": 0, "src0.dtype": 14}, Cause.BAD_SPACE),
    ({"dst.dtype": 14, "src0.partition": 1}, Cause.BAD_DTYPE),
    ({"sat": 1, "op0": 32, "dst.space": 0}, Cause.BAD_OPERATOR),
    ({"sat": 1, "src0.partition": 1}, Cause.BAD_DTYPE),
    ({"dst.partition": 1, "src0.offset": 1}, Cause.BAD_PARTITION),
    ({"dst.offset": 1, "src0.offset": 1 << 23}, Cause.MISALIGNED),
    ({"dst.offset": 1 << 23, "src0.count0": 3}, Cause.OUT_OF_RANGE),
    ({"src0.count0": 3}, Cause.SHAPE_MISMATCH),
]


@pytest.mark.parametrize("changes, cause", ORDER, ids=lambda v: str(v)[:40])
def test_the_first_rule_wins(changes, cause):
    instruction, fields = tensor_tensor()
    expect(check(SMALL, instruction, fields | changes), cause)


def test_no_work_passes_after_the_dtype():
    broken = {"src0.partition": 3, "src0.offset": 1 << 23}
    for path in ("dst.partition_count", "src1.count2", "src0.count0"):
        instruction, fields = tensor_tensor()
        assert has_work(instruction, fields)
        fields |= broken | {path: 0}
        assert not has_work(instruction, fields)
        assert check(SMALL, instruction, fields) is None
        expect(check(SMALL, instruction, fields | {"src0.dtype": 14}), Cause.BAD_DTYPE)


def test_stationary_rules():
    load = words("load_stationary", src0=ap(dtype=BF16, dims=((1, 17),)))
    expect(check(SMALL, *load), Cause.OUT_OF_RANGE, "src0 has M = 17 columns, the array has 16")


def test_matmul_rules():
    expect(
        check(SMALL, *matmul(), stationary=None),
        Cause.SHAPE_MISMATCH,
        "no load_stationary came before",
    )
    expect(
        check(SMALL, *matmul(), stationary=(15, 16, 0, 0)),
        Cause.SHAPE_MISMATCH,
        "src0 has 16 partitions, the stationary has K = 15",
    )
    expect(
        check(SMALL, *matmul(), stationary=(16, 12, 0, 0)),
        Cause.SHAPE_MISMATCH,
        "dst has 16 partitions, the stationary has M = 12",
    )
    expect(
        check(SMALL, *matmul(dst=ap(PSUM, dims=((1, 9),)))),
        Cause.SHAPE_MISMATCH,
        "elements per partition differ: src0 8, dst 9",
    )
    long = ap(dtype=BF16, dims=((1, 513),))
    expect(
        check(SMALL, *matmul(src=long)), Cause.OUT_OF_RANGE, "src0 has N = 513 columns, at most 512"
    )
    expect(
        check(SMALL, *matmul(dst=ap(PSUM, offset=2048 - 4))),
        Cause.OUT_OF_RANGE,
        "must lie within one PSUM bank of 2048 bytes",
    )
    full = ap(dtype=BF16, dims=((1, 512),))
    assert (
        check(
            SMALL, *matmul(full, ap(PSUM, offset=2048, dims=((1, 512),))), stationary=(16, 16, 0, 0)
        )
        is None
    )
    broadcast = ap(PSUM, dims=((0, 600),))
    expect(check(SMALL, *matmul(dst=broadcast)), Cause.SHAPE_MISMATCH)


DATAPATH = [i for i in INSTRUCTIONS if i.rules]


@pytest.mark.parametrize("instruction", DATAPATH, ids=lambda i: i.name)
def test_every_combination_of_every_rule_is_refused(instruction):
    """Each rule, with each pair of values of its first two fields; the sentence is that of a rule
    of the same cause that these values break.
    """
    base = {f.name: 0 for f in instruction.fields}
    base |= {f"{o.slot}.space": int(o.spaces[0]) for o in instruction.operands}
    base |= {f"{o.slot}.dtype": int(o.dtypes[0]) for o in instruction.operands}
    base |= {path: int(members[-1]) for path, members in instruction.enums}
    for rule in instruction.rules:
        paths = [path for path, _ in rule.when]
        for values in itertools.product(*(values for _, values in rule.when)):
            fields = base | dict(zip(paths, map(int, values), strict=True))
            fault = check_form(instruction, fields)
            assert fault is not None, (rule, values)
            broken = [
                r.doc
                for r in instruction.rules
                if all(fields[path] in allowed for path, allowed in r.when)
            ]
            if fault.cause == rule.cause and not str(fault).endswith(")"):
                continue
            assert any(doc in str(fault) for doc in broken) or "must be one of" in str(fault), fault


def test_modes_of_the_tensor_engine():
    expect(
        check(
            SMALL,
            *words("multiply_moving", src0=ap(dtype=BF16), dst=ap(PSUM), transpose=1),
            stationary=(16, 16, 0, 0),
        ),
        Cause.SHAPE_MISMATCH,
        "transpose = 1, the stationary was loaded with transpose = 0",
    )
    pairs = ap(dtype=DType.FP8_E4M3)
    double = words("load_stationary", src0=pairs, double_row=True)
    expect(check(SMALL, *double), Cause.OUT_OF_RANGE, "this chip has single rows")
    assert check(SMALL.with_(double_row=1), *double) is None
    odd = words("load_stationary", src0=pairs.with_(offset=1), double_row=True)
    expect(check(SMALL.with_(double_row=1), *odd), Cause.MISALIGNED, "must be a multiple of 2")
    half = words("load_stationary", src0=ap(dtype=FP32), part="high")
    assert check(SMALL, *half) is None


def test_a_state_has_six_words():
    good = ap(dtype=DType.UINT32, dims=((1, 6),))
    assert check(SMALL, *words("rand_set_state", src0=good)) is None
    expect(
        check(SMALL, *words("rand_get_state", dst=good.with_(dims=((1, 7),)))),
        Cause.SHAPE_MISMATCH,
        "dst has 7 elements per partition, a state has 6",
    )


def test_tiny_chip_has_its_own_limits():
    tiny = preset("tiny")
    src = ap(count=4, dtype=BF16, dims=((1, 65),))
    expect(check(tiny, *matmul(src=src, dst=ap(PSUM, count=4))), Cause.OUT_OF_RANGE, "at most 64")


def test_reduce_rules():
    def reduce(dims, dst, reduce_dims, count=16):
        return words(
            "tensor_reduce",
            src0=ap(dims=dims),
            dst=ap(dims=dst, count=count),
            op0="add",
            reduce_dims=reduce_dims,
        )

    dims = ((64, 2), (8, 3), (1, 8))
    for reduce_dims, groups in ((1, 6), (2, 2), (3, 1), (4, 1)):
        assert check(SMALL, *reduce(dims, ((1, groups),), reduce_dims)) is None
        expect(
            check(SMALL, *reduce(dims, ((1, groups + 1),), reduce_dims)),
            Cause.SHAPE_MISMATCH,
            f"src0 has {groups} groups of {48 // groups}",
        )
    expect(
        check(SMALL, *reduce(dims, ((1, 6),), 1, count=8)),
        Cause.SHAPE_MISMATCH,
        "partition counts differ",
    )


def test_register_values_count_with_all_their_bits():
    pattern = AccessPattern(SBUF, FP32, Reg(1), Reg(2), Reg(3), ((1, Reg(4)),))
    instruction, fields = words("memset", dst=pattern, imm0=Reg(5))
    assert uses_registers(instruction, fields)
    good = [0, 0, 16, 64, 8, 0x3F800000] + [0] * 58

    def with_register(number, value):
        registers = list(good)
        registers[number] = value
        return check(SMALL, instruction, substitute(instruction, fields, registers))

    found = substitute(instruction, fields, good)
    assert (
        found["dst.partition_count"],
        found["dst.offset"],
        found["dst.count0"],
        found["imm0"],
    ) == (16, 64, 8, 0x3F800000)
    assert found["dst.regs"] == found["imm_regs"] == 0
    assert check(SMALL, instruction, found) is None
    expect(with_register(1, 256), Cause.BAD_PARTITION)
    expect(with_register(2, 256 + 16), Cause.BAD_PARTITION, "272 partitions")
    expect(with_register(3, (1 << 24) + 64), Cause.OUT_OF_RANGE)
    expect(with_register(3, 0xFFFFFFFC), Cause.OUT_OF_RANGE)
    expect(with_register(4, 65536), Cause.OUT_OF_RANGE, "count of 65536, at most 65535")
    assert with_register(4, 0) is None
    assert with_register(2, 0) is None


def test_wait_and_update_values_from_registers_are_signed():
    instruction, fields = decode(
        encode("nop", {"wait_reg": 1, "wait_value": 1, "update_reg": 1, "update_value": 2})
    )
    found = substitute(instruction, fields, [0, 0xFFFFFFFF, 5] + [0] * 61)
    assert (found["wait_value"], found["update_value"]) == (-1, 5)
    assert found["wait_reg"] == found["update_reg"] == 0
    assert not uses_registers(instruction, fields)


def test_static_checks_leave_out_what_registers_decide():
    pattern = AccessPattern(SBUF, FP32, 3, 16, Reg(3), ((1, 8),))
    assert check_static(SMALL, *words("memset", dst=pattern, imm0=0.0)) is None
    fixed = pattern.with_(offset=0)
    expect(check_static(SMALL, *words("memset", dst=fixed, imm0=0.0)), Cause.BAD_PARTITION)
    expect(
        check_static(SMALL, *words("memset", dst=pattern, imm0=0.0, changes={"dst.dtype": 14})),
        Cause.BAD_DTYPE,
    )
    expect(
        check_static(SMALL, *words("branch", cond="always", target=5), place=(0, 5)),
        Cause.PC_OUT_OF_RANGE,
    )


@pytest.mark.parametrize("name", ["load_stationary", "multiply_moving"])
@pytest.mark.parametrize(
    "register",
    [
        {"offset": Reg(0)},
        {"partition": Reg(0)},
        {"partition_count": Reg(0)},
        {"dims": ((1, Reg(0)),)},
    ],
    ids=lambda register: next(iter(register)),
)
def test_no_register_gives_a_chip_double_rows(name, register):
    pairs = ap(dtype=DType.FP8_E4M3).with_(**register)
    operands = {"src0": pairs}
    if name == "multiply_moving":
        operands["dst"] = ap(PSUM)
    double = words(name, double_row=True, **operands)
    expect(check_static(SMALL, *double), Cause.OUT_OF_RANGE, f"{name}: double_row = 1, this chip")
    assert check_static(SMALL.with_(double_row=1), *double) is None
    assert check_static(SMALL, *words(name, **operands)) is None
    idle = words(name, double_row=True, **operands | {"src0": pairs.with_(dims=((1, 0),))})
    assert check_static(SMALL, *idle) is None


@pytest.mark.parametrize(
    "address, good",
    [
        (0, True),
        (SMALL.hbm_bytes - 4, True),
        (SMALL.hbm_bytes, False),
        (2, False),
        (SBUF_BASE, True),
        (SBUF_BASE + 15 * 32768 + 32764, True),
        (SBUF_BASE + 16 * 32768, False),
        (PSUM_BASE, True),
        (SBUF_BASE - 4, False),
        (PSUM_BASE + 15 * 16384 + 16380, True),
        (PSUM_BASE + 16 * 16384, False),
        ((1 << 64) - 4, False),
    ],
)
def test_addresses_of_loads_and_stores(address, good):
    for name, arguments in (("reg_load", {"rd": Reg(1)}), ("reg_store", {"rb": Reg(1)})):
        fault = check(SMALL, *words(name, address=address, **arguments))
        assert (fault is None) == good
        if fault:
            assert fault.cause is Cause.BAD_ADDRESS


def test_gaps_between_partitions_are_no_memory():
    trn1 = preset("trn1")
    assert locate(trn1, SBUF_BASE + 3 * 262144 + 196607) == ("sbuf", 3, 196607)
    assert locate(trn1, SBUF_BASE + 3 * 262144 + 196608) is None
    tiny = preset("tiny")
    assert locate(tiny, PSUM_BASE + 2047) == ("psum", 0, 2047)
    assert locate(tiny, PSUM_BASE + 2048) is None


def test_address_registers():
    instruction, fields = words("reg_load", rd=Reg(1), address=8)
    fields |= {"address_reg": 1, "ra": 2}
    registers = [0, 0, 0xFFFFFFFF] + [0] * 61
    assert effective_address(fields, registers) == 8 + 0xFFFFFFFF
    assert effective_address(fields | {"address": (1 << 64) - 1}, registers) == 0xFFFFFFFE
    assert check(SMALL, instruction, fields) is None
    expect(
        check(SMALL, instruction, fields, registers=registers),
        Cause.BAD_ADDRESS,
        "must be a multiple of 4",
    )
    registers[2] = 16
    assert check(SMALL, instruction, fields, registers=registers) is None


def test_dma_trigger_rules():
    expect(
        check(SMALL, *words("dma_trigger", address=64, imm=1)),
        Cause.BAD_ADDRESS,
        "must be a multiple of 128",
    )
    expect(
        check(SMALL, *words("dma_trigger", address=1 << 24, imm=1)),
        Cause.BAD_ADDRESS,
        "lies outside HBM",
    )
    engine = words("dma_trigger", address=128, imm=1, dma_engine=2)
    expect(
        check(SMALL, *engine), Cause.BAD_DMA_ENGINE, "dma_engine = 2, this chip has engines 0..1"
    )
    expect(check(SMALL, *words("dma_trigger", address=1, imm=1, dma_engine=9)), Cause.BAD_ADDRESS)
    assert check(SMALL, *words("dma_trigger", address=128, imm=-1, dma_engine=1)) is None
    instruction, fields = words("dma_trigger", address=64, imm=1)
    assert check(SMALL, instruction, fields | {"address_reg": 1}) is None


@pytest.mark.parametrize(
    "name, target, enclosing, good",
    [
        ("branch", 0, None, True),
        ("branch", 9, None, True),
        ("branch", 10, None, False),
        ("branch", 3, None, True),
        ("loop", 4, None, True),
        ("loop", 9, None, True),
        ("loop", 10, None, False),
        ("loop", 3, None, False),
        ("loop", 2, None, False),
        ("loop", 6, 6, True),
        ("loop", 7, 6, False),
    ],
)
def test_targets(name, target, enclosing, good):
    problem = target_problem(name, target, 3, 10, enclosing)
    assert (problem is None) == good
    if problem:
        assert problem[0] is Cause.PC_OUT_OF_RANGE
    if enclosing is None:
        arguments = {"cond": "always"} if name == "branch" else {"imm": 1}
        fault = check(SMALL, *words(name, target=target, **arguments), place=(3, 10))
        assert (fault is None) == good


def test_targets_say_what_would_be_right():
    assert (
        "must be after the loop instruction (3) and at most 9 (the stream)"
        in target_problem("loop", 1, 3, 10)[1]
    )
    assert "at most 6 (the enclosing loop)" in target_problem("loop", 8, 3, 10, 6)[1]
    assert "the stream has instructions 0..9" in target_problem("branch", 12, 3, 10)[1]


def test_every_shape_has_a_rule():
    shapes = {instruction.shape for instruction in BY_NAME.values()}
    assert shapes == {"control", "stationary", "matmul", "same", "reduce", "fill", "state"}
