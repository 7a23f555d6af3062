# amaranth: UnusedElaboratable=no
"""Transmitter: the emitted Verilog does what Amaranth simulates; its size."""

import random
import re

import pytest

from hdl.emit import emit
from hdl.link.ports import packet_beat
from hdl.link.transmitter import Transmitter
from isa.link import VCS, LinkConfig
from verif.icarus import assert_same
from verif.transmitter_bench import link_of

CYCLES = 260


def stimuli(link, seed):
    """Packets, stalls, a NAK, a stop and a flush, without looking at what comes out."""
    rng, steps, layout = random.Random(seed), [], packet_beat(link)
    for cycle in range(CYCLES):
        step = {
            "enable": int(3 < cycle < 170 or cycle > 190),
            "flush": int(cycle == 120),
            "stop_command": 1,
            "o__ready": int(rng.random() < 0.9),
            "session": 0x12345678,
            "epoch": 1,
            "timer_cycles": 1000,
            "weights": 0x11111111,
            "reverse__expected": cycle // 3,
            "reverse__nak": int(rng.random() < 0.1),
            "limits__congestion": rng.randrange(4),
            **{f"limits__limit{vc}": 64 + cycle // (vc + 5) for vc in range(VCS)},
            "acknowledge__valid": int(cycle in (60, 140)),
            "acknowledge__acknowledge": 0,
            "acknowledge__nak": 1,
            "credit__valid": int(cycle < VCS),
            "credit__a_vc": cycle % VCS,
            "credit__a": 64,
            "credit__b_vc": (cycle + 1) % VCS,
            "credit__b": 64,
        }
        for vc in range(VCS):
            beat = {
                "data": rng.getrandbits(8 * link.beat_bytes),
                "granules": rng.randint(1, link.beat_granules),
                "last": rng.getrandbits(link.beat_granules),
                "poison": int(rng.random() < 0.02),
            }
            step[f"tx{vc}__payload"] = layout.const(beat).as_value().value
            step[f"tx{vc}__valid"] = int(rng.random() < (0.6 if vc == 1 else 0.05))
        steps.append(step)
    return steps


@pytest.mark.icarus
@pytest.mark.parametrize("beat_bytes", [16, 32, 64])
def test_emitted(beat_bytes, tmp_path):
    link = link_of(beat_bytes)
    known = assert_same(
        lambda: Transmitter(link), stimuli(link, beat_bytes), tmp_path,
        unknown_until_valid=("o__payload",),
    )  # fmt: skip
    assert known > (CYCLES - 70) * 8 * beat_bytes


REGISTER = re.compile(r"^ *reg (?:\[(\d+):0\] )?(?:\\\S+ |\w+)(?: = [^;]*)?;", re.MULTILINE)
"""A flip-flop or vector of them; memories have a range behind their name."""


def test_flip_flops():
    """Of the default link: under 6000, those at the outputs of block RAM included."""
    text = emit(Transmitter(LinkConfig()), "transmitter")
    count = sum(int(top or 0) + 1 for top in REGISTER.findall(text))
    assert 2000 < count < 6000
