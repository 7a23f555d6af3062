"""Control instructions, one at a time."""

import random

import pytest

from isa.address_map import CORE_BASE, PSUM_OFFSET, Cause, State
from isa.fields import Condition, RegOp, Update
from isa.geometry import LOOP_DEPTH
from verif.sequencer_bench import World, instruction

HALT = instruction("halt")
EDGES = (0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678)


def signed(value):
    return value - (1 << 32) if value >> 31 else value


def move(rd, value):
    return instruction("reg_alu", rd=rd, use_imm=1, imm=signed(value % (1 << 32)), alu_op=0)


def count_up(rd):
    return instruction("reg_alu", rd=rd, ra=rd, use_imm=1, imm=1, alu_op=RegOp.ADD)


def expected(op, a, b):
    return {
        RegOp.MOVE: b,
        RegOp.ADD: a + b,
        RegOp.SUBTRACT: a - b,
        RegOp.MULTIPLY: a * b,
        RegOp.AND: a & b,
        RegOp.OR: a | b,
        RegOp.XOR: a ^ b,
        RegOp.SHIFT_LEFT: a << b % 32,
        RegOp.SHIFT_RIGHT: a >> b % 32,
    }[op] % (1 << 32)


@pytest.mark.parametrize("op", list(RegOp))
def test_alu(small_buffer, op):
    rng = random.Random(int(op))
    pairs = [(rng.choice(EDGES), rng.choice(EDGES)) for _ in range(8)]
    pairs += [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(6)]
    program = []
    for i, (a, b) in enumerate(pairs):
        program += [
            move(60, a),
            move(61, b),
            instruction("reg_alu", rd=2 * i, ra=60, rb=61, alu_op=op),
            instruction("reg_alu", rd=2 * i + 1, ra=60, rb=63, use_imm=1, imm=signed(b), alu_op=op),
        ]
    result = small_buffer.run([*program, HALT])
    assert result.state == State.HALTED
    for i, (a, b) in enumerate(pairs):
        assert result.gpr[2 * i] == result.gpr[2 * i + 1] == expected(op, a, b), (a, b)
    assert result.retired == len(program) + 1


def test_register_zero_is_ordinary_and_start_clears_all(small_buffer):
    fill = [*[move(i, i + 100) for i in range(64)], HALT]
    first, second = small_buffer.run_all([(fill, {}), ([HALT], {})])
    assert first.gpr == [i + 100 for i in range(64)]
    assert second.gpr == [0] * 64
    assert (second.retired, second.pc, second.state) == (1, 0, State.HALTED)


@pytest.mark.parametrize("condition", list(Condition))
def test_branch_conditions(small_buffer, condition):
    pairs = [(a, b) for a in EDGES[::2] for b in (a, 0x7FFFFFFF, 0x80000000)]
    holds = {
        Condition.ALWAYS: lambda a, b: True,
        Condition.EQ: lambda a, b: a == b,
        Condition.NE: lambda a, b: a != b,
        Condition.LT: lambda a, b: signed(a) < signed(b),
        Condition.GE: lambda a, b: signed(a) >= signed(b),
        Condition.LTU: lambda a, b: a < b,
        Condition.GEU: lambda a, b: a >= b,
    }[condition]
    program = []
    for i, (a, b) in enumerate(pairs):
        at = len(program)
        by_imm = {"use_imm": 1, "imm": signed(b)} if i % 2 else {"rb": 61}
        program += [
            move(60, a),
            move(61, b),
            instruction("branch", ra=60, cond=condition, target=at + 4, **by_imm),
            move(i, 1),
        ]
    result = small_buffer.run([*program, HALT])
    assert [result.gpr[i] for i in range(len(pairs))] == [int(not holds(a, b)) for a, b in pairs]


@pytest.mark.parametrize("count", [0, -1, -0x80000000, 1, 2, 7])
@pytest.mark.parametrize("from_register", [False, True])
def test_loop_counts(small_buffer, count, from_register):
    how = {"rb": 5} if from_register else {"use_imm": 1, "imm": count}
    program = [move(5, count), instruction("loop", target=4, **how), count_up(1), count_up(2), HALT]
    result = small_buffer.run(program)
    assert result.gpr[1] == result.gpr[2] == max(count, 0)


