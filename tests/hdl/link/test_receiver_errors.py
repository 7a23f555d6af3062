# amaranth: UnusedElaboratable=no
"""Receiver on bad traffic: nothing unchecked acts, and every way out is found."""

import random

import pytest

from golden.link import receiver as golden
from golden.link.flit import build, parse
from hdl.link.receiver import Receiver
from isa.link import (
    CELL_BYTES,
    GRANULE_BYTES,
    LONG_CELLS,
    LONG_GRANULES,
    NO_PACKET,
    FlitType,
    Format,
    LinkConfig,
    Reason,
)
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


def link_of(beat_bytes):
    return LinkConfig(beat_bytes=beat_bytes, lanes=4)


def payload_of(flits):
    found = []
    for flit in flits:
        slot, body = parse(flit)
        found.append((slot["vc"], body[: slot["valid"] * GRANULE_BYTES], slot["first"],
                      slot["poison"]))  # fmt: skip
    return found


def run(link, flits, **options):
    """(totals, delivered without cycle, trace) of flits back to back."""
    trace = run_receiver(Receiver(link), link, beats(link, flits), **options)
    return totals(trace), [flit[:4] for flit in delivered(trace, link)], trace


# --- Errors of bits --------------------------------------------------------------------------


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_each_bit_of_a_short_flit(beat_bytes):
    """One wrong bit anywhere: not delivered, no effect, counted; a REPLAY flit resumes."""
    link, sender = link_of(beat_bytes), Flits()
    flits, good = [sender.replay()], []
    for bit in range(8 * CELL_BYTES):
        sender.sequence = bit
        flits += [flip(sender.data(3, sequence=bit, nak=1), bit), sender.replay()]
        good.append(sender.data(1, vc=bit % 8, acknowledge=bit))
        flits.append(good[-1])
    count, got, trace = run(link, flits)
    assert count["crc_errors"] == 512
    assert got == payload_of(good)
    assert count["acknowledge__valid"] == count["credit__valid"] == 1 + 2 * 512
    assert not count["error"] and not count["sequence_gaps"] and not count["duplicates"]
    naks = [values["acknowledge__nak"] for values in trace if values["acknowledge__valid"]]
    assert not any(naks), "the NAK of a bad flit acted"


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_each_beat_of_a_long_flit(beat_bytes):
    """One wrong bit, or a burst, in each beat of a long flit: no part of it is delivered."""
    link, sender, rng = link_of(beat_bytes), Flits(), random.Random(3)
    flits, good = [], []
    for beat in range(link.long_beats):
        flits.append(sender.replay())
        good.append(sender.data(3, Format.LONG))
        bad = Flits(rng, sequence=sender.sequence).data(LONG_GRANULES, 0, Format.LONG)
        low = 8 * beat_bytes * beat + rng.randrange(8 * beat_bytes - 40)
        bits = {low, low + 39, *rng.sample(range(low, low + 40), rng.randrange(6))}
        flits += [good[-1], flip(bad, *(bits if beat % 2 else [low]))]
    flits.append(sender.replay())
    count, got, _ = run(link, flits)
    assert count["crc_errors"] == link.long_beats
    assert got == payload_of(good)
    assert count["rx_long"] == 0 and count["error"] == 0


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_wrong_format(beat_bytes):
    """A long flit behind the announcement of a short one, and the other way round: nothing of it is
    delivered; each cell behind the error is looked at, so the first REPLAY flit resumes.
    """
    link = link_of(beat_bytes)
    sender = Flits()
    clean = [sender.data(2), sender.data(1)]
    long_for_short = Flits(sequence=2).data(LONG_GRANULES, 0, Format.LONG)
    resumed = [sender.replay(), sender.data(3)]
    start = Flits().replay()
    count, got, _ = run(link, [start, *clean, long_for_short, *resumed])
    assert got == payload_of([*clean, resumed[1]])
    assert count["crc_errors"] == 1, "the first cell fails; in HUNT nothing is counted"

    # A long one is announced and ten short ones come: they fail together.  What follows resumes.
    sender = Flits()
    clean = [sender.data(2), sender.data(1, Format.LONG)]
    shorts = Flits(sequence=2)
    ten = [shorts.data(1) for _ in range(LONG_CELLS)]
    resumed = [sender.replay(), sender.data(3)]
    count, got, _ = run(link, [start, *clean, *ten, *resumed])
    assert got == payload_of([*clean, resumed[1]])
    assert count["crc_errors"] == 1 and count["error"] == 0


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_resumes_at_the_cell_behind_an_error(beat_bytes):
    """A bad short flit that announces a long one, then four REPLAY flits: the first one counts."""
    link, sender = link_of(beat_bytes), Flits()
    bad = flip(Flits().data(1, Format.LONG), 5)
    flits = [sender.replay(), bad, *[sender.replay() for _ in range(4)]]
    count, _, _ = run(link, flits)
    assert count["rx_short"] == 5 and count["crc_errors"] == 1
    # ... also when the long flit is the last one before and REPLAY announces a long one at once
    sender = Flits()
    good = [sender.replay(), sender.data(1, Format.LONG)]
    broken = flip(Flits(sequence=1).data(LONG_GRANULES, 0, Format.LONG), 5000)
    again = [sender.replay(Format.LONG), sender.data(LONG_GRANULES, 0, Format.LONG)]
    count, got, _ = run(link, [*good, broken, *again])
    assert count["crc_errors"] == 1 and count["rx_long"] == 1
    assert got == payload_of([good[1], again[1]])


