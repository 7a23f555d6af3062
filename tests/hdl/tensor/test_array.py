"""The array alone, in Amaranth's simulator: skew, weights loaded behind a wave, latency."""

import numpy as np
import pytest
from amaranth.hdl import Const
from amaranth.sim import Simulator

from golden.arith.matmul import chain
from hdl.tensor.array import PeArray
from hdl.tensor.pe_group import GROUP
from hdl.tensor.pe_row import control_layout
from isa.geometry import preset
from verif.vectors import BF16, corner_codes

CONFIGS = {
    "4-shallow": preset("tiny").with_(pe_multiply_stages=0, pe_add_stages=1),
    "4": preset("tiny"),
    "8-deep": preset("tiny").with_(array=8, pe_multiply_stages=2, pe_add_stages=3),
}


def pack(values, bits):
    """Values of one width as one int, the first lowest."""
    return sum(int(value) << (bits * place) for place, value in enumerate(values))


def codes(rng, shape):
    """BF16: mostly of one scale, some corners."""
    plain = BF16.join(
        rng.integers(0, 2, shape), rng.integers(57, 70, shape), rng.integers(0, 128, shape)
    )
    corners = rng.choice(corner_codes(BF16), shape)
    return np.where(rng.random(shape) < 0.02, corners, plain).astype(np.uint16)


def beats(size, ragged):
    """Column and count of the beats of a load; ragged: quads straddle groups after a single one."""
    found, column = [], 0
    while column < size:
        count = 1 if (ragged and not found) or column + GROUP > size else GROUP
        found.append((column, count))
        column += count
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_tiles_back_to_back(name):
    """Weights of the next tile come as soon as allowed: from the cycle of the swap on."""
    config = CONFIGS[name]
    size = config.partitions
    rng = np.random.default_rng(1)
    layout = control_layout(size // GROUP)
    tiles = []
    for index in range(4 if size == 4 else 3):
        rows = size if index % 2 else int(rng.integers(1, size + 1))
        columns = int(rng.integers(size, 2 * size)) + 2
        tiles.append((codes(rng, (size, size)), codes(rng, (size, columns)), rows))

    # One dictionary of inputs a cycle.
    steps = []
    weights = [(tiles[0][0], *beat) for beat in beats(size, ragged=False)]

    def step(moving=None, rows=0, swap=0):
        beat = weights.pop(0) if weights else None
        control = {"swap": swap}
        lanes = rng.integers(0, 1 << 16, (size, GROUP))  # anything when not valid
        if beat:
            stationary, column, count = beat
            shift = column % GROUP
            mask = ((1 << count) - 1) << shift
            control |= {
                "group": column // GROUP,
                "shift": shift,
                "low": mask & 15,
                "high": mask >> GROUP,
            }
            lanes[:, :count] = stationary[:, column : column + count]
        if moving is None:
            moving = rng.integers(0, 1 << 16, size)
        steps.append(
            {
                "control": Const.cast(layout.const(control)).value,
                "moving": pack(moving, 16),
                "active": (1 << rows) - 1,
                "weights": pack(lanes.ravel(), 16),
            }
        )

    while weights:
        step()
    expected = {}
    for index, (stationary, moving, rows) in enumerate(tiles):
        result = chain(stationary[:rows], moving[:rows]).view(np.uint32)
        if index + 1 < len(tiles):
            weights += [(tiles[index + 1][0], *b) for b in beats(size, ragged=index % 2 == 1)]
        for n in range(moving.shape[1]):
            expected[len(steps)] = result[:, n]
            step(moving[:, n], rows, swap=int(n == 0))
            if rng.random() < 0.2:
                step()  # a bubble
        while weights:
            step()

    array = PeArray(config)
    depth = config.pe_multiply_stages + size * config.pe_add_stages
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
