"""Instructions for the engine: waits, order of updates, fences, stops."""

import random

import pytest

from isa.address_map import Cause, Sequencer, State
from isa.fields import Update
from isa.geometry import preset
from verif.sequencer_bench import SequencerBench, World, instruction, operand

HALT = instruction("halt")
READ, COMPLETE = 1, 2


def copy(**fields):
    """A tensor_copy; keywords are further fields."""
    base = operand("src0", dims=((1, 8),)) | operand("dst", dims=((1, 8),), offset=64)
    return instruction("tensor_copy", **(base | fields))


def adds(value, **fields):
    """Fields of an update that adds `value` to semaphore 1."""
    return {"update_kind": Update.ADD, "update_semaphore": 1, "update_value": value, **fields}


@pytest.fixture(scope="module")
def tensor():
    return SequencerBench(preset("tiny"), Sequencer.TENSOR)


def times(result, kind):
    return [t for t, name in result.events if name == kind]


def check_update_order(result, plan):
    """plan: per instruction (number of the engine instruction or None, at_read or None)."""
    fired = {value: t for t, semaphore, _, value in result.updates if semaphore == 1}
    reads, completes = times(result, "read_done"), times(result, "complete")
    last = {True: -1, False: -1}
    engine_before = 0
    for value, (is_engine, at_read) in enumerate(plan, start=1):
        engine_before += is_engine
        if at_read is None:
            assert value not in fired
            continue
        events = reads if at_read else completes
        if engine_before:
            # Not before its own event or, without one, that of the instruction before.
            assert fired[value] >= events[engine_before - 1]
        assert fired[value] > last[at_read]
        last[at_read] = fired[value]


@pytest.mark.parametrize("seed", range(12))
def test_updates_follow_their_events_in_order(vector, seed):
    rng = random.Random(seed)
    program, plan = [], []
    for value in range(1, 61):
        at_read = rng.choice([None, True, False])
        fields = {} if at_read is None else adds(value, update_at_read=int(at_read))
        kind = rng.choice(["copy", "copy", "copy", "nop", "empty"])
        if kind == "copy":
            program.append(copy(**fields))
        elif kind == "empty":
            program.append(
                copy(**fields, **{rng.choice(["dst__count3", "src0__partition_count"]): 0})
            )
        else:
            program.append(instruction("nop", **fields))
        plan.append((kind == "copy", at_read))
    world = World(
        seed=seed,
        engine_stall=rng.choice([0, 0.5]),
        read_latency=(1, rng.choice([1, 30])),
        complete_latency=(0, rng.choice([0, 30])),
        update_stall=rng.choice([0, 0.3, 0.9]),
    )
    result = vector.run([*program, HALT], world=world)
    assert result.state == State.HALTED and result.retired == 61
    assert len(result.issues) == sum(engine for engine, _ in plan)
    check_update_order(result, plan)
    expected = sum(v for v, (_, at_read) in enumerate(plan, start=1) if at_read is not None)
    assert result.semaphores[1] == expected


def test_update_at_read_comes_before_completion(vector):
    program = [copy(**adds(1, update_at_read=1)), copy(**adds(2)), HALT]
    result = vector.run(program, world=World(read_latency=(3, 3), complete_latency=(50, 50)))
    completes = times(result, "complete")
    fired = {value: t for t, _, _, value in result.updates}
    assert fired[1] < completes[0] <= completes[1] <= fired[2]


@pytest.mark.parametrize(
    "name", ["sem_update", "notify", "reg_load", "reg_store", "dma_trigger", "halt"]
)
def test_fenced_instructions_wait_for_everything_before(vector, name):
    fields = {
        "dma_trigger": {"use_imm": 1, "imm": 1, "address": 0x80},
        "reg_load": {"address": 0x40},
        "reg_store": {"address": 0x40},
    }.get(name, {})
    program = [copy(), copy(), instruction(name, **fields, **adds(9)), HALT]
    result = vector.run(program, world=World(read_latency=(9, 9), complete_latency=(60, 60)))
    done = times(result, "complete")[1]
    ((fired, *_),) = result.updates
    assert fired >= done
    assert all(t >= done for t, *_ in [*result.bus, *result.triggers])
    assert result.cycles >= done


