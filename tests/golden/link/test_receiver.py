"""The receiver: verdict and effect of every kind of flit, every reason, HUNT, NAK and its limit."""

import random

import pytest

from golden.link.flit import CAPACITY, build
from golden.link.receiver import Receiver, Verdict, first_of_beat
from isa.link import Command, FlitType, Format, LinkConfig, Reason

pytestmark = pytest.mark.smoke
SESSION, EPOCH = 0xABCDEF01, 1
SHORT, LONG = Format.SHORT, Format.LONG


def flit(flit_format=SHORT, session=SESSION, **slot):
    """A good CONTROL flit but for what is said."""
    slot = {"type": FlitType.CONTROL, "first": 63, "sequence": 1023, "epoch": EPOCH} | slot
    payload = bytes(range(16)) * min(slot.get("valid", 0), CAPACITY[flit_format])
    return build(flit_format, payload, slot, session)


def data(sequence, flit_format=SHORT, **slot):
    slot = {"type": FlitType.DATA, "payload": 1, "valid": CAPACITY[flit_format]} | slot
    return flit(flit_format, sequence=sequence, **slot)


def replay(sequence=1023, **slot):
    return flit(type=FlitType.REPLAY, sequence=sequence, **slot)


def broken(image):
    return bytes([image[0] ^ 1]) + image[1:]


class Bench:
    def __init__(self, size=64, framed=True):
        self.link = LinkConfig(beat_bytes=size, lanes=4)
        self.rx = Receiver(self.link, SESSION, EPOCH)
        if framed:
            assert self.see(replay()).verdict == Verdict.GOOD

    def see(self, image):
        """What the receiver makes of a flit (or of the first of the cells, in HUNT)."""
        size = self.link.beat_bytes
        results = []
        for low in range(0, len(image), size):
            results += self.rx.beat(image[low : low + size])
        assert results, "nothing came of it"
        return results[0]

    def verdicts(self, *images):
        return [self.see(image).verdict for image in images]


@pytest.mark.parametrize("size", [16, 32, 64])
def test_payload_in_order_is_accepted_in_both_formats(size):
    bench = Bench(size)
    got = bench.see(data(0, vc=5, valid=2, first=1, next_format=LONG, acknowledge=9, nak=1,
                         credit_a_vc=3, credit_a=100, credit_b_vc=6, credit_b=200))  # fmt: skip
    assert (got.verdict, got.acknowledge, got.credit) == (
        Verdict.ACCEPTED, (9, 1), (3, 100, 6, 200))  # fmt: skip
    assert (got.payload.vc, got.payload.granules, got.payload.first) == (5, 2, 1)
    assert got.payload.data == bytes(range(16)) * 2
    got = bench.see(data(1, LONG, first=38, poison=1))
    assert (got.verdict, got.payload.granules, got.payload.poison) == (Verdict.ACCEPTED, 39, 1)
    assert bench.rx.expected == 2 and not bench.rx.nak


def test_first_of_a_beat():
    payload = Bench().see(data(0, first=2)).payload
    assert [first_of_beat(payload, beat, 1) for beat in range(3)] == [None, None, 0]
    assert [first_of_beat(payload, beat, 2) for beat in range(2)] == [None, 0]
    assert first_of_beat(payload, 0, 4) == 2


def test_duplicate_gap_and_wait():
    bench = Bench()
    assert bench.verdicts(data(0), data(0), data(1001)) == [
        Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.DUPLICATE]  # fmt: skip
    assert not bench.rx.nak
    assert bench.verdicts(data(2)) == [Verdict.GAP]
    assert bench.rx.nak and bench.rx.waiting
    bench.rx.nak_taken()
    assert bench.verdicts(data(3), data(1)) == [Verdict.GAP, Verdict.WAITED]
    assert not bench.rx.nak, "one NAK for one gap"
    assert bench.verdicts(replay(0), data(1)) == [Verdict.GOOD, Verdict.ACCEPTED]
    assert bench.rx.expected == 2


def test_control_flit_shows_that_the_last_payload_flit_is_lost():
    """tt-metal #37473: the loss of one notice outside the resend protocol was for ever."""
    bench = Bench()
    assert bench.verdicts(data(0), flit(sequence=0)) == [Verdict.ACCEPTED, Verdict.GOOD]
    got = bench.see(flit(sequence=1, acknowledge=4))
    assert (got.verdict, got.acknowledge) == (Verdict.GAP, (4, 0))
    assert bench.rx.nak


def test_older_control_flits_in_a_replay_are_no_gap():
    bench = Bench()
    assert bench.verdicts(data(0), data(1), replay(1023), data(0), data(1), data(2)) == [
        Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.GOOD,
        Verdict.DUPLICATE, Verdict.DUPLICATE, Verdict.ACCEPTED]  # fmt: skip


def test_sequence_numbers_wrap():
    bench = Bench()
    for number in range(2100):
        assert bench.see(data(number % 1024)).verdict == Verdict.ACCEPTED
    assert bench.see(flit(sequence=2099 % 1024)).verdict == Verdict.GOOD


def test_crc_error_owes_a_nak_and_hunts_until_a_good_short_flit():
    """artiq #1730, #2662: bytes that were not checked reached the parser."""
    bench = Bench()
    got = bench.see(broken(data(0)))
    assert (got.verdict, got.acknowledge, got.payload) == (Verdict.CRC, None, None)
    assert bench.rx.nak and bench.rx.hunting
    for image in (broken(data(0)), flit(session=1, acknowledge=5), flit(epoch=2), replay(session=1),
                  replay(epoch=2), broken(replay()), replay(reserved=1), flit(command=3),
                  data(0, LONG, next_format=LONG), random.Random(1).randbytes(640)):  # fmt: skip
        for low in range(0, len(image), 64):
            got = bench.see(image[low : low + 64])
            assert (got.verdict, got.acknowledge, got.command) == (Verdict.HUNTED, None, 0)
    assert bench.rx.counts["CRC_ERRORS"] == 1
    assert bench.verdicts(replay(next_format=LONG), data(0, LONG)) == [
        Verdict.GOOD, Verdict.ACCEPTED]  # fmt: skip


