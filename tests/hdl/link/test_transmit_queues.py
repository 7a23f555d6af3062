# amaranth: UnusedElaboratable=no
"""TransmitQueues: packets back to back in beats, and what a `clear` leaves of those coming in."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.transmit_queues import TransmitQueues
from isa.link import GRANULE_BYTES, VCS, LinkConfig

BITS = 8 * GRANULE_BYTES


class Source:
    """Beats of granules (packet << 8 | index) of one VC, without regard to where packets end."""

    def __init__(self, rng, full, numbers):
        self.rng, self.full, self.numbers = rng, full, numbers
        self.packet, self.index = next(numbers), 0
        self.beat = None
        """[(granule, begins, ends)], until it is taken."""

    def offer(self):
        rng = self.rng
        if self.beat is None and rng.random() < 0.5:
            self.beat = []
            for _ in range(rng.randint(1, self.full)):
                ends = rng.random() < 0.3
                self.beat.append((self.packet << 8 | self.index, self.index == 0, ends))
                self.index += 1
                if ends:
                    self.packet, self.index = next(self.numbers), 0
        return self.beat


@pytest.mark.parametrize("beat_bytes", [16, 32, 64])
@pytest.mark.parametrize("seed", range(2))
def test_clear_takes_whole_packets(seed, beat_bytes):
    """Packets on all VCs, back to back in beats with ends at every granule, `clear` at random: what
    comes out begins where packets begin.  Of what a clear has cut, all beats are lost up to the
    first one that ends with a packet; so is one that was offered in its cycle.
    """
    link = LinkConfig(beat_bytes=beat_bytes, lanes=4)
    full = link.beat_granules
    dut, rng = TransmitQueues(link), random.Random(seed)
    cut = [0, 0, 0]  # beats lost: in the cycle of clear, at a beginning and inside; behind it
    joints, lost_joints = set(), 0

    async def bench(ctx):
        nonlocal lost_joints
        numbers = iter(range(1, 1 << 20))
        sources = [Source(rng, full, numbers) for _ in range(VCS)]
        kept = [[] for _ in range(VCS)]  # (granule, begins, poison)
        dead, inside = [False] * VCS, [False] * VCS
        poisons = [0] * VCS
        for _ in range(700):
            clear = rng.random() < 0.03
            ctx.set(dut.clear, clear)
            for vc, source in enumerate(sources):
                tx, fresh = getattr(dut, f"tx{vc}"), source.beat is None
                beat = source.offer()
                if beat and fresh:
                    poisons[vc] = rng.random() < 0.1
                    # What lies beyond the granules is to be ignored
                    data = rng.getrandbits(BITS * full) >> BITS * len(beat) << BITS * len(beat)
                    last = rng.getrandbits(full) >> len(beat) << len(beat)
                    for i, (granule, _, ends) in enumerate(beat):
                        data |= granule << BITS * i
                        last |= ends << i
                    values = {"data": data, "granules": len(beat), "last": last}
                    ctx.set(tx.p, {**values, "poison": int(poisons[vc])})
                ctx.set(tx.valid, beat is not None)
            reading = rng.randrange(VCS)
            ctx.set(dut.vc, reading)
            take = min(len(kept[reading]), 0 if clear else rng.randint(0, full))
            ctx.set(dut.count, take)
            data, begins, poison = (
                ctx.get(dut.data), ctx.get(dut.begins), ctx.get(dut.poison)
            )  # fmt: skip
            for i, expected in enumerate(kept[reading][:take]):
                granule = data >> BITS * i & (1 << BITS) - 1
                assert (granule, begins >> i & 1, poison >> i & 1) == expected
            for vc in range(VCS):
                assert ctx.get(getattr(dut, f"level{vc}")) == len(kept[vc])
            ready = [ctx.get(getattr(dut, f"tx{vc}").ready) for vc in range(VCS)]
            await ctx.tick()
            del kept[reading][:take]
            for vc, source in enumerate(sources):
                beat = source.beat
                if clear:
                    kept[vc].clear()
                    assert ready[vc]
                    if beat and not dead[vc]:
                        cut[inside[vc]] += 1
                    dead[vc] = inside[vc] or beat is not None
                if not (beat and ready[vc]):
                    continue
                if dead[vc]:
                    cut[2] += not clear
                    lost_joints += any(ends for _, _, ends in beat[:-1])
                else:
                    joints.update(i for i, (_, _, ends) in enumerate(beat[:-1]) if ends)
                    kept[vc] += [(granule, begins, poisons[vc]) for granule, begins, _ in beat]
                inside[vc] = not beat[-1][2]
                dead[vc] = dead[vc] and inside[vc]
                source.beat = None

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert min(cut) > 5
    assert joints == set(range(full - 1)) and (lost_joints > 5 or full == 1)
