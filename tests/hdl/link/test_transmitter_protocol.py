# amaranth: UnusedElaboratable=no
"""Transmitter against a plain go-back-N peer: nothing lost, doubled or out of order."""

from collections import deque

import pytest

from isa.link import LONG_GRANULES, VCS, WINDOW, Command, FlitType, Format
from verif.transmitter_bench import TransmitterBench, link_of

MODULUS = 1024


class Peer:
    """Receives the flits of a bench with a delay, loses some, acknowledges, asks, gives credit.

    `received`: (granule) of each VC in the order of acceptance.  `capacity`: units of the receive
    buffers; granules leave them at random.
    """

    def __init__(self, bench, capacity, delay=12):
        self.bench, self.rng, self.delay = bench, bench.rng, delay
        self.loss = 0.0
        self.expected, self.waiting, self.since_nak = 0, False, 0
        self.wire = deque()
        self.received = [[] for _ in range(VCS)]
        self.starts = [[] for _ in range(VCS)]
        self.poisoned = [set() for _ in range(VCS)]
        self.capacity = capacity
        self.left = [0] * VCS  # granules that have left the buffers
        self.drain = [0.5] * VCS
        self.seen_nak = False
        self.originals = {}
        self.accepted = 0

    def step(self):
        """After a cycle of the bench: what has arrived, and what it sends back."""
        bench, rng = self.bench, self.rng
        slot = bench.out["slot"]
        if slot:
            self._check_sender(slot)
            self.wire.append((bench.cycle + self.delay, slot))
        nak = False
        while self.wire and self.wire[0][0] <= bench.cycle:
            nak = self._arrive(self.wire.popleft()[1]) or nak
        self.since_nak += 1
        if self.waiting and self.since_nak > 3 * self.delay + 60:
            nak = True
        if nak:
            self.since_nak = 0
        if nak or rng.random() < 0.2:
            bench.acknowledge = (self.expected, int(nak))
        for vc in range(VCS):
            if self.left[vc] < len(self.received[vc]) and rng.random() < self.drain[vc]:
                self.left[vc] = min(len(self.received[vc]), self.left[vc] + rng.randint(1, 8))
        if rng.random() < 0.3:
            a = rng.randrange(VCS)
            b = (a + rng.randint(1, VCS - 1)) % VCS
            bench.credit = (a, self.limit(a), b, self.limit(b))

    def limit(self, vc):
        return (4 * self.capacity[vc] + self.left[vc]) // 4 % 4096

    def _check_sender(self, slot):
        """What holds for all flits, lost or not: a flit sent again is the same payload."""
        if slot["type"] != FlitType.DATA:
            return
        kept = tuple(slot[name] for name in ("format", "vc", "first", "valid", "poison"))
        image = (kept, tuple(slot["data"]))
        number = slot["sequence"]
        if slot["replayed"]:
            # What a flush has cut off is seen for the first time now
            assert self.originals.get(number, image) == image, f"sequence {number}"
        self.originals[number] = image
        self.originals.pop((number + 512) % MODULUS, None)

    def _arrive(self, slot):
        """Whether a NAK is to be sent."""
        if self.rng.random() < self.loss:
            first, self.waiting = not self.waiting, True
            return first
        if slot["type"] == FlitType.REPLAY:
            self.waiting = False
        if slot["type"] != FlitType.DATA:
            number = (slot["sequence"] + 1) % MODULUS
        else:
            number = slot["sequence"]
        ahead = (number - self.expected) % MODULUS
        assert ahead != 512
        if 1 <= ahead < 512:
            first, self.waiting = not self.waiting, True
            return first
        if slot["type"] == FlitType.DATA and ahead == 0 and not self.waiting:
            vc = slot["vc"]
            at = len(self.received[vc])
            if slot["first"] != 63:
                self.starts[vc].append(at + slot["first"])
            if slot["poison"]:
                self.poisoned[vc] |= set(range(at, at + slot["valid"]))
            self.received[vc] += slot["data"][: slot["valid"]]
            assert len(self.received[vc]) - self.left[vc] <= 4 * self.capacity[vc], "credit"
            self.expected = (self.expected + 1) % MODULUS
            self.accepted += 1
        return False

    def compare(self):
        """All that was taken from the sources has been accepted, in order."""
        for vc, source in enumerate(self.bench.sources):
            assert self.received[vc] == [granule for granule, _, _ in source.sent], f"VC {vc}"
            begins = {i for i, (_, begin, _) in enumerate(source.sent) if begin}
            assert set(self.starts[vc]) <= begins, f"VC {vc}"
            for i, (_, _, poison) in enumerate(source.sent):
                assert not poison or i in self.poisoned[vc], f"VC {vc}, granule {i}"


def everything_is_accepted(peer):
    return all(
        not source.beats and source.offered is None and len(peer.received[vc]) == len(source.sent)
        for vc, source in enumerate(peer.bench.sources)
    )


async def run_until(ctx, bench, peer, condition, most=6000):
    for _ in range(most):
        if condition():
            return
        await bench.step(ctx)
        peer.step()
    raise AssertionError(f"not within {most} cycles")