# --- Strangers -------------------------------------------------------------------------------


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_other_session_and_epoch(beat_bytes):
    link, sender = link_of(beat_bytes), Flits()
    own = [sender.data(1), sender.data(2), sender.data(3)]
    count, got, _ = run(
        link,
        [
            # In HUNT neither a stranger's flit nor one of another epoch ends it
            sender.replay(session=SESSION ^ 1),
            sender.replay(epoch=EPOCH ^ 1),
            Flits().data(1, vc=7, session=SESSION ^ 1),
            Flits().idle(epoch=EPOCH ^ 2),
            Flits().replay(),
            own[0],
            # In frame, another epoch is dropped, also with nonsense in its slot
            Flits(sequence=1).data(3, vc=7, epoch=EPOCH ^ 3),
            Flits(sequence=1).idle(epoch=EPOCH ^ 1, reserved=5, command=7),
            own[1],
            # ... and its announcement is believed
            Flits(sequence=2).idle(Format.LONG, epoch=EPOCH ^ 2),
            Flits(sequence=2).data(LONG_GRANULES, 0, Format.LONG, epoch=EPOCH ^ 2),
            own[2],
            # A flit of another session has a wrong CRC
            Flits(sequence=3).data(1, session=SESSION ^ 0x80000000),
        ],
    )
    assert got == payload_of(own)
    assert count["epoch_drops"] == 4 and count["crc_errors"] == 1 and count["error"] == 0
    assert count["acknowledge__valid"] == 4


@pytest.mark.parametrize("beat_bytes", BEATS)
@pytest.mark.parametrize("known", [False, True])
def test_replay_image_in_payload(beat_bytes, known):
    """A payload full of REPLAY flits while the receiver hunts: without the sender's salt they fail;
    with it (which no writer of payload knows) they would lock, so the test does look at them.
    """
    link, sender = link_of(beat_bytes), Flits(sequence=1)
    image = Flits(sequence=1).replay(session=SESSION if known else 0)
    images = [image] + [Flits(sequence=1).replay(session=s) for s in (1, SESSION >> 8, EPOCH)]
    payload = b"".join(images[i % 4] for i in range(LONG_CELLS - 1)) + images[0][:48]
    slot = {"type": FlitType.DATA, "payload": 1, "valid": LONG_GRANULES, "first": NO_PACKET,
            "epoch": EPOCH, "sequence": 1}  # fmt: skip
    long = build(Format.LONG, payload, slot, SESSION)
    start = Flits()
    good = [start.data(1), sender.data(2)]
    flits = [Flits().replay(), good[0], flip(Flits(sequence=1).data(1, Format.LONG), 100), long]
    count, got, _ = run(link, [*flits, Flits(sequence=1).replay(), good[1]])
    assert got == payload_of(good)
    assert (count["rx_short"] == 4 and count["crc_errors"] == 1) != known


