"""The checker: reads of what nobody wrote, instructions that overlap themselves."""

import pytest

from golden.chip import GoldenChip
from golden.hazard import OVERLAP, UNINITIALISED, HazardError
from golden.memory import Memory
from isa.address_map import Sequencer, psum_address, sbuf_address
from isa.builder import ProgramBuilder
from isa.encoding import Descriptor
from isa.fields import Space
from isa.pattern import AccessPattern, ColumnPattern, Reg
from verif.race_bench import AT, CONFIG, builder_with_data, operand, run


def test_reads_of_what_nobody_wrote():
    def make(source):
        builder = ProgramBuilder(CONFIG)
        builder.vector.memset(dst=operand(offset=0, count=8), imm0=1.0)
        builder.vector.tensor_copy(src0=operand(offset=0, count=8), dst=operand(offset=64, count=8))
        builder.vector.tensor_copy(
            src0=operand(offset=source, count=8), dst=operand(offset=96, count=8)
        )
        return builder.build()

    assert GoldenChip(CONFIG).run(make(64)).ok
    program = make(16)
    with pytest.raises(HazardError, match="never written") as caught:
        GoldenChip(CONFIG).run(program)
    (hazard,) = caught.value.hazards
    assert (hazard.kind, hazard.memory, hazard.bytes) == (UNINITIALISED, Memory.SBUF, (32, 48))
    assert hazard.first.index == 2
    assert "test_unwritten.py" in str(hazard)
    assert caught.value.result[Sequencer.VECTOR].retired == 4
    assert GoldenChip(CONFIG, uninitialised=False).run(program).ok
    chip = GoldenChip(CONFIG)
    for partition in range(4):  # written by the host, or by an earlier run
        chip.write(sbuf_address(CONFIG, partition, 32), bytes(16))
    assert chip.run(program).ok
    assert chip.run(program).ok


def test_every_kind_of_read_of_what_nobody_wrote():
    scratch = 0x8000
    for make in (
        lambda b: b.tensor.load_stationary(src0=operand(dtype=1)),
        lambda b: b.scalar.activation(src0=operand(Space.PSUM), dst=operand(), func="copy"),
        lambda b: b.sync.reg_load(rd=Reg(0), address=scratch),
        lambda b: b.sync.reg_load(rd=Reg(0), address=psum_address(CONFIG, 0, 0)),
        lambda b: b.dma_copy(engine=0, via=b.sync, src=operand(), dst=b.hbm_tensor("o", (4, 4), 0)),
        lambda b: b.vector.tensor_scalar(
            src0=AccessPattern(1, 0, 0, 4, 0, ((1, 1),)),
            dst=operand(offset=8, count=1),
            operand0=ColumnPattern(1, 0, 0, 400),
            op0="add",
        ),
        lambda b: b.sync.dma_trigger(dma_engine=0, imm=1, address=scratch),
    ):
        builder = ProgramBuilder(CONFIG)
        make(builder)
        chip = GoldenChip(CONFIG, on_hazard="report")
        for partition in range(4):
            chip.write(sbuf_address(CONFIG, partition, 0), bytes(4))
        assert [h.kind for h in chip.run(builder.build()).hazards] == [UNINITIALISED]


def test_accumulation_reads_psum():
    for accumulate in (False, True):
        builder = ProgramBuilder(CONFIG)
        builder.vector.memset(
            dst=operand(dtype=1, offset=0, count=16), imm0=1.0, update=(1, "increment")
        )
        builder.tensor.load_stationary(src0=operand(dtype=1, offset=0), wait=(1, 1))
        builder.tensor.multiply_moving(
            src0=operand(dtype=1, offset=16), dst=operand(Space.PSUM), accumulate=accumulate
        )
        chip = GoldenChip(CONFIG, on_hazard="report")
        assert len(chip.run(builder.build()).hazards) == accumulate


