"""Control instructions: arithmetic on registers, branches, loops, bus accesses, semaphores."""

import operator
import random

import numpy as np
import pytest

from golden.chip import GoldenChip
from golden.schedule import Runaway
from isa.address_map import Cause, Sequencer, State, psum_address, sbuf_address
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.fields import Condition, RegOp
from isa.geometry import preset
from isa.pattern import Reg
from isa.values import Address

CONFIG = preset("tiny")
MASK = (1 << 32) - 1
CORNERS = (0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFE0)


def run(builder, **options):
    chip = GoldenChip(CONFIG)
    return chip, chip.run(builder.build(), **options)


def signed(value):
    return (value ^ 0x80000000) - 0x80000000


def test_register_arithmetic():
    plain = {
        RegOp.MOVE: lambda a, b: b,
        RegOp.ADD: operator.add,
        RegOp.SUBTRACT: operator.sub,
        RegOp.MULTIPLY: operator.mul,
        RegOp.AND: operator.and_,
        RegOp.OR: operator.or_,
        RegOp.XOR: operator.xor,
        RegOp.SHIFT_LEFT: lambda a, b: a << b % 32,
        RegOp.SHIFT_RIGHT: lambda a, b: a >> b % 32,
    }
    assert set(plain) == set(RegOp)
    rng = random.Random(3)
    values = [*CORNERS, *(rng.getrandbits(32) for _ in range(4))]
    for op, function in plain.items():
        for a in values:
            builder = ProgramBuilder(CONFIG)
            stream = builder.gpsimd
            stream.reg_alu(rd=Reg(63), alu_op="move", imm=a)
            for i, b in enumerate(values):
                stream.reg_alu(rd=Reg(40 + i % 8), alu_op="move", imm=b)
                if i % 2:
                    stream.reg_alu(rd=Reg(i), ra=Reg(63), alu_op=op, imm=b)
                else:
                    stream.reg_alu(rd=Reg(i), ra=Reg(63), alu_op=op, rb=Reg(40 + i % 8))
            gpr = run(builder)[1][Sequencer.GPSIMD].gpr
            assert gpr[: len(values)].tolist() == [function(a, b) & MASK for b in values], (op, a)


def test_every_condition_on_corner_values():
    plain = {
        Condition.ALWAYS: lambda a, b: True,
        Condition.EQ: operator.eq,
        Condition.NE: operator.ne,
        Condition.LT: lambda a, b: signed(a) < signed(b),
        Condition.GE: lambda a, b: signed(a) >= signed(b),
        Condition.LTU: operator.lt,
        Condition.GEU: operator.ge,
    }
    assert set(plain) == set(Condition)
    builder = ProgramBuilder(CONFIG)
    stream, expected = builder.sync, 0
    for condition, function in plain.items():
        for a in CORNERS[::2]:
            for b in CORNERS[1::3]:
                stream.reg_alu(rd=Reg(1), alu_op="move", imm=a)
                stream.reg_alu(rd=Reg(2), alu_op="move", imm=b)
                second = {"imm": b} if (a + b) % 2 else {"rb": Reg(2)}
                label = f"skip{len(stream)}"
                stream.branch(cond=condition, ra=Reg(1), target=label, **second)
                stream.reg_alu(rd=Reg(0), ra=Reg(0), alu_op="add", imm=1)
                stream.label(label)
                expected += not function(a, b)
    assert run(builder)[1][Sequencer.SYNC].gpr[0] == expected


def counting(stream, register=0):
    stream.reg_alu(rd=Reg(register), ra=Reg(register), alu_op="add", imm=1)


def test_nested_loops_that_end_together():
    builder = ProgramBuilder(CONFIG)
    stream = builder.vector
    with stream.loop(2), stream.loop(3):
        counting(stream, 1)
        with stream.loop(2), stream.loop(5):
            counting(stream, 0)
    status = run(builder)[1][Sequencer.VECTOR]
    assert status.gpr[:2].tolist() == [60, 6]
    assert status.state == State.HALTED
    # loop instructions: 1 + 2 + 6 + 12; counting 6 + 60; halt
    assert status.retired == 21 + 66 + 1
    assert status.pc == 6


@pytest.mark.parametrize("times", [0, -1, -(1 << 31)])
def test_a_loop_without_passes_and_one_without_body(times):
    builder = ProgramBuilder(CONFIG)
    stream = builder.scalar
    with stream.loop(3):
        counting(stream, 1)
        with stream.loop(times):
            counting(stream, 0)
    with stream.loop(7):
        pass
    stream.reg_alu(rd=Reg(2), alu_op="move", imm=times & MASK)
    with stream.loop(Reg(2)):
        counting(stream, 0)
    status = run(builder)[1][Sequencer.SCALAR]
    assert status.gpr[:2].tolist() == [0, 3]
    assert status.retired == 1 + 3 * 2 + 1 + 1 + 1 + 1


