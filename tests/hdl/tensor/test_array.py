"""The array alone, in Amaranth's simulator: skew, weights loaded behind a wave, latency, formats
and modes that change from tile to tile.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from amaranth.hdl import Const
from amaranth.sim import Simulator

from golden.arith import matmul
from hdl.arith.decode import OperandFormat
from hdl.tensor.array import PeArray
from hdl.tensor.edge import LANE_BITS, MOVING_BITS
from hdl.tensor.pe_group import GROUP
from hdl.tensor.pe_row import control_layout
from isa.fields import Part
from isa.geometry import preset
from verif.tensor_formats import FP8, KINDS, operand_format, random_operand

NIGHTLY = pytest.mark.nightly
CONFIGS = {
    "4": preset("tiny").with_(double_row=0, pe_multiply_stages=0, pe_add_stages=1),
    "4-double": preset("tiny").with_(double_row=1),
    "8-deep": preset("tiny").with_(array=8, pe_multiply_stages=2, pe_add_stages=3, double_row=1),
}
SLOW = ("8-deep",)
DEPTHS = [(multiply, add) for multiply in range(3) for add in range(1, 7)]


@dataclass
class Tile:
    """Raw elements of a stationary [K, M] and a moving [K, N] tile, their formats and the result
    [M, N].
    """

    stationary: np.ndarray
    moving: np.ndarray
    weight_format: OperandFormat
    control: dict
    result: np.ndarray


def pack(values, bits):
    """Values of one width as one int, the first lowest."""
    return sum(int(value) << (bits * place) for place, value in enumerate(values))


def pairs(codes):
    """[..., 2] bytes as one number each."""
    return codes[..., 0].astype(np.uint32) | codes[..., 1].astype(np.uint32) << 8


def plain_tile(rng, shapes):
    kinds = [KINDS[int(rng.integers(len(KINDS)))] for _ in shapes]
    codes = [random_operand(kind[0], rng, shape) for kind, shape in zip(kinds, shapes, strict=True)]
    operands = [matmul.operand(x, *kind) for x, kind in zip(codes, kinds, strict=True)]
    formats = [operand_format(kind) for kind in kinds]
    control = {"moving_format": formats[1]}
    return Tile(*codes, formats[0], control, matmul.chain(*operands))


def double_tile(rng, shapes):
    kinds = [(FP8[int(rng.integers(len(FP8)))], Part.FULL) for _ in shapes]
    codes = [rng.integers(0, 256, (*shape, 2), dtype=np.uint8) for shape in shapes]
    operands = [matmul.operand(x, *kind) for x, kind in zip(codes, kinds, strict=True)]
    formats = [operand_format(kind) for kind in kinds]
    control = {"moving_format": formats[1], "double_row": 1}
    return Tile(*map(pairs, codes), formats[0], control, matmul.chain_double_row(*operands))


def transposing_tile(rng, shapes):
    kind = KINDS[int(rng.integers(len(KINDS)))]
    words = rng.integers(0, 1 << 16, shapes[0], dtype=np.uint16)
    moving = random_operand(kind[0], rng, shapes[1])
    moving[rng.random(moving.shape) < 0.6] = 0
    result = matmul.transpose(words, matmul.operand(moving, *kind))
    control = {"moving_format": operand_format(kind), "transpose": 1}
    return Tile(words, moving, OperandFormat.RAW, control, result)


def tiles_of(config, rng, count):
    """Modes in turn; odd ones have rows that are not in use."""
    makers = [plain_tile, transposing_tile, *([double_tile] if config.double_row else [])]
    size = config.partitions
    for index in range(count):
        rows = size if index % 2 else int(rng.integers(1, size + 1))
        columns = int(rng.integers(size, 2 * size)) + 2
        yield makers[index % len(makers)](rng, [(rows, size), (rows, columns)])


def beats(tile, size, ragged):
    """(column, weights [size, count]) of the beats of a load; ragged: quads straddle groups after a
    single one.  Elements of 4 bytes come one a beat.
    """
    rows, found, column = len(tile.stationary), [], 0
    weights = np.zeros((size, size), np.uint64)
    weights[:rows] = tile.stationary
    while column < size:
        single = (ragged and not found) or column + GROUP > size or tile.weight_format in WIDE
        count = 1 if single else GROUP
        found.append((column, weights[:, column : column + count], tile))
        column += count
    return found


WIDE = [operand_format(kind) for kind in KINDS if kind[0].bits == 32]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[NIGHTLY] if name in SLOW else []) for name in CONFIGS]
)
def test_tiles_back_to_back(name):
    """Weights of the next tile come as soon as allowed: from the cycle of the swap on."""
    check_tiles(CONFIGS[name], 6, seed=1)


@pytest.mark.nightly
@pytest.mark.parametrize("multiply, add", DEPTHS)
def test_every_depth_gives_the_same_results(multiply, add):
    """1 to 8 registers in a PE: the same tiles, the same bits."""
    double = (multiply + add) % 2
    config = preset("tiny").with_(pe_multiply_stages=multiply, pe_add_stages=add, double_row=double)
    check_tiles(config, 4, seed=2)


def check_tiles(config, count, seed):
    size = config.partitions
    rng = np.random.default_rng(seed)
    layout = control_layout(size // GROUP, config.double_row)
    tiles = list(tiles_of(config, rng, count))

    # One dictionary of inputs a cycle.
    steps = []
    weights = beats(tiles[0], size, ragged=False)

    def step(tile=None, column=0):
        beat = weights.pop(0) if weights else None
        # Anything where nothing is valid.
        control = {"moving_format": list(OperandFormat)[rng.integers(len(OperandFormat))]}
        lanes = rng.integers(0, 1 << LANE_BITS, (size, GROUP))
        moving = rng.integers(0, 1 << MOVING_BITS, size)
        active = 0
        if beat:
            first, elements, source = beat
            count, shift = elements.shape[1], first % GROUP
            mask = ((1 << count) - 1) << shift
            control |= {
                "weight_format": source.weight_format,
                "group": first // GROUP,
                "shift": shift,
                "low": mask & 15,
                "high": mask >> GROUP,
            }
            lanes[:, :count] = elements & 0xFFFF
            if source.weight_format in WIDE:
                lanes[:, 1] = elements[:, 0] >> np.uint64(16)
        if tile:
            rows = len(tile.moving)
            control |= tile.control | {"swap": int(column == 0)}
            moving[:rows] = tile.moving[:, column]
            active = (1 << rows) - 1
        steps.append(
            {
                "control": Const.cast(layout.const(control)).value,
                "moving": pack(moving, MOVING_BITS),
                "active": active,
                "weights": pack(lanes.ravel(), LANE_BITS),
            }
        )

    while weights:
        step()
    expected = {}
    for index, tile in enumerate(tiles):
        if index + 1 < len(tiles):
            weights += beats(tiles[index + 1], size, ragged=index % 2 == 1)
        for n in range(tile.moving.shape[1]):
            expected[len(steps)] = tile.result.view(np.uint32)[:, n]
            step(tile, n)
            if rng.random() < 0.2:
                step()  # a bubble
        while weights:
            step()

    array = PeArray(config)
    adders = size + config.double_row
    depth = config.pe_multiply_stages + adders * config.pe_add_stages
    assert array.latency == 1 + depth + size // GROUP - 1
    results = []

    async def bench(ctx):
        for inputs in steps + [steps[0]] * array.latency:
            for port, value in inputs.items():
                member = getattr(array, port)
                ctx.set(member.as_value() if port == "control" else member, value)
            results.append(ctx.get(array.results))
            await ctx.tick()

    simulator = Simulator(array)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    for cycle, want in expected.items():
        assert results[cycle + array.latency] == pack(want, 32), f"column of cycle {cycle}"