def nest(levels):
    """`levels` loops of 2 that end at one place, round one instruction that counts."""
    end = levels + 2
    loops = [instruction("loop", use_imm=1, imm=2, target=end) for _ in range(levels)]
    # The innermost body has the counter alone; a nop stands at the end of the others.
    return [*loops, count_up(1), instruction("nop"), HALT]


def test_loops_nest_four_deep_and_end_together(small_buffer):
    result = small_buffer.run(nest(LOOP_DEPTH))
    assert result.state == State.HALTED
    assert result.gpr[1] == 2**LOOP_DEPTH


def test_fifth_loop_is_refused(small_buffer):
    result = small_buffer.run(nest(LOOP_DEPTH + 1))
    assert (result.cause, result.pc, result.retired) == (Cause.LOOP_DEPTH, LOOP_DEPTH, LOOP_DEPTH)


def test_fifth_loop_without_runs_is_no_error(small_buffer):
    loops = [instruction("loop", use_imm=1, imm=2, target=8) for _ in range(LOOP_DEPTH)]
    skipped = instruction("loop", use_imm=1, imm=0, target=6)
    empty = instruction("loop", use_imm=1, imm=9, target=7)
    program = [*loops, skipped, count_up(2), empty, count_up(1), HALT]
    result = small_buffer.run(program)
    assert result.state == State.HALTED
    assert (result.gpr[1], result.gpr[2]) == (16, 0)


@pytest.mark.parametrize("target", [0, 1, 4, 5, 100, 0xFFFFFFFF])
def test_loop_target_must_lie_after_it_in_the_stream(small_buffer, target):
    program = [
        instruction("nop"),
        instruction("loop", use_imm=1, imm=0, target=target),
        instruction("nop"),
        HALT,
    ]
    result = small_buffer.run(program)
    assert (result.cause, result.pc) == (Cause.PC_OUT_OF_RANGE, 1)


def test_loop_must_end_within_the_enclosing_one(small_buffer):
    program = [
        instruction("loop", use_imm=1, imm=1, target=3),
        instruction("loop", use_imm=1, imm=1, target=4),
        instruction("nop"),
        instruction("nop"),
        HALT,
    ]
    result = small_buffer.run(program)
    assert (result.cause, result.pc) == (Cause.PC_OUT_OF_RANGE, 1)


def test_branch_out_of_loops_frees_their_levels(small_buffer):
    # Each pass enters 3 loops and leaves them by a branch; without freeing, the fifth loop would
    # fail.
    program = [
        move(1, 0),
        instruction("loop", use_imm=1, imm=5, target=7),
        instruction("loop", use_imm=1, imm=5, target=7),
        instruction("loop", use_imm=1, imm=5, target=7),
        count_up(1),
        instruction("branch", cond=0, target=7),
        instruction("nop"),
        instruction("branch", ra=1, cond=Condition.NE, use_imm=1, imm=6, target=1),
        HALT,
    ]
    result = small_buffer.run(program)
    assert result.state == State.HALTED and result.gpr[1] == 6


def test_branch_inside_a_loop_stays_in_it(small_buffer):
    program = [
        instruction("loop", use_imm=1, imm=3, target=5),
        count_up(1),
        instruction("branch", cond=0, target=4),
        count_up(2),
        count_up(3),
        HALT,
    ]
    result = small_buffer.run(program)
    assert result.gpr[1:4] == [3, 0, 3]


@pytest.mark.parametrize(
    ("target", "taken"), [(3, True), (4, True), (0xFFFFFFFF, True), (9, False)]
)
def test_branch_out_of_the_stream(small_buffer, target, taken):
    cond = Condition.ALWAYS if taken else Condition.NE
    program = [instruction("nop"), instruction("branch", cond=cond, target=target), HALT]
    result = small_buffer.run(program)
    if taken:
        assert (result.state, result.cause, result.pc) == (State.ERROR, Cause.PC_OUT_OF_RANGE, 1)
        assert result.retired == 1
    else:
        assert result.state == State.HALTED and result.retired == 3


def test_running_past_the_end(small_buffer):
    result = small_buffer.run([instruction("nop"), instruction("nop")])
    assert (result.cause, result.pc, result.retired) == (Cause.PC_OUT_OF_RANGE, 2, 2)


