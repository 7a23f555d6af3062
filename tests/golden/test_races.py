"""The checker: what orders accesses and what does not, unwritten bytes, overlaps."""

from itertools import product

import pytest

from golden.chip import GoldenChip
from golden.hazard import RACE, HazardError
from isa.address_map import Sequencer, sbuf_address
from isa.builder import ProgramBuilder
from isa.fields import Space
from isa.pattern import AccessPattern, Reg
from verif.race_bench import AT, CONFIG, builder_with_data, operand, run


def test_one_semaphore_for_two_descriptors_of_one_engine():
    """They are not ordered with each other, and the update of the second covers the first."""
    for ordered in (False, True):
        builder = builder_with_data()
        slot = builder.sbuf("slot", (1, 16), 0)
        tensor = builder.hbm_tensor("x", (1, 16), 0, "input", bytes(64))
        builder.semaphore("done")
        builder.dma_copy(
            engine=0,
            via=builder.sync,
            src=tensor,
            dst=slot,
            update=("done", "increment") if ordered else None,
        )
        builder.dma_copy(
            engine=0,
            via=builder.sync,
            src=tensor,
            dst=slot,
            update=("done", "increment"),
            wait=("done", 1) if ordered else None,
        )
        builder.vector.tensor_copy(
            src0=slot, dst=operand(partitions=1, count=16), wait=("done", 2 if ordered else 1)
        )
        hazards = run(builder.build()).hazards
        assert [h.kind for h in hazards] == ([] if ordered else [RACE])
        if not ordered:
            assert hazards[0].first.agent == hazards[0].second.agent == "dma0"


def test_the_order_of_two_sequencers_on_one_dma_engine_is_not_sure():
    """Only what was surely queued before is covered by an update."""
    for ordered in (False, True):
        builder = builder_with_data()
        slot = builder.sbuf("slot", (1, 16), 0)
        tensor = builder.hbm_tensor("x", (1, 16), 0, "input", bytes(64))
        other = builder.hbm_tensor("y", (1, 16), 0)
        builder.dma_copy(
            engine=0, via=builder.sync, src=tensor, dst=slot, trigger_update=(8, "increment")
        )
        builder.dma_copy(
            engine=0,
            via=builder.gpsimd,
            src=tensor,
            dst=other,
            update=(9, "increment"),
            wait=(8, 1) if ordered else None,
        )
        builder.vector.tensor_copy(src0=slot, dst=operand(partitions=1, count=16), wait=(9, 1))
        for seed in (None, 1, 2, 3):
            assert len(run(builder.build(), seed=seed).hazards) == (0 if ordered else 1), seed


def test_an_update_at_read_releases_reads_only():
    for at_read, more, flagged in ((True, 0, 0), (True, 1, 1), (False, 0, 0), (False, 1, 0)):
        builder = builder_with_data()
        builder.vector.tensor_copy(
            src0=operand(), dst=operand(offset=512), update=(1, "increment"), at_read=at_read
        )
        builder.scalar.activation(src0=operand(offset=768), dst=operand(), func="relu", wait=(1, 1))
        if more:
            builder.scalar.activation(
                src0=operand(offset=512), dst=operand(offset=900), func="copy"
            )
        assert len(run(builder.build()).hazards) == flagged


def test_an_update_at_read_covers_the_reads_and_not_the_writes_before_it():
    for name, more in product(("nop", "memset"), (0, 1)):
        builder = builder_with_data()
        builder.vector.tensor_copy(src0=operand(), dst=operand(offset=512))
        extra = {"dst": operand(offset=640), "imm0": 0.0} if name == "memset" else {}
        builder.vector.emit(name, update=(1, "increment"), at_read=True, **extra)
        builder.scalar.activation(src0=operand(offset=768), dst=operand(), func="copy", wait=(1, 1))
        if more:
            builder.scalar.activation(
                src0=operand(offset=512), dst=operand(offset=900), func="copy"
            )
        assert len(run(builder.build()).hazards) == more


def test_control_instructions_that_do_not_wait_release_nothing_of_the_engine():
    """And the fenced ones release everything, also when their update says at read."""
    extra = {"reg_alu": {"rd": Reg(0), "alu_op": "move", "imm": 0}, "notify": {"imm": 0}}
    for name, at_read, flagged in (
        ("reg_alu", False, 1),
        ("reg_alu", True, 1),
        ("nop", False, 0),
        ("nop", True, 1),
        ("sem_update", False, 0),
        ("sem_update", True, 0),
        ("notify", True, 0),
    ):
        builder = builder_with_data()
        builder.vector.memset(dst=operand(), imm0=1.0)
        builder.vector.emit(name, update=(1, "increment"), at_read=at_read, **extra.get(name, {}))
        builder.scalar.activation(src0=operand(), dst=operand(offset=900), func="copy", wait=(1, 1))
        assert len(run(builder.build()).hazards) == flagged, (name, at_read)