@pytest.mark.parametrize(
    ("image", "verdict", "command"),
    [
        (flit(acknowledge=5, nak=1, credit_a=7, next_format=LONG), Verdict.GOOD, Command.NONE),
        (flit(acknowledge=5, nak=1, credit_a=7, next_format=LONG, command=Command.RETRAIN),
         Verdict.GOOD, Command.RETRAIN),
        (data(0, acknowledge=5, nak=1, credit_a=7, next_format=LONG), Verdict.WAITED, Command.NONE),
        (data(1, acknowledge=5, nak=1, credit_a=7, next_format=LONG), Verdict.GAP, Command.NONE),
    ],
)  # fmt: skip
@pytest.mark.parametrize("start", [False, True])
def test_any_good_short_flit_ends_a_hunt_but_payload_waits_for_replay(
    image, verdict, command, start
):
    """Acknowledgement, NAK and credits are heard in every state."""
    bench = Bench(framed=not start)
    if not start:
        bench.see(broken(flit()))
        bench.rx.nak_taken()
    got = bench.see(image)
    assert (got.verdict, got.acknowledge, got.credit) == (verdict, (5, 1), (0, 7, 0, 0))
    assert (got.payload, got.command) == (None, command)
    assert not bench.rx.hunting and bench.rx.waiting
    assert bench.verdicts(data(0, LONG)) == [Verdict.WAITED], "in frame: the long one is a flit"
    assert not bench.rx.nak, "asked for already"
    assert bench.rx.counts["SEQUENCE_GAPS"] == 0
    assert bench.verdicts(replay(), data(0)) == [Verdict.GOOD, Verdict.ACCEPTED]


def test_crc_error_while_waiting_asks_for_nothing_more():
    bench = Bench()
    bench.see(broken(data(0)))
    bench.rx.nak_taken()
    assert bench.verdicts(flit(), broken(flit())) == [Verdict.GOOD, Verdict.CRC]
    assert bench.rx.hunting and not bench.rx.nak
    assert bench.rx.counts["CRC_ERRORS"] == 2


def test_hunt_at_the_start_owes_nothing():
    bench = Bench(framed=False)
    assert bench.verdicts(broken(flit()), broken(data(0))) == [Verdict.HUNTED] * 2
    assert not bench.rx.nak and bench.rx.restless


def test_flit_inside_a_payload_is_not_taken_in_hunt():
    """A REPLAY flit of the own session, as user data that the peer sends, does not pass the salt
    of the peer's session.
    """
    bench = Bench(framed=False)
    inner = flit(type=FlitType.REPLAY, session=SESSION ^ 1)
    image = build(LONG, inner * 9, {"type": FlitType.DATA, "payload": 1, "valid": 39}, SESSION)
    results = [bench.rx.beat(image[low : low + 64])[0].verdict for low in range(0, 640, 64)]
    assert results == [Verdict.HUNTED] * 10


def test_other_epoch_is_dropped_and_counted():
    """Nothing sent before a reset is delivered behind it."""
    bench = Bench()
    got = bench.see(data(0, epoch=EPOCH + 1, acknowledge=3, nak=1))
    assert (got.verdict, got.payload, got.acknowledge) == (Verdict.EPOCH, None, None)
    assert bench.rx.counts["EPOCH_DROPS"] == 1 and bench.rx.expected == 0
    assert not bench.rx.nak


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (flit(type=0), Reason.BAD_TYPE),
        (flit(command=7), Reason.BAD_COMMAND),
        (flit(reserved=1), Reason.BAD_SLOT),
        (data(0, valid=4), Reason.BAD_SLOT),
        (data(0, first=3), Reason.BAD_SLOT),
        (data(0, next_format=3), Reason.BAD_SLOT),
        (data(512), Reason.BAD_SEQUENCE),
        (flit(sequence=511), Reason.BAD_SEQUENCE),
    ],
)
def test_protocol_errors_have_a_reason_and_no_effect(image, reason):
    bench = Bench()
    got = bench.see(image)
    assert (got.verdict, got.reason) == (Verdict.ERROR, reason)
    assert (got.payload, got.acknowledge, got.credit, got.command) == (None, None, None, 0)
    assert bench.rx.expected == 0


def test_commands_pass():
    bench = Bench()
    assert bench.see(flit(command=Command.RETRAIN)).command == Command.RETRAIN


def test_fourth_repeat_of_the_nak_asks_for_recovery():
    """tt-metal #45873: a tight handshake without a way out."""
    bench = Bench()
    assert bench.rx.repeat() == Reason.NONE and bench.rx.repeats == 0, "not waiting"
    bench.see(data(1))
    for _ in range(3):
        bench.rx.nak_taken()
        assert bench.rx.repeat() == Reason.NONE
        assert bench.rx.nak
    bench.verdicts(replay(), data(2))
    assert [bench.rx.repeat() for _ in range(4)] == [Reason.NONE] * 3 + [Reason.NAK_LIMIT]


def test_stop_keeps_expected_and_drops_what_is_gathered():
    bench = Bench(16)
    bench.see(data(0))
    bench.rx.beat(bytes(16))
    bench.rx.stop()
    bench.rx.start()
    assert bench.rx.hunting and bench.rx.expected == 1
    assert bench.verdicts(replay(0), data(1)) == [Verdict.GOOD, Verdict.ACCEPTED]
