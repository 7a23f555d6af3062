# amaranth: UnusedElaboratable=no
"""TransmitQueues: what a `clear` leaves of the packets that are on their way in."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.link.transmit_queues import TransmitQueues
from isa.link import VCS, LinkConfig

LINK = LinkConfig(beat_bytes=16, lanes=4)


@pytest.mark.parametrize("seed", range(3))
def test_clear_takes_whole_packets(seed):
    """Packets on all VCs, `clear` at random: what comes out are whole packets, those that began
    behind the last clear; one that was offered in its cycle is not among them.
    """
    dut, rng = TransmitQueues(LINK), random.Random(seed)
    cut = [0, 0]  # packets lost whose first beat stood in the cycle of clear; that were inside

    async def bench(ctx):
        number = 1
        offered = [None] * VCS  # (packet, granule, last)
        kept = [[] for _ in range(VCS)]
        dead = [False] * VCS  # the present packet of the VC is thrown away
        for vc in range(VCS):
            ctx.set(getattr(dut, f"tx{vc}").p.granules, 1)
        for _ in range(700):
            clear = rng.random() < 0.03
            ctx.set(dut.clear, clear)
            for vc in range(VCS):
                tx = getattr(dut, f"tx{vc}")
                if offered[vc] is None and rng.random() < 0.5:
                    offered[vc] = number, 0, rng.random() < 0.3
                    number += 1
                if offered[vc]:
                    packet, index, last = offered[vc]
                    ctx.set(tx.p.data, packet << 8 | index)
                    ctx.set(tx.p.last, last)
                ctx.set(tx.valid, offered[vc] is not None)
            reading = rng.randrange(VCS)
            ctx.set(dut.vc, reading)
            take = bool(kept[reading]) and not clear and rng.random() < 0.5
            ctx.set(dut.count, take)
            if take:
                packet, index = kept[reading].pop(0)
                assert ctx.get(dut.data) == packet << 8 | index
                assert ctx.get(dut.begins) == (index == 0)
            for vc in range(VCS):
                assert ctx.get(getattr(dut, f"level{vc}")) == len(kept[vc]) + (
                    take and vc == reading
                )
            ready = [ctx.get(getattr(dut, f"tx{vc}").ready) for vc in range(VCS)]
            await ctx.tick()
            for vc in range(VCS):
                if clear:
                    kept[vc].clear()
                    if offered[vc] and not dead[vc]:
                        cut[offered[vc][1] > 0] += 1
                    dead[vc] = offered[vc] is not None
                    assert ready[vc]
                if offered[vc] and ready[vc]:
                    packet, index, last = offered[vc]
                    if not dead[vc]:
                        kept[vc].append((packet, index))
                    dead[vc] = dead[vc] and not last
                    offered[vc] = None if last else (packet, index + 1, rng.random() < 0.3)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert min(cut) > 5
