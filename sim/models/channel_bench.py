"""cocotb tests of channel.sv by itself, run by tests/sim/test_channel.py.

Inputs change and outputs are read at the falling edge.  A symbol set before a rising edge is
received behind it, `delay` + `skew` cycles later.
"""

import os
import random
from collections import Counter

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from isa.link import SKIP_WORD
from sim.channel import RANDOM, Channel, Wires, inputs

LANES, BITS = 4, 32
MASK = (1 << BITS) - 1
ALL = (1 << LANES) - 1


class Log:
    """One direction: `taken`: (cycle, enable, symbols) of each step; `got`: rows of (valid mask,
    symbols) for each cycle.
    """

    def __init__(self):
        self.taken = []
        self.got = []

    def lane(self, lane):
        """Symbols that the lane delivered, in order."""
        return [row[1][lane] for row in self.got if row[0] >> lane & 1]


def _split(word):
    return [word >> BITS * lane & MASK for lane in range(LANES)]


def _join(symbols):
    return sum(symbol << BITS * lane for lane, symbol in enumerate(symbols))


def _drive(dut, channel, seed):
    for name, wires in (("ab", channel.ab), ("ba", channel.ba)):
        values = {"seed": seed, **wires.numbers()}
        assert values.keys() == inputs(LANES).keys()
        for key, value in values.items():
            getattr(dut, f"{name}_{key}").value = value


async def start(dut, channel, *, seed=1):
    """Reset with the settings of a channel."""
    Clock(dut.clk, 2, unit="ns").start()
    dut.rst.value = 1
    _drive(dut, channel, seed)
    for side in "ab":
        for name in ("tx_data", "tx_enable", "rx_slip"):
            getattr(dut, f"{side}_{name}").value = 0
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0


async def run(dut, cycles, source, *, enable=None, slip=None):
    """Cycles of traffic in both directions: {"ab": Log, "ba": Log}.

    source: function (direction) -> symbols of the next step; enable, slip: functions of the cycle.
    """
    logs = {"ab": Log(), "ba": Log()}
    for cycle in range(cycles):
        for (tx, rx), log in zip(("ab", "ba"), logs.values(), strict=True):
            lanes = enable(cycle) if enable else ALL
            if getattr(dut, f"{tx}_tx_ready").value == 1:
                symbols = source(tx + rx)
                log.taken.append((cycle, lanes, symbols))
                getattr(dut, f"{tx}_tx_data").value = _join(symbols)
                getattr(dut, f"{tx}_tx_enable").value = lanes
            getattr(dut, f"{rx}_rx_slip").value = slip(cycle) if slip else 0
        await FallingEdge(dut.clk)
        for rx, log in zip("ba", logs.values(), strict=True):
            data = _split(getattr(dut, f"{rx}_rx_data").value.to_unsigned())
            log.got.append((getattr(dut, f"{rx}_rx_valid").value.to_unsigned(), data))
    return logs


def noise(generator):
    """A source of random symbols."""
    return lambda _: [generator.getrandbits(BITS) for _ in range(LANES)]


def generator():
    return random.Random(int(os.environ["COCOTB_RANDOM_SEED"]))


def matches(log, lane, delay, *, gaps=False):
    """The lane delivers exactly what was taken, `delay` cycles later, valid where it was driven."""
    due = {cycle + delay: (lanes >> lane & 1, data[lane]) for cycle, lanes, data in log.taken}
    for cycle, (valid, data) in enumerate(log.got):
        driven, symbol = due.get(cycle, (0, 0))
        assert valid >> lane & 1 == driven, (lane, cycle)
        assert not driven or data[lane] == symbol, (lane, cycle, hex(data[lane]), hex(symbol))


@cocotb.test()
async def delay_and_skew(dut):
    """Each lane by itself, each direction by itself, idle lanes not valid."""
    rng = generator()
    there, back = Wires(delay=3, skew=(0, 7, 1, 40)), Wires(delay=300, skew=(255, 0, 2, 1))
    await start(dut, Channel(there, back))
    logs = await run(dut, 900, noise(rng), enable=lambda _: rng.getrandbits(LANES))
    for log, wires in zip(logs.values(), (there, back), strict=True):
        assert len(log.taken) >= 899
        for lane in range(LANES):
            matches(log, lane, wires.delay + wires.skew[lane])


@cocotb.test()
async def longest_delay(dut):
    await start(dut, Channel(Wires(delay=4096, skew=(4096, 0, 0, 1)), Wires()))
    logs = await run(dut, 8400, noise(generator()))
    for lane, delay in enumerate((8192, 4096, 4096, 4097)):
        matches(logs["ab"], lane, delay)
        matches(logs["ba"], lane, 0)