def test_a_store_is_visible_when_its_update_fires_whatever_at_read_says():
    for at_read in (False, True):
        builder = builder_with_data()
        address = sbuf_address(CONFIG, 1, AT)
        builder.sync.reg_store(rb=Reg(0), address=address, update=(1, "increment"), at_read=at_read)
        builder.gpsimd.reg_load(rd=Reg(0), address=address, wait=(1, 1))
        assert not run(builder.build()).hazards


def test_a_wait_relies_only_on_updates_that_it_needs():
    """Two producers, one semaphore: waiting for 1 is not enough, waiting for 2 is."""
    for needed, flagged in ((1, 2), (2, 0)):
        builder = builder_with_data()
        builder.vector.memset(dst=operand(), imm0=1.0, update=(1, "increment"))
        builder.scalar.activation(
            src0=operand(offset=700), dst=operand(offset=512), func="copy", update=(1, "increment")
        )
        builder.tensor.load_stationary(src0=operand(dtype=1), wait=(1, needed))
        builder.tensor.load_stationary(src0=operand(dtype=1, offset=512))
        assert len(run(builder.build()).hazards) == flagged


def three_updates(last):
    builder = builder_with_data()
    for i in range(3):
        builder.vector.memset(dst=operand(offset=64 * i), imm0=1.0, update=(1, "add", 5))
    builder.tensor.load_stationary(src0=operand(dtype=1, offset=64), wait=(1, 6))
    builder.tensor.load_stationary(src0=operand(dtype=1, offset=64 * last))
    return builder.build()


def test_waiting_for_the_second_of_three_updates():
    assert not run(three_updates(0)).hazards
    (race,) = run(three_updates(2)).hazards
    assert (race.first.index, race.second.index) == (2, 1)
    assert (race.first.agent, race.second.agent) == ("vector", "tensor")
    assert race.bytes == (128, 136)
    assert race.partitions == (0, 4)


def test_order_is_transitive():
    builder = builder_with_data()
    builder.vector.memset(dst=operand(), imm0=1.0, update=(1, "increment"))
    builder.scalar.nop(wait=(1, 1), update=(2, "increment"))
    builder.gpsimd.sem_wait(wait=(2, 1), update=(3, "increment"))
    builder.tensor.load_stationary(src0=operand(dtype=1), wait=(3, 1))
    assert not run(builder.build()).hazards


def test_a_set_semaphore_releases_what_was_before_it():
    for more in (0, 1):
        builder = builder_with_data()
        builder.vector.memset(dst=operand(), imm0=1.0, update=(1, "set", 3))
        builder.vector.memset(dst=operand(offset=64), imm0=1.0, update=(1, "set", 7))
        builder.tensor.load_stationary(src0=operand(dtype=1), wait=(1, 3))
        if more:  # 3 was enough for the wait
            builder.tensor.load_stationary(src0=operand(dtype=1, offset=64))
        assert len(run(builder.build()).hazards) == more
    builder = builder_with_data()
    builder.vector.memset(dst=operand(offset=64), imm0=1.0, update=(1, "set", 7))
    builder.tensor.load_stationary(src0=operand(dtype=1, offset=64), wait=(1, 4))
    assert not run(builder.build()).hazards


def ping_pong(taken, passes=6):
    """A buffer handed back and forth, with credits that the producer takes itself."""
    builder = builder_with_data()
    vector, scalar = builder.vector, builder.scalar
    vector.sem_update(update=(1, "add", 1))
    with vector.loop(passes):
        if taken == "before":
            vector.sem_wait(wait=(1, 1))
            vector.sem_update(update=(1, "decrement"))
            vector.memset(dst=operand(), imm0=1.0, update=(2, "increment"))
        else:
            vector.memset(dst=operand(), imm0=1.0, wait=(1, 1), update=(2, "increment"))
            vector.emit(taken, update=(1, "decrement"))
    scalar.reg_alu(rd=Reg(0), alu_op="move", imm=1)
    with scalar.loop(passes):
        scalar.activation(
            src0=operand(),
            dst=operand(offset=512),
            func="copy",
            wait=(2, Reg(0)),
            update=(1, "increment"),
            at_read=True,
        )
        scalar.reg_alu(rd=Reg(0), ra=Reg(0), alu_op="add", imm=1)
    return builder.build()


