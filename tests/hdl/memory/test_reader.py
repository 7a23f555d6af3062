# amaranth: UnusedElaboratable=no
"""Reader against a numpy model: every pattern and dtype, both memories, stalls and denials."""

import numpy as np
import pytest

from hdl.memory.reader import Reader
from isa.dtypes import DType
from isa.fields import Space
from isa.geometry import PSUM_WORD_BYTES, WORD_BYTES, preset
from verif.banked_memory_bench import simulate
from verif.memory_bench import (
    ReadModel,
    element_offsets,
    load_lanes,
    make_pattern,
    random_pattern,
    unpack,
)

CONFIG = preset("tiny")
P = CONFIG.partitions
LATENCY = 6
WIDENED_LATENCY = 8


def request_of(pattern):
    plain = {name: value for name, value in pattern.items() if name != "raw"}
    return {"pattern": plain, "raw": pattern.get("raw", 0)}


def some_raw(rng, patterns):
    """The patterns, about half of them for raw requests."""
    return [pattern | {"raw": int(rng.integers(2))} for pattern in patterns]


def run(patterns, *, seed=0, deny=0.0, stall=0.0, gap=0.0, limit=20000, lanes4=False,
        psum=True, config=CONFIG):
    """Read the patterns, each raw or not as its entry "raw" says (0 when it is missing).

    Returns (memories, beats [(cycle, data, mask, last)], cycles of fetched, cycles when requests
    were taken, models).
    """
    rng = np.random.default_rng(seed)
    memories = {
        Space.SBUF: rng.integers(0, 256, (config.partitions, config.sbuf_bytes), dtype=np.uint8),
        Space.PSUM: rng.integers(0, 256, (config.partitions, config.psum_bytes), dtype=np.uint8),
    }
    dut = Reader(config, psum=psum and not lanes4, lanes4=lanes4)
    ports = {Space.SBUF: dut.sbuf} | ({Space.PSUM: dut.psum} if dut.has_psum else {})
    size = {Space.SBUF: WORD_BYTES, Space.PSUM: PSUM_WORD_BYTES}
    models = {s: ReadModel(memories[s], size[s], rng, deny) for s in ports}
    beats, fetched, asked_at = [], [], []

    async def bench(ctx):
        waiting = list(patterns)
        lasts, held = 0, None
        offering = False
        for cycle in range(limit):
            if waiting and not offering and rng.random() >= gap:
                offering = True
                ctx.set(dut.request.p, request_of(waiting[0]))
            ctx.set(dut.request.valid, int(offering))
            ctx.set(dut.out.ready, int(rng.random() >= stall))
            for s, port in ports.items():
                ctx.set(port.req.ready, models[s].ready)
                ctx.set(port.valid, models[s].valid)
                ctx.set(port.data, models[s].data)
            signals = [dut.request.ready, dut.out.valid, dut.out.ready, dut.out.p.data,
                       dut.out.p.last, dut.fetched]
            signals += [dut.out.p.mask] if lanes4 else [dut.fetched]
            for port in ports.values():
                signals += [port.req.valid, port.req.p]
            _, _, ready, valid, taken, data, last, pulse, mask, *requests = (
                await ctx.tick().sample(*signals))
            for index, s in enumerate(ports):
                models[s].clock(requests[2 * index], requests[2 * index + 1])
            if offering and ready:
                waiting.pop(0)
                asked_at.append(cycle)
                offering = False
            if held is not None:
                assert valid and (data, last) == held, "out changed before it was taken"
            held = (data, last) if valid and not taken else None
            if valid and taken:
                beats.append((cycle, data, mask, last))
                lasts += last
            if pulse:
                fetched.append(cycle)
            if lasts == len(patterns) == len(fetched):
                return
        raise AssertionError(f"not done after {limit} cycles: {lasts} of {len(patterns)} requests")

    simulate(dut, bench, checks=True)
    return memories, beats, fetched, asked_at, models


def check(patterns, **kwargs):
    memories, beats, fetched, asked_at, models = run(patterns, **kwargs)
    at = 0
    for number, pattern in enumerate(patterns):
        expected = load_lanes(memories[Space(pattern["space"])], pattern, pattern.get("raw", 0))
        for index, lanes in enumerate(expected):
            cycle, data, _, last = beats[at]
            got = unpack(data, 32, len(lanes))
            assert got == [int(v) for v in lanes], (
                f"request {number} element {index} cycle {cycle}: {got} != {lanes} of {pattern}")
            assert last == (index == len(expected) - 1), f"request {number} element {index}: last"
            at += 1
        assert fetched[number] <= beats[at - 1][0], "data came before it was fetched"
    assert at == len(beats)
    assert fetched == sorted(set(fetched))
    return beats, asked_at, models


@pytest.mark.parametrize(("deny", "stall", "gap"), [
    (0.0, 0.0, 0.0), (0.4, 0.0, 0.0), (0.0, 0.5, 0.3), (0.3, 0.3, 0.5), (0.8, 0.1, 0.0)])
