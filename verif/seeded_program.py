"""A program whose generators start from a seed, and what it leaves behind in plain integers."""

import numpy as np

from isa.builder import ProgramBuilder
from isa.dtypes import DType
from verif.plain_numbers import Generator, code_of, float_of

ELEMENTS = 48
ENGINES = ("vector", "scalar")
_MASK = (1 << 64) - 1


def plain_states(first, lanes, seed):
    """SplitMix64 as the loop of its paper: [six words of each lane], from lane `first` on."""
    words = []
    for _ in range(3 * (first + lanes)):
        seed = (seed + 0x9E3779B97F4A7C15) & _MASK
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
        words += [z & 0xFFFFFFFF, z >> 32]
    return [words[i : i + 6] for i in range(6 * first, len(words), 6)]


def data(config):
    """FP32 codes from 1.0 to the next BF16 number: how each is rounded says its random word."""
    codes = np.random.default_rng(1).integers(0, 1 << 16, (config.partitions, ELEMENTS))
    return (0x3F800000 + codes).astype(np.uint32)


def seeded_program(config, seed=None):
    """Both engines, seeded unless `seed` is None, round `data` to BF16 stochastically.  Outputs
    before_E, rounded_E and after_E of engine E: states, BF16, states.
    """
    rows, outputs = config.partitions, []
    b = ProgramBuilder(config)
    for name in ("loaded", *ENGINES):
        b.semaphore(name)
    x = b.sbuf("x", (rows, ELEMENTS), DType.FP32)
    source = b.hbm_tensor("data", x.shape, DType.FP32, "input", data(config).view(np.float32))
    b.dma_copy(engine=0, via=b.sync, src=source, dst=x, update=("loaded", "increment"))
    for name in ENGINES:
        stream = getattr(b, name)
        if seed is not None:
            b.seed_generators(stream, seed, engine=1, via=b.sync)
        tiles = {
            "before": b.sbuf(f"before_{name}.tile", (rows, 6), DType.UINT32),
            "rounded": b.sbuf(f"rounded_{name}.tile", (rows, ELEMENTS), DType.BF16),
            "after": b.sbuf(f"after_{name}.tile", (rows, 6), DType.UINT32),
        }
        stream.rand_get_state(dst=tiles["before"])
        if name == "vector":
            stream.tensor_copy(src0=x, dst=tiles["rounded"], stochastic=True, wait=("loaded", 1))
        else:
            stream.activation(
                src0=x, dst=tiles["rounded"], func="copy", stochastic=True, wait=("loaded", 1)
            )
        stream.rand_get_state(dst=tiles["after"], update=(name, "increment"))
        b.sync.sem_wait(wait=(name, 1))
        for what, tile in tiles.items():
            out = b.hbm_tensor(f"{what}_{name}", tile.shape, tile.dtype, "output")
            outputs.append((tile, out, None))
    b.dma_batch(outputs, engine=0, via=b.sync)
    return b.build()


def expected(config, seed=None):
    """{output: array of codes}, element by element in plain integers."""
    found, rows = {}, config.partitions
    for engine, name in enumerate(ENGINES):
        lanes = [Generator() for _ in range(rows)]
        if seed is not None:
            for lane, words in zip(lanes, plain_states(128 * engine, rows, seed), strict=True):
                lane.words = words
        found[f"before_{name}"] = np.array([lane.words for lane in lanes], np.uint32)
        found[f"rounded_{name}"] = np.array(
            [
                [code_of(float_of(code), DType.BF16, random=lane.draw()) for code in row]
                for row, lane in zip(data(config), lanes, strict=True)
            ],
            np.uint16,
        )
        found[f"after_{name}"] = np.array([lane.words for lane in lanes], np.uint32)
    return found


def first_words(states):
    """The word that each state draws first."""
    found = []
    for words in states:
        generator = Generator()
        generator.words = [int(word) for word in words]
        found.append(generator.draw())
    return found
