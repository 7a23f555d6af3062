"""The checker: each kind of hazard between each pair of agents, with and without its wait."""

from itertools import product

import pytest

from golden.hazard import RACE
from golden.memory import Memory
from isa.address_map import psum_address, sbuf_address
from isa.encoding import Descriptor
from isa.fields import Space, Update
from isa.pattern import Reg
from verif.race_bench import AT, CONFIG, builder_with_data, operand, run


class Tensor:
    """Reads SBUF, writes PSUM."""

    name = "tensor"
    can = {("read", Space.SBUF), ("write", Space.PSUM)}

    def access(self, builder, kind, space, **sync):
        tensor = builder.tensor
        if kind == "read":
            tensor.load_stationary(src0=operand(dtype=1), **sync)
        else:
            tensor.load_stationary(src0=operand(dtype=1, offset=0))
            tensor.multiply_moving(
                src0=operand(dtype=1, offset=32), dst=operand(Space.PSUM), accumulate=False, **sync
            )

    def wait(self, builder, semaphore):
        builder.tensor.sem_wait(wait=(semaphore, 1))


class Engine:
    """Vector or scalar engine: both kinds in both spaces."""

    can = set(product(("read", "write"), (Space.SBUF, Space.PSUM)))

    def __init__(self, name):
        self.name = name

    def access(self, builder, kind, space, **sync):
        away = 1024 if self.name == "vector" else 1152
        src = operand(space) if kind == "read" else operand(offset=away)
        dst = operand(space) if kind == "write" else operand(offset=away + 64)
        if self.name == "vector":
            builder.vector.tensor_copy(src0=src, dst=dst, **sync)
        else:
            builder.scalar.activation(src0=src, dst=dst, func="copy", **sync)

    def wait(self, builder, semaphore):
        getattr(builder, self.name).nop(wait=(semaphore, 1))


class Bus:
    """Register loads and stores of a sequencer."""

    can = set(product(("read", "write"), (Space.SBUF, Space.PSUM, Space.NONE)))

    def __init__(self, name):
        self.name = name

    def access(self, builder, kind, space, **sync):
        address = 2048
        if space != Space.NONE:
            place = sbuf_address if space == Space.SBUF else psum_address
            address = place(CONFIG, 1, AT + 4)
        stream = getattr(builder, self.name)
        if kind == "read":
            stream.reg_load(rd=Reg(1), address=address, **sync)
        else:
            stream.reg_store(rb=Reg(0), address=address, **sync)

    def wait(self, builder, semaphore):
        getattr(builder, self.name).sem_wait(wait=(semaphore, 1))


class Dma:
    """A DMA engine, triggered by a sequencer that does nothing else."""

    can = set(product(("read", "write"), (Space.SBUF, Space.NONE)))

    def __init__(self, engine, via, away):
        self.name = f"dma{engine} of {via}"
        self._engine, self._via, self._away = engine, via, away

    def access(self, builder, kind, space, update=None, wait=None, at_read=False):
        here = 2044 if space == Space.NONE else sbuf_address(CONFIG, 1, AT - 2)
        away = self._away
        src, dst = (here, away) if kind == "read" else (away, here)
        descriptor = Descriptor(
            src_address=src,
            dst_address=dst,
            row_bytes=9,
            update_kind=Update.INCREMENT if update else Update.NONE,
            update_semaphore=update[0] if update else 0,
        )
        block = builder.descriptors([descriptor], address=None)
        stream = getattr(builder, self._via)
        stream.dma_trigger(dma_engine=self._engine, imm=1, address=block.address, wait=wait)

    def wait(self, builder, semaphore):
        getattr(builder, self._via).sem_wait(wait=(semaphore, 1))


AGENTS = [
    Tensor(),
    Engine("vector"),
    Engine("scalar"),
    Bus("gpsimd"),
    Bus("sync"),
    Dma(0, "sync", 3072),
    Dma(1, "gpsimd", 3136),
    Dma(0, "tensor", 3200),
]
HAZARDS = {"RAW": ("write", "read"), "WAR": ("read", "write"), "WAW": ("write", "write")}
SAME_STREAM = {
    frozenset(("sync", "dma0 of sync")),
    frozenset(("gpsimd", "dma1 of gpsimd")),
    frozenset(("tensor", "dma0 of tensor")),
}


def pairs():
    for a, b in product(AGENTS, AGENTS):
        for hazard, (first, second) in HAZARDS.items():
            for space in (Space.SBUF, Space.PSUM, Space.NONE):
                able = (first, space) in a.can and (second, space) in b.can
                if able and a is not b and frozenset((a.name, b.name)) not in SAME_STREAM:
                    yield a, b, hazard, space


PAIRS = list(pairs())


@pytest.mark.parametrize("hazard", HAZARDS)
def test_every_pair_of_agents(hazard):
    """b waits for a: silent; without the wait, or waiting for too little: flagged, in any order."""
    seen = set()
    for a, b, name, space in PAIRS:
        if name != hazard:
            continue
        first, second = HAZARDS[hazard]
        for wait in ("wait", "none", "late"):
            builder = builder_with_data()
            a.access(builder, first, space, update=(5, "increment"))
            if wait == "wait":
                b.wait(builder, 5)
            b.access(builder, second, space)
            if wait == "late":
                b.wait(builder, 5)
            program = builder.build()
            for seed in (None, 1) if wait == "wait" else (None, 1, 2):
                result = run(program, seed=seed)
                text = f"{hazard} {space.name} {a.name} -> {b.name} {wait} {seed}"
                races = [h for h in result.hazards if h.kind == RACE]
                assert races == result.hazards, text
                if wait == "wait":
                    assert not races, text + "\n" + "\n".join(map(str, races))
                    continue
                assert len(races) == 1, text + "\n" + "\n".join(map(str, races))
                (race,) = races
                agents = {race.first.agent, race.second.agent}
                assert agents == {a.name.split(" ")[0], b.name.split(" ")[0]}, text
                assert race.memory == Memory(int(space)), text
        seen.add((a.name, b.name))
    assert len(seen) >= 30
