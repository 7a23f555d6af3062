"""Every datapath instruction against a recomputation element by element."""

import random

import numpy as np
import pytest

from golden.chip import GoldenChip
from isa.address_map import Sequencer, psum_address, sbuf_address
from isa.builder import ProgramBuilder
from isa.fields import AluOp, Space
from isa.geometry import preset
from isa.instructions import INSTRUCTIONS
from isa.pattern import AccessPattern, Reg
from isa.values import Bits
from verif.plain import PlainMachine
from verif.programs.data import mixed_bytes
from verif.programs.datapath import Datapath
from verif.programs.order import Placer
from verif.programs.patterns import Area, Patterns

ENGINES = (Sequencer.TENSOR, Sequencer.VECTOR, Sequencer.SCALAR)


def areas(config):
    psum = config.psum_bytes
    return [
        Area(Space.SBUF, 0, 200),
        Area(Space.SBUF, config.sbuf_bytes - 96, config.sbuf_bytes),
        Area(Space.PSUM, 0, 128),
        Area(Space.PSUM, psum - 64, psum),
    ]


def filled_chip(config, seed):
    """A chip with mixed data in the areas, and a plain machine with the same."""
    chip = GoldenChip(config)
    generator = np.random.default_rng(seed)
    for area in areas(config):
        place = sbuf_address if area.space == Space.SBUF else psum_address
        for partition in range(config.partitions):
            data = mixed_bytes(generator, area.size)
            chip.write(place(config, partition, area.low), data)
    memories = {Space.SBUF: chip.memories.sbuf.bytes, Space.PSUM: chip.memories.psum.bytes}
    plain = PlainMachine({space: np.array(content) for space, content in memories.items()})
    return chip, plain


def compare(chip, plain, specs, seed):
    for space, memory in ((Space.SBUF, chip.memories.sbuf), (Space.PSUM, chip.memories.psum)):
        differ = np.argwhere(memory.bytes != plain.memories[space])
        assert not differ.size, (
            f"seed {seed}: {space.name} partition {differ[0][0]} byte {differ[0][1]:#x}, "
            f"{len(differ)} differ, after\n" + "\n".join(map(str, specs))
        )


def run_random(config, engine, seed, actions):
    """Random instructions of one engine, then the whole of SBUF and PSUM compared."""
    rng = random.Random(seed)
    chip, plain = filled_chip(config, seed)
    datapath = Datapath(config, rng, Patterns(config, rng), areas(config), largest=30)
    builder = ProgramBuilder(config)
    placer = Placer(builder, rng)
    specs = []
    for _ in range(actions):
        for spec in datapath.specs(engine):
            placer.place(engine, spec)
            specs.append(spec)
        if rng.random() < 0.2:
            placer.place(engine, datapath.no_work(engine))
    result = chip.run(builder.build())
    assert result.ok, result.errors()
    for spec in specs:
        plain.execute(spec.name, spec.arguments)
    compare(chip, plain, specs, seed)
    return {spec.name for spec in specs}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.text)
def test_random_instructions(engine):
    seen = set()
    for seed in range(24):
        seen |= run_random(preset("tiny"), engine, seed, 8)
    for seed in range(100, 104):
        seen |= run_random(preset("small"), engine, seed, 4)
    assert seen == {i.name for i in INSTRUCTIONS if i.datapath and engine in i.sequencers}


def run_one(config, name, arguments, seed=1):
    """One instruction on both; returns the chip."""
    chip, plain = filled_chip(config, seed)
    builder = ProgramBuilder(config)
    for item, values in [(name, arguments)] if isinstance(name, str) else name:
        sequencer = next(iter(next(i for i in INSTRUCTIONS if i.name == item).sequencers))
        builder.streams[sequencer].emit(item, **values)
        plain.execute(item, values)
    assert chip.run(builder.build()).ok
    compare(chip, plain, [name], seed)
    return chip


def psum(count, dims, offset=0):
    return AccessPattern(Space.PSUM, 0, 0, count, offset, dims)


def sbuf(count, dims, offset=0, dtype=1):
    return AccessPattern(Space.SBUF, dtype, 0, count, offset, dims)


def test_accumulation_onto_one_word_is_in_order_of_the_columns():
    config = preset("tiny")
    load = ("load_stationary", {"src0": sbuf(4, ((1, 4),))})
    for dims in (((0, 16),), ((1, 4), (0, 4)), ((0, 4), (1, 4)), ((1, 4), (1, 4))):
        for accumulate in (False, True):
            arguments = {"src0": sbuf(4, ((1, 16),), 32), "dst": psum(4, dims)}
            arguments["accumulate"] = accumulate
            run_one(config, [load, ("multiply_moving", arguments)], None)


