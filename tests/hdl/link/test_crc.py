# amaranth: UnusedElaboratable=no
"""BeatCrc against a bit-by-bit CRC, in both formats, with stalls and gaps."""

import random
from types import SimpleNamespace

import pytest
from amaranth.sim import Simulator

from hdl.link.crc import BeatCrc
from isa.link import CRC_BITS, LinkConfig, crc_salt
from verif.icarus import assert_same

BEATS = [16, 32, 64]
CHECK_VALUE = 0x95482FA084
"""CRC-40 of "123456789" with this polynomial, reflected, init all ones, no final XOR."""


def plain_crc(bits, count):
    """CRC-40/0xCF1ED7C637 by its textbook description: not reflected register, division by bits."""
    register = (1 << 40) - 1
    for i in range(count):
        top = register >> 39 & 1
        register = (register << 1) & (1 << 40) - 1
        if top ^ (bits >> i & 1):
            register ^= 0xCF1ED7C637
    return int(f"{register:040b}"[::-1], 2)


def run(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def link_of(beat_bytes):
    return LinkConfig(beat_bytes=beat_bytes, lanes=4)


def beats_of(flit, link, length_bytes):
    width = 8 * link.beat_bytes
    return [flit >> width * i & (1 << width) - 1 for i in range(length_bytes // link.beat_bytes)]


async def drive(ctx, dut, beats, rng):
    """Send (valid, first, data) beats with stalls; yield `crc` behind each, two moves later."""
    got, pipe = [], [False, False]
    for valid, first, data in [*beats, (0, 0, 0), (0, 0, 0)]:
        ctx.set(dut.valid, valid)
        ctx.set(dut.first, first)
        ctx.set(dut.data, data)
        while rng.random() < 0.3:
            ctx.set(dut.en, 0)
            await ctx.tick()
        ctx.set(dut.en, 1)
        await ctx.tick()
        pipe.append(bool(valid))
        if pipe[-2]:
            got.append(ctx.get(dut.crc))
        # Noise on the inputs while the pipeline stands must not matter.
        ctx.set(dut.data, rng.getrandbits(len(dut.data)))
        ctx.set(dut.en, 0)
        if rng.random() < 0.2:
            await ctx.tick()
    return got


@pytest.mark.smoke
@pytest.mark.parametrize("beat_bytes", BEATS)
def test_random_flits(beat_bytes):
    """Field zero: the CRC.  Field filled in with a salt: the salt.  One bit wrong: not the salt."""
    link, rng = link_of(beat_bytes), random.Random(beat_bytes)
    dut = BeatCrc(link)
    flits, expected = [], []
    for number in range(24):
        length = 640 if number % 3 == 0 else 64
        body = rng.getrandbits(8 * length - 40)
        crc = plain_crc(body, 8 * length - 40)
        salt = crc_salt(rng.getrandbits(32))
        good = body | (crc ^ salt) << 8 * length - 40
        flip = 1 << rng.randrange(8 * length)
        for flit, result in [(body, crc), (good, salt), (good ^ flip, None)]:
            flits.append((flit, length))
            expected.append((result, salt))
    beats, ends = [], []
    for flit, length in flits:
        parts = beats_of(flit, link, length)
        for i, part in enumerate(parts):
            if rng.random() < 0.1:
                beats.append((0, rng.getrandbits(1), rng.getrandbits(8 * beat_bytes)))
            beats.append((1, i == 0, part))
        ends.append(sum(valid for valid, _, _ in beats) - 1)

    async def bench(ctx):
        got = await drive(ctx, dut, beats, rng)
        assert len(got) == ends[-1] + 1
        for end, (result, salt) in zip(ends, expected, strict=True):
            if result is None:
                assert got[end] != salt
            else:
                assert got[end] == result

    run(dut, bench)


@pytest.mark.smoke
def test_check_value():
    """The nine ASCII bytes 123456789 as a "flit" of one beat of 14 bytes, its field zero."""
    text = int.from_bytes(b"123456789", "little")
    assert plain_crc(text, 72) == CHECK_VALUE
    dut = BeatCrc(SimpleNamespace(beat_bytes=14))

    async def bench(ctx):
        assert await drive(ctx, dut, [(1, 1, text)], random.Random(0)) == [CHECK_VALUE]

    run(dut, bench)


@pytest.mark.icarus
@pytest.mark.parametrize("beat_bytes", BEATS)
def test_emitted(beat_bytes, tmp_path):
    rng = random.Random(beat_bytes)
    stimuli = [
        {
            "en": int(rng.random() < 0.8),
            "valid": int(rng.random() < 0.8) if cycle else 1,
            "first": int(cycle < 4 or rng.random() < 0.2),
            "data": rng.getrandbits(8 * beat_bytes),
        }
        for cycle in range(100)
    ]
    known = assert_same(
        lambda: BeatCrc(link_of(beat_bytes)), stimuli, tmp_path, unknown_until_valid=("crc",)
    )
    assert known > 80 * CRC_BITS