def test_random_patterns(deny, stall, gap):
    rng = np.random.default_rng([11, int(100 * deny), int(100 * stall)])
    patterns = some_raw(rng, [random_pattern(rng, CONFIG) for _ in range(60)])
    check(patterns, seed=5, deny=deny, stall=stall, gap=gap)


def test_a_reader_without_psum_gives_elements_as_they_are():
    """Extended with zeros, whatever the request says."""
    rng = np.random.default_rng(13)
    floats = [d for d in DType if "INT" not in d.name]
    patterns = [random_pattern(rng, CONFIG, spaces=(Space.SBUF,), dtypes=floats) | {"raw": 1}
                for _ in range(20)]
    signed = [random_pattern(rng, CONFIG, spaces=(Space.SBUF,), dtypes=(DType.INT8, DType.INT16))
              for _ in range(6)]
    memories, beats, *_ = run(patterns + signed, psum=False, stall=0.2)
    at = 0
    for pattern in patterns + signed:
        unsigned = {DType.INT8: DType.UINT8, DType.INT16: DType.UINT16}
        dtype = int(unsigned.get(DType(pattern["dtype"]), DType(pattern["dtype"])))
        for lanes in load_lanes(memories[Space.SBUF], pattern | {"dtype": dtype}, raw=1):
            assert unpack(beats[at][1], 32, len(lanes)) == lanes.tolist(), pattern
            at += 1
    assert at == len(beats)


@pytest.mark.parametrize("partitions", [8, 32])
def test_more_partitions(partitions):
    """Quadrants of more than one partition, SBUF that is no power of two."""
    config = CONFIG.with_(array=partitions, sbuf_bytes=6144)
    rng = np.random.default_rng(partitions)
    patterns = some_raw(rng, [random_pattern(rng, config) for _ in range(15)])
    check(patterns, config=config, deny=0.2, stall=0.2)


@pytest.mark.parametrize("dtype", [DType.INT32, DType.FP16, DType.FP8_E4M3, DType.INT8])
@pytest.mark.parametrize("space", [Space.SBUF, Space.PSUM])
def test_every_offset_and_rotation(dtype, space):
    """Every place in a word, both directions, from every quadrant."""
    patterns = []
    for offset in range(64, 64 + WORD_BYTES, dtype.itemsize):
        for step in (1, -1):
            patterns.append(make_pattern(
                CONFIG, space=space, dtype=dtype, offset=offset, dims=[(step, 9)],
                partition=len(patterns) % P, partition_count=1))
    check(patterns)