def test_a_branch_out_of_a_loop_ends_it():
    builder = ProgramBuilder(CONFIG)
    stream = builder.scalar
    with stream.loop(3):
        with stream.loop(100):
            counting(stream, 0)
            stream.branch(cond="always", target="out")
        stream.label("out")  # still inside the outer loop
        counting(stream, 1)
    counting(stream, 2)
    status = run(builder)[1][Sequencer.SCALAR]
    assert status.gpr[:3].tolist() == [3, 3, 1]


def test_a_branch_to_the_target_of_a_loop_leaves_it():
    builder = ProgramBuilder(CONFIG)
    stream = builder.scalar
    stream.emit("loop", imm=5, target="end")
    counting(stream, 0)
    stream.branch(cond="always", target="end")
    stream.label("end")
    counting(stream, 1)
    assert run(builder)[1][Sequencer.SCALAR].gpr[:2].tolist() == [1, 1]


def test_a_branch_back_to_the_loop_instruction_starts_it_anew():
    builder = ProgramBuilder(CONFIG)
    stream = builder.scalar
    stream.label("again")
    stream.emit("loop", imm=4, target="end")
    counting(stream, 0)
    stream.branch(cond="eq", ra=Reg(0), imm=2, target="again")
    stream.nop()
    stream.label("end")
    counting(stream, 1)
    assert run(builder)[1][Sequencer.SCALAR].gpr[:2].tolist() == [6, 1]


def test_a_branch_inside_the_body_keeps_the_loop_and_a_branch_loop_may_enclose_it():
    builder = ProgramBuilder(CONFIG)
    stream = builder.scalar
    stream.label("outer")
    with stream.loop(4):
        stream.branch(cond="always", target="inside")
        counting(stream, 5)
        stream.label("inside")
        counting(stream, 0)
    counting(stream, 1)
    stream.branch(cond="ne", ra=Reg(1), imm=3, target="outer")
    assert run(builder)[1][Sequencer.SCALAR].gpr[[0, 1, 5]].tolist() == [12, 3, 0]


def test_loads_and_stores_reach_all_memories():
    builder = ProgramBuilder(CONFIG)
    words = builder.hbm_tensor("words", (4,), DType.FP32, "input", bytes(range(16)))
    last_sbuf = sbuf_address(CONFIG, CONFIG.partitions - 1, CONFIG.sbuf_bytes - 4)
    last_psum = psum_address(CONFIG, CONFIG.partitions - 1, CONFIG.psum_bytes - 4)
    last_hbm = CONFIG.hbm_bytes - 4
    stream = builder.tensor
    stream.reg_alu(rd=Reg(9), alu_op="move", imm=8)
    stream.reg_load(rd=Reg(0), address=Address(words.address + 4))
    stream.reg_load(rd=Reg(1), address=Address(words.address, Reg(9)))
    for i, address in enumerate((last_sbuf, last_psum, last_hbm)):
        stream.reg_store(rb=Reg(1), address=Address(address - 8, Reg(9)))
        stream.reg_load(rd=Reg(2 + i), address=Address(address))
    chip, result = run(builder)
    assert result.ok
    assert result[Sequencer.TENSOR].gpr[:5].tolist() == [0x07060504] + [0x0B0A0908] * 4
    for address in (last_sbuf, last_psum, last_hbm):
        assert chip.read(address, 4).tolist() == [8, 9, 10, 11]


def test_updates_of_every_kind_and_waits_from_registers():
    builder = ProgramBuilder(CONFIG)
    sync, gpsimd = builder.sync, builder.gpsimd
    sync.reg_alu(rd=Reg(4), alu_op="move", imm=-7 & MASK)
    sync.sem_update(update=(200, "set", -5))
    sync.nop(update=(200, "add", Reg(4)))
    sync.notify(imm=-1, update=(200, "increment"))
    sync.reg_alu(rd=Reg(5), alu_op="move", imm=0, update=(201, "decrement"))
    sync.nop(update=(202, "set", 1 << 30))
    gpsimd.reg_alu(rd=Reg(6), alu_op="move", imm=1 << 30)
    gpsimd.sem_wait(wait=(202, Reg(6)), update=(203, "add", 9))
    gpsimd.notify(imm=5)
    gpsimd.notify(imm=0x12345678)
    for seed in (None, 1, 2, 3):
        _, result = run(builder, seed=seed)
        assert result.ok
        assert result.semaphores[[200, 201, 202, 203]].tolist() == [-11, -1, 1 << 30, 9]
        assert result[Sequencer.SYNC].notify_value == MASK
        assert result[Sequencer.GPSIMD].notify_value == 0x12345678
        assert result[Sequencer.GPSIMD].notify_count == 2
        assert result[Sequencer.TENSOR].state == State.IDLE


