"""Writer against a numpy model: every pattern and dtype, both memories, stalls and denials."""

import numpy as np
import pytest

from golden.engines.random import RESET_STATE, Generators
from hdl.memory.writer import StateAccess, Writer
from isa.dtypes import NARROW, DType
from isa.fields import Space
from isa.geometry import PSUM_WORD_BYTES, WORD_BYTES, preset
from verif.banked_memory_bench import simulate
from verif.memory_bench import (
    element_offsets,
    make_pattern,
    narrow,
    pack,
    random_pattern,
    store_lanes,
    store_word,
    unpack,
)

CONFIG = preset("tiny")
P = CONFIG.partitions
LATENCY = 4
SPECIALS = (
    0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF,
    0xFF7FFFFF, 0x7F7F8000, 0x7F7F7FFF, 0x00000001, 0x00008000, 0x00018000, 0x0000FFFF, 0x007FFFFF,
    0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001,
)


def random_values(rng, count, partitions=P):
    """FP32 bits [count, P]: all codes, often specials."""
    shape = count, partitions
    values = rng.integers(0, 1 << 32, shape, dtype=np.uint64)
    special = rng.choice(np.array(SPECIALS, dtype=np.uint64), shape)
    return np.where(rng.random(shape) < 0.3, special, values)


def store(memory, generators, pattern, options, values):
    """What a request does to the expected memory and to the generators."""
    first, count = pattern["partition"], pattern["partition_count"]
    state = StateAccess(options.get("state", StateAccess.NONE))
    random = None
    if state == StateAccess.SET:
        generators.set(first, np.ascontiguousarray(values.T[:count], np.uint32))
        return
    if state == StateAccess.GET:
        values = np.zeros_like(values)
        values[:, :count] = generators.get(first, count).T
    if options.get("stochastic"):
        random = np.zeros(values.shape, np.uint32)
        random[:, :count] = generators.draw(first, count, len(values)).T
    raw = options.get("raw", 0) or state == StateAccess.GET
    store_lanes(memory, pattern, values, raw, options.get("sat", 0), random)


def run(requests, *, seed=0, deny=0.0, stall=0.0, limit=20000, config=CONFIG):
    """Write (pattern, options, values) requests; returns the cycles of writes, done and elements.

    options: members of the request; values: what is in the lanes, [elements, P].
    """
    rng = np.random.default_rng(seed)
    dut = Writer(config)
    memories = {
        Space.SBUF: rng.integers(0, 256, (config.partitions, config.sbuf_bytes), dtype=np.uint8),
        Space.PSUM: rng.integers(0, 256, (config.partitions, config.psum_bytes), dtype=np.uint8),
    }
    expected = {space: memory.copy() for space, memory in memories.items()}
    generators = Generators(config.partitions)
    for pattern, options, values in requests:
        store(expected[Space(pattern["space"])], generators, pattern, options, values)
    ports = {Space.SBUF: (dut.sbuf, WORD_BYTES), Space.PSUM: (dut.psum, PSUM_WORD_BYTES)}
    writes, done, takes = [], [], []

    async def bench(ctx):
        orders = list(requests)
        elements = [pack(lanes, 32) for _, _, values in requests for lanes in values]
        offering, giving = False, False
        held = dict.fromkeys(ports)
        for cycle in range(limit):
            if orders and not offering and rng.random() >= stall:
                offering = True
                ctx.set(dut.request.p, {"pattern": orders[0][0], **orders[0][1]})
            if elements and not giving and rng.random() >= stall:
                giving = True
                ctx.set(dut.i.p.data, elements[0])
            ctx.set(dut.request.valid, int(offering))
            ctx.set(dut.i.valid, int(giving))
            for port, _ in ports.values():
                ctx.set(port.ready, int(rng.random() >= deny))
            signals = [dut.request.ready, dut.i.ready, dut.done]
            for port, _ in ports.values():
                signals += [port.valid, port.ready, port.p.word, port.p.partitions, port.p.bytes,
                            port.p.data]
            _, _, request_ready, i_ready, pulse, *samples = await ctx.tick().sample(*signals)
            if offering and request_ready:
                orders.pop(0)
                offering = False
            if giving and i_ready:
                elements.pop(0)
                takes.append(cycle)
                giving = False
            if pulse:
                done.append(cycle)
                if len(done) == len(requests):
                    return
            for number, (space, (_, word_bytes)) in enumerate(ports.items()):
                valid, ready, *payload = samples[6 * number:6 * number + 6]
                if held[space] is not None:
                    assert valid and payload == held[space], "write changed before it was taken"
                held[space] = payload if valid and not ready else None
                if valid and ready:
                    writes.append(cycle)
                    store_word(memories[space], word_bytes, *payload)
        raise AssertionError(f"not done after {limit} cycles: {len(done)} of {len(requests)}")

    simulate(dut, bench, checks=True)
    for space, memory in memories.items():
        wrong = np.argwhere(memory != expected[space])
        assert len(wrong) == 0, f"{space.name}: {len(wrong)} bytes differ, first {wrong[0]}"
    assert done == sorted(set(done))
    assert done[-1] == writes[-1] + 1
    return writes, done, takes


