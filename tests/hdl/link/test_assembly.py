# amaranth: UnusedElaboratable=no
"""Assembly: what is committed comes out, whole, in order, in time; nothing else does."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.assembly import Assembly
from hdl.link.framer import VERDICT_CYCLES
from isa.link import GRANULE_BYTES, LONG_GRANULES, NO_PACKET, SHORT_GRANULES, LinkConfig
from verif.receiver_bench import delivered, outputs_of

BEATS = [16, 32, 64]


def run(link, flits, rng, *, gaps=0.0, clear_at=None):
    """Send flits (long, accepted, {vc, first, valid, poison}, bytes); delivered beats by cycle."""
    dut = Assembly(link)
    outputs = outputs_of(dut)
    size, cycles, verdicts = link.beat_bytes, [], {}
    for long, accepted, fields, body in flits:
        for low in range(0, len(body), size):
            while rng.random() < gaps:
                cycles.append(None)
            cycles.append(body[low : low + size])
        if accepted:
            verdicts[len(cycles) - 1 + VERDICT_CYCLES] = {"is_long": long, **fields}
    trace = []

    async def bench(ctx):
        for cycle, beat in enumerate([*cycles, *[None] * (link.long_beats + 10)]):
            ctx.set(dut.i_valid, beat is not None)
            ctx.set(dut.i_data, int.from_bytes(beat or b"", "little"))
            ctx.set(dut.commit, cycle in verdicts)
            ctx.set(dut.clear, cycle == clear_at)
            for name, value in verdicts.get(cycle, {}).items():
                ctx.set(getattr(dut, name), value)
            _, _, *values = await ctx.tick().sample(*outputs.values())
            trace.append(dict(zip(outputs, values, strict=True)))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return delivered(trace, link), verdicts


def random_flits(rng, count, share_long, share_accepted, full=False):
    flits = []
    for _ in range(count):
        long = rng.random() < share_long
        room = LONG_GRANULES if long else SHORT_GRANULES
        valid = room if full else rng.randint(1, room)
        first = rng.choice([NO_PACKET, rng.randrange(valid)])
        fields = {"vc": rng.randrange(8), "first": first, "valid": valid,
                  "poison": rng.randrange(2)}  # fmt: skip
        body = rng.randbytes(GRANULE_BYTES * (room + 1))
        flits.append((long, rng.random() < share_accepted, fields, body))
    return flits


def expected(flits):
    return [
        (fields["vc"], body[: GRANULE_BYTES * fields["valid"]], fields["first"], fields["poison"])
        for _, accepted, fields, body in flits
        if accepted
    ]


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize(("share_long", "accepted", "gaps"),
                         [(0.1, 1, 0), (0.5, 1, 0), (0.5, 0.6, 0), (0.5, 0.8, 0.3)])  # fmt: skip
def test_random(beat_bytes, share_long, accepted, gaps):
    """Any mix, full and partly filled flits, some of them dropped."""
    link, rng = LinkConfig(beat_bytes=beat_bytes, lanes=4), random.Random(beat_bytes)
    flits = random_flits(rng, 40, share_long, accepted) + random_flits(rng, 20, 0.5, 1, full=True)
    got, _ = run(link, flits, rng, gaps=gaps)
    assert [flit[:4] for flit in got] == expected(flits)


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize("shorts", [1, 9, 10, 11, 30])
def test_long_then_shorts(beat_bytes, shorts):
    """The worst case for the ring: full long flits with short ones right behind, again and again;
    the backlog never grows beyond one long flit.
    """
    link, rng = LinkConfig(beat_bytes=beat_bytes, lanes=4), random.Random(7)
    flits = []
    for _ in range(3):
        flits += random_flits(rng, 1, 1, 1, full=True) + random_flits(rng, shorts, 0, 1, full=True)
    got, verdicts = run(link, flits, rng)
    assert [flit[:4] for flit in got] == expected(flits)
    for flit, verdict in zip(got, verdicts, strict=True):
        assert 1 <= flit[4] - verdict <= link.long_beats


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_clear(beat_bytes):
    """`clear` drops what is under way and what waits; the next flit is whole."""
    link, rng = LinkConfig(beat_bytes=beat_bytes, lanes=4), random.Random(8)
    before = random_flits(rng, 1, 1, 1, full=True) + random_flits(rng, 3, 0, 1, full=True)
    after = random_flits(rng, 2, 0, 1) + random_flits(rng, 1, 1, 1)
    beats = sum(len(body) for *_, body in before) // beat_bytes
    lost = [(False, False, {}, bytes(64))] * 5
    got, _ = run(link, [*before, *lost, *after], rng, clear_at=beats + VERDICT_CYCLES)
    assert [flit[:4] for flit in got[-3:]] == expected(after)
    assert len(got) < 3 + len(before)