@pytest.mark.parametrize(
    ("kind", "start", "wrapped"),
    [
        ("increment", (1 << 31) - 1, -(1 << 31)),
        ("decrement", -(1 << 31), (1 << 31) - 1),
    ],
)
def test_a_semaphore_that_overflows_wraps_and_is_latched(kind, start, wrapped):
    builder = ProgramBuilder(CONFIG)
    builder.sync.nop(update=(17, "set", start))
    builder.sync.nop(update=(17, kind))
    builder.sync.nop(update=(18, "set", start))
    builder.sync.nop(update=(18, kind))  # the first one stays latched
    builder.sync.nop(update=(17, "add", 0))
    chip, result = run(builder)
    assert result.semaphores[17] == wrapped
    assert result.semaphore_error == (1 << 31) | 17
    assert result[Sequencer.SYNC].state == State.HALTED
    assert not result.ok
    quiet = ProgramBuilder(CONFIG)
    quiet.sync.nop()
    assert chip.run(quiet.build()).ok


def test_an_endless_loop_is_reported_and_a_deadlock_names_who_waits_for_what():
    builder = ProgramBuilder(CONFIG)
    builder.sync.label("here")
    builder.sync.branch(cond="always", target="here")
    with pytest.raises(Runaway, match="sync at 0"):
        run(builder, max_instructions=5000)

    builder = ProgramBuilder(CONFIG)
    builder.sync.nop(wait=(3, 2))
    builder.gpsimd.nop(update=(3, "increment"))
    builder.gpsimd.nop(wait=(4, -1))
    builder.gpsimd.sem_wait(wait=(4, 1))
    builder.scalar.notify(imm=1)
    for seed in (None, 1, 2):
        _, result = run(builder, seed=seed)
        sync, gpsimd = result[Sequencer.SYNC], result[Sequencer.GPSIMD]
        assert (sync.state, sync.cause, sync.pc) == (State.ERROR, Cause.WAIT_TIMEOUT, 0)
        assert (sync.wait_semaphore, sync.wait_value, sync.retired) == (3, 2, 0)
        assert (gpsimd.pc, gpsimd.wait_semaphore, gpsimd.wait_value) == (2, 4, 1)
        assert "sync[0]: WAIT_TIMEOUT: waits for semaphore 3 >= 2, which is 1" in result.errors()
        assert result[Sequencer.SCALAR].state == State.HALTED


def test_a_polling_sequencer_does_not_starve_the_others():
    builder = ProgramBuilder(CONFIG)
    flag = builder.hbm_tensor("flag", (1,), DType.FP32, "scratch", bytes(4))
    sync, gpsimd = builder.sync, builder.gpsimd
    sync.label("poll")
    sync.reg_load(rd=Reg(0), address=flag.address)
    sync.branch(cond="eq", ra=Reg(0), imm=0, target="poll")
    sync.nop(update=(0, "increment"))
    gpsimd.sem_wait(wait=(1, 0))
    gpsimd.reg_alu(rd=Reg(3), alu_op="move", imm=1)
    gpsimd.reg_store(rb=Reg(3), address=flag.address)
    gpsimd.sem_wait(wait=(0, 1))
    for seed in (None, 4):
        chip = GoldenChip(CONFIG, races=False)
        assert chip.run(builder.build(), seed=seed, max_instructions=100000).ok


def test_state_of_a_run_is_cleared_and_memories_stay():
    builder = ProgramBuilder(CONFIG)
    count = builder.hbm_tensor("count", (1,), DType.FP32, "scratch")
    stream = builder.sync
    stream.reg_load(rd=Reg(0), address=count.address)
    counting(stream, 0)
    counting(stream, 1)
    stream.reg_store(rb=Reg(0), address=count.address)
    stream.notify(imm=7, update=(9, "increment"))
    chip = GoldenChip(CONFIG)
    chip.write(count.address, np.array([41], np.uint32))
    program = builder.build()
    for passes in range(1, 4):
        result = chip.run(program)
        status = result[Sequencer.SYNC]
        assert status.gpr[:2].tolist() == [41 + passes, 1]
        assert (status.notify_count, status.retired, result.semaphores[9]) == (1, 6, 1)
    assert chip.read(count.address, 4).view(np.uint32)[0] == 44