def test_notify(small_buffer):
    program = [instruction("notify", imm=-2), instruction("notify", imm=7), HALT]
    result = small_buffer.run(program)
    assert (result.notify_value, result.notify_count) == (7, 2)
    result = small_buffer.run([instruction("notify", imm=-2), HALT])
    assert (result.notify_value, result.notify_count) == (0xFFFFFFFE, 1)


def test_load_and_store_every_word_of_a_beat(small_buffer):
    memory = {0x1000 + 4 * i: 0x11111111 * (i + 1) for i in range(4)}
    program = [instruction("reg_load", rd=i, address=0x1000 + 4 * i) for i in range(4)]
    program += [instruction("reg_store", rb=i, address=0x2000 + 4 * (3 - i)) for i in range(4)]
    world = World(bus_memory=dict(memory), bus_latency=(1, 9))
    result = small_buffer.run([*program, HALT], world=world)
    assert result.gpr[:4] == list(memory.values())
    assert [entry[2] for entry in result.bus] == [0] * 4 + [1] * 4
    for i, (_, address, _, strb, _) in enumerate(result.bus[4:]):
        assert address == 0x2000 and strb == 0xF << 4 * (3 - i)
    assert [small_buffer.bus_words[0x2000 + 4 * (3 - i)] for i in range(4)] == result.gpr[:4]


def edge_addresses(config):
    """(address, legal) of words at every edge of the map."""
    sbuf, psum = CORE_BASE, CORE_BASE + PSUM_OFFSET
    last = config.partitions - 1
    stride = config.sbuf_stride_bytes
    yield from [
        (0, True),
        (config.hbm_bytes - 4, True),
        (config.hbm_bytes, False),
        (2, False),
        (1, False),
        (CORE_BASE - 4, False),
        (1 << 63, False),
        ((1 << 64) - 4, False),
        (sbuf, True),
        (sbuf + last * stride + config.sbuf_bytes - 4, True),
        (sbuf + config.partitions * stride, False),
        (sbuf + 3, False),
        (psum, True),
        (psum + config.psum_bytes - 4, True),
        (psum + config.psum_bytes, False),
        (psum + last * 0x4000 + config.psum_bytes - 4, True),
        (psum + config.partitions * 0x4000, False),
        (psum - 4, False),
        (CORE_BASE + 0x2700000, False),
        (CORE_BASE + 0x2800000, False),
        (CORE_BASE + (64 << 20), False),
        (CORE_BASE | 1 << 50, False),
    ]
    if config.sbuf_bytes < stride:
        yield sbuf + config.sbuf_bytes, False


@pytest.mark.parametrize("name", ["reg_load", "reg_store"])
def test_addresses_of_load_and_store(small_buffer, name):
    cases = list(edge_addresses(small_buffer.config))
    jobs = [([instruction(name, address=address), HALT], {}) for address, _ in cases]
    for (address, legal), result in zip(cases, small_buffer.run_all(jobs), strict=True):
        assert len(result.bus) == legal, hex(address)
        if legal:
            assert result.state == State.HALTED and result.bus[0][1] == address & ~15
        else:
            assert (result.cause, result.pc) == (Cause.BAD_ADDRESS, 0), hex(address)


def test_address_register_is_unsigned_and_the_sum_wraps(small_buffer):
    program = [
        move(1, 0xFFFFFFFC),
        instruction("reg_load", rd=2, ra=1, address_reg=1, address=(1 << 64) - 0xFFFFFFF0),
        instruction("reg_load", rd=3, ra=1, address=8),
        HALT,
    ]
    result = small_buffer.run(program, world=World(bus_memory={12: 5, 8: 6}))
    assert result.gpr[2:4] == [5, 6]


def test_failed_access(small_buffer):
    for name in ("reg_load", "reg_store"):
        program = [
            move(3, 9),
            instruction(name, address=0x40, **{"rd" if name == "reg_load" else "rb": 3}),
            HALT,
        ]
        result = small_buffer.run(program, world=World(bus_errors={0x40}, bus_memory={0x40: 1}))
        assert (result.cause, result.pc, result.gpr[3]) == (Cause.BUS_ERROR, 1, 9)


