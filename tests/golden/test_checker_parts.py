"""Parts of the checker against plain recomputation: footprints, and forgetting what is covered."""

import random

import numpy as np

from golden.access import Access
from golden.chip import GoldenChip
from golden.engines.dma import Side
from golden.footprint import Footprints
from golden.hazard import RACE
from golden.ledger import Ledger
from golden.memory import Memories, Memory
from isa.dtypes import DType
from isa.geometry import preset
from verif.random_program import generate, mutate_waits

TINY = preset("tiny")
WIDE = TINY.with_(name="wide", sbuf_stride_bytes=16 << 10)


def random_access(rng):
    counts = [rng.randint(1, 4) for _ in range(3)]
    dims = tuple((rng.choice((0, 1, 2, 3, 5, -1, -2, 7)), count) for count in counts)
    dtype = rng.choice((DType.FP32, DType.BF16))
    partition, count = rng.choice(((0, 4), (0, 2), (2, 2), (1, 1), (3, 1)))
    return Access(1, dtype, partition, count, 200 + dtype.itemsize * rng.randint(0, 20), dims)


def mask(footprint):
    found = np.zeros((4, 512), bool)
    for low, high in footprint.parts().tolist():
        found[footprint.p0 : footprint.p1, low:high] = True
    return found


def test_footprints_against_byte_masks():
    rng = random.Random(2)
    footprints = Footprints()
    seen = {True: 0, False: 0}
    for _ in range(3000):
        accesses = [random_access(rng) for _ in range(2)]
        if rng.random() < 0.3:
            accesses[1] = accesses[0]
        a, b = (footprints.of_access(access) for access in accesses)
        for access, footprint in zip(accesses, (a, b), strict=True):
            plain = np.zeros((4, 512), bool)
            for partition in range(access.partition, access.partition + access.partitions):
                for place in access.intervals:
                    plain[partition, place[0] : place[1]] = True
            assert (mask(footprint) == plain).all()
        common = mask(a) & mask(b)
        overlap = footprints.overlap(a, b)
        assert (overlap is not None) == common.any()
        if overlap is not None:
            p0, p1, low, high = overlap
            assert common[p0:p1, low:high].any()
        assert footprints.covers(a, b) == bool((mask(b) <= mask(a)).all())
        seen[footprints.covers(a, b)] += 1
    assert min(seen.values()) > 100


def test_footprints_of_rows():
    """Of SBUF rows in an address map with and without gaps, against one row after the other."""
    rng = random.Random(4)
    for config in (TINY, WIDE):
        memories, footprints = Memories(config), Footprints()
        memory = memories[Memory.SBUF]
        for _ in range(200):
            row, counts = rng.randint(1, 9), tuple(rng.randint(1, 3) for _ in range(3))
            strides = tuple(rng.choice((row, 11, 40, memory.pitch, -13)) for _ in range(3))
            first = memory.pitch * rng.randint(0, 3) + rng.randint(60, memory.row_bytes - 150)
            side = Side(memories, memory.base + first, row, counts, strides)
            places = {place for entry in side.rows() if entry for place in [entry[1]]}
            whole = all(side.rows())
            assert side.whole == whole
            if not whole:
                continue
            expected = np.zeros(memory.flat.size, bool)
            for place in places:
                expected[place : place + row] = True
            found = np.zeros((memory.rows, memory.pitch), bool)
            made = footprints.of_rows(memory, first, row, counts, strides)
            for footprint in made:
                for low, high in footprint.parts().tolist():
                    assert not found[footprint.p0 : footprint.p1, low:high].any()
                    found[footprint.p0 : footprint.p1, low:high] = True
            assert (found.reshape(-1) == expected).all()


def racing(program):
    """The later ones of all racing pairs."""
    chip = GoldenChip(TINY, on_hazard="report", uninitialised=False, overlap=False)
    hazards = chip.run(program).hazards
    return {h.second for h in hazards if h.kind == RACE}


def test_forgetting_covered_accesses_loses_no_race(monkeypatch):
    """Whoever races with an access that was dropped races with the one that covered it."""
    mutants = []
    for seed in range(4):
        mutants += [m for _, m in mutate_waits(generate(TINY, 300 + seed, 14))]
    found = [racing(mutant) for mutant in mutants]
    monkeypatch.setattr(Ledger, "drop", lambda self, entries: None)
    monkeypatch.setattr(Ledger, "compact", lambda self, least=None: None)
    assert found == [racing(mutant) for mutant in mutants]
    assert sum(map(bool, found)) > 40