RUNS = [(16, 1500), (32, 700), (64, 900)]


@pytest.mark.parametrize(("beat_bytes", "cycles"), RUNS)
@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_random_losses(beat_bytes, cycles, loss):
    lose_at_random(beat_bytes, cycles, loss, seed=1)


@pytest.mark.nightly
@pytest.mark.parametrize(("beat_bytes", "cycles"), RUNS)
@pytest.mark.parametrize("loss", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("seed", [2, 3])
def test_random_losses_for_long(beat_bytes, cycles, loss, seed):
    lose_at_random(beat_bytes, 20 * cycles, loss, seed)


def lose_at_random(beat_bytes, cycles, loss, seed):
    """Random traffic over a line that loses flits; retraining now and then; in the end all is
    there.  Acknowledgements come while flits are sent again, and pass them.
    """
    bench = TransmitterBench(link_of(beat_bytes), beat_bytes + seed)
    rng = bench.rng
    peer = Peer(bench, capacity=[12, 16, 20, 32, 32, 16, 16, 12])
    peer.loss = loss
    bench.timer_cycles = 400

    async def run(ctx):
        for vc in range(0, VCS, 2):
            bench.credit = (vc, peer.limit(vc), vc + 1, peer.limit(vc + 1))
            await bench.step(ctx)
        bench.enable = 1
        for cycle in range(cycles):
            if cycle % 120 == 0:
                bench.rate = [rng.choice([0.05, 0.5, 1.0]) for _ in range(VCS)]
                bench.ready_rate = rng.choice([0.6, 1.0, 1.0])
                peer.drain = [rng.choice([0.0, 0.1, 1.0]) for _ in range(VCS)]
            for source in bench.sources:
                if not source.beats and rng.random() < 0.1:
                    source.packet(rng.choice([1, 3, 20, 65]), 0.01)
            if bench.enable and rng.random() < 0.005:
                bench.enable, bench.stop_command = 0, rng.choice([0, Command.RETRAIN])
                bench.flush = int(rng.random() < 0.7)
                if bench.flush:
                    peer.wire.clear()
            elif not bench.enable and bench.out["idle"]:
                bench.enable = 1
            await bench.step(ctx)
            peer.step()
        bench.rate, bench.ready_rate, peer.drain = [1.0] * VCS, 1.0, [1.0] * VCS
        bench.enable, peer.loss = 1, loss / 3
        await run_until(ctx, bench, peer, lambda: everything_is_accepted(peer))

    bench.simulate(run)
    peer.compare()
    assert peer.accepted > 60
    assert bench.counts["replayed_flits"] > 10 or loss == 0


def test_sequence_numbers_wrap():
    """More than 1024 payload flits, one a cycle."""
    bench = TransmitterBench(link_of(64), 5)
    peer = Peer(bench, capacity=[64] * VCS)
    peer.drain = [1.0] * VCS
    bench.rate = [0.3] * VCS

    async def run(ctx):
        await bench.grant_all(ctx, 64)
        bench.enable = 1
        numbers = set()
        while peer.accepted < 1100:
            peer.loss = 0.05 if 1000 < peer.accepted < 1060 else 0
            for source in bench.sources:
                if not source.beats:
                    source.packet(2)
            await bench.step(ctx)
            peer.step()
            if bench.out["slot"] and bench.out["slot"]["type"] == FlitType.DATA:
                numbers.add(bench.out["slot"]["sequence"])
        assert numbers == set(range(MODULUS))
        bench.rate = [1.0] * VCS
        peer.loss = 0
        await run_until(ctx, bench, peer, lambda: everything_is_accepted(peer))

    bench.simulate(run)
    peer.compare()


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_a_vc_without_credit_does_not_hold_up_the_others(beat_bytes):
    bench = TransmitterBench(link_of(beat_bytes), 6)
    got = [0] * VCS

    async def run(ctx):
        await bench.grant_all(ctx, 512)
        # The first limit of VC 0 is what its peer has: 32 units, 128 granules
        bench.clear = 1
        await bench.step(ctx)
        bench.credit = (0, 8, 1, 512)
        await bench.step(ctx)
        for vc in range(2, VCS, 2):
            bench.credit = (vc, 512, vc + 1, 512)
            await bench.step(ctx)
        bench.enable = 1
        for cycle in range(600 if beat_bytes == 64 else 1600):
            for vc in (0, 1, 5):
                if not bench.sources[vc].beats:
                    bench.sources[vc].packet(40, cut=False)
            await bench.step(ctx)
            slot = bench.out["slot"]
            if slot and slot["type"] == FlitType.DATA and not slot["replayed"]:
                got[slot["vc"]] += slot["valid"]
                bench.acknowledge = ((slot["sequence"] + 1) % MODULUS, 0)
            if cycle > 300 and bench.out["credit_stall"] == 0:
                raise AssertionError("VC 0 waits for credit")

    bench.simulate(run)
    assert got[0] == 32, "granules of its credit, not one more"
    assert got[1] > 300 and got[5] > 300
    assert abs(got[1] - got[5]) <= 3 * LONG_GRANULES


def test_credit_that_comes_late():
    """Credit for a long flit that comes while a short one begins: what that takes is not there."""
    bench = TransmitterBench(link_of(64, replay_bytes=16384), 10)

    async def run(ctx):
        await bench.grant_all(ctx, 32)
        bench.enable = 1
        units, gone = 32, 0
        for first in range(1, 11):
            for second in range(1, 6):
                bench.acknowledge = (len([s for s in bench.flits if s["valid"]]) % MODULUS, 0)
                while len(bench.sources[6].beats) < 40:
                    bench.sources[6].packet(60, cut=False)
                for _ in range(60):
                    await bench.step(ctx)
                for add in (first, second):
                    units += add
                    bench.credit = (6, units, 5, 32)
                    await bench.step(ctx)
                for _ in range(40):
                    await bench.step(ctx)
                gone = sum(slot["valid"] for slot in bench.flits)
                assert gone == 4 * units, (first, second)

    bench.simulate(run)


def test_bad_updates_are_told_and_have_no_effect():
    bench = TransmitterBench(link_of(64, replay_bytes=8192), 7)

    async def run(ctx):
        await bench.grant_all(ctx, 32)
        bench.enable = 1
        for _ in range(20):
            await bench.step(ctx)
        for name, value, reason in [
            ("credit", (1, 33, 2, 32), 18),  # beyond what was advertised
            ("credit", (1, 32, 2, 40), 18),
            ("credit", (1, 31, 2, 4095), 0),  # old
            ("acknowledge", (1, 0), 17),  # nothing has been sent
            ("acknowledge", (512, 1), 17),
            ("acknowledge", (1000, 0), 0),  # old
        ]:
            setattr(bench, name, value)
            await bench.step(ctx)
            assert bench.out["error"] == reason, (name, value)
        bench.sources[1].packet(65, cut=False)
        bench.sources[1].packet(65, cut=False)
        for _ in range(150):
            await bench.step(ctx)
        assert sum(slot["valid"] for slot in bench.flits) == 128

    bench.simulate(run)


@pytest.mark.parametrize("beats", [16, 64])
def test_replay_memory_is_never_exceeded(beats):
    """Without acknowledgement: as many flits as it holds, or as the window allows; no more."""
    bench = TransmitterBench(link_of(beats), 8)
    cells = 2048 // 64

    async def run(ctx):
        await bench.grant_all(ctx)
        bench.enable = 1
        most = 0
        for cycle in range(700 if beats == 16 else 250):
            for source in bench.sources[:3]:
                if not source.beats:
                    source.packet(30 if cycle % 3 else 1)
            await bench.step(ctx)
            most = max(most, bench.out["replay_level"])
        assert bench.out["replay_full"] == 1
        new = [s for s in bench.flits if s["type"] == FlitType.DATA]
        held = sum(10 if s["format"] == Format.LONG else 1 for s in new)
        assert held == cells == most * beats // 64
        assert bench.flits[-1]["type"] == FlitType.CONTROL

        # All of it comes again, as it was, behind the REPLAY flits
        before = len(bench.flits)
        bench.acknowledge = (0, 1)
        for _ in range(330 if beats == 16 else 90):
            await bench.step(ctx)
        again = [s for s in bench.flits[before:] if s["replayed"]]
        assert len(again) == len(new)
        for old, copy in zip(new, again, strict=True):
            for name in ("format", "sequence", "vc", "first", "valid", "poison", "data"):
                assert old[name] == copy[name]

        # Once acknowledged there is room again
        bench.acknowledge = (len(new), 0)
        for _ in range(60):
            await bench.step(ctx)
        assert bench.flits[-1]["sequence"] >= len(new)

    bench.simulate(run)


def test_window():
    """511 payload flits and no more are outstanding, whatever the replay buffer holds."""
    bench = TransmitterBench(link_of(64, replay_bytes=65536), 9)

    async def run(ctx):
        await bench.grant_all(ctx)
        bench.enable = 1
        bench.rate = [0.3] * VCS
        for _ in range(700):
            for source in bench.sources:
                if not source.beats:
                    source.packet(1)
            await bench.step(ctx)
        sent = [s["sequence"] for s in bench.flits if s["type"] == FlitType.DATA]
        assert sent == list(range(WINDOW))
        assert bench.out["replay_full"] == 1
        # Long flits as well, and at the end of the window one that is announced
        bench.rate = [1.0] * VCS
        for more in (4, 9, 14):
            for cycle in range(180):
                for source in bench.sources:
                    if not source.beats:
                        source.packet(60, cut=False)
                if cycle == 100:
                    bench.acknowledge = (more, 0)
                await bench.step(ctx)
            data = [s for s in bench.flits if s["type"] == FlitType.DATA]
            assert [s["sequence"] for s in data] == list(range(WINDOW + more))
            assert any(s["format"] == Format.LONG for s in data[-5:])

    bench.simulate(run)
