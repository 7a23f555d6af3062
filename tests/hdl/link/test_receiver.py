# amaranth: UnusedElaboratable=no
"""Receiver on good traffic: everything arrives, once, in order, in time; emitted Verilog."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from golden.link.flit import parse
from hdl.link.receiver import Receiver
from hdl.link.vc_buffers import VcBuffers
from isa.link import GRANULE_BYTES, HEADER, LONG_GRANULES, FlitType, Format, LinkConfig, pack_bits
from verif.icarus import assert_same
from verif.receiver_bench import (
    EPOCH,
    SESSION,
    VERDICT_CYCLES,
    Flits,
    Step,
    beats,
    delivered,
    events,
    flip,
    run_receiver,
    totals,
    with_gaps,
)

BEATS = [16, 32, 64]
SLOT_OUTPUTS = {"acknowledge": ("acknowledge", "nak"), "credit": ("a_vc", "a", "b_vc", "b")}


def link_of(beat_bytes):
    return LinkConfig(beat_bytes=beat_bytes, lanes=4)


def expected_events(steps, flits, link):
    """What a good flit says, at the cycle VERDICT_CYCLES behind its last beat."""
    arrivals = iter([cycle for cycle, step in enumerate(steps) if step.beat is not None])
    result = []
    for flit in flits:
        last = [next(arrivals) for _ in range(len(flit) // link.beat_bytes)][-1]
        slot, _ = parse(flit)
        event = {"acknowledge__valid": 1, "credit__valid": 1}
        event["rx_long" if len(flit) > 64 else "rx_short"] = 1
        if slot["payload"]:
            event |= {"rx_data": 1, "progress": 1}
            if slot["poison"]:
                event["poison_received"] = 1
        if slot["command"]:
            event["peer_command"] = slot["command"]
        event["acknowledge"] = (slot["acknowledge"], slot["nak"])
        event["credit"] = tuple(
            slot[name] for name in ("credit_a_vc", "credit_a", "credit_b_vc", "credit_b")
        )
        result.append((last + VERDICT_CYCLES, event))
    return result


def expected_payload(flits):
    result = []
    for flit in flits:
        slot, body = parse(flit)
        if slot["payload"]:
            data = body[: slot["valid"] * GRANULE_BYTES]
            result.append((slot["vc"], data, slot["first"], slot["poison"]))
    return result


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize(("share_long", "gaps"), [(0.4, 0), (0.1, 0), (0.9, 0), (0.4, 0.3)])
def test_clean(beat_bytes, share_long, gaps):
    """All VCs, both formats in any order, at full rate and with gaps: each event in its cycle."""
    link, rng = link_of(beat_bytes), random.Random(beat_bytes + int(10 * share_long))
    sender = Flits(rng)
    flits = [sender.replay(), sender.replay()]
    flits += sender.stream(60, share_long=share_long, share_idle=0.1)
    flits += [
        sender.data(2, poison=1),
        sender.idle(command=1),
        sender.idle(nak=1, command=2),
        *sender.stream(4),
    ]
    steps = with_gaps(beats(link, flits), rng, gaps)
    trace = run_receiver(Receiver(link), link, steps)
    assert events(trace) == expected_events(steps, flits, link)
    assert [flit[:4] for flit in delivered(trace, link)] == expected_payload(flits)
    assert trace[-1]["reverse__expected"] == sender.sequence
    assert not any(values["reverse__nak"] for values in trace)


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_latency(beat_bytes):
    """Payload of a short flit is delivered 4 cycles behind its last beat; a long one in as many
    beats as it has payload, without a pause, while short ones arrive.
    """
    link, sender = link_of(beat_bytes), Flits()
    flits = [
        sender.replay(),
        sender.data(3, Format.LONG),
        sender.data(LONG_GRANULES, Format.SHORT, Format.LONG),
        *[sender.data(3) for _ in range(12)],
        sender.data(1, Format.LONG),
        sender.data(LONG_GRANULES, Format.SHORT, Format.LONG),
    ]
    trace = run_receiver(Receiver(link), link, beats(link, flits))
    starts = [flit[4] for flit in delivered(trace, link)]
    last = [sum(map(len, flits[: i + 1])) // link.beat_bytes - 1 for i in range(len(flits))]
    assert starts[0] == last[1] + VERDICT_CYCLES + 1
    assert starts[1] == last[2] + VERDICT_CYCLES + 1
    beats_of = {n: -(-n // link.beat_granules) for n in (3, LONG_GRANULES)}
    assert starts[2] == starts[1] + beats_of[LONG_GRANULES], "reads without a pause"
    assert starts[-1] == last[-1] + VERDICT_CYCLES + 1, "the backlog is gone"


def test_sequence_wraps():
    """More flits than there are sequence numbers."""
    link, sender = link_of(64), Flits(random.Random(5))
    flits = [sender.replay(), *[sender.data(sender.rng.randint(1, 3)) for _ in range(1100)]]
    trace = run_receiver(Receiver(link), link, beats(link, flits))
    assert [flit[:4] for flit in delivered(trace, link)] == expected_payload(flits)
    assert totals(trace)["rx_data"] == 1100
    assert trace[-1]["reverse__expected"] == 1100 - 1024


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_enable(beat_bytes):
    """While `enable` is low nothing acts, and what was under way is gone; behind it the cells start
    anew, `expected` is kept, payload needs a REPLAY flit again; other good short flits count.
    """
    link = link_of(beat_bytes)
    sender = Flits()
    clean = [sender.replay(), sender.data(3), sender.data(2, Format.LONG)]
    begun = Flits(sequence=2).data(LONG_GRANULES, Format.SHORT, Format.LONG)
    steps = beats(link, clean) + beats(link, [begun])[:-1]
    # The last beat comes, and the link stops behind it: in the pipeline nothing is good any more
    steps += beats(link, [begun])[-1:] + [Step(None)] * 2
    off = beats(link, [sender.replay(), sender.data(1)])
    steps += [Step(step.beat, enable=0) for step in off[: len(off) - (link.cell_beats > 1)]]
    waited = [Flits(sequence=2).data(1), Flits(sequence=2).idle(), Flits(sequence=4).idle()]
    again = Flits(sequence=2)
    resumed = [again.replay(), again.data(3), again.data(1)]
    behind = beats(link, [*waited, *resumed])
    steps += behind
    trace = run_receiver(Receiver(link), link, steps)
    good = expected_events(beats(link, clean), clean, link)
    tail = expected_events(behind, [*waited, *resumed], link)
    for name in ("rx_data", "progress"):
        del tail[0][1][name]
    tail[0][1].pop("poison_received", None)
    shift = len(steps) - len(behind)
    assert events(trace) == good + [(cycle + shift, event) for cycle, event in tail]
    assert [flit[:4] for flit in delivered(trace, link)] == expected_payload(clean + resumed)


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize("wait", range(VERDICT_CYCLES))
def test_enable_falls_behind_a_flit(beat_bytes, wait):
    """`enable` low for one cycle while a REPLAY flit is being checked: it does not act."""
    link, sender = link_of(beat_bytes), Flits()
    before, stale = [sender.replay(), sender.idle()], [sender.replay()]
    steps = beats(link, before) + [Step(None)] * VERDICT_CYCLES + beats(link, stale)
    steps += [Step(None)] * wait + [Step(None, enable=0)]
    gap = len(steps)
    after = [sender.idle(Format.LONG, reserved=1), sender.replay()]
    steps += beats(link, after)
    trace = run_receiver(Receiver(link), link, steps)
    assert [cycle for cycle, _ in events(trace)] == [
        link.cell_beats - 1 + VERDICT_CYCLES,
        2 * link.cell_beats - 1 + VERDICT_CYCLES,
        gap + 2 * link.cell_beats - 1 + VERDICT_CYCLES,
    ]


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_clear(beat_bytes):
    """Full initialisation in the middle of a delivery: all is as after reset."""
    link, sender = link_of(beat_bytes), Flits()
    flits = [
        sender.replay(),
        sender.data(3, Format.LONG),
        sender.data(LONG_GRANULES, Format.SHORT, Format.LONG),
        sender.data(3),
    ]
    steps = beats(link, flits) + [Step(None)] * (VERDICT_CYCLES + 3)
    steps += [Step(None, clear=1), Step(None, enable=0)]
    again = Flits(epoch=3, session=77)
    fresh = [again.replay(), again.data(2), again.data(1)]
    steps += [Step(step.beat, session=77, epoch=3) for step in beats(link, fresh)]
    trace = run_receiver(
        Receiver(link), link, steps + [Step(None, session=77, epoch=3)] * 50, drain=0
    )
    got = delivered(trace, link)
    assert [flit[:4] for flit in got[-2:]] == expected_payload(fresh)
    assert len(got) <= 2 + 3 and len(got[1][1]) < LONG_GRANULES * GRANULE_BYTES, "delivery went on"
    assert trace[-1]["reverse__expected"] == 2


@pytest.mark.icarus
@pytest.mark.parametrize("beat_bytes", BEATS)
def test_emitted(beat_bytes, tmp_path):
    """The emitted Verilog in Icarus, cycle by cycle, without an unknown value."""
    link, rng = link_of(beat_bytes), random.Random(8)
    sender = Flits(rng)
    flits = [sender.replay(), *sender.stream(8), sender.idle(kind=FlitType.REPLAY)]
    stimuli = []
    for step in with_gaps(beats(link, flits), rng, 0.2) + [Step(None)] * 40:
        stimuli.append(
            {
                "i_valid": step.beat is not None,
                "i_data": int.from_bytes(step.beat or b"", "little"),
                "enable": 1,
                "peer_session": SESSION,
                "peer_epoch": EPOCH,
                "rtt": 10,
            }
        )
    slots = [f"{part}__{name}" for part, names in SLOT_OUTPUTS.items() for name in names]
    payload = [f"deliver__{name}" for name in ("vc", "data", "granules", "start", "first_valid",
                                               "first", "poison")]  # fmt: skip
    assert_same(lambda: Receiver(link), stimuli, tmp_path, unknown_until_valid=[*slots, *payload])


class Path(Elaboratable):
    """Receiver and VC buffers, as in a link port."""

    def __init__(self, link):
        self.receiver, self.buffers = Receiver(link), VcBuffers(link)

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver, m.submodules.buffers = self.receiver, self.buffers
        wiring.connect(m, self.receiver.deliver, self.buffers.deliver)
        return m


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize("packets", [1, 3])
def test_path(beat_bytes, packets):
    """From the last beat of a short flit to its packets on `rx`, back to back in beats: 6 cycles,
    for each in a row; a flit that fails, and one that comes twice, leave no trace in packets and
    credit.
    """
    link, sender, rng = link_of(beat_bytes), Flits(), random.Random(3)

    def flit_of_packets(**slot):
        headers = [
            pack_bits(HEADER, {"granules": 1, "address": rng.randrange(1 << 48)})
            for _ in range(packets)
        ]
        slot = {"payload": 1, "sequence": sender.sequence, "vc": 3, "valid": packets, "first": 0,
                **slot}  # fmt: skip
        body = b"".join(header.to_bytes(GRANULE_BYTES, "little") for header in headers)
        return sender.flit(FlitType.DATA, body=body, **slot), body

    flits, arriving = [sender.replay()], {}
    for index in range(12):
        flit, body = flit_of_packets()
        if index == 6:
            flits += [flip(flit, 77), sender.idle(), sender.replay()]
        elif index == 8:
            flits.append(flit_of_packets(sequence=3)[0])
        flits.append(flit)
        for beat, low in enumerate(range(0, len(body), beat_bytes)):
            arriving[(len(flits) * link.cell_beats) - 1 + 6 + beat] = body[low : low + beat_bytes]
        sender.sequence += 1
    path, got, limits = Path(link), {}, []

    async def bench(ctx):
        ctx.set(path.receiver.peer_session, SESSION)
        ctx.set(path.receiver.peer_epoch, EPOCH)
        ctx.set(path.receiver.enable, 1)
        ctx.set(path.buffers.rx_open, 0xFF)
        ctx.set(path.buffers.rx.ready, 1)
        rx = path.buffers.rx
        for cycle, step in enumerate([*beats(link, flits), *[Step(None)] * 10]):
            ctx.set(path.receiver.i_valid, step.beat is not None)
            ctx.set(path.receiver.i_data, int.from_bytes(step.beat or b"", "little"))
            _, _, valid, granules, data, first, last, limit = await ctx.tick().sample(
                rx.valid, rx.p.granules, rx.p.data, rx.p.first, rx.p.last,
                path.buffers.limits.limit3,
            )  # fmt: skip
            limits.append(limit)
            if valid:
                assert first == last == (1 << granules) - 1
                got[cycle] = data.to_bytes(beat_bytes, "little")[: GRANULE_BYTES * granules]

    simulator = Simulator(path)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert got == arriving
    assert limits[-1] == link.vc_units[3] + 12 * packets // 4 and limits == sorted(limits)