def request(rng, pattern, partitions=P, **options):
    return pattern, options, random_values(rng, len(element_offsets(pattern)), partitions)


def any_request(rng, config=CONFIG):
    """A random pattern of any dtype with legal options."""
    pattern = random_pattern(rng, config)
    options = {"raw": int(rng.integers(2))}
    if DType(pattern["dtype"]) in NARROW and not options["raw"]:
        options |= {"sat": int(rng.integers(2)), "stochastic": int(rng.integers(2))}
    return request(rng, pattern, config.partitions, **options)


@pytest.mark.parametrize(("deny", "stall"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.3, 0.3)])
def test_random_patterns(deny, stall):
    rng = np.random.default_rng([23, int(10 * deny), int(10 * stall)])
    run([any_request(rng) for _ in range(60)], deny=deny, stall=stall)


@pytest.mark.parametrize("partitions", [8, 32])
def test_more_partitions(partitions):
    """Quadrants of more than one partition, SBUF that is no power of two."""
    config = CONFIG.with_(array=partitions, sbuf_bytes=6144)
    rng = np.random.default_rng(partitions)
    run([any_request(rng, config) for _ in range(15)], config=config, deny=0.2, stall=0.2)


@pytest.mark.parametrize("dtype", [DType.TF32, DType.FP16, DType.FP8_E4M3FN, DType.INT8])
@pytest.mark.parametrize("space", [Space.SBUF, Space.PSUM])
def test_every_offset_and_rotation(dtype, space):
    rng = np.random.default_rng(1)
    requests = []
    for offset in range(64, 64 + WORD_BYTES, dtype.itemsize):
        for step in (1, -1):
            requests.append(request(rng, make_pattern(
                CONFIG, space=space, dtype=dtype, offset=offset, dims=[(step, 9)],
                partition=len(requests) % P, partition_count=1)))
    run(requests)