# --- Protocol violations ---------------------------------------------------------------------

IDLE, DATA, LONG = "idle", "data", "long"
VIOLATIONS = [
    (IDLE, {"type": 0}, Reason.BAD_TYPE),
    (DATA, {"type": 0x14}, Reason.BAD_TYPE),
    (LONG, {"type": 0x3F, "command": 7}, Reason.BAD_TYPE),
    (IDLE, {"command": 3}, Reason.BAD_COMMAND),
    (DATA, {"command": 4, "reserved": 1}, Reason.BAD_COMMAND),
    (LONG, {"command": 7}, Reason.BAD_COMMAND),
    *[(IDLE, {"reserved": 1 << bit}, Reason.BAD_SLOT) for bit in range(4)],
    (IDLE, {"payload": 1}, Reason.BAD_SLOT),
    (DATA, {"payload": 0}, Reason.BAD_SLOT),
    (IDLE, {"type": FlitType.DATA, "valid": 1}, Reason.BAD_SLOT),
    (DATA, {"valid": 0, "first": NO_PACKET}, Reason.BAD_SLOT),
    (DATA, {"valid": 4, "first": 0}, Reason.BAD_SLOT),
    (DATA, {"valid": 39, "first": 0}, Reason.BAD_SLOT),
    (LONG, {"valid": 40, "first": 0}, Reason.BAD_SLOT),
    (LONG, {"valid": 63, "first": 0}, Reason.BAD_SLOT),
    (LONG, {"valid": 0, "first": NO_PACKET}, Reason.BAD_SLOT),
    (IDLE, {"valid": 1}, Reason.BAD_SLOT),
    (IDLE, {"first": 0}, Reason.BAD_SLOT),
    (IDLE, {"first": 62}, Reason.BAD_SLOT),
    (DATA, {"valid": 2, "first": 2}, Reason.BAD_SLOT),
    (LONG, {"valid": 39, "first": 39}, Reason.BAD_SLOT),
    (LONG, {"valid": 30, "first": 62}, Reason.BAD_SLOT),
    (IDLE, {"next_format": 2}, Reason.BAD_SLOT),
    (DATA, {"next_format": 3}, Reason.BAD_SLOT),
    (LONG, {"next_format": 2}, Reason.BAD_SLOT),
    (LONG, {"type": FlitType.CONTROL, "payload": 0, "valid": 0, "first": NO_PACKET},
     Reason.BAD_SLOT),
    (LONG, {"type": FlitType.REPLAY, "payload": 0, "valid": 0, "first": NO_PACKET},
     Reason.BAD_SLOT),
    (DATA, {"sequence": 512}, Reason.BAD_SEQUENCE),
    (LONG, {"sequence": 513}, Reason.BAD_SEQUENCE),
    (IDLE, {"sequence": 511}, Reason.BAD_SEQUENCE),
]  # fmt: skip


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_violations(beat_bytes):
    """Each violation of the slot: its Reason, no other effect; then HUNT, short flits only."""
    link = link_of(beat_bytes)
    steps, expected, good = [], [], []

    def send(flit, event):
        steps.extend(beats(link, [flit]))
        if event is not None:
            expected.append((len(steps) - 1 + VERDICT_CYCLES, event))

    for kind, fields, reason in VIOLATIONS:
        sender = Flits(random.Random(len(steps)))
        steps.append(Step(None, clear=1, enable=0))
        send(sender.replay(), "good")
        if kind == LONG:
            good.append(sender.data(1, Format.LONG))
            send(good[-1], "good")
            fields = {"sequence": sender.sequence, "flit_format": Format.LONG, **fields}
            send(sender.data(LONG_GRANULES, **fields), reason)
        elif kind == DATA:
            send(sender.data(3, **{"sequence": 0, **fields}), reason)
        else:
            send(sender.idle(**fields), reason)
        # Flits that do not count, also if a long one was announced, then REPLAY
        send(sender.data(2, sequence=0, first=2), None)
        send(sender.data(LONG_GRANULES, 0, Format.LONG, sequence=0), None)
        send(sender.idle(reserved=1), None)
        send(sender.replay(), "good")
        good.append(sender.data(2, sequence=sender.sequence))
        send(good[-1], "good")
        steps += [Step(None)] * (link.long_beats + 5)
    trace = run_receiver(Receiver(link), link, steps)
    happened = events(trace)
    assert [cycle for cycle, _ in happened] == [cycle for cycle, _ in expected]
    for (_, got), (cycle, event) in zip(happened, expected, strict=True):
        if event == "good":
            assert got["acknowledge__valid"] and "error" not in got, cycle
        else:
            assert got == {"error": event}, cycle
    assert [flit[:4] for flit in delivered(trace, link)] == payload_of(good)