def test_an_instruction_without_fence_does_not_wait(vector):
    program = [copy(**adds(1)), instruction("reg_alu", rd=1, use_imm=1, imm=3, **adds(2)), HALT]
    result = vector.run(program, world=World(complete_latency=(80, 80)))
    assert [u[3] for u in result.updates] == [2, 1]


def test_eight_instructions_in_flight(vector):
    program = [*[copy() for _ in range(12)], HALT]
    result = vector.run(program, world=World(read_latency=(5, 5), complete_latency=(300, 300)))
    first = times(result, "complete")[0]
    assert len([t for t in times(result, "issue") if t < first]) == 8
    assert result.retired == 13


NUMBERS = (-0x80000000, -5, -1, 0, 1, 0x7FFFFFFF)


@pytest.mark.parametrize("have", NUMBERS)
def test_wait_compares_signed(vector, have):
    jobs = []
    for value in NUMBERS:
        program = [
            instruction(
                "sem_update", update_kind=Update.SET, update_semaphore=200, update_value=have
            ),
            copy(wait=1, wait_semaphore=200, wait_value=value),
            HALT,
        ]
        jobs.append((program, {"watchdog": 30}))
    for value, result in zip(NUMBERS, vector.run_all(jobs), strict=True):
        assert len(result.issues) == (have >= value), value
        assert result.cause == (Cause.NONE if have >= value else Cause.WAIT_TIMEOUT)
        if have < value:
            assert (result.wait_semaphore, result.wait_value) == (200, value % (1 << 32))


def test_wait_holds_until_the_value_is_reached(vector):
    program = [
        instruction("sem_update", update_kind=Update.SET, update_semaphore=4, update_value=-1),
        copy(wait=1, wait_semaphore=4, wait_value=1),
        HALT,
    ]
    world = World(poke=((150, 4, Update.INCREMENT, 0), (170, 4, Update.INCREMENT, 0)))
    result = vector.run(program, world=world)
    assert result.events[0][0] > 170 and State.WAITING in result.states


def test_halt_comes_after_all_updates(vector):
    program = [copy(**adds(1)), instruction("halt", **adds(2))]
    for seed in range(5):
        result = vector.run(program, world=World(update_stall=0.95, seed=seed))
        assert [u[3] for u in result.updates] == [1, 2]
        assert result.halted > result.updates[1][0]


@pytest.mark.parametrize("watchdog", [1, 2, 17, 64])
def test_watchdog(vector, watchdog):
    program = [copy(), instruction("sem_wait", wait=1, wait_semaphore=3, wait_value=2), HALT]
    result = vector.run(program, watchdog=watchdog)
    assert (result.state, result.cause, result.pc, result.retired) == (
        State.ERROR,
        Cause.WAIT_TIMEOUT,
        1,
        1,
    )
    assert (result.wait_semaphore, result.wait_value) == (3, 2)


def test_watchdog_counts_cycles(vector):
    program = [instruction("sem_wait", wait=1, wait_semaphore=3, wait_value=2)]
    short, long = (vector.run(program, watchdog=w).cycles for w in (10, 210))
    assert long - short == 200


def test_watchdog_zero_waits_forever(vector):
    program = [instruction("sem_wait", wait=1, wait_semaphore=3, wait_value=1), HALT]
    result = vector.run(program, world=World(poke=((1500, 3, Update.INCREMENT, 0),)))
    assert result.state == State.HALTED and result.cycles > 1500


def test_wait_that_is_met_in_time_is_no_timeout(vector):
    program = [instruction("sem_wait", wait=1, wait_semaphore=3, wait_value=1), HALT]
    result = vector.run(program, watchdog=100, world=World(poke=((120, 3, Update.INCREMENT, 0),)))
    assert result.state == State.HALTED
    assert (result.wait_semaphore, result.wait_value) == (0, 0)


