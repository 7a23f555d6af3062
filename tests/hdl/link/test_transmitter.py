# amaranth: UnusedElaboratable=no
"""Transmitter in lockstep with the golden model: every beat, every cycle."""

import pytest

from golden.link.transmitter import MODULUS, Transmitter
from isa.link import SLOT, VCS, WINDOW, Command, Format, unpack_bits
from verif.transmitter_bench import EPOCH, SESSION, TransmitterBench, link_of


class CopySearch:
    """When the replay buffer has the next flit of a replay at hand.  It stands at flit `at`; if
    that is not the next one and no copy is in work or announced, it seeks: found one cycle later,
    so that it can be announced, and fetched after two, so that it can be sent.
    """

    def __init__(self, model):
        self.model = model
        self.at, self.is_found, self.is_fetched = 0, False, False

    def begin_cycle(self):
        """Tells the model what is at hand."""
        model = self.model
        pointer = model.base if model._rewind else model.pointer
        self._next = model.next
        self._pointer = self._next if pointer is None else pointer
        self._is_here = self.is_found and self.at == self._pointer != self._next
        model.copy_soon, model.copy_ready = self._is_here, self._is_here and self.is_fetched
        self._copy = model._work.entry.sequence if self._is_copy(model._work) else None
        if model._work is None and model._announced == Format.LONG and model._long_vc is None:
            self._copy = self._pointer
        self._ended = model.counts["REPLAYED_FLITS"]

    def end_beat(self):
        """Behind the beat of this cycle, if there was one."""
        model = self.model
        has_ended = model.counts["REPLAYED_FLITS"] > self._ended
        if has_ended or self._is_copy(model._work) or self._copy is not None:
            number = self._pointer if self._copy is None else self._copy
            self.at, self.is_fetched = (number + has_ended) % MODULUS, True
        elif self._pointer == self._next:
            self.is_found = False
        elif not self._is_here:
            self.at, self.is_found, self.is_fetched = self._pointer, True, False
        else:
            self.is_fetched = True

    @staticmethod
    def _is_copy(work):
        return work is not None and work.replayed


