# amaranth: UnusedElaboratable=no
"""AddressGenerator at the real geometry: large steps and counts, both ends of the memory."""

import numpy as np
import pytest

from hdl.memory.address_generator import AddressGenerator
from isa.dtypes import DType
from isa.fields import Space
from isa.geometry import preset
from verif.banked_memory_bench import simulate
from verif.memory_bench import element_offsets, make_pattern, pattern_const, random_pattern

CONFIG = preset("trn2")
LAST = CONFIG.sbuf_bytes - 4


def walk(patterns, limit=20000):
    """Elements of all patterns, in one cycle each: (address, last, tag)."""
    dut = AddressGenerator(CONFIG, tag_bits=5)
    got = []

    async def bench(ctx):
        waiting = list(enumerate(patterns))
        ctx.set(dut.o.ready, 1)
        for _ in range(limit):
            ctx.set(dut.request.valid, int(bool(waiting)))
            if waiting:
                number, pattern = waiting[0]
                ctx.set(dut.request.p.pattern, pattern_const(pattern))
                ctx.set(dut.request.p.tag, number & 31)
            _, _, ready, valid, *element = await ctx.tick().sample(
                dut.request.ready, dut.o.valid, dut.o.p.address, dut.o.p.last, dut.o.p.tag)
            if valid:
                got.append(tuple(element))
            elif got:
                return
            if waiting and ready:
                waiting.pop(0)
        raise AssertionError(f"not done after {limit} cycles")

    simulate(dut, bench)
    return got


def expected(patterns):
    elements = []
    for number, pattern in enumerate(patterns):
        offsets = [int(v) for v in element_offsets(pattern)]
        elements += [(at, int(i == len(offsets) - 1), number & 31) for i, at in enumerate(offsets)]
    return elements


def test_random_patterns():
    rng = np.random.default_rng(1)
    patterns = [random_pattern(rng, CONFIG) for _ in range(60)]
    assert walk(patterns) == expected(patterns)


@pytest.mark.parametrize(("dtype", "offset", "dims"), [
    (DType.FP32, 0, [(LAST // 4 // 2, 3)]),
    (DType.FP32, 0, [(1, 2), (32767, 2)]),
    (DType.FP32, LAST, [(-1, 2), (-32768, 2), (-3, 2), (-5, 2)]),
    (DType.BF16, LAST + 2, [(-32768, 3), (-1, 2)]),
    (DType.BF16, 6, [(1, 4000)]),
    (DType.UINT8, LAST + 3, [(-32768, 3), (-1, 2), (-3, 5)]),
    (DType.FP8_E4M3, 7, [(1, 4000)]),
    (DType.FP32, LAST, [(0, 300), (0, 4)]),
    (DType.FP32, LAST // 2 // 4 * 4, [(1, 3), (-7, 4), (100, 5), (-1000, 6)]),
])
def test_extremes(dtype, offset, dims):
    pattern = make_pattern(CONFIG, space=Space.SBUF, dtype=dtype, offset=offset, dims=dims)
    assert walk([pattern]) == expected([pattern])


def test_tag_bits_are_checked():
    with pytest.raises(ValueError, match="tag_bits"):
        AddressGenerator(CONFIG, tag_bits=0)
