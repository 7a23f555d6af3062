"""Seeds of the generators: SplitMix64 in plain integers, and the instructions that the builder
makes.
"""

import numpy as np
import pytest

from isa.address_map import Sequencer
from isa.assembler import assemble
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.encoding import decode
from isa.geometry import preset
from isa.program_file import dumps, loads
from isa.seeding import seeded, splitmix64
from verif.equality import assert_same
from verif.seeded_program import plain_states

TINY = preset("tiny")


def test_published_outputs_of_splitmix64():
    """The outputs for seed 1234567 that implementations of SplitMix64 are checked with."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    expected += [4593380528125082431, 16408922859458223821]
    got = splitmix64(1234567, np.arange(5, dtype=np.uint64))
    assert_same(got, np.array(expected, np.uint64))


@pytest.mark.parametrize("seed", [0, 1, 0xDEADBEEF, (1 << 64) - 1])
@pytest.mark.parametrize("first", [0, 3, 128])
def test_states_equal_plain_integers(seed, first):
    assert_same(seeded(5, seed, first), np.array(plain_states(first, 5, seed), np.uint32))


def test_a_seed_counts_modulo_2_64():
    assert_same(seeded(3, -1), seeded(3, (1 << 64) - 1))
    assert_same(seeded(3, 1 << 64), seeded(3, 0))
    with pytest.raises(TypeError, match="float"):
        seeded(3, 1.0)


def test_lanes_do_not_depend_on_their_number():
    assert_same(seeded(128, 9)[5:8], seeded(3, 9, 5))


def test_lanes_of_all_engines_and_many_seeds_differ():
    states = np.concatenate([seeded(256, seed) for seed in range(64)])
    assert len(np.unique(states, axis=0)) == len(states)
    assert states[:, :5].any(axis=1).all()
    assert len(np.unique(states[:, 0])) > 0.999 * len(states)


@pytest.mark.parametrize("name, lanes", [("vector", 0), ("scalar", 128)])
def test_the_builder_seeds_an_engine(name, lanes):
    b = ProgramBuilder(TINY)
    tile = b.seed_generators(getattr(b, name), 7, engine=1, via=b.gpsimd)
    program = b.build()
    states = program.tensor(f"{name}_seed")
    assert (states.role, states.dtype) == ("constant", DType.UINT32)
    assert_same(states.array(), np.array(plain_states(lanes, 4, 7), np.uint32))
    trigger, _ = program.stream(Sequencer.GPSIMD).words
    assert decode(trigger)[1]["dma_engine"] == 1
    instruction, fields = decode(program.stream(Sequencer[name.upper()]).words[0])
    assert instruction.name == "rand_set_state"
    assert (fields["wait"], fields["wait_semaphore"], fields["wait_value"]) == (1, 0, 1)
    assert (fields["src0.partition"], fields["src0.partition_count"]) == (0, 4)
    assert fields["src0.offset"] == tile.tensor.address
    assert loads(dumps(program)) == program


def test_some_partitions_have_the_states_of_their_lanes():
    b = ProgramBuilder(preset("small"))
    b.seed_generators("vector", 5, engine=0, via="sync", partition=8, partitions=4)
    b.seed_generators("scalar", 5, engine=0, via="sync", partition=12, name="rest")
    program = b.build()
    assert_same(program.tensor("vector_seed").array(), seeded(16, 5)[8:12])
    assert_same(program.tensor("rest").array(), seeded(16, 5, 128)[12:])
    assert program.tensor("rest.tile").partition == 12
    assert program.semaphores == {"vector_seed": 0, "rest": 1}


def test_misuse():
    b = ProgramBuilder(TINY)
    with pytest.raises(ValueError, match="tensor has no generators, only vector, scalar"):
        b.seed_generators(b.tensor, 1, engine=0, via=b.sync)
    b.seed_generators(b.vector, 1, engine=0, via=b.sync)
    with pytest.raises(ValueError, match="tensor 'vector_seed.tile' is there already"):
        b.seed_generators(b.vector, 1, engine=0, via=b.sync)
    b.seed_generators(b.vector, 2, engine=0, via=b.sync, name="again")
    with pytest.raises(ValueError, match="must be \\(partitions, ...\\) within 0..3"):
        b.seed_generators(b.scalar, 1, engine=0, via=b.sync, partition=2, partitions=4)
    with pytest.raises(ValueError, match="must be \\(partitions, ...\\) within 0..3"):
        b.seed_generators(b.scalar, 1, engine=0, via=b.sync, partition=9)


def test_text_takes_the_states():
    states = seeded(4, 11, 128)
    program = assemble(
        f".config tiny\n.tensor s hbm uint32 4x6 constant\n.data s hex {states.tobytes().hex()}\n"
    )
    assert_same(program.tensor("s").array(), states)
