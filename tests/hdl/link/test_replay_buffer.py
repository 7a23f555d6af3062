# amaranth: UnusedElaboratable=no
"""ReplayBuffer: copies, room and seeking, with a plain list of flits beside it."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.replay_buffer import ReplayBuffer
from isa.link import LinkConfig

MODULUS = 1024
PULSES = ("w_beat", "w_start", "w_end", "hold", "take", "take_end")


class Driver:
    """Writes and reads as a composer would, a beat a cycle, and moves base, next and pointer as
    ReplayControl does: an acknowledge that passes the pointer takes it along.
    """

    def __init__(self, link, seed):
        self.link, self.rng, self.dut = link, random.Random(seed), ReplayBuffer(link)
        self.capacity = link.replay_bytes // link.beat_bytes
        self.base = self.next = self.pointer = 0
        self.flits = {}  # number: (beats, info)
        self.work = None  # (writing, number, index of the next beat)
        self.announced = False
        self.settled = self.unacknowledged = 0  # cycles since pointer or hold, base moved
        self.seamless = self.soon = False
        self.written = self.read = self.full = self.passed = self.most = 0

    def distance(self, number):
        return (number - self.base) % MODULUS

    def held(self):
        return sum(
            len(self.flits[(self.base + i) % MODULUS][0]) for i in range(self.distance(self.next))
        )

    def new_flit(self, long):
        rng, link = self.rng, self.link
        count = link.long_beats if long else link.cell_beats
        beats = [rng.getrandbits(8 * link.beat_bytes) for _ in range(count)]
        info = {"long": long, "poison": rng.randrange(2), "vc": rng.randrange(8),
                "first": rng.randrange(64), "valid": rng.randrange(40)}  # fmt: skip
        return beats, info

    async def step(self, ctx, busy):
        dut, rng = self.dut, self.rng
        pulses = dict.fromkeys(PULSES, 0)
        for name in ("base", "next", "pointer"):
            ctx.set(getattr(dut, name), getattr(self, name))
        for name in PULSES:
            ctx.set(getattr(dut, name), 0)
        self.check_level(ctx, 0)
        ready = ctx.get(dut.ready)
        exists = self.pointer != self.next
        if self.work is None and not self.announced:
            assert exists or not ready
            assert ready or not self.seamless, "the next flit is ready at once"
            assert ready or not exists or self.settled < 2, "a seek takes two cycles"
            assert ready or not self.soon, "it was to be ready soon"
            assert exists or not ctx.get(dut.soon)
        soon = ctx.get(dut.soon)
        self.seamless = False

        moves = {}
        if self.work is None and rng.random() < busy:
            self.begin(ctx, ready, moves)
        if self.work is not None and (moves or rng.random() < busy):
            self.beat(ctx, pulses, moves)
        if self.announced or (self.work and not self.work[0]):
            pulses["hold"] = 1
        for name in PULSES:
            ctx.set(getattr(dut, name), pulses[name])
        self.check_level(ctx, len(self.flits[self.next][0]) if pulses["w_start"] else 0)
        await ctx.tick()

        self.settled = 0 if pulses["hold"] else self.settled + 1
        self.unacknowledged += 1
        before = self.pointer
        self.next = moves.get("next", self.next)
        self.pointer = moves.get("pointer", self.pointer)
        if pulses["take_end"] or pulses["w_end"]:
            self.work = None
        if rng.random() < 0.05:
            self.acknowledge(rng.randint(0, min(6, self.distance(self.next))))
        if pulses["take_end"]:
            following = (self.number + 1) % MODULUS
            self.seamless = self.pointer == following and following != self.next
        if self.pointer != before:
            self.settled = 0
        self.soon = soon and self.pointer == before and not pulses["take_end"]

    def begin(self, ctx, ready, moves):
        dut, rng = self.dut, self.rng
        if self.announced:
            # Maybe passed in the meantime: it is read all the same
            self.announced = False
            self.number = ctx.get(dut.at)
            self.work = (False, self.number, 0)
            if self.number == self.pointer:
                moves["pointer"] = (self.pointer + 1) % MODULUS
            moves["begin"] = 1
        elif self.pointer != self.next:
            if ready and rng.random() < 0.2:
                self.announced = True
            elif ready:
                self.number = self.pointer
                self.work = (False, self.number, 0)
                moves |= {"pointer": (self.pointer + 1) % MODULUS, "begin": 1}
        elif rng.random() < 0.1:
            moves["pointer"] = self.base  # a replay
        else:
            long = rng.randrange(2)
            room = ctx.get(dut.room_long if long else dut.room_short)
            if room and self.distance(self.next) < 511:
                self.flits[self.next] = self.new_flit(long)
                self.work = (True, self.next, 0)
                after = (self.next + 1) % MODULUS
                moves |= {"next": after, "pointer": after, "begin": 1}
            else:
                self.full += 1

    def beat(self, ctx, pulses, moves):
        dut = self.dut
        writing, number, index = self.work
        beats, info = self.flits[number]
        end = index == len(beats) - 1
        if writing:
            pulses |= {"w_beat": 1, "w_start": index == 0, "w_end": end}
            ctx.set(dut.w_data, beats[index])
            ctx.set(dut.w_long, info["long"])
            ctx.set(dut.w_sequence, number)
            ctx.set(dut.w_info, info)
            self.written += end
        else:
            pulses |= {"take": 1, "take_end": end, "hold": 1}
            assert ctx.get(dut.at) == number
            assert ctx.get(dut.r_data) == beats[index], f"flit {number}, beat {index}"
            assert {name: ctx.get(getattr(dut.info, name)) for name in info} == info
            following = (number + 1) % MODULUS
            if self.distance(following) < self.distance(self.next):
                assert ctx.get(dut.next_long) == self.flits[following][1]["long"]
            self.read += end
        self.work = (writing, number, index + 1)

    def acknowledge(self, distance):
        if self.work and self.work[0]:
            distance = min(distance, self.distance(self.work[1]))
        self.unacknowledged = 0
        if self.distance(self.pointer) < distance:
            self.pointer = (self.base + distance) % MODULUS
            self.passed += 1
        self.base = (self.base + distance) % MODULUS

    def check_level(self, ctx, starting):
        dut, link = self.dut, self.link
        level, held = ctx.get(dut.level), self.held()
        assert held <= level <= self.capacity
        assert level == held or self.unacknowledged < 3
        assert ctx.get(dut.room_short) == (level + link.cell_beats <= self.capacity)
        assert ctx.get(dut.room_long) == (level + starting + link.long_beats <= self.capacity)
        self.most = max(self.most, level)


@pytest.mark.parametrize("beat_bytes", [16, 32, 64])
def test_random(beat_bytes):
    driver = Driver(LinkConfig(beat_bytes=beat_bytes, lanes=4, replay_bytes=2048), beat_bytes)

    async def bench(ctx):
        for cycle in range(5000):
            await driver.step(ctx, 0.5 if cycle // 500 % 3 == 0 else 1.0)

    simulator = Simulator(driver.dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert driver.written > 40 and driver.read > 15 and driver.passed > 4
    assert driver.full > 8 and driver.most > driver.capacity - driver.link.long_beats
    assert beat_bytes < 64 or driver.written > 400