def test_after_an_error_issued_work_completes_and_updates(vector):
    program = [
        copy(**adds(1)),
        copy(**adds(2)),
        instruction("reg_load", address=0) | 1 << 900,
        HALT,
    ]
    result = vector.run(program, world=World(read_latency=(9, 9), complete_latency=(70, 70)))
    assert (result.state, result.cause, result.pc) == (State.ERROR, Cause.RESERVED_BITS, 2)
    assert result.semaphores[1] == 3 and result.retired == 2
    assert result.cycles >= times(result, "complete")[1]


def test_instruction_without_work_is_not_issued(vector):
    program = [
        copy(dst__count0=0, src0__offset=0xFFFFFF, **adds(5)),
        copy(wait=1, wait_semaphore=1, wait_value=5),
        HALT,
    ]
    result = vector.run(program, watchdog=50)
    assert len(result.issues) == 1 and result.retired == 3


FAULTS = (
    (2 << 8, Cause.BAD_VERSION),
    (1 << 8 | 0x7F, Cause.ILLEGAL_OPCODE),
    (1 << 8 | 0x20, Cause.ILLEGAL_OPCODE),
    (copy() | 1 << 1000, Cause.RESERVED_BITS),
    (copy(wait_reg=1, wait_value=64), Cause.RESERVED_BITS),
    (copy(update_kind=5), Cause.BAD_OPERATOR),
    (copy(dst__space=3), Cause.BAD_SPACE),
    (copy(dst__dtype=14), Cause.BAD_DTYPE),
    (copy(dst__partition=3, dst__partition_count=2, src0__partition_count=2), Cause.BAD_PARTITION),
    (copy(src0__offset=1), Cause.MISALIGNED),
    (copy(src0__offset=8 * 1024 - 14), Cause.OUT_OF_RANGE),
    (copy(src0__count0=7), Cause.SHAPE_MISMATCH),
)


@pytest.mark.parametrize(("word", "cause"), FAULTS, ids=[c.name for _, c in FAULTS])
def test_faults_stop_before_wait_and_update(vector, word, cause):
    bad = word | 1 << 16 | 77 << 24 | (0 if cause == Cause.BAD_OPERATOR else 1 << 64)
    if cause not in (Cause.RESERVED_BITS,):
        bad |= 9 << 32
    result = vector.run([copy(**adds(1)), bad, HALT])
    assert (result.state, result.cause, result.pc, result.retired) == (State.ERROR, cause, 1, 1)
    assert len(result.updates) == 1 and len(result.issues) == 1


def load(k=4, m=4):
    return instruction("load_stationary", **operand("src0", partitions=k, dims=((1, m),)))


def multiply(k=4, m=4, n=8):
    return instruction(
        "multiply_moving",
        **operand("src0", partitions=k, dims=((1, n),)),
        **operand("dst", partitions=m, dims=((1, n),), space=2, dtype=0),
    )


def test_multiply_needs_a_fitting_load(tensor):
    jobs = [
        ([load(), multiply(), load(2, 3), multiply(2, 3), multiply(2, 3), HALT], {}),
        ([load(), multiply(), HALT], {}),
        ([multiply(), HALT], {}),  # Loads of an earlier run do not count.
        ([load(2, 3), multiply(2, 4), HALT], {}),
        ([load(2, 3), multiply(3, 3), HALT], {}),
        ([load(2, 3), load(0, 4), multiply(2, 3), HALT], {}),
    ]
    results = tensor.run_all(jobs)
    assert [r.cause for r in results] == [Cause.NONE, Cause.NONE] + [Cause.SHAPE_MISMATCH] * 3 + [
        Cause.NONE
    ]
    assert [len(r.issues) for r in results] == [5, 2, 0, 1, 1, 2]
    assert [i.opcode for _, i in results[0].issues] == [0x20, 0x21, 0x20, 0x21, 0x21]
