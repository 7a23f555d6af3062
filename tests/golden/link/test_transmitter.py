"""The composer flit by flit: formats, slots, replay, credit, window, stop."""

import pytest

from golden.link.arbiter import Arbiter
from golden.link.credits import CreditCounter, CreditReturn
from golden.link.flit import FLIT_BYTES, parse
from golden.link.transmitter import Transmitter
from isa.link import (
    REPLAY_FLITS,
    VCS,
    WINDOW,
    Command,
    FlitType,
    Format,
    LinkConfig,
    Reason,
)

pytestmark = pytest.mark.smoke
LINK = LinkConfig()
SESSION = 0x1234
CONTROL, DATA, REPLAY = FlitType.CONTROL, FlitType.DATA, FlitType.REPLAY


class Bench:
    """A transmitter whose beats are gathered to (format, slot, payload) of whole flits."""

    def __init__(self, link=LINK, credit=True, **arguments):
        self.tx = Transmitter(link, **arguments)
        self.limits, self.expected, self.nak = [32] * VCS, 0, False
        self.format = Format.SHORT
        if credit:
            for vc in range(0, VCS, 2):
                self.tx.credit(vc, 1024, vc + 1, 1024)
        self.tx.start()

    def flit(self):
        image = b""
        while len(image) < FLIT_BYTES[self.format]:
            beat, taken = self.tx.beat(self.expected, self.nak, self.limits, 1, SESSION, 2)
            if beat is None:
                assert not image, "stopped inside a flit"
                return None
            image += beat
        self.nak = self.nak and not taken
        slot, body = parse(image)
        this, self.format = self.format, Format(slot["next_format"])
        return this, slot, body

    def slots(self, count):
        return [self.flit()[1] for _ in range(count)]

    def start(self):
        """The REPLAY flits at the start of sending."""
        assert self.types(REPLAY_FLITS) == [REPLAY] * REPLAY_FLITS

    def types(self, count):
        return [slot["type"] for slot in self.slots(count)]

    def fill(self, vc, granules, last=True, value=1, **arguments):
        """Queues granules whose bytes are value, value + 1 ..."""
        for index in range(granules):
            data = bytes([(value + index) % 256]) * 16
            self.tx.push(vc, data, last and index == granules - 1, **arguments)


@pytest.mark.parametrize(("size", "lanes"), [(16, 4), (32, 8), (64, 16)])
def test_replay_flits_come_first_then_control(size, lanes):
    bench = Bench(LinkConfig(beat_bytes=size, lanes=lanes))
    slots = bench.slots(3)
    assert [slot["type"] for slot in slots] == [REPLAY] + [CONTROL] * 2
    assert all(slot["sequence"] == 1023 for slot in slots)
    assert all(slot["first"] == 63 and slot["valid"] == 0 for slot in slots)
    assert all(slot["congestion"] == 1 and slot["epoch"] == 2 for slot in slots)


def test_short_flit_takes_at_most_three_granules_and_the_credit():
    bench = Bench(credit=False)
    bench.tx.credit(3, 32, 4, 0)
    bench.tx.credits[3].spend(126)
    bench.fill(3, 5)
    bench.start()
    flit_format, slot, body = bench.flit()
    assert (flit_format, slot["type"], slot["valid"], slot["first"]) == (Format.SHORT, DATA, 2, 0)
    assert body == bytes([1]) * 16 + bytes([2]) * 16 + bytes(16)
    assert bench.types(3) == [CONTROL] * 3, "without credit nothing goes"
    bench.tx.credit(3, 33, 4, 0)
    slot = bench.flit()[1]
    assert (slot["valid"], slot["first"]) == (3, 63)


def test_long_flit_is_announced_and_always_full():
    bench = Bench()
    bench.fill(1, 42)
    assert bench.slots(REPLAY_FLITS)[-1]["next_format"] == Format.LONG
    flit_format, slot, body = bench.flit()
    assert (flit_format, slot["valid"], slot["vc"], slot["first"]) == (Format.LONG, 39, 1, 0)
    assert body == b"".join(bytes([i + 1]) * 16 for i in range(39))
    assert bench.flit()[1]["valid"] == 3