@pytest.mark.parametrize("dtype", [DType.TF32, DType.FP16, DType.FP8_E4M3FN, DType.INT8])
@pytest.mark.parametrize("space", [Space.SBUF, Space.PSUM])
def test_first_and_last_bytes(dtype, space):
    rng = np.random.default_rng(2)
    end = (CONFIG.sbuf_bytes if space == Space.SBUF else CONFIG.psum_bytes) - dtype.itemsize
    run([request(rng, make_pattern(CONFIG, space=space, dtype=dtype, offset=offset, dims=dims))
         for offset, dims in [(end, [(1, 1)]), (0, [(1, 1)]), (end, [(-1, 11)]),
                              (end, [(0, 3), (-(end // dtype.itemsize), 2)])]])


def test_step_zero_keeps_the_last():
    rng = np.random.default_rng(4)
    for dtype in (DType.FP32, DType.BF16, DType.UINT8):
        for space in (Space.SBUF, Space.PSUM):
            kinds = [(0, 7)], [(1, 3), (0, 4)], [(0, 3), (1, 5)], [(-1, 4), (0, 2), (0, 2)]
            run([request(rng, make_pattern(CONFIG, space=space, dtype=dtype, offset=40, dims=dims))
                 for dims in kinds])


@pytest.mark.parametrize(("step", "dtype", "space"), [
    (1, DType.FP32, Space.SBUF), (1, DType.BF16, Space.SBUF), (4, DType.FP32, Space.SBUF),
    (-9, DType.BF16, Space.SBUF), (0, DType.FP32, Space.SBUF), (1, DType.FP32, Space.PSUM),
    (3, DType.BF16, Space.PSUM), (1, DType.INT8, Space.SBUF), (16, DType.FP8_E5M2, Space.SBUF),
    (-1, DType.UINT8, Space.PSUM)])
def test_one_element_a_cycle(step, dtype, space):
    """Also when each element needs its own write, and over the borders of requests."""
    rng = np.random.default_rng(6)
    count, number = 16, 6
    offset = -step * dtype.itemsize * (count - 1) if step < 0 else 0
    pattern = make_pattern(CONFIG, space=space, dtype=dtype, offset=offset, dims=[(step, count)])
    writes, _, takes = run([request(rng, pattern) for _ in range(number)])
    assert takes[-1] - takes[0] == count * number - 1, "a bubble"
    assert writes[-1] - takes[-1] == LATENCY
    word = WORD_BYTES if space == Space.SBUF else PSUM_WORD_BYTES
    per_word = max(1, word // dtype.itemsize // abs(step)) if step else count
    assert len(writes) == number * -(-count // per_word), "neighbours not merged"


def test_a_denied_write_does_not_stop_merging():
    """While a finished word waits, the next one gathers."""
    rng = np.random.default_rng(7)
    pattern = make_pattern(CONFIG, space=Space.SBUF, dtype=DType.BF16, offset=0, dims=[(1, 256)])
    _, _, takes = run([request(rng, pattern)], deny=0.5)
    assert takes[-1] - takes[0] < 255 + 16


def test_narrowing_of_specials():
    """Every special in every lane, narrowed and raw."""
    values = np.array([np.roll(SPECIALS, p) for p in range(P)]).T
    pattern = make_pattern(CONFIG, space=Space.SBUF, dtype=DType.BF16, offset=2,
                           dims=[(1, len(SPECIALS))])
    run([(pattern, {}, values)])
    run([(pattern, {"raw": 1}, values)])
    assert [narrow(v) for v in (0x7F7F8000, 0x3F808000, 0x3F818000, 0x7F800001)] == [
        0x7F80, 0x3F80, 0x3F82, 0x7FC0]
    assert unpack(pack([1, 2, 3], 32), 32, 3) == [1, 2, 3]


def wide(values, space=Space.SBUF, **options):
    """Words of all lanes alike as one row of requests: (pattern, options, values)."""
    dtype = options.pop("dtype", DType.UINT32)
    pattern = make_pattern(CONFIG, space=space, dtype=dtype, offset=16, dims=[(1, len(values))],
                           **options.pop("place", {}))
    return pattern, options, np.repeat(np.array(values, np.uint64)[:, None], P, axis=1)


def test_fp8_e4m3fn_beyond_its_range_saturated_and_not():
    """464 is a tie to 448; 465 and infinity are beyond."""
    values = np.array([464, 465, np.inf, -np.inf, np.nan], np.float32).view(np.uint32)
    for sat in (0, 1):
        run([wide(values, dtype=DType.FP8_E4M3FN, sat=sat)])


def test_integers_round_to_even_and_saturate():
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 127.5, -129, 255.5, 3e9, -3e9, np.inf, -np.inf, np.nan]
    values = np.array(values, np.float32).view(np.uint32)
    for dtype in DType:
        if "INT" in dtype.name:
            run([wide(values, dtype=dtype)])


def test_tf32_rounds_and_has_one_nan():
    run([wide([0x3F801000, 0x3F803000, 0x3F801001, 0x7F7FF000, 0x7F800001, 0xFF800FFF, 0xFF800000],
              dtype=DType.TF32)])


@pytest.mark.parametrize(("dtype", "cut"), [(DType.TF32, 13), (DType.BF16, 16), (DType.FP16, 13)])
def test_every_bit_that_is_cut_counts(dtype, cut):
    """A tie of an even and of an odd number, and what differs from it in one bit."""
    ties = [(0x3F800000 | number << cut) + (1 << (cut - 1)) for number in (0, 1)]
    bits = [0, *(1 << bit for bit in range(cut - 1))]
    run([wide([tie + sign * bit for tie in ties for bit in bits for sign in (1, -1)],
              dtype=dtype)])


STATE = (1, 2, 3, 4, 5, 6)


def test_generators_start_from_the_state_of_the_paper():
    run([wide([0xFFFFFFFF] * 6, state=StateAccess.GET)])
    generators = Generators(1)
    assert generators.get(0, 1).tolist() == [list(RESET_STATE)]


@pytest.mark.parametrize(("deny", "stall"), [(0.0, 0.0), (0.4, 0.4)])
def test_generators_step_once_an_element_in_the_partitions_written(deny, stall):
    """Also for values that need no rounding; states are set and read back between."""
    rng = np.random.default_rng(9)
    some = {"partition": 1, "partition_count": 2}
    one = {"partition": 2, "partition_count": 1}
    exact = [0x3F800000] * 5

    def get(offset, space=Space.SBUF):
        return request(rng, make_pattern(CONFIG, space=space, dtype=DType.UINT32, offset=offset,
                                         dims=[(1, 6)]), state=StateAccess.GET)

    def rounded(dtype, **place):
        return request(rng, make_pattern(CONFIG, space=Space.SBUF, dtype=dtype, offset=512,
                                         dims=[(1, 7)], **place), stochastic=1)

    run([
        wide(exact, dtype=DType.BF16, stochastic=1, place=some), get(64), get(128),
        wide(STATE, state=StateAccess.SET, place=one), get(192, Space.PSUM),
        rounded(DType.FP8_E4M3), rounded(DType.BF16, **some), get(256),
        rounded(DType.FP16, **one), wide(STATE[::-1], state=StateAccess.SET),
        rounded(DType.FP8_E5M2), get(320), request(rng, wide(STATE)[0]), get(384),
    ], deny=deny, stall=stall)


def test_setting_a_state_writes_nothing_and_is_done_in_order():
    rng = np.random.default_rng(10)
    before = request(rng, make_pattern(
        CONFIG, space=Space.SBUF, dtype=DType.FP32, offset=16, dims=[(1, 8)]))
    _, done, _ = run([before, wide(STATE, state=StateAccess.SET),
                      wide(STATE, space=Space.PSUM, state=StateAccess.SET), before], deny=0.3)
    assert len(done) == 4