def test_trigger(small_buffer):
    program = [
        move(1, 0x80),
        move(2, 3),
        instruction("dma_trigger", dma_engine=1, use_imm=1, imm=2, address=0x1000),
        instruction("dma_trigger", ra=1, rb=2, address_reg=1, address=0x80),
        instruction("dma_trigger", use_imm=1, imm=0, address=0x80),
        instruction("dma_trigger", use_imm=1, imm=-3, address=0x80),
        HALT,
    ]
    result = small_buffer.run(program, world=World(trigger_stall=0.8, seed=3))
    assert [t[1:] for t in result.triggers] == [(1, 0x1000, 2), (0, 0x100, 3)]
    assert result.retired == len(program)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"address": 0x1040}, Cause.BAD_ADDRESS),
        ({"address": 1 << 20}, Cause.BAD_ADDRESS),
        ({"address": CORE_BASE}, Cause.BAD_ADDRESS),
        ({"address": CORE_BASE, "dma_engine": 15}, Cause.BAD_ADDRESS),
        ({"address": 0x1000, "dma_engine": 2}, Cause.BAD_DMA_ENGINE),
        ({"address": 0x1000, "dma_engine": 15, "imm": 0}, Cause.BAD_DMA_ENGINE),
        ({"address": (1 << 20) - 128, "dma_engine": 1}, Cause.NONE),
    ],
)
def test_trigger_faults(small_buffer, fields, cause):
    result = small_buffer.run([instruction("dma_trigger", use_imm=1, **{"imm": 1} | fields), HALT])
    assert result.cause == cause
    assert len(result.triggers) == (cause == Cause.NONE)


@pytest.mark.parametrize("at", [0x80, 0x7F, 0x40])
def test_stream_address_must_be_aligned(small_buffer, at):
    result = small_buffer.run([HALT], address=at)
    assert result.cause == (Cause.NONE if at % 0x80 == 0 else Cause.BAD_ADDRESS)
    assert result.retired == (at % 0x80 == 0)
    assert bool(result.fetches) == (at % 0x80 == 0)


@pytest.mark.parametrize(
    ("address", "length", "good"),
    [
        ((1 << 20) - 128, 1, True),
        ((1 << 20) - 128, 2, False),
        (1 << 20, 1, False),
        (CORE_BASE, 1, False),
        ((1 << 64) - 128, 1, False),
        (0, 0xFFFFFFFF, False),
    ],
)
def test_stream_must_lie_in_hbm(small_buffer, address, length, good):
    result = small_buffer.run([HALT], address=address, length=length)
    assert result.cause == (Cause.NONE if good else Cause.BAD_ADDRESS)
    assert (result.pc, result.retired) == (0, int(good))


def test_length_zero_stays_idle_and_clears(small_buffer):
    first, second, third = small_buffer.run_all(
        [([move(1, 1), instruction("notify", imm=3), HALT], {}), ([], {}), ([HALT], {})]
    )
    assert first.gpr[1] == 1
    assert (second.state, second.cause, second.retired, second.notify_count) == (
        State.IDLE,
        Cause.NONE,
        0,
        0,
    )
    assert third.state == State.HALTED and third.gpr[1] == 0


def test_updates_of_control_instructions(small_buffer):
    program = [
        instruction("sem_update", update_kind=Update.SET, update_semaphore=1, update_value=40),
        instruction("sem_update", update_kind=Update.ADD, update_semaphore=1, update_value=-3),
        instruction("nop", update_kind=Update.INCREMENT, update_semaphore=1),
        instruction("notify", imm=1, update_kind=Update.DECREMENT, update_semaphore=2),
        instruction("sem_update"),
        instruction("sem_wait"),
        instruction("branch", target=8, update_kind=1, update_semaphore=3),
        HALT,
        instruction("loop", use_imm=1, imm=2, target=10, update_kind=1, update_semaphore=4),
        instruction("reg_alu", rd=1, update_kind=1, update_semaphore=5),
        instruction("halt", update_kind=1, update_semaphore=6),
    ]
    result = small_buffer.run(program)
    assert result.semaphores == {0: 0, 1: 38, 2: -1, 3: 1, 4: 1, 5: 2, 6: 1, 7: 0}
    assert result.state == State.HALTED and result.pc == 10


