"""Access patterns against a slow enumeration, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.dtypes import DType
from isa.encoding import EncodeError, decode, encode
from isa.fields import Space
from isa.pattern import AccessPattern, ColumnPattern, Reg

VALUES = {
    "space": Space.SBUF,
    "dtype": DType.FP32,
    "partition": 0,
    "partition_count": 4,
    "offset": 0,
    "dims": ((1, 4),),
}
DIMS = st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), min_size=1, max_size=4)


def make(**changes):
    return AccessPattern(**VALUES | changes)


def enumerated(pattern):
    """Byte offset of every element by plain loops."""
    found = [pattern.offset]
    for step, count in pattern.dims:
        found = [at + i * step * pattern.dtype.itemsize for at in found for i in range(count)]
    return found


@settings(max_examples=300, deadline=None)
@given(DIMS, st.sampled_from((DType.FP32, DType.BF16)), st.integers(1000, 2000))
def test_elements_bytes_and_box(dims, dtype, offset):
    pattern = make(dims=dims, dtype=dtype, offset=offset)
    expected = enumerated(pattern)
    touched = sorted({at + i for at in expected for i in range(dtype.itemsize)})
    assert pattern.element_offsets().tolist() == expected
    assert pattern.elements == len(expected)
    assert pattern.is_empty == (not expected)
    intervals = pattern.byte_intervals()
    assert [b for low, high in intervals for b in range(low, high)] == touched
    assert (intervals[1:, 0] > intervals[:-1, 1]).all()
    assert pattern.bounding_box() == (
        (touched[0], touched[-1] + 1) if touched else (offset, offset)
    )
    assert np.flatnonzero(pattern.byte_mask(4096)).tolist() == touched


VALUE_OR_REG = {
    "partition": st.one_of(st.integers(0, 255), st.builds(Reg, st.integers(0, 63))),
    "partition_count": st.one_of(st.integers(0, 255), st.builds(Reg, st.integers(0, 63))),
    "offset": st.one_of(st.integers(0, (1 << 24) - 1), st.builds(Reg, st.integers(0, 63))),
}
COUNT = st.one_of(st.integers(0, 65535), st.builds(Reg, st.integers(0, 63)))
STEP = st.integers(-32768, 32767)


@settings(max_examples=300, deadline=None)
@given(
    space=st.sampled_from(Space),
    dtype=st.sampled_from(DType),
    dims=st.lists(st.tuples(STEP, COUNT), min_size=1, max_size=4),
    **VALUE_OR_REG,
)
def test_fields_round_trip(**values):
    pattern = AccessPattern(**values)
    _, fields = decode(encode("tensor_tensor", pattern.fields("src1")))
    again = AccessPattern.from_fields("src1", fields)
    assert again.fields("src1") == pattern.fields("src1")
    kept = list(pattern.dims)
    while len(kept) > 1 and kept[0] == (0, 1):
        kept.pop(0)
    assert again == pattern.with_(dims=kept)


@settings(max_examples=100, deadline=None)
@given(
    space=st.sampled_from(Space),
    dtype=st.sampled_from(DType),
    partition=VALUE_OR_REG["partition"],
    offset=VALUE_OR_REG["offset"],
)
def test_column_round_trip(**values):
    column = ColumnPattern(**values)
    _, fields = decode(encode("activation", column.fields("column1")))
    assert ColumnPattern.from_fields("column1", fields) == column
    assert column.has_registers == (
        isinstance(column.partition, Reg) or isinstance(column.offset, Reg)
    )


def test_innermost_dimension_is_stored_first():
    fields = make(dims=((100, 2), (10, 3), (1, 4))).fields("dst")
    assert [fields[f"dst.step{i}"] for i in range(4)] == [1, 10, 100, 0]
    assert [fields[f"dst.count{i}"] for i in range(4)] == [4, 3, 2, 1]


def test_an_outer_dimension_of_one_keeps_its_step():
    pattern = make(dims=((5, 1), (0, 1), (1, 4)))
    _, fields = decode(encode("memset", pattern.fields("dst")))
    assert AccessPattern.from_fields("dst", fields) == pattern


def test_registers_are_marked_and_resolved():
    pattern = make(
        partition=Reg(1), partition_count=Reg(2), offset=Reg(3), dims=((2, Reg(4)), (1, 8))
    )
    fields = pattern.fields("src0")
    assert fields["src0.regs"] == 0b0010111
    assert fields["src0.count1"] == 4
    registers = [0, 8, 3, 64, 5] + [0] * 59
    assert pattern.resolve(registers) == make(
        partition=8, partition_count=3, offset=64, dims=((2, 5), (1, 8))
    )
    for what in ("elements", "partitions", "is_empty"):
        with pytest.raises(
            ValueError, match=f"{what} of a pattern that reads registers is known at run time only"
        ):
            getattr(pattern, what)
    with pytest.raises(ValueError, match="resolve"):
        pattern.element_offsets()


def test_column_as_pattern():
    column = ColumnPattern(Space.PSUM, DType.FP32, 4, 16)
    assert column.pattern(3) == AccessPattern(Space.PSUM, DType.FP32, 4, 3, 16, ((0, 1),))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"dims": ()}, "must be 1 to 4 pairs"),
        ({"dims": ((1, 1),) * 5}, "must be 1 to 4 pairs"),
        ({"dims": ((1,),)}, "must be 1 to 4 pairs"),
        ({"dims": ((32768, 1),)}, r"step = 32768 is outside -32768\.\.32767"),
        ({"dims": ((1, 65536),)}, r"count = 65536 is outside 0\.\.65535"),
        ({"dims": ((1, -1),)}, "count = -1 is outside"),
        ({"dims": ((Reg(1), 4),)}, "step = r1 cannot be a register"),
        ({"dims": ((1.0, 4),)}, "step = 1.0 is not an integer"),
        ({"partition": 256}, "partition = 256 is outside"),
        ({"partition_count": -1}, "partition_count = -1 is outside"),
        ({"offset": 1 << 24}, "offset = 16777216 is outside"),
        ({"offset": "0"}, "offset = '0' is not an integer"),
        ({"space": 3}, "space = 3, must be one of NONE, SBUF, PSUM"),
        ({"dtype": 14}, "dtype = 14, must be one of FP32"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(EncodeError, match=message):
        make(**changes)


@pytest.mark.parametrize("number", [-1, 64, "1", 1.0])
def test_bad_registers(number):
    with pytest.raises(EncodeError, match=r"outside r0\.\.r63"):
        Reg(number)


def test_byte_mask_refuses_bytes_outside():
    with pytest.raises(
        ValueError, match=r"bytes -4\.\.4 of the pattern lie outside a partition of 64 bytes"
    ):
        make(dims=((-1, 2),)).byte_mask(64)
