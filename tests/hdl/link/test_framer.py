# amaranth: UnusedElaboratable=no
"""Framer and SlotCheck: cell phase, HUNT, verdicts; by the textbook definition of the CRC."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.emit import emit
from hdl.link.assembly import ring_beats
from hdl.link.framer import VERDICT_CYCLES, Framer
from hdl.link.receiver import Receiver
from hdl.link.slot_check import SlotCheck
from hdl.link.vc_buffers import VcBuffers
from isa.link import (
    LONG_GRANULES,
    NO_PACKET,
    SLOT,
    Command,
    FlitType,
    Format,
    LinkConfig,
    Reason,
    crc_salt,
    pack_bits,
    unpack_bits,
)
from verif.receiver_bench import EPOCH, SESSION, Flits, Step, beats, flip, with_gaps

BEATS = [16, 32, 64]
OUTPUTS = ("good", "lost", "epoch_drop", "reason", "is_long", "hunting")


def link_of(beat_bytes):
    return LinkConfig(beat_bytes=beat_bytes, lanes=4)


def plain_flit(slot, payload, granules):
    """A flit as an integer, its CRC by division of polynomials, bit by bit."""
    body = payload | pack_bits(SLOT, slot) << 128 * granules
    size = 128 * (granules + 1)
    register = (1 << 40) - 1
    for i in range(size - 40):
        top = register >> 39 & 1
        register = (register << 1) & (1 << 40) - 1
        if top ^ (body >> i & 1):
            register ^= 0xCF1ED7C637
    crc = int(f"{register:040b}"[::-1], 2)
    return (body | (crc ^ crc_salt(SESSION)) << size - 40).to_bytes(size // 8, "little")


def run(link, steps, abort=()):
    """[(cycle, {output: value})] of cycles with a verdict, and `hunting` of every cycle."""
    dut = Framer(link)
    verdicts, hunting = [], []

    async def bench(ctx):
        ctx.set(dut.peer_session, SESSION)
        ctx.set(dut.peer_epoch, EPOCH)
        for cycle, step in enumerate([*steps, *[Step(None)] * (VERDICT_CYCLES + 2)]):
            ctx.set(dut.enable, step.enable)
            ctx.set(dut.i_valid, step.beat is not None)
            ctx.set(dut.i_data, int.from_bytes(step.beat or b"", "little"))
            ctx.set(dut.abort, cycle in abort)
            _, _, *values = await ctx.tick().sample(*[getattr(dut, name) for name in OUTPUTS])
            now = dict(zip(OUTPUTS, values, strict=True))
            hunting.append(now.pop("hunting"))
            if any(now[name] for name in ("good", "lost", "epoch_drop", "reason")):
                verdicts.append((cycle, {name: value for name, value in now.items() if value}))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return verdicts, hunting


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_textbook_crc(beat_bytes):
    """REPLAY, a short and two long flits with a CRC of the textbook: good, in their cycles."""
    rng, link = random.Random(1), link_of(beat_bytes)
    replay = {"type": FlitType.REPLAY, "epoch": EPOCH, "first": NO_PACKET}
    data = {"type": FlitType.DATA, "epoch": EPOCH, "payload": 1, "valid": 3, "first": 1}
    flits = [plain_flit(replay, 0, 3)]
    flits.append(plain_flit({**data, "next_format": 1}, rng.getrandbits(384), 3))
    flits.append(plain_flit({**data, "next_format": 1, "valid": 39}, rng.getrandbits(39 * 128), 39))
    flits.append(plain_flit({**data, "valid": 38}, rng.getrandbits(38 * 128), 39))
    steps = with_gaps(beats(link, flits), rng, 0.2)
    arrivals = [i for i, step in enumerate(steps) if step.beat is not None]
    ends, at = [], -1
    for flit in flits:
        at += len(flit) // beat_bytes
        ends.append(arrivals[at] + VERDICT_CYCLES)
    verdicts, _ = run(link, steps)
    assert verdicts == [
        (ends[0], {"good": 1}),
        (ends[1], {"good": 1}),
        (ends[2], {"good": 1, "is_long": 1}),
        (ends[3], {"good": 1, "is_long": 1}),
    ]


@pytest.mark.parametrize("beat_bytes", [16, 32])
def test_cells_keep_their_phase(beat_bytes):
    """In HUNT a flit counts only where a cell begins, after an error too."""
    link = link_of(beat_bytes)
    replay = Flits().replay()
    for shift in range(link.cell_beats):
        steps = beats(link, [bytes(beat_bytes * shift), replay, replay, bytes(64)])
        verdicts, hunting = run(link, steps)
        assert len(verdicts) == (3 if shift == 0 else 0), f"shift {shift}"
        assert hunting[-1]  # the cell of zeros, and what is out of phase
        # Out of phase behind an error
        flits = [replay, flip(replay, 3), bytes(beat_bytes * shift), replay, replay]
        verdicts, hunting = run(link, beats(link, flits))
        good = sum(verdict.get("good", 0) for _, verdict in verdicts)
        assert (good, hunting[-1]) == ((3, 0) if shift == 0 else (1, 1)), f"shift {shift}"
        # A new start sets the phase
        steps = beats(link, [bytes(beat_bytes * shift)]) + [Step(None, enable=0)]
        verdicts, _ = run(link, steps + beats(link, [replay]))
        assert len(verdicts) == 1


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_noise_never_locks(beat_bytes):
    """Random beats, zeros and ones: HUNT without a verdict."""
    link, rng = link_of(beat_bytes), random.Random(6)
    noise = [rng.randbytes(64) for _ in range(300)] + [bytes(640), b"\xff" * 640]
    verdicts, hunting = run(link, beats(link, noise))
    assert not verdicts and all(hunting)


def bad_in_hunt(sender):
    """Flits that do not end HUNT: long, of another epoch or session, or against a rule."""
    return [
        sender.data(3, Format.LONG, Format.LONG, sequence=0),
        sender.data(1, sequence=0, first=1),
        sender.idle(epoch=EPOCH ^ 1),
        sender.idle(session=SESSION ^ 1),
        sender.replay(reserved=1),
        sender.replay(next_format=2),
        sender.replay(valid=1, first=0),
        sender.replay(command=3),
        sender.replay(epoch=EPOCH ^ 1),
        sender.idle(kind=0x3F),
        flip(sender.idle(), 200),
    ]


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize("kind", list(FlitType))
def test_any_good_short_flit_ends_hunt(beat_bytes, kind):
    """What breaks a rule is ignored in HUNT, not counted; a good flit of each type ends it, and its
    announcement of a long flit is believed.
    """
    link, sender = link_of(beat_bytes), Flits()
    ignored = bad_in_hunt(sender)
    verdicts, hunting = run(link, beats(link, ignored))
    assert not verdicts and all(hunting)
    payload = kind == FlitType.DATA
    good = sender.data(2, Format.LONG) if payload else sender.idle(Format.LONG, kind)
    long = sender.data(LONG_GRANULES, Format.SHORT, Format.LONG)
    steps = beats(link, [*ignored, good, long])
    verdicts, hunting = run(link, steps)
    at = len(steps) - link.long_beats - 1 + VERDICT_CYCLES
    assert verdicts == [(at, {"good": 1}), (at + link.long_beats, {"good": 1, "is_long": 1})]
    assert all(hunting[:at]) and not any(hunting[at:])


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_abort(beat_bytes):
    """`abort` with a verdict: the very next cell is looked at in HUNT."""
    link, sender = link_of(beat_bytes), Flits()
    wrong = sender.idle(reserved=1)
    steps = beats(link, [sender.replay(), sender.idle(), wrong, sender.idle()])
    cell = link.cell_beats
    aborted = cell - 1 + VERDICT_CYCLES + cell
    verdicts, _ = run(link, steps, abort={aborted})
    assert [cycle for cycle, _ in verdicts] == [aborted - cell, aborted, aborted + 2 * cell]


def reason_by_the_page(slot, flit_format):
    """docs/link.md, 'Receiver', word by word."""
    kinds = {0x0B: "CONTROL", 0x15: "DATA", 0x26: "REPLAY"}
    kind = kinds.get(slot["type"])
    if kind is None:
        return Reason.BAD_TYPE
    if slot["command"] not in (Command.NONE, Command.RETRAIN, Command.DISABLE):
        return Reason.BAD_COMMAND
    capacity = 39 if flit_format == Format.LONG else 3
    payload = kind == "DATA"
    wrong = [
        slot["reserved"] != 0,
        slot["payload"] != payload,
        payload and not 1 <= slot["valid"] <= capacity,
        not payload and slot["valid"] != 0,
        slot["valid"] <= slot["first"] <= 62,
        slot["next_format"] > 1,
        not payload and flit_format == Format.LONG,
    ]
    return Reason.BAD_SLOT if any(wrong) else Reason.NONE


def test_slot_rules():
    """All values of each field of good slots of each type, and random slots."""
    rng, dut = random.Random(2), SlotCheck()
    slots = []
    for kind in FlitType:
        payload = kind == FlitType.DATA
        for valid in (1, 3, 39) if payload else (0,):
            good = {"type": kind, "payload": payload, "valid": valid, "first": NO_PACKET}
            for field in (
                "type",
                "valid",
                "first",
                "next_format",
                "reserved",
                "payload",
                "command",
            ):
                width = next(f.width for f in SLOT if f.name == field)
                slots += [{**good, field: value} for value in range(1 << width)]
    whole = [pack_bits(SLOT, slot) for slot in slots]
    for _ in range(3000):
        whole.append(
            rng.choice(whole[: len(slots)]) ^ 1 << rng.randrange(88) ^ 1 << rng.randrange(88)
        )

    async def bench(ctx):
        for value in whole:
            ctx.set(dut.slot.as_value(), value)
            slot = unpack_bits(SLOT, value)
            for flit_format, got in ((Format.SHORT, dut.short), (Format.LONG, dut.long)):
                assert ctx.get(got) == reason_by_the_page(slot, flit_format), (slot, flit_format)

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_emit(beat_bytes):
    """Both components are emitted, with their checks."""
    link = link_of(beat_bytes)
    receiver = emit(Receiver(link), "receiver", checks=True)
    assert f"blockram_{8 * beat_bytes}_{ring_beats(link)}" in receiver
    assert "assembly: notes overflow" in receiver
    buffers = emit(VcBuffers(link), "vc_buffers", checks=True)
    rows = 4 * sum(link.vc_units) // link.beat_granules
    assert f"blockram_129_{rows}" in buffers and "stream rx" in buffers