def test_38_granules_go_in_short_flits():
    bench = Bench()
    bench.fill(1, 38)
    bench.start()
    slots = bench.slots(14)
    assert [slot["valid"] for slot in slots] == [3] * 12 + [2, 0]


def test_long_needs_credit_for_all_of_it():
    bench = Bench(credit=False)
    bench.tx.credit(0, 32, 1, 32)
    bench.tx.credits[0].spend(90)
    bench.fill(0, 60)
    assert bench.slots(REPLAY_FLITS)[-1]["next_format"] == Format.SHORT
    bench.tx.credit(0, 33, 1, 32)
    assert bench.flit()[1]["next_format"] == Format.LONG, "39 left behind three of 42"


def test_first_points_at_the_first_packet_that_begins():
    bench = Bench()
    bench.start()
    bench.fill(0, 4)
    bench.fill(0, 1)
    bench.fill(0, 1)
    assert [slot["first"] for slot in bench.slots(2)] == [0, 1]


def test_poison_marks_the_flits_that_carry_it_also_when_replayed():
    bench = Bench()
    bench.start()
    bench.fill(0, 3)
    bench.fill(0, 3, poison=True)
    assert [slot["poison"] for slot in bench.slots(3)] == [0, 1, 0]
    bench.tx.acknowledge(0, 1)
    assert [slot["poison"] for slot in bench.slots(4)] == [0] * 2 + [1, 0]


def test_replay_repeats_number_and_payload_with_fresh_acknowledge():
    """LUNA cfb7440 (new number), 4861b9e (no retry mark), c660020 (payload of a drained source)."""
    bench = Bench()
    bench.start()
    bench.fill(2, 9)
    sent = [bench.flit() for _ in range(3)]
    bench.expected = 77
    bench.tx.acknowledge(1, 1)
    replay = [bench.flit() for _ in range(3)]
    assert [slot["type"] for _, slot, _ in replay] == [REPLAY] + [DATA] * 2
    assert [slot["sequence"] for _, slot, _ in replay] == [0, 1, 2]
    for (_, old, old_body), (_, new, new_body) in zip(sent[1:], replay[1:], strict=True):
        assert new_body == old_body
        kept = ("sequence", "vc", "first", "valid", "poison", "type", "payload")
        assert [new[name] for name in kept] == [old[name] for name in kept]
        assert (old["replayed"], new["replayed"], new["acknowledge"]) == (0, 1, 77)
    assert bench.flit()[1]["type"] == CONTROL


def test_long_flits_are_announced_in_a_replay():
    bench = Bench()
    bench.fill(0, 78)
    bench.types(3)
    bench.tx.acknowledge(0, 1)
    slots = bench.slots(4)
    assert [slot["next_format"] for slot in slots] == [1, 1, 0, 0]
    assert [slot["replayed"] for slot in slots] == [0, 1, 1, 0]


def test_announced_long_flit_goes_before_the_replay():
    bench = Bench()
    bench.fill(0, 39)
    bench.start()
    bench.tx.acknowledge(0, 1)
    slots = bench.slots(3)
    assert [slot["type"] for slot in slots] == [DATA, REPLAY, DATA]
    assert [slot["replayed"] for slot in slots] == [0, 0, 1]


def test_nak_is_absorbed_while_replay_flits_are_owed_and_restarts_a_replay():
    """LUNA 58e0cc9: the same packet sent for ever."""
    bench = Bench()
    bench.start()
    bench.fill(0, 9)
    bench.types(3)
    bench.tx.acknowledge(0, 1)
    bench.tx.acknowledge(0, 1)
    assert bench.types(2) == [REPLAY, DATA]
    bench.tx.acknowledge(1, 1)
    slots = bench.slots(4)
    assert [slot["type"] for slot in slots] == [REPLAY, DATA, DATA, CONTROL]
    assert [slot["sequence"] for slot in slots] == [0, 1, 2, 2]