@cocotb.test()
async def bit_errors(dut):
    """As many as the rate says, single bits, at all places, on all lanes; the counter is exact."""
    cycles, rate = 2500, 0.02
    await start(dut, Channel(Wires(error_rate=int(RANDOM * rate)), Wires()))
    logs = await run(dut, cycles, noise(generator()))
    places = Counter()
    for (_, _, sent), (_, got) in zip(
        logs["ab"].taken, logs["ab"].got[-len(logs["ab"].taken) :], strict=True
    ):
        for lane in range(LANES):
            difference = sent[lane] ^ got[lane]
            if difference:
                assert difference & difference - 1 == 0
                places[lane, difference.bit_length() - 1] += 1
    expected = LANES * cycles * rate
    assert abs(places.total() - expected) < 5 * expected**0.5, places.total()
    assert dut.ab_errors.value.to_unsigned() == places.total()
    assert {lane for lane, _ in places} == set(range(LANES))
    assert len({bit for _, bit in places}) > 25
    assert dut.ba_errors.value.to_unsigned() == 0
    matches(logs["ba"], 0, 0)


@cocotb.test()
async def bursts(dut):
    """Errors stay within the length of a burst, reach over symbols, and are random inside."""
    length = 70
    await start(dut, Channel(Wires(error_rate=RANDOM // 300, error_burst=length), Wires()))
    logs = await run(dut, 3000, noise(generator()))
    taken, got = logs["ab"].taken, logs["ab"].got[-len(logs["ab"].taken) :]
    spans, flipped = [], 0
    for lane in range(LANES):
        bits = []
        for step, ((_, _, sent), (_, found)) in enumerate(zip(taken, got, strict=True)):
            difference = sent[lane] ^ found[lane]
            bits += [BITS * step + i for i in range(BITS) if difference >> i & 1]
        first = last = None
        for bit in bits:
            if first is None or bit - last > length:
                if first is not None:
                    spans.append(last - first + 1)
                first = bit
            last = bit
        flipped += len(bits)
    errors = dut.ab_errors.value.to_unsigned()
    assert errors > 20 and 0.7 * errors <= len(spans) + LANES
    assert sum(span > BITS for span in spans) > len(spans) // 2
    assert sum(span > length for span in spans) <= len(spans) // 4  # two that touch
    assert 0.3 * length * errors < flipped < 0.7 * length * errors


@cocotb.test()
async def lanes_changed(dut):
    """Polarity, reversal, stuck, silent and noisy lanes, switched while data flow."""
    rng = generator()
    await start(dut, Channel())
    for wires, change in (
        (Wires(invert=(0, 1, 0, 1)), lambda d: [d[0], d[1] ^ MASK, d[2], d[3] ^ MASK]),
        (Wires(reverse=1), lambda d: d[::-1]),
        (Wires(stuck_zero=(0, 0, 1)), lambda d: [d[0], d[1], 0, d[3]]),
        (Wires(stuck_one=(1,)), lambda d: [MASK, *d[1:]]),
        (Wires(silent=(0, 1)), lambda d: [d[0], None, d[2], d[3]]),
        (Wires(silent=(1, 1, 1, 1)), lambda d: [None] * 4),
    ):
        _drive(dut, Channel(wires, Wires()), 1)
        logs = await run(dut, 40, noise(rng))
        for (_, _, sent), (valid, got) in zip(
            logs["ab"].taken[-30:], logs["ab"].got[-30:], strict=True
        ):
            wanted = change(sent)
            assert [got[i] if valid >> i & 1 else None for i in range(LANES)] == wanted, wires
        for lane in range(LANES):
            assert logs["ba"].lane(lane)[-30:] == [s[2][lane] for s in logs["ba"].taken[-30:]]
    _drive(dut, Channel(Wires(noise=(0, 0, 1), silent=(1,)), Wires()), 1)
    logs = await run(dut, 60, noise(rng), enable=lambda _: 0)
    assert all(valid == 4 for valid, _ in logs["ab"].got[2:])
    assert len(set(logs["ab"].lane(2))) > 55


@cocotb.test()
async def slip(dut):
    """Offsets are those asked for; a slip moves the boundary of its lane by one bit."""
    rng = generator()
    offsets = (0, 1, 31, 17)
    await start(dut, Channel(Wires(offset=offsets), Wires()))
    await run(dut, 2, noise(rng))
    for turn in range(34):
        logs = await run(dut, 6, noise(rng), slip=lambda c: 0b1000 if c == 0 else 0)
        for lane, offset in enumerate(offsets):
            late = (offset - turn - 1) % BITS if lane == 3 else offset
            sent = [data[lane] for _, _, data in logs["ab"].taken]
            stream = sum(symbol << BITS * i for i, symbol in enumerate(sent))
            for place in (4, 5):
                wanted = stream >> BITS * place - late & MASK
                assert logs["ab"].got[place][1][lane] == wanted, (turn, lane, place)


@cocotb.test()
async def gaps(dut):
    """Without an elastic buffer a gap of tx is a gap of all lanes, each at its time."""
    skew = (0, 2, 9, 5)
    await start(dut, Channel(Wires(delay=5, skew=skew, tx_gap=RANDOM // 10), Wires()))
    logs = await run(dut, 1500, noise(generator()))
    assert 1250 < len(logs["ab"].taken) < 1440
    for lane in range(LANES):
        matches(logs["ab"], lane, 5 + skew[lane])


def with_skips(rng, every, *, idle=()):
    """A source with a skip step in every `every`; idle lanes send zeros."""
    counts = {"ab": 0, "ba": 0}

    def source(direction):
        counts[direction] += 1
        skip = counts[direction] % every == 0
        symbols = [SKIP_WORD if skip else rng.getrandbits(BITS) for _ in range(LANES)]
        return [0 if lane in idle else symbol for lane, symbol in enumerate(symbols)]

    return source


async def _elastic(dut, wires, idle=()):
    await start(dut, Channel(wires, wires))
    logs = await run(dut, 4000, with_skips(generator(), 40, idle=idle))
    for lane in set(range(LANES)) - set(idle):
        sent = [data[lane] for _, _, data in logs["ab"].taken if data[lane] != SKIP_WORD]
        got = [symbol for symbol in logs["ab"].lane(lane) if symbol != SKIP_WORD]
        assert len(got) > 3500 and sent[: len(got)] == got, lane
        # All lanes lose or repeat the same skip steps: their data stay as far apart as they were.
        if idle == ():
            skips = [i for i, symbol in enumerate(logs["ab"].lane(lane)) if symbol == SKIP_WORD]
            others = [i for i, s in enumerate(logs["ab"].lane(0)) if s == SKIP_WORD]
            common = min(len(skips), len(others))
            assert skips[:common] == others[:common]
    assert dut.ab_overflows.value == 0
    return dut.ab_skips_dropped.value.to_unsigned(), dut.ab_skips_repeated.value.to_unsigned()


@cocotb.test()
async def elastic_slow_receiver(dut):
    """The receiver is 1 % slower: skip steps are left out, nothing else is."""
    wires = Wires(elastic=1, delay=30, skew=(0, 5, 1, 2), rx_gap=RANDOM // 100)
    dropped, repeated = await _elastic(dut, wires)
    assert 15 < dropped < 80 and repeated == 0


@cocotb.test()
async def elastic_slow_sender(dut):
    """The sender is 1 % slower: skip steps come twice; and with half of the lanes in use."""
    wires = Wires(elastic=1, delay=30, skew=(0, 5, 1, 2), tx_gap=RANDOM // 100)
    dropped, repeated = await _elastic(dut, wires, idle=(2, 3))
    assert 15 < repeated < 80 and dropped == 0


@cocotb.test()
async def overflow(dut):
    """Without skip steps a slow receiver loses whole steps in the end, and it is counted."""
    await start(dut, Channel(Wires(elastic=1, rx_gap=RANDOM // 4), Wires()))
    logs = await run(dut, 1500, noise(generator()))
    lost = dut.ab_overflows.value.to_unsigned()
    assert lost > 100 and dut.ab_skips_dropped.value == 0
    for lane in range(LANES):
        assert _subsequence(logs["ab"].lane(lane), [d[lane] for _, _, d in logs["ab"].taken])


@cocotb.test()
async def drops(dut):
    """A lane loses symbols by itself: what comes is what was sent without them, then earlier."""
    await start(dut, Channel(Wires(delay=200, drop_rate=RANDOM // 400), Wires()))
    logs = await run(dut, 3000, noise(generator()))
    drops_seen = dut.ab_drops.value.to_unsigned()
    assert all(valid == ALL for valid, _ in logs["ab"].got[210:])
    missing = 0
    for lane in range(LANES):
        sent = [data[lane] for _, _, data in logs["ab"].taken]
        got = logs["ab"].lane(lane)
        assert _subsequence(got, sent)
        missing += sent.index(got[-1]) + 1 - len(got)
    assert 10 < drops_seen == missing < 60


@cocotb.test()
async def seeds(dut):
    """The same seed gives the same errors, another seed others; the directions differ."""
    found = []
    for seed in (1, 1, 2):
        await start(
            dut, Channel(Wires(error_rate=RANDOM // 20), Wires(error_rate=RANDOM // 20)), seed=seed
        )
        logs = await run(dut, 200, lambda _: [0] * LANES)
        found.append([[row[1] for row in log.got[2:]] for log in logs.values()])
    assert found[0] == found[1] != found[2]
    assert found[0][0] != found[0][1]


def _subsequence(part, whole):
    rest = iter(whole)
    return all(symbol in rest for symbol in part)