def test_credits():
    for seed in (None, 1, 2, 3):
        assert not run(ping_pong("sem_update"), seed=seed).hazards
        assert not run(ping_pong("before"), seed=seed).hazards
    # a nop's decrement may still be on its way when the next wait looks
    assert run(ping_pong("nop")).hazards


def test_a_trigger_orders_what_was_before_it_only():
    for more in (0, 1):
        builder = builder_with_data()
        out = builder.hbm_tensor("out", (4, 4), 0)
        builder.vector.memset(dst=operand(), imm0=1.0)
        builder.dma_copy(engine=1, via=builder.vector, src=operand(), dst=out)
        if more:  # the descriptor may still be reading
            builder.vector.memset(dst=operand(), imm0=2.0)
        hazards = run(builder.build()).hazards
        assert [{h.first.agent, h.second.agent} for h in hazards] == [{"dma1", "vector"}] * more


def test_interleaved_bytes_do_not_conflict():
    """Even and odd elements of the same range, by two engines at once."""
    for step, flagged in ((2, 0), (1, 1)):
        builder = builder_with_data()
        even = AccessPattern(1, 0, 0, 4, AT, ((2, 8),))
        odd = AccessPattern(1, 0, 0, 4, AT + 4, ((step, 8),))
        builder.vector.memset(dst=even, imm0=1.0)
        builder.scalar.activation(src0=operand(offset=900, count=8), dst=odd, func="copy")
        assert len(run(builder.build()).hazards) == flagged


def test_partitions_do_not_conflict():
    builder = builder_with_data()
    builder.vector.memset(dst=AccessPattern(1, 0, 0, 2, AT, ((1, 8),)), imm0=1.0)
    builder.scalar.activation(
        src0=AccessPattern(1, 0, 0, 2, 900, ((1, 8),)),
        dst=AccessPattern(1, 0, 2, 2, AT, ((1, 8),)),
        func="copy",
    )
    assert not run(builder.build()).hazards


def test_a_store_into_a_running_stream():
    address = 0
    for _ in range(2):  # the second time with the address that the first one found
        builder = builder_with_data()
        builder.sync.nop()
        builder.gpsimd.reg_store(rb=Reg(0), address=address)
        program = builder.build()
        address = program.stream(Sequencer.SYNC).address
    (race,) = run(program).hazards
    assert {race.first.agent, race.second.agent} == {"sync instruction fetch", "gpsimd"}


def test_a_pair_in_a_loop_is_reported_once_and_options_turn_the_checks_off():
    builder = ProgramBuilder(CONFIG)
    with builder.vector.loop(20):
        builder.vector.memset(dst=operand(), imm0=1.0)
    with builder.scalar.loop(20):
        builder.scalar.activation(src0=operand(offset=900), dst=operand(), func="copy")
    program = builder.build()
    for seed in (None, 1, 2):
        assert len(run(program, seed=seed).hazards) == 1
    chip = GoldenChip(CONFIG, races=False, uninitialised=False)
    assert chip.run(program).ok
    with pytest.raises(HazardError):
        GoldenChip(CONFIG, races=False).run(program)
    with pytest.raises(ValueError, match="on_hazard"):
        GoldenChip(CONFIG, on_hazard="ignore")


def test_long_loops_stay_cheap_and_exact():
    """More updates and accesses than the checker keeps: silent, and flagged when wrong."""
    for taken, flagged in (("sem_update", False), ("nop", True)):
        program = ping_pong(taken, 700)
        assert bool(run(program).hazards) == flagged

    for waits in (True, False):
        builder = builder_with_data()
        vector, scalar = builder.vector, builder.scalar
        for stream in (vector, scalar):
            stream.reg_alu(rd=Reg(2), alu_op="move", imm=0)
            stream.reg_alu(rd=Reg(3), alu_op="move", imm=1)
        sliding = AccessPattern(Space.SBUF, 1, 0, 4, Reg(2), ((1, 1),))
        with vector.loop(3000):
            vector.memset(dst=sliding, imm0=1.0, update=(1, "increment"))
            vector.reg_alu(rd=Reg(2), ra=Reg(2), alu_op="add", imm=2)
        dst = AccessPattern(Space.PSUM, 1, 0, 4, 0, ((1, 1),))
        with scalar.loop(3000):
            wait = (1, Reg(3)) if waits else (1, 2999)
            scalar.activation(src0=sliding, dst=dst, func="copy", wait=wait)
            for register, step in ((2, 2), (3, 1)):
                scalar.reg_alu(rd=Reg(register), ra=Reg(register), alu_op="add", imm=step)
        (*hazards,) = run(builder.build()).hazards
        assert [h.bytes for h in hazards] == ([] if waits else [(5998, 6000)])