@pytest.mark.parametrize("count", [1, 2, 100, WINDOW])
def test_one_acknowledge_covers_any_number_of_flits(count):
    """ECP5-PCIe c511d2e: an acknowledgement popped one entry although it is cumulative."""
    bench = Bench(LinkConfig(replay_bytes=1 << 16))
    bench.start()
    for _ in range(count):
        bench.fill(0, 3)
        bench.flit()
    room = bench.tx.free_beats
    assert bench.tx.acknowledge(count, 0) == Reason.NONE
    assert bench.tx.outstanding == 0
    assert bench.tx.free_beats == room + count * LINK.cell_beats
    bench.tx.acknowledge(count, 1)
    assert bench.types(2) == [REPLAY, CONTROL]


def test_window_and_replay_buffer_hold_back():
    for size, most in ((1 << 16, WINDOW), (2048, 32)):
        bench = Bench(LinkConfig(replay_bytes=size))
        bench.start()
        for _ in range(most):
            bench.fill(0, 3)
            assert bench.flit()[1]["type"] == DATA
        bench.fill(0, 3)
        assert bench.types(3) == [CONTROL] * 3
        bench.tx.acknowledge(1, 0)
        assert bench.flit()[1]["type"] == DATA


def test_acknowledge_of_what_was_never_sent():
    bench = Bench()
    bench.start()
    bench.fill(0, 6)
    bench.types(2)
    assert bench.tx.acknowledge(3, 1) == bench.tx.acknowledge(512, 0) == Reason.BAD_ACKNOWLEDGE
    assert bench.types(1) == [CONTROL], "a bad NAK has no effect"
    assert bench.tx.acknowledge(513, 0) == bench.tx.acknowledge(1023, 0) == Reason.NONE
    assert bench.tx.outstanding == 2


def test_fourth_replay_without_progress_asks_for_recovery():
    """ECP5-PCIe c511d2e: the replay counter never counted."""
    bench = Bench()
    bench.start()
    bench.fill(0, 6)
    bench.types(2)
    for event in (lambda: bench.tx.acknowledge(0, 1), bench.tx.timer, bench.tx.timer):
        assert event() == Reason.NONE
        bench.types(6)
    assert bench.tx.acknowledge(1, 0) == Reason.NONE
    for _ in range(3):
        assert bench.tx.timer() == Reason.NONE
        bench.types(6)
    assert bench.tx.timer() == Reason.REPLAY_LIMIT


def test_timer_with_nothing_outstanding_does_nothing():
    bench = Bench()
    bench.start()
    assert bench.tx.timer() == Reason.NONE
    assert bench.types(1) == [CONTROL]


def test_updates_rotate_and_changed_limits_come_first():
    bench = Bench()
    pairs = [(s["credit_a_vc"], s["credit_b_vc"]) for s in bench.slots(5)]
    assert pairs == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    bench.types(4)
    bench.limits[0] = 40
    slot = bench.flit()[1]
    assert (slot["credit_a_vc"], slot["credit_b_vc"], slot["credit_b"]) == (1, 0, 40)
    assert bench.flit()[1]["credit_b_vc"] == 3


def test_nak_is_put_into_one_slot():
    bench = Bench()
    bench.nak = True
    assert [slot["nak"] for slot in bench.slots(3)] == [1, 0, 0]


def test_nak_is_never_in_a_long_flit():
    """A peer in HUNT sees short flits only: one is announced for the NAK, with new data in it."""
    bench = Bench()
    bench.fill(0, 200)
    bench.types(2)
    bench.nak = True
    flits = [bench.flit() for _ in range(3)]
    assert [flit_format for flit_format, _, _ in flits] == [Format.LONG, Format.SHORT, Format.LONG]
    assert [slot["nak"] for _, slot, _ in flits] == [0, 1, 0]
    assert [slot["next_format"] for _, slot, _ in flits] == [0, 1, 1]
    assert [slot["type"] for _, slot, _ in flits] == [DATA] * 3
    bench.nak = True
    bench.format = Format.LONG
    assert [slot["nak"] for slot in bench.slots(2)] == [0, 1]