def test_of_a_repeated_destination_the_last_element_stays():
    config = preset("tiny")
    for dims in (
        ((0, 12),),
        ((1, 3), (0, 4)),
        ((0, 3), (1, 4)),
        ((1, 3), (1, 4)),
        ((2, 6), (-1, 2)),
    ):
        dst = AccessPattern(Space.SBUF, 0, 0, 4, 40, dims)
        run_one(config, "tensor_copy", {"src0": sbuf(4, ((1, 12),), 96, 0), "dst": dst})


def test_a_copy_of_the_same_dtype_moves_nan_codes_and_a_cast_does_not():
    config = preset("tiny")
    codes = np.array([0x7F800001, 0xFFC12345, 0x7FC00000, 0xFF800000], np.uint32)
    chip = GoldenChip(config)
    for partition in range(4):
        chip.write(sbuf_address(config, partition, 0), codes)
    builder = ProgramBuilder(config)
    source = sbuf(4, ((1, 4),), 0, 0)
    builder.vector.tensor_copy(src0=source, dst=sbuf(4, ((1, 4),), 16, 0))
    builder.vector.tensor_copy(src0=source, dst=sbuf(4, ((1, 4),), 32, 1))
    builder.vector.tensor_copy(src0=sbuf(4, ((1, 4),), 32, 1), dst=sbuf(4, ((1, 4),), 48, 0))
    assert chip.run(builder.build()).ok
    row = chip.memories.sbuf.bytes[3]
    assert (row[16:32].view(np.uint32) == codes).all()
    assert row[32:40].view(np.uint16).tolist() == [0x7FC0, 0x7FC0, 0x7FC0, 0xFF80]
    assert row[48:64].view(np.uint32).tolist() == [0x7FC00000] * 3 + [0xFF800000]


def test_the_stationary_tile_is_a_copy_and_ends_with_the_run():
    config = preset("tiny")
    chip, plain = filled_chip(config, 5)
    builder = ProgramBuilder(config)
    tile = sbuf(4, ((1, 4),), 0)
    moving = {"src0": sbuf(4, ((1, 8),), 64), "dst": psum(4, ((1, 8),)), "accumulate": False}
    builder.semaphore("loaded")
    builder.semaphore("spoilt")
    builder.tensor.load_stationary(src0=tile, update=("loaded", "increment"), at_read=True)
    builder.vector.memset(dst=tile, imm0=0.0, wait=("loaded", 1), update=("spoilt", "increment"))
    builder.tensor.multiply_moving(**moving, wait=("spoilt", 1))
    assert chip.run(builder.build()).ok
    plain.execute("load_stationary", {"src0": tile})
    plain.execute("multiply_moving", moving)
    assert (chip.memories.psum.bytes == plain.memories[Space.PSUM]).all()

    again = ProgramBuilder(config)
    again.tensor.multiply_moving(**moving)
    result = chip.run(again.build())
    assert result[Sequencer.TENSOR].cause.name == "SHAPE_MISMATCH"


def test_operands_that_move_with_a_register():
    """A loop in which offset, count and immediate come from registers that change."""
    config = preset("tiny")
    chip, plain = filled_chip(config, 7)
    builder = ProgramBuilder(config)
    stream, (at, count, value) = builder.vector, (Reg(1), Reg(62), Reg(63))
    for register, start in ((at, 40), (count, 1), (value, 0x3F800000)):
        stream.reg_alu(rd=register, alu_op="move", imm=start)
    moving = AccessPattern(Space.SBUF, 0, 0, 4, at, ((1, count),))
    with stream.loop(5):
        stream.tensor_scalar(src0=moving, dst=moving, op0="multiply", operand0=value)
        for register, step in ((at, 8), (count, 1), (value, 0x00480000)):
            stream.reg_alu(rd=register, ra=register, alu_op="add", imm=step)
    assert chip.run(builder.build()).ok
    for i in range(5):
        pattern = AccessPattern(Space.SBUF, 0, 0, 4, 40 + 8 * i, ((1, 1 + i),))
        operands = {"operand0": Bits(0x3F800000 + 0x00480000 * i), "operand1": Bits(0)}
        options = {"op0": AluOp.MULTIPLY, "op1": AluOp.BYPASS, "reverse0": 0, "reverse1": 0}
        plain.execute("tensor_scalar", {"src0": pattern, "dst": pattern, **operands, **options})
    compare(chip, plain, ["loop"], 7)
