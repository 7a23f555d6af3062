"""VC buffers: packets across flits, credit that comes back, and each way a length can be wrong."""

import numpy as np
import pytest

from golden.link.receiver import Payload
from golden.link.unpack import VcBuffers, packet_beats
from isa.link import HEADER, LinkConfig, Reason, pack_bits

pytestmark = pytest.mark.smoke
LINK = LinkConfig()


def packet(granules, tag=0, length=None):
    header = pack_bits(HEADER, {"kind": 1, "granules": length or granules, "tag": tag})
    return header.to_bytes(16, "little") + bytes([tag]) * 16 * (granules - 1)


def deliver(buffers, vc, data, first, poison=0):
    return buffers.deliver(Payload(vc, data, len(data) // 16, first, poison))


def take_all(buffers, vc):
    packets, reason = buffers.take(vc, 10_000)
    return [(each.data, each.poison) for each in packets], reason


@pytest.mark.parametrize("seed", range(5))
def test_packets_across_flits(seed):
    rng = np.random.default_rng(seed)
    buffers, stream, starts, packets = VcBuffers(LINK), b"", set(), []
    while len(stream) < 16 * 900:
        packets.append(packet(int(rng.integers(1, 66)), int(rng.integers(256))))
        starts.add(len(stream) // 16)
        stream += packets[-1]
    got, low, total = [], 0, len(stream) // 16
    while low < total:
        granules = min(int(rng.integers(1, 40)), total - low)
        first = next((i for i in range(granules) if low + i in starts), 63)
        assert deliver(buffers, 3, stream[16 * low :][: 16 * granules], first) == Reason.NONE
        low += granules
        assert buffers.limits[3] == 128 + (low - granules) // 4
        out, reason = take_all(buffers, 3)
        assert reason == Reason.NONE
        got += out
    assert got == [(each, 0) for each in packets]


def test_buffer_holds_its_units():
    buffers = VcBuffers(LINK)
    for index in range(10):
        assert buffers.congestion == min(3, 4 * 12 * index // 128)
        assert deliver(buffers, 6, packet(12), 0) == Reason.NONE
    assert deliver(buffers, 6, packet(8), 0) == Reason.NONE
    assert buffers.congestion == 3
    assert buffers.limits == list(LINK.vc_units)
    assert len(take_all(buffers, 6)[0]) == 11
    assert buffers.limits[6] == 64 and buffers.congestion == 0


def test_overflow_drops_a_beat_returns_its_credit_and_goes_on_at_the_next_first():
    buffers = VcBuffers(LINK)
    for _ in range(10):
        deliver(buffers, 6, packet(12), 0)
    assert deliver(buffers, 6, packet(6), 0) == Reason.NONE
    assert deliver(buffers, 6, packet(8, tag=5)[:48], 0) == Reason.OVERFLOW
    assert buffers.limits[6] == 32
    assert [data for data, _ in take_all(buffers, 6)[0]] == [packet(12)] * 10 + [packet(6)]
    deliver(buffers, 6, packet(8, tag=5)[48:] + packet(2), 5)
    assert take_all(buffers, 6) == ([(packet(2), 0)], Reason.NONE)
    assert buffers.limits[6] == 32 + (120 + 6 + 3 + 7) // 4


def test_packet_torn_by_an_overflow_ends_with_poison():
    buffers = VcBuffers(LINK)
    for _ in range(3):
        deliver(buffers, 6, packet(39), 0)
    deliver(buffers, 6, packet(20)[:128], 0)
    assert deliver(buffers, 6, packet(20)[128:], 63) == Reason.OVERFLOW
    assert len(take_all(buffers, 6)[0]) == 3
    deliver(buffers, 6, packet(1), 0)
    assert take_all(buffers, 6)[0] == [(packet(20)[:128], 1), (packet(1), 0)]


def test_poison_follows_its_packet():
    buffers = VcBuffers(LINK)
    deliver(buffers, 0, packet(5)[:48], 0)
    deliver(buffers, 0, packet(5)[48:] + packet(1), 2, poison=1)
    deliver(buffers, 0, packet(2), 0)
    assert [poison for _, poison in take_all(buffers, 0)[0]] == [1, 1, 0]


@pytest.mark.parametrize(
    ("flits", "good"),
    [
        ([(packet(3, length=66), 0), (packet(2), 0)], [packet(2)]),
        ([(packet(3, length=127), 0), (packet(2), 0)], [packet(2)]),
        ([(packet(3), 63), (packet(2), 0)], [packet(2)]),
        ([(packet(3), 1), (packet(2), 0)], [packet(2)]),
        ([(packet(2) + packet(2, length=100), 0), (bytes(48), 63), (packet(1), 0)],
         [packet(2), packet(1)]),
    ],
)  # fmt: skip
def test_wrong_length_drops_to_the_next_first(flits, good):
    buffers = VcBuffers(LINK)
    for data, first in flits:
        deliver(buffers, 1, data, first)
    got, reason = take_all(buffers, 1)
    assert reason == Reason.PACKET_LENGTH
    assert [data for data, _ in got if data in good] == good
    granules = sum(len(data) // 16 for data, _ in flits)
    assert buffers.limits[1] == 128 + granules // 4, "all credit comes back"


def test_packet_that_runs_into_the_next_is_cut_and_poisoned():
    buffers = VcBuffers(LINK)
    deliver(buffers, 1, packet(2, length=4), 0)
    deliver(buffers, 1, packet(1, tag=9), 0)
    got, reason = take_all(buffers, 1)
    assert got == [(packet(2, length=4), 1), (packet(1, tag=9), 0)]
    assert reason == Reason.PACKET_LENGTH


def test_beats_of_a_packet_are_full_but_the_last():
    buffers = VcBuffers(LINK)
    deliver(buffers, 0, packet(6), 0)
    (got,), _ = buffers.take(0, 6)
    assert [len(beat) for beat in packet_beats(got, 64)] == [64, 32]