def test_replayed_long_flit_that_was_not_announced_waits_behind_a_control_flit():
    """SHORT was announced for the sake of a NAK, and the replay comes to a long flit."""
    bench = Bench()
    bench.fill(0, 117)
    bench.types(4)
    bench.tx.acknowledge(0, 1)
    bench.types(2)
    bench.nak = True
    slots = bench.slots(4)
    assert [slot["type"] for slot in slots] == [DATA, CONTROL, DATA, CONTROL]
    assert [slot["sequence"] for slot in slots] == [1, 1, 2, 2], "CONTROL keeps the place"
    assert [slot["nak"] for slot in slots] == [0, 1, 0, 0]
    assert [slot["next_format"] for slot in slots] == [0, 1, 0, 0]
    assert [slot["replayed"] for slot in slots] == [1, 0, 1, 0]


def test_replay_with_nothing_outstanding_does_not_count_as_failed():
    """An idle link that loses a flit now and then is sound."""
    bench = Bench()
    bench.start()
    for _ in range(10):
        assert bench.tx.acknowledge(0, 1) == Reason.NONE
        assert bench.types(2) == [REPLAY, CONTROL]


def test_stop_finishes_the_announced_long_flit_and_sends_the_command():
    bench = Bench()
    bench.fill(0, 90)
    bench.start()
    bench.tx.stop(Command.RETRAIN)
    slots = bench.slots(2)
    assert [slot["type"] for slot in slots] == [DATA, CONTROL]
    assert [slot["next_format"] for slot in slots] == [0, 0]
    assert [slot["command"] for slot in slots] == [0, Command.RETRAIN]
    assert bench.flit() is None and bench.tx.idle
    bench.tx.start()
    assert bench.types(2) == [REPLAY, DATA]


def test_flush_keeps_what_it_drops_for_the_replay():
    bench = Bench(LinkConfig(beat_bytes=16, lanes=4))
    bench.fill(0, 39)
    bench.start()
    bench.tx.beat(0, False, bench.limits, 0, SESSION, 2)
    bench.tx.flush()
    bench.tx.start()
    bench.format = Format.SHORT
    flits = [bench.flit() for _ in range(2)]
    assert flits[1][1]["replayed"] == 1
    assert flits[1][2] == b"".join(bytes([i + 1]) * 16 for i in range(39))


def test_arbiter_gives_each_vc_its_weight():
    arbiter = Arbiter((1, 2, 0, 15, 1, 1, 1, 1))
    order = []
    for _ in range(19):
        vc = arbiter.pick({0, 1, 2, 3})
        arbiter.grant(vc)
        order.append(vc)
    assert order == [0, 1, 1, 2] + [3] * 15
    assert arbiter.pick({3}) == 3 and arbiter.pick(()) is None


def test_blocked_vc_does_not_block_the_others():
    """slaclab/axi-pcie-core PR #196: one stalled lane starved all that shared with it."""
    bench = Bench(credit=False)
    bench.tx.credit(1, 1024, 2, 0)
    bench.start()
    bench.fill(2, 60)
    bench.fill(1, 3)
    assert [slot["vc"] for slot in bench.slots(1)] == [1]


def test_credit_from_the_first_cycle_and_across_the_wrap():
    """bedrock-rtl PR #304, #314 (first credit lost), surf PR #797 (fields past their wrap)."""
    counter, back = CreditCounter(), CreditReturn(32)
    assert counter.available == 0
    assert counter.update(back.limit) == Reason.NONE
    assert counter.available == 128
    for _ in range(5000):
        counter.spend(7)
        back.leave(7)
        assert counter.update(back.limit) == Reason.NONE
        assert 125 <= counter.available <= 128


def test_credit_beyond_the_buffer_is_an_error_and_old_limits_are_ignored():
    """openpiton #179: credit came back in every cycle in which a level was high."""
    counter = CreditCounter()
    counter.update(32)
    counter.spend(8)
    assert counter.update(34) == counter.update(34) == Reason.NONE
    assert counter.available == 128
    assert counter.update(33) == Reason.NONE and counter.limit == 34
    assert counter.update(35) == Reason.BAD_CREDIT
    assert counter.available == 128
