"""Instruction buffer: far and near branches, wrap, slow memory, errors; and the rates out of the
buffer.
"""

import pytest

from isa.address_map import Cause, Sequencer, State
from isa.fields import RegOp
from isa.geometry import preset
from verif.sequencer_bench import SequencerBench, World, instruction, operand

HALT = instruction("halt")
NOP = instruction("nop")


def add(rd, value):
    return instruction("reg_alu", rd=rd, ra=rd, use_imm=1, imm=value, alu_op=RegOp.ADD)


def goto(target):
    return instruction("branch", target=target)


@pytest.fixture(scope="module", params=[4, 8, 32])
def bench(request):
    return SequencerBench(preset("tiny").with_(fetch_depth=request.param), Sequencer.GPSIMD)


SLOW = (
    World(),
    World(fetch_latency=(1, 60), seed=1),
    World(fetch_latency=(20, 20), seed=2),
    World(fetch_latency=(0, 9), fetch_stall=0.6, seed=3),
)


@pytest.mark.parametrize("world", range(len(SLOW)))
def test_straight_code_is_fetched_once(bench, world):
    # Longer than every buffer; each instruction leaves its own trace.
    program = [
        instruction(
            "reg_alu",
            rd=0,
            ra=0,
            use_imm=1,
            imm=i + 3,
            alu_op=RegOp.ADD if i % 2 else RegOp.MULTIPLY,
        )
        for i in range(80)
    ]
    result = bench.run([*program, HALT], world=SLOW[world])
    value = 0
    for i in range(80):
        value = (value + i + 3 if i % 2 else value * (i + 3)) % (1 << 32)
    assert result.gpr[0] == value
    assert [address for _, address in result.fetches] == [128 * i for i in range(81)]


@pytest.mark.parametrize("world", range(len(SLOW)))
def test_far_branches_drop_what_is_under_way(bench, world):
    # A walk over places 90 apart, each with a trap behind it.
    stops = [90, 3, 181, 92, 270, 5, 271]
    program = [instruction("halt") for _ in range(280)]
    program[0] = goto(stops[0])
    for i, (here, there) in enumerate(zip(stops, stops[1:], strict=False)):
        program[here] = add(i, 100 + i)
        program[here + 1] = goto(there)
    program[stops[-1]] = add(9, 1)
    # 270 leads to 5 by the instruction at 271, which is the last stop as well.
    program[271] = instruction("branch", ra=5, cond=1, use_imm=1, imm=0, target=5)
    result = bench.run(program, world=SLOW[world])
    assert result.state == State.HALTED and result.pc == 272
    assert result.gpr[:6] == [100, 101, 102, 103, 104, 105]


def test_near_branches_cost_no_fetch(bench):
    depth = bench.config.fetch_depth
    body = depth // 2
    program = [instruction("reg_alu", rd=1, use_imm=1, imm=10, alu_op=0)]
    program += [add(2, 1) for _ in range(body - 2)] + [add(1, -1)]
    program += [instruction("branch", ra=1, cond=2, use_imm=1, imm=0, target=1), HALT]
    result = bench.run(program, world=World(fetch_latency=(30, 30)))
    assert result.gpr[2] == 10 * (body - 2)
    addresses = [address for _, address in result.fetches]
    assert sorted(addresses) == sorted(set(addresses))
    assert len(addresses) == len(program)


def test_a_loop_larger_than_the_buffer(bench):
    body = bench.config.fetch_depth + 3
    program = [
        instruction("loop", use_imm=1, imm=3, target=body + 1),
        *[add(i % 8, 1) for i in range(body)],
        HALT,
    ]
    result = bench.run(program, world=World(fetch_latency=(1, 12), seed=5))
    assert sum(result.gpr) == 3 * body
    assert len(result.fetches) > 2 * body


def test_a_forward_branch_to_what_is_under_way_waits_for_it(bench):
    step = bench.config.fetch_depth // 2 - 1
    program = [goto(step)] + [HALT] * (step - 1) + [add(1, 1), HALT]
    result = bench.run(program, world=World(fetch_latency=(40, 40)))
    assert result.gpr[1] == 1
    addresses = [address for _, address in result.fetches]
    assert len(addresses) == len(set(addresses))


@pytest.mark.parametrize("bad", [0, 1, 5])
def test_fetch_error_is_reported_where_it_is_executed(bench, bad):
    program = [add(1, 1) for _ in range(8)] + [HALT]
    result = bench.run(
        program, world=World(fetch_errors={128 * bad}, fetch_latency=(1, 20), seed=bad)
    )
    assert (result.state, result.cause, result.pc, result.retired) == (
        State.ERROR,
        Cause.BUS_ERROR,
        bad,
        bad,
    )


