"""Random control programs against the golden model, with random latencies everywhere."""

import random

import pytest

from isa.address_map import Cause, State
from verif.sequencer_bench import World
from verif.sequencer_programs import DATA, DATA_WORDS, ControlPrograms, assert_same, golden_result


def random_world(rng, memory):
    slow = rng.random() < 0.5
    return World(
        seed=rng.getrandbits(30),
        fetch_latency=(1, rng.choice([1, 5, 40])),
        fetch_stall=rng.choice([0, 0.2, 0.5]) if slow else 0,
        bus_latency=(1, rng.choice([1, 8])),
        bus_memory=memory,
    )


def campaign(bench, seeds, size):
    causes = {}
    for seed in seeds:
        rng = random.Random(seed)
        program = ControlPrograms(seed).generate(size)
        memory = {DATA + 4 * i: rng.getrandbits(32) for i in range(DATA_WORDS)}
        status, semaphores, chip = golden_result(
            bench.config, bench.dut.index, program, memory=memory
        )
        result = bench.run(program, world=random_world(rng, memory), watchdog=100, limit=100000)
        assert_same(result, status, semaphores)
        for address in memory:
            left = int.from_bytes(chip.read(address, 4).tobytes(), "little")
            assert bench.bus_words.get(address) == left
        causes[result.cause] = causes.get(result.cause, 0) + 1
        if result.cause == Cause.NONE:
            assert result.state == State.HALTED
    return causes


def test_random_programs(small_buffer):
    causes = campaign(small_buffer, range(20), 40)
    assert causes[Cause.NONE] >= 10 and len(causes) >= 3


def test_random_programs_with_an_engine(vector):
    causes = campaign(vector, range(100, 105), 60)
    assert causes[Cause.NONE] >= 3


@pytest.mark.nightly
def test_many_random_programs(small_buffer):
    campaign(small_buffer, range(1000, 2500), 120)