class Lockstep:
    """The golden model beside the bench, with the pipeline of three beats behind it."""

    def __init__(self, bench):
        self.bench, self.model = bench, Transmitter(bench.link, bench.weights)
        self.pipe = [None] * 3
        self.was_enabled = self.quiet = 0
        self.copies = CopySearch(self.model)
        self.total_beats = bench.link.replay_bytes // bench.link.beat_bytes

    def difference(self, beat):
        """Fields of the slots, if they are slots, that differ: (got, expected)."""
        got, expected = (
            unpack_bits(SLOT, value >> 8 * self.bench.link.beat_bytes - 128)
            for value in (beat, self.pipe[2])
        )
        wrong = {name: (got[name], expected[name]) for name in got if got[name] != expected[name]}
        return wrong | {"type": got["type"]}

    def held(self):
        """Beats of the flits that are not acknowledged."""
        model = self.model
        return sum(
            model._beats(model._entries[(model.base + i) % MODULUS].flit_format)
            for i in range(model.outstanding)
        )

    def is_asked(self, out, acknowledge):
        """A replay is asked for in this cycle: by the timer, or by a NAK for what was sent."""
        if acknowledge is None or self.model.owed:
            return bool(out["timer_replays"])
        number, again = acknowledge
        behind = (self.model.base - number) % MODULUS
        known = (number - self.model.base) % MODULUS <= self.model.outstanding
        return bool(out["timer_replays"] or (again and (known or 0 < behind < MODULUS // 2)))

    async def step(self, ctx):
        bench, model = self.bench, self.model
        enable, command, flush = bench.enable, bench.stop_command, bench.flush
        acknowledge, credit = bench.acknowledge, bench.credit
        arguments = (bench.expected, bench.nak_owed, list(bench.limits), bench.congestion)
        await bench.step(ctx)
        out, where = bench.out, f"cycle {bench.cycle}"
        assert out["valid"] == (self.pipe[2] is not None), where
        assert out["beat"] == self.pipe[2], f"{where}: {self.difference(out['beat'])}"

        # Room is seen up to two cycles late, never too early: the model goes by what is seen
        held = self.held()
        assert held <= out["replay_level"] <= self.total_beats, where
        assert self.quiet < 3 or out["replay_level"] == held, where
        self.quiet += 1
        model.free_beats = self.total_beats - out["replay_level"]

        if self.was_enabled and not enable:
            model.stop(Command(command))
        nak, owed = False, model.owed
        self.copies.begin_cycle()
        if flush:
            if model._work is None:
                model._announced = Format.SHORT  # it stays in its queue
            counts = {name: model.counts[name] for name in ("TX_SHORT", "TX_LONG")}
            model.flush()
            for name, value in counts.items():
                model.counts[name] = value  # what is cut off does not count
            self.pipe = [None] * 3
        elif out["ready"] or self.pipe[2] is None:
            asked = self.is_asked(out, acknowledge)
            beat, nak = model.beat(*arguments, SESSION, EPOCH, asked=asked)
            value = None if beat is None else int.from_bytes(beat, "little")
            self.pipe = [value, *self.pipe[:2]]
        self.copies.end_beat()
        assert out["nak_taken"] == nak == out["nak_sent"], where
        if nak:
            bench.nak_owed = 0

        for vc, parts in out["taken"].items():
            for data, last, poison in parts:
                model.push(vc, data, last, poison)
        reason = 0
        if acknowledge is not None:
            self.quiet = 0
            number, again = acknowledge
            if again and owed and not model.owed:
                # The last REPLAY flit begins in this cycle and still answers the NAK
                reason = model.acknowledge(number, 0)
                model.counts["NAK_RECEIVED"] += 1
            else:
                reason = model.acknowledge(number, again)
            if (
                model.pointer is not None
                and not model._rewind
                and (model.pointer - model.base) % MODULUS > WINDOW
            ):
                model.pointer = model.base  # what an acknowledge has passed is not sent again
        if credit is not None:
            reason = reason or model.credit(*credit)
        assert out["error"] in (reason, 0) or reason == 8, where
        if out["timer_replays"]:
            model.timer()
        if enable and not self.was_enabled:
            model.start()
        self.was_enabled = enable

    def compare_counts(self):
        for name in ("TX_SHORT", "TX_LONG", "TX_DATA", "NAK_SENT", "NAK_RECEIVED",
                     "REPLAYED_FLITS", "TIMER_REPLAYS", "POISON_SENT"):  # fmt: skip
            assert self.bench.counts[name.lower()] == self.model.counts[name], name


def acknowledge_of(bench, model, least=False):
    """A random acknowledgement; in a replay of flits that are already sent again only.  `least`:
    of few flits, so that there is something to replay.
    """
    behind = model.outstanding
    if model.pointer is not None and not model._rewind:
        behind = (model.pointer - model.base) % MODULUS
    if model._rewind and model._work is None:
        behind = 0  # a replay may begin in this very cycle: from the base before or after
    distance = bench.rng.randint(0, min(behind, 1) if least else behind)
    if bench.rng.random() < 0.1:
        distance = -bench.rng.randint(1, 500)
    return (model.base + distance) % MODULUS


SHORT_RUNS = [(16, 0, 2400), (32, 0, 1800), (64, 0, 1200), (64, 1, 3000)]
LONG_RUNS = [(beat_bytes, seed, 20000) for beat_bytes in (16, 32, 64) for seed in (2, 3)]


@pytest.mark.parametrize(("beat_bytes", "seed", "cycles"), SHORT_RUNS)
def test_random(beat_bytes, seed, cycles):
    """Traffic, acknowledgements, NAKs, credit, stalls, stops with and without flush: all random."""
    run_random(beat_bytes, seed, cycles)


@pytest.mark.nightly
@pytest.mark.parametrize(("beat_bytes", "seed", "cycles"), LONG_RUNS)
def test_random_for_long(beat_bytes, seed, cycles):
    run_random(beat_bytes, seed, cycles)


def run_random(beat_bytes, seed, cycles):
    # Small enough to fill at the rate of the beats.
    link = link_of(beat_bytes, replay_bytes=4096 if seed % 2 and beat_bytes > 16 else 2048)
    bench = TransmitterBench(link, 100 * beat_bytes + seed)
    rng = bench.rng
    bench.weights = [rng.randrange(16) for _ in range(VCS)]
    lockstep = Lockstep(bench)
    model = lockstep.model
    limits = [10 if vc == 3 else 16 for vc in range(VCS)]
    advertised = list(limits)

    async def run(ctx):
        for vc in range(0, VCS, 2):
            bench.credit = (vc, limits[vc], vc + 1, limits[vc + 1])
            await lockstep.step(ctx)
        bench.enable = 1
        for cycle in range(cycles):
            if cycle % 100 == 0:
                bench.rate = [rng.choice([0, 0.02, 0.3, 1.0]) for _ in range(VCS)]
                bench.ready_rate = rng.choice([0.5, 0.9, 1.0, 1.0])
                acknowledges = rng.choice([0.01, 0.05, 0.3])
                naks = rng.choice([0, 0.01, 0.03])
                credits = rng.choice([0.01, 0.05, 0.3])
                bench.timer_cycles = rng.choice([60, 60000, 60000])
            for source in bench.sources:
                if not source.beats and rng.random() < 0.3:
                    source.packet(rng.choice([1, 2, 5, 17, 65]), 0.02, cut=rng.random() < 0.3)
            if rng.random() < naks:
                bench.acknowledge = (acknowledge_of(bench, model, least=True), 1)
            elif rng.random() < acknowledges:
                bench.acknowledge = (acknowledge_of(bench, model), 0)
            if rng.random() < credits:
                # What has been sent leaves the other side's buffer, in part
                a = rng.randrange(VCS)
                b = (a + rng.randint(1, VCS - 1)) % VCS
                for vc in (a, b):
                    most = advertised[vc] + model.credits[vc].sent // 4
                    if vc != 3 or cycle > cycles // 2:  # VC 3 gets none for a long time
                        limits[vc] = rng.randint(limits[vc], max(most, limits[vc]))
                bench.credit = (a, limits[a] % 4096, b, limits[b] % 4096)
            bench.nak_owed = bench.nak_owed or int(rng.random() < 0.02)
            bench.expected = (bench.expected + rng.randrange(3)) % MODULUS
            bench.congestion = rng.randrange(4)
            own = rng.randrange(VCS)
            bench.limits[own] = (bench.limits[own] + rng.randrange(2)) % 4096
            if bench.enable and rng.random() < 0.004:
                bench.enable = 0
                bench.stop_command = rng.choice([0, Command.RETRAIN, Command.DISABLE])
                bench.flush = int(rng.random() < 0.4)
            elif not bench.enable and bench.out["idle"] and rng.random() < 0.2:
                bench.enable = 1
            await lockstep.step(ctx)
        bench.enable = bench.stop_command = 0
        for _ in range(2 * link.long_beats):
            await lockstep.step(ctx)
        bench.ready_rate = 1.0
        while not bench.out["idle"]:
            await lockstep.step(ctx)

    bench.simulate(run)
    lockstep.compare_counts()
    counts = bench.counts
    assert counts["tx_long"] > 8 and counts["tx_data"] > 30 and counts["replayed_flits"] > 8
    assert counts["poison_sent"] and counts["nak_sent"]
    assert counts["replay_full"] > 8 and counts["credit_stall"] > 8, counts