def test_source_and_destination_of_one_instruction():
    def hazards(src, dst, name="tensor_copy", **options):
        builder = ProgramBuilder(CONFIG)
        builder.vector.emit(name, src0=src, dst=dst, **options)
        return [h.kind for h in run(builder.build()).hazards]

    same = operand(count=8)
    twice = AccessPattern(1, 0, 0, 4, AT, ((0, 2), (1, 8)))
    other_dims = AccessPattern(1, 0, 0, 4, AT, ((4, 2), (1, 4)))
    backwards = AccessPattern(1, 0, 0, 4, AT + 28, ((-1, 8),))
    assert hazards(same, same) == []
    assert hazards(same, other_dims) == []
    assert hazards(same, operand(offset=AT + 32, count=8)) == []
    assert hazards(same, operand(offset=AT + 4, count=8)) == [OVERLAP]
    assert hazards(same, backwards) == [OVERLAP]
    assert hazards(twice, twice) == [OVERLAP]
    assert hazards(operand(dtype=1, count=8), same) == [OVERLAP]
    assert hazards(operand(partitions=1, count=8), AccessPattern(1, 0, 1, 1, AT, ((1, 8),))) == []
    reduce = {"name": "tensor_reduce", "op0": "add"}
    assert hazards(same, operand(count=1), **reduce) == [OVERLAP]
    assert hazards(operand(count=1), operand(count=1), **reduce) == []
    even = AccessPattern(1, 0, 0, 4, AT, ((2, 4),))
    odd = AccessPattern(1, 0, 0, 4, AT + 4, ((2, 4),))
    assert hazards(even, odd) == []
    column = {"name": "tensor_scalar", "op0": "add", "operand0": ColumnPattern(1, 0, 0, AT + 4)}
    assert hazards(same, same, **column) == [OVERLAP]


def test_a_descriptor_that_overlaps_itself():
    def hazards(src, dst, rows=1, stride=16):
        builder = builder_with_data()
        block = builder.descriptors(
            [
                Descriptor(
                    src_address=src,
                    dst_address=dst,
                    row_bytes=16,
                    count=(rows, 1, 1),
                    src_stride=(stride, 0, 0),
                    dst_stride=(stride, 0, 0),
                )
            ]
        )
        builder.sync.dma_trigger(dma_engine=0, imm=1, address=block.address)
        return [h.kind for h in run(builder.build()).hazards]

    assert hazards(0, 8) == [OVERLAP]
    assert hazards(0, 16) == []
    assert hazards(0, 16, rows=2) == [OVERLAP]
    assert hazards(0, 16, rows=3, stride=32) == []
    assert hazards(64, 64, rows=2) == []


def test_gaps_between_elements():
    """A strided write leaves the gaps unwritten, and a strided read needs only its elements."""
    for start, flagged in ((0, 0), (4, 1)):
        builder = ProgramBuilder(CONFIG)
        every_second = AccessPattern(1, 0, 0, 4, 0, ((2, 8),))
        builder.vector.memset(dst=every_second, imm0=1.0)
        source = AccessPattern(1, 0, 0, 4, start, ((2, 7),))
        builder.vector.tensor_copy(src0=source, dst=operand(offset=512, count=7))
        chip = GoldenChip(CONFIG, on_hazard="report")
        assert [h.kind for h in chip.run(builder.build()).hazards] == [UNINITIALISED] * flagged


def test_far_apart_elements():
    """Few bytes in a wide range, element by element."""
    for offset, flagged in ((0, 0), (4, 1)):
        builder = ProgramBuilder(CONFIG)
        builder.vector.memset(dst=AccessPattern(1, 0, 0, 4, 0, ((500, 4),)), imm0=1.0)
        source = AccessPattern(1, 0, 0, 4, offset, ((500, 4),))
        builder.vector.tensor_copy(src0=source, dst=operand(offset=512))
        chip = GoldenChip(CONFIG, on_hazard="report")
        assert len(chip.run(builder.build()).hazards) == flagged