@pytest.mark.parametrize("dtype", [DType.INT32, DType.FP16, DType.FP8_E4M3, DType.INT8])
@pytest.mark.parametrize("space", [Space.SBUF, Space.PSUM])
def test_first_and_last_bytes(dtype, space):
    end = (CONFIG.sbuf_bytes if space == Space.SBUF else CONFIG.psum_bytes) - dtype.itemsize
    check([
        make_pattern(CONFIG, space=space, dtype=dtype, offset=end, dims=[(1, 1)]),
        make_pattern(CONFIG, space=space, dtype=dtype, offset=0, dims=[(1, 1)]),
        make_pattern(CONFIG, space=space, dtype=dtype, offset=end, dims=[(-1, 11)]),
        make_pattern(CONFIG, space=space, dtype=dtype, offset=0, dims=[(end // dtype.itemsize, 2)]),
        make_pattern(CONFIG, space=space, dtype=dtype, offset=end,
                     dims=[(0, 3), (-(end // dtype.itemsize), 2)]),
    ])


@pytest.mark.parametrize(("step", "dtype", "space"), [
    (1, DType.FP32, Space.SBUF), (1, DType.BF16, Space.SBUF), (4, DType.FP32, Space.SBUF),
    (8, DType.BF16, Space.SBUF), (-17, DType.FP32, Space.SBUF), (0, DType.FP32, Space.SBUF),
    (1, DType.FP32, Space.PSUM), (3, DType.FP32, Space.PSUM), (1, DType.BF16, Space.PSUM),
    (1, DType.UINT8, Space.SBUF), (16, DType.FP8_E3M4, Space.SBUF), (-4, DType.INT8, Space.PSUM)])
def test_one_element_a_cycle(step, dtype, space):
    """Also when each element is a new word, and over the borders of requests."""
    count, requests = 16, 6
    offset = -step * dtype.itemsize * (count - 1) if step < 0 else 0
    pattern = make_pattern(CONFIG, space=space, dtype=dtype, offset=offset, dims=[(step, count)])
    beats, asked_at, models = check([pattern] * requests)
    assert beats[0][0] - asked_at[0] == WIDENED_LATENCY
    assert beats[-1][0] - beats[0][0] == count * requests - 1, "a bubble"
    word = WORD_BYTES if space == Space.SBUF else PSUM_WORD_BYTES
    per_word = max(1, word // dtype.itemsize // abs(step)) if step else count
    assert models[space].taken == requests * -(-count // per_word), "words fetched twice"


def test_alternating_memories_without_a_bubble():
    sbuf = make_pattern(CONFIG, space=Space.SBUF, dtype=DType.FP32, offset=32, dims=[(5, 3)])
    psum = make_pattern(CONFIG, space=Space.PSUM, dtype=DType.FP32, offset=8, dims=[(2, 2)])
    beats, _, _ = check([sbuf, psum] * 8)
    assert beats[-1][0] - beats[0][0] == 5 * 8 - 1


def test_single_elements_without_a_bubble():
    """[P, 1] operands: one element a request."""
    one = {"space": Space.SBUF, "dtype": DType.BF16, "dims": [(1, 1)]}
    beats, _, _ = check([make_pattern(CONFIG, offset=2 * i, **one) for i in range(20)])
    assert beats[-1][0] - beats[0][0] == 19


def test_latency_and_rate_without_widening():
    pattern = make_pattern(CONFIG, space=Space.SBUF, dtype=DType.FP8_E4M3, offset=3, dims=[(1, 40)])
    _, beats, _, asked_at, _ = run([pattern] * 3, psum=False)
    assert beats[0][0] - asked_at[0] == LATENCY
    assert beats[-1][0] - beats[0][0] == 119


def test_bytes_and_words_in_turn_without_a_bubble():
    """Words full of single bytes, then a new word for each element."""
    many = make_pattern(CONFIG, space=Space.SBUF, dtype=DType.FP8_E5M2, offset=1, dims=[(1, 100)])
    few = make_pattern(CONFIG, space=Space.SBUF, dtype=DType.FP32, offset=0, dims=[(4, 40)])
    beats, _, _ = check([many, few] * 3)
    assert beats[-1][0] - beats[0][0] == 140 * 3 - 1


def test_lanes4_cannot_widen():
    with pytest.raises(ValueError, match="cannot widen"):
        Reader(CONFIG, psum=False, lanes4=True, widens=True)


def quads(pattern):
    """Beats of a lanes4 reader: numbers of the elements in each."""
    offsets, row = element_offsets(pattern), pattern["count"][0]
    size = DType(pattern["dtype"]).itemsize
    beats, index = [], 0
    while index < len(offsets):
        left = row - index % row
        aligned = size < 4 and offsets[index] % (4 * size) == 0
        four = pattern["step"][0] == 1 and left >= 4 and aligned
        beats.append(list(range(index, index + (4 if four else 1))))
        index += 4 if four else 1
    return beats


def check_quads(patterns, **kwargs):
    memories, beats, fetched, _, _ = run(patterns, lanes4=True, **kwargs)
    at = 0
    for pattern in patterns:
        expected = load_lanes(memories[Space.SBUF], pattern, raw=1)
        groups = quads(pattern)
        for group in groups:
            cycle, data, mask, last = beats[at]
            assert mask == (0b1111 if len(group) == 4 else 0b0001)
            assert last == (group is groups[-1])
            for p, lane in enumerate(unpack(data, 64, P)):
                got = unpack(lane, 16, 4) if len(group) == 4 else [lane & 0xFFFFFFFF]
                assert got == [int(expected[e][p]) for e in group], f"cycle {cycle} lane {p}"
            at += 1
    assert at == len(beats)
    assert len(fetched) == len(patterns)
    return beats


WEIGHTS = (DType.BF16, DType.FP8_E4M3, DType.UINT8, DType.UINT16, DType.FP32, DType.TF32)


@pytest.mark.parametrize(("deny", "stall"), [(0.0, 0.0), (0.4, 0.3)])
def test_four_lanes_random(deny, stall):
    rng = np.random.default_rng(3)
    patterns = [random_pattern(rng, CONFIG, spaces=(Space.SBUF,), dtypes=WEIGHTS)
                for _ in range(40)]
    patterns += [
        make_pattern(CONFIG, space=Space.SBUF, dtype=dtype, offset=dtype.itemsize * offset,
                     dims=[(1, count), (step, 2)])
        for dtype in (DType.BF16, DType.FP8_E4M3FN)
        for offset in range(8) for count in (1, 3, 4, 5, 8, 11) for step in (count, 21)]
    check_quads(patterns, deny=deny, stall=stall)


@pytest.mark.parametrize("dtype", [DType.BF16, DType.FP8_E5M2])
def test_four_lanes_rate(dtype):
    """Four elements each beat, without a bubble, also over the borders of requests."""
    pattern = make_pattern(CONFIG, space=Space.SBUF, dtype=dtype, offset=16, dims=[(1, 32)])
    beats = check_quads([pattern] * 4)
    assert len(beats) == 32
    assert beats[-1][0] - beats[0][0] == 31


def test_pairs_of_bytes_travel_four_at_a_time():
    """A pair is an element of 2 bytes, whatever the dtype of its halves."""
    halves = make_pattern(CONFIG, space=Space.SBUF, dtype=DType.UINT16, offset=8, dims=[(1, 9)])
    memories, beats, *_ = run([halves | {"dtype": int(DType.FP8_E4M3)}], lanes4=True)
    expected = load_lanes(memories[Space.SBUF], halves, raw=1)
    assert [mask for _, _, mask, _ in beats] == [15, 15, 1]
    lane = [unpack(unpack(data, 64, P)[2], 16, 4) for _, data, _, _ in beats]
    assert (lane[0] + lane[1] + lane[2][:1]) == expected[:, 2].tolist()