def test_fetch_error_of_an_instruction_that_is_jumped_over(bench):
    program = [goto(2), NOP, add(1, 1), HALT]
    result = bench.run(program, world=World(fetch_errors={128}))
    assert result.state == State.HALTED and result.gpr[1] == 1
    # The place in the buffer is good again once another instruction lies there.
    depth = bench.config.fetch_depth
    far = 1 + 2 * depth
    program = [goto(far), *[HALT] * (far - 1), *[add(1, 1)] * depth, HALT]
    result = bench.run(program, world=World(fetch_errors={128}))
    assert result.state == State.HALTED and result.gpr[1] == depth


def test_bursts_of_the_last_run_do_not_reach_the_next(bench):
    world = World(fetch_latency=(50, 50))
    first = [goto(1), HALT, *[add(1, 7) for _ in range(30)]]
    second = [*[add(2, 1) for _ in range(9)], HALT]
    results = bench.run_all([(first, {}), (second, {"address": 0x8000}), (second, {})], world=world)
    for result in results[1:]:
        assert result.gpr[1:3] == [0, 9] and result.state == State.HALTED


def steady(times, count):
    """Average distance of the last `count` times."""
    return (times[-1] - times[-1 - count]) / count


def test_an_engine_instruction_leaves_every_five_cycles(vector):
    copy = instruction(
        "tensor_copy",
        **operand("src0", dims=((1, 8),)),
        **operand("dst", dims=((1, 8),), offset=64),
        update_kind=1,
        wait=1,
        wait_value=0,
    )
    program = [instruction("loop", use_imm=1, imm=8, target=9), *[copy] * 8, HALT]
    result = vector.run(program)
    times = [t for t, _ in result.issues]
    assert len(times) == 64
    print(f"engine instruction: {steady(times, 48)} cycles")
    # Nothing is lost where the loop repeats.
    assert steady(times, 48) <= 5


def test_nested_loop_ends_cost_nothing(vector):
    copy = instruction(
        "tensor_copy",
        **operand("src0", dims=((1, 8),)),
        **operand("dst", dims=((1, 8),), offset=64),
    )
    program = [
        instruction("loop", use_imm=1, imm=9, target=3),
        instruction("loop", use_imm=1, imm=1, target=3),
        copy,
        HALT,
    ]
    result = vector.run(program)
    times = [t for t, _ in result.issues]
    # A loop instruction and a copy: 6 + 5.
    assert steady(times, 6) <= 11


CONTROL = {
    "nop": lambda _: NOP,
    "nop with update": lambda _: instruction("nop", update_kind=1),
    "met wait": lambda _: instruction("sem_wait", wait=1, wait_value=-1, wait_semaphore=9),
    "reg_alu": lambda _: add(1, 3),
    "reg_alu with update": lambda _: instruction("reg_alu", rd=1, update_kind=1),
    "notify": lambda _: instruction("notify"),
    "sem_update": lambda _: instruction("sem_update", update_kind=1),
    "branch not taken": lambda _: instruction("branch", cond=2, ra=9, use_imm=1, imm=0),
    "branch taken": lambda pc: goto(pc + 1),
    "skipped loop": lambda pc: instruction("loop", use_imm=1, imm=0, target=pc + 1),
    "dma_trigger": lambda _: instruction("dma_trigger", use_imm=1, imm=1, address=0x80),
}


def loop_cycles(bench, make, count):
    """Cycles of one pass through a loop of `count` of them and a nop, which the buffer holds."""

    def program(runs):
        body = [make(pc) for pc in range(1, count + 1)]
        return [instruction("loop", use_imm=1, imm=runs, target=count + 2), *body, NOP, HALT]

    few, many = (bench.run(program(runs)) for runs in (10, 20))
    assert many.retired - few.retired == 10 * (count + 1)
    return (many.cycles - few.cycles) / 10


@pytest.mark.parametrize("name", CONTROL)
def test_a_control_instruction_takes_six_cycles_at_most(vector, name, record_property):
    cycles = (loop_cycles(vector, CONTROL[name], 12) - loop_cycles(vector, CONTROL[name], 2)) / 10
    record_property("cycles", cycles)
    print(f"{name}: {cycles} cycles")
    assert 1 <= cycles <= 6