@pytest.mark.parametrize("stall", [0.0, 0.7, 0.97])
@pytest.mark.parametrize("control", ["sem_update", "reg_alu"])
def test_a_wait_sees_the_update_of_the_control_instruction_before(small_buffer, control, stall):
    """A credit that has been given back is not taken twice, however late the semaphores take it."""
    give_back = instruction(control, update_kind=Update.DECREMENT, update_semaphore=1)
    acquire = instruction("sem_wait", wait=1, wait_semaphore=1, wait_value=1)
    set_two = instruction("sem_update", update_kind=Update.SET, update_semaphore=1, update_value=2)
    program = [set_two, acquire, give_back, acquire, give_back, acquire, HALT]
    result = small_buffer.run(program, world=World(update_stall=stall), watchdog=400)
    assert (result.cause, result.pc) == (Cause.WAIT_TIMEOUT, 5)
    assert result.semaphores[1] == 0


@pytest.mark.parametrize("stall", [0.0, 0.97])
@pytest.mark.parametrize("name", ["reg_load", "reg_store"])
def test_an_access_follows_the_update_of_the_control_instruction_before(small_buffer, name, stall):
    """Semaphores are also read over the bus."""
    update = instruction("sem_update", update_kind=Update.INCREMENT, update_semaphore=1)
    program = [update, instruction(name, address=0x40), HALT]
    result = small_buffer.run(program, world=World(update_stall=stall))
    (taken, *_), (accessed, *_) = result.updates[0], result.bus[0]
    assert taken + 2 <= accessed


def test_registers_in_wait_and_update(small_buffer):
    program = [
        move(9, 5),
        move(63, 7),
        instruction(
            "sem_update", update_kind=Update.ADD, update_reg=1, update_value=9, update_semaphore=1
        ),
        instruction(
            "sem_wait",
            wait=1,
            wait_reg=1,
            wait_value=9,
            wait_semaphore=1,
            update_kind=Update.SET,
            update_reg=1,
            update_value=63,
            update_semaphore=2,
        ),
        move(9, 6),
        instruction("sem_wait", wait=1, wait_reg=1, wait_value=9, wait_semaphore=1),
        HALT,
    ]
    result = small_buffer.run(program, watchdog=50)
    assert result.semaphores[2] == 7
    assert (result.cause, result.pc) == (Cause.WAIT_TIMEOUT, 5)
    assert (result.wait_semaphore, result.wait_value) == (1, 6)


@pytest.mark.parametrize("writer", ["reg_alu", "reg_load"])
def test_a_register_is_read_after_the_instruction_before_wrote_it(vector, writer):
    # Twice through the same instructions, so that the second time they come out of the buffer.
    write = count_up(9) if writer == "reg_alu" else instruction("reg_load", rd=9, address=0x40)
    program = [
        instruction("loop", use_imm=1, imm=3, target=4),
        count_up(8),
        write,
        instruction(
            "sem_update", update_kind=Update.ADD, update_reg=1, update_value=9, update_semaphore=1
        ),
        HALT,
    ]
    result = vector.run(program, world=World(bus_memory={0x40: 100}))
    assert result.semaphores[1] == (1 + 2 + 3 if writer == "reg_alu" else 300)
    assert result.gpr[8] == 3


def test_clear_makes_an_error_idle_and_the_next_run_is_clean(small_buffer):
    first, second = small_buffer.run_all(
        [([instruction("reg_load", address=1)], {"clear": True}), ([move(1, 2), HALT], {})]
    )
    assert (first.state, first.cause) == (State.ERROR, Cause.BAD_ADDRESS)
    assert small_buffer.cleared == (State.IDLE, Cause.NONE)
    assert (second.state, second.cause, second.gpr[1]) == (State.HALTED, Cause.NONE, 2)


def test_clear_leaves_a_halt_alone(small_buffer):
    small_buffer.run([HALT], clear=True)
    assert small_buffer.cleared == (State.HALTED, Cause.NONE)


@pytest.mark.parametrize("cycle", [1, 30, 70, 90])
def test_start_is_ignored_while_busy(small_buffer, cycle):
    program = [*[count_up(1) for _ in range(10)], HALT]
    result = small_buffer.run(program, restart=cycle)
    assert (result.gpr[1], result.retired) == (10, 11)