# --- Order, NAK ------------------------------------------------------------------------------


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_order(beat_bytes):
    """Duplicates are dropped, a gap is found by any flit, payload waits for a REPLAY flit."""
    link, sender = link_of(beat_bytes), Flits()
    first = [sender.data(1), sender.data(2), sender.data(3)]
    late = Flits(sequence=3)
    lost, seen = late.data(1), late.data(2)
    flits = [
        Flits().replay(),
        *first,
        Flits().data(3, sequence=2),  # duplicates: the last one, the first one, the oldest possible
        Flits().data(3, sequence=0),
        Flits().data(3, sequence=3 + 513),
        Flits().idle(sequence=1),  # an old number without payload is no news
        Flits().idle(sequence=2),
        seen,  # 3 is missing
        Flits().data(1, sequence=5),  # found already
        Flits().data(1, sequence=3),  # while waiting even the missing one is dropped
        Flits(sequence=3).replay(),
        lost,
        seen,
        Flits().idle(sequence=5),  # a lost flit shows in a flit without payload too
        Flits(sequence=5).replay(),
    ]
    last = Flits(sequence=5).data(3, replayed=1)
    count, got, trace = run(link, [*flits, last])
    assert got == payload_of([*first, lost, seen, last])
    assert count["duplicates"] == 3 and count["sequence_gaps"] == 2
    assert count["crc_errors"] == count["error"] == 0
    assert count["acknowledge__valid"] == len(flits) + 1, "a good flit acknowledges in any case"
    assert trace[-1]["reverse__expected"] == 6


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_short_flits_behind_an_error(beat_bytes):
    """A good short flit of any type ends HUNT and counts, with acknowledgement, NAK, credits and
    command; payload is dropped until a REPLAY flit has come; another error meanwhile asks for
    nothing more.
    """
    link, sender = link_of(beat_bytes), Flits()
    first = sender.data(3)
    lost = Flits(sequence=1)
    bad = flip(lost.data(2), 77)
    heard = [
        Flits(sequence=1).idle(nak=1, command=1),
        Flits(sequence=1).data(2, nak=1),
        Flits(sequence=9).data(2, Format.LONG),
        Flits(sequence=10).data(LONG_GRANULES, 0, Format.LONG),
        flip(Flits(sequence=1).idle(), 300),
        Flits(sequence=11).data(1, nak=1),
    ]
    again = [sender.replay(), sender.data(1)]
    flits = [Flits().replay(), first, bad, *heard, *again]
    steps = beats(link, flits)
    first_nak = 2 * link.cell_beats + link.cell_beats - 1 + VERDICT_CYCLES + 1
    steps[first_nak].nak_taken = 1
    trace = run_receiver(Receiver(link), link, steps, rtt=1000)
    good = [flit for flit in flits if flit not in (bad, heard[4])]
    acknowledged = [event["acknowledge"] for _, event in events(trace) if "acknowledge" in event]
    credit = [event["credit"] for _, event in events(trace) if "credit" in event]
    slots = [parse(flit)[0] for flit in good]
    assert acknowledged == [(slot["acknowledge"], slot["nak"]) for slot in slots]
    names = ("credit_a_vc", "credit_a", "credit_b_vc", "credit_b")
    assert credit == [tuple(slot[name] for name in names) for slot in slots]
    assert [flit[:4] for flit in delivered(trace, link)] == payload_of([first, again[1]])
    assert [i for i, values in enumerate(trace) if values["reverse__nak"]] == [first_nak]
    count = totals(trace)
    assert (count["crc_errors"], count["peer_command"], count["rx_long"]) == (2, 1, 1)
    assert count["sequence_gaps"] == count["duplicates"] == count["error"] == 0
    assert count["nak_repeats"] == 0


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_nak_once_then_repeats_then_limit(beat_bytes):
    """A gap owes one NAK; it is owed again each 2 x RTT + 64 cycles, the 4th time is reported."""
    link, rtt = link_of(beat_bytes), 20
    for trouble in (Flits().data(1, sequence=1), flip(Flits().data(1), 9)):
        steps = beats(link, [Flits().replay(), trouble])
        wait = 5 * (2 * rtt + 64) + 20
        steps += beats(link, [Flits().data(1, sequence=2)]) * (wait // link.cell_beats)
        # The transmitter takes the NAK a while after it is owed
        dut = Receiver(link)
        taken = []
        trace = run_receiver(dut, link, steps, rtt=rtt, drain=0)
        assert trace[-1]["reverse__nak"], "nobody took it: owed for good"
        rises = [i for i, values in enumerate(trace) if values["nak_repeats"]]
        for cycle in rises:
            taken += [cycle + 5]
        owed = next(i for i, values in enumerate(trace) if values["reverse__nak"])
        for cycle in (owed + 5, *taken):
            steps[cycle].nak_taken = 1
        trace = run_receiver(Receiver(link), link, steps, rtt=rtt, drain=0)
        level = [values["reverse__nak"] for values in trace]
        edges = [i for i in range(1, len(level)) if level[i] and not level[i - 1]]
        assert len(edges) >= 5, "one, and a repeat each time"
        assert all(not level[cycle + 6] for cycle in edges[:4]), "taken once is enough"
        periods = [later - earlier for earlier, later in zip(edges, edges[1:], strict=False)]
        assert all(2 * rtt + 64 <= period <= 2 * rtt + 64 + 2 for period in periods), periods
        limits = [i for i, values in enumerate(trace) if values["nak_limit"]]
        assert limits and limits[0] == rises[3], "with the 4th repeat"
        assert not delivered(trace, link)


def test_nak_is_owed_until_it_is_sent():
    """The end of the wait does not take a NAK back; `nak_taken` does, and it is not repeated."""
    link = link_of(64)
    quiet = [Step(None)] * 10
    steps = beats(link, [Flits().replay(), Flits().data(1, sequence=1)]) + quiet
    steps += beats(link, [Flits().replay()]) + quiet
    steps += [Step(None, nak_taken=1), *[Step(None)] * 500]
    trace = run_receiver(Receiver(link), link, steps, rtt=20, drain=0)
    levels = [values["reverse__nak"] for values in trace]
    at = len(steps) - 501
    assert levels[at] == 1 and not any(levels[at + 1 :])
    assert totals(trace)["nak_repeats"] == 0


# --- Everything at once ----------------------------------------------------------------------


def rough_stream(link, rng, count, model):
    """(bytes of a flit, whether receiving starts anew behind it): flits of all kinds by a sender
    that often does what it should, by the state of the receiver's `model`.
    """
    sender, announced = Flits(rng), Format.SHORT
    for _ in range(count):
        resume = model.restless or model.hunting or rng.random() < 0.03
        if announced == Format.SHORT and resume and rng.random() < 0.7:  # else all kinds in HUNT
            sender.sequence = model.expected
            for _ in range(rng.randint(0, 3)):
                yield sender.replay(), False
            announced = Format(rng.random() < 0.3)
            yield sender.replay(announced), False
        kind, event, following = rng.random(), rng.random(), Format(rng.random() < 0.3)
        if announced == Format.LONG:
            flit = sender.data(LONG_GRANULES, following, Format.LONG)
        elif kind < 0.7:
            slot = {"poison": rng.random() < 0.1, "command": rng.choice([0, 0, 1, 2])}
            flit = sender.data(rng.randint(1, 3), following, **slot)
        else:
            flit = sender.idle(following, nak=rng.random() < 0.2, command=rng.choice([0, 0, 1, 2]))
        announced, restart = following, False
        if event < 0.05:
            flit = flip(flit, *rng.sample(range(8 * len(flit)), rng.randint(1, 4)))
        elif event < 0.07:
            sender.sequence = (sender.sequence + rng.choice([1, 2, 500])) % 1024
        elif event < 0.12:
            sender.sequence = (sender.sequence - rng.randint(1, 3)) % 1024
        elif event < 0.14:
            flit = sender.idle(reserved=rng.choice([0, 1]), command=rng.choice([0, 5]))
        elif event < 0.15:
            flit = sender.data(1, following, sequence=(sender.sequence + 512) % 1024)
        elif event < 0.21:
            flit = sender.idle(rng.randrange(4), epoch=rng.randrange(4))
        elif event < 0.23:  # out of step: only a new start helps
            size = link.beat_bytes
            flit = flit[: size * rng.randrange(1, len(flit) // size + 1)]
            flit += rng.randbytes(size * rng.randrange(3))
            restart, announced = True, Format.SHORT
        yield flit, restart


def lockstep(link, seed, count):
    """The receiver against the golden one: every event in its cycle, all payload, `expected`."""
    rng = random.Random(seed)
    model = golden.Receiver(link, SESSION, EPOCH)
    steps, expected, payload = [], [], []
    for flit, restart in rough_stream(link, rng, count, model):
        for step in with_gaps(beats(link, [flit]), rng, rng.choice([0, 0, 0.2])):
            steps.append(step)
            before = dict(model.counts)
            for result in model.beat(step.beat) if step.beat is not None else []:
                event = {
                    name.lower(): 1 for name, n in model.counts.items() if n != before.get(name, 0)
                }
                if result.reason:
                    event["error"] = result.reason
                if result.acknowledge:
                    event |= {"acknowledge__valid": 1, "acknowledge": result.acknowledge}
                    event |= {"credit__valid": 1, "credit": result.credit}
                if result.command:
                    event["peer_command"] = result.command
                if result.payload:
                    data = result.payload
                    event["progress"] = 1
                    payload.append((data.vc, data.data, data.first, data.poison))
                if event:
                    expected.append((len(steps) - 1 + VERDICT_CYCLES, event))
        if restart:
            steps += [Step(None)] * VERDICT_CYCLES + [Step(None, enable=0)] * rng.randint(1, 3)
            model.stop()
    trace = run_receiver(Receiver(link), link, steps, rtt=0xFFFF)
    got = events(trace)
    for mine, theirs in zip(got, expected, strict=False):
        assert mine == theirs, f"seed {seed}"
    assert len(got) == len(expected), f"seed {seed}"
    assert [flit[:4] for flit in delivered(trace, link)] == payload, f"seed {seed}"
    assert trace[-1]["reverse__expected"] == model.expected, f"seed {seed}"
    return model


@pytest.mark.parametrize("beat_bytes", BEATS)
def test_rough(beat_bytes):
    count = {16: 250, 32: 400, 64: 800}[beat_bytes]
    model = lockstep(link_of(beat_bytes), beat_bytes, count)
    wanted = "RX_SHORT RX_LONG RX_DATA CRC_ERRORS SEQUENCE_GAPS DUPLICATES EPOCH_DROPS"
    assert all(model.counts[name] > 2 for name in wanted.split()), model.counts


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_rough_long(seed):
    lockstep(link_of(BEATS[seed % 3]), 1000 + seed, 3000)
