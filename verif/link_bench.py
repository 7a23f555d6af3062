"""Two link ports on a channel in C++, with traffic on all VCs and a scoreboard: campaigns, figures.

Every packet carries side, VC, generation and number, and data made from them; a receiver takes only
the next packet of the sender's present generation (a generation ends when a port reports `lost`),
whole and in order.  At the end faults stop, everything must arrive and every credit be back.
"""

import subprocess
import tempfile
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cache
from pathlib import Path

from hdl.emit import emit
from hdl.link.port import LinkPort
from isa.link import COUNTERS, SEQUENCE_BITS, UNIT_GRANULES, VCS, LinkConfig
from verif.verilated import build

_SOURCE = Path(__file__).with_suffix(".cpp")
_PUBLIC = "".join(
    f'public_flat_rd -module "link.core.transmitter.credit{vc}" -var "available"\n'
    for vc in range(VCS)
)
"""Granules of credit that a transmitter has: the bench looks whether all have come back."""
_PUBLIC += "".join(
    f'public_flat_rd -module "{module}" -var "{name}"\n'
    for module, names in (
        ("link.core", "reverse__nak_taken"),
        (
            "link.core.transmitter",
            "compose last_beat kind sequence replays nak_received acknowledge__acknowledge",
        ),
        ("link.core.lanes_tx", "started"),
        ("link.core.receiver", "rx_data"),
    )
    for name in names.split()
)
"""What a transmitter sends: for single faults and the way of a NAK."""


class Item(IntEnum):
    """What a single fault hits: training frames by their FrameType, flits by what they are."""

    DETECT = 1
    LOCK = 2
    ALIGN = 3
    TS1 = 4
    TS2 = 5
    START = 6
    CONTROL = 16
    REPLAY = 17
    DATA = 18
    RESEND = 19
    NAK = 20
    """A flit with a NAK."""
    ACKNOWLEDGE = 21
    """The first flit behind accepted payload."""
    CREDIT = 22
    """The first flit behind granules that left a receive buffer."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What happens in a run.  Traffic values and delay hold for both sides; `_a`, `_b` in `sides`
    override.

    packets: run until both sides have received so many, within cycle_limit; 0: run `cycles` behind
    `warm_cycles`.  rate: chance of a packet to begin in a free cycle of a VC; stall: chance of a
    gap between beats; open: chance that the consumer takes a beat; minimum, maximum: granules of
    a packet; vcs: bit mask.  delay (of what a side sends), skew: symbols; bit_offset, inverted,
    reversed: of the lanes, at random; ppm: rate mismatch; step_error_rate: chance of an error
    burst of up to `burst` bits in a step.  *_every: mean cycles between retrains by software,
    one-sided resets (1..200 cycles), cuts (1..cut_cycles), drops of 1..12 steps, stuck lanes,
    their healing, changes of closed VCs.
    fault_kind (an Item), fault_state: the first such thing that side A sends while side B is in
    that LinkState is hit (result `hits`); fault_later: not before 1 the measured time, 2 the same
    with a retrain by B, 3 with an error in each direction.

    Results `nak_way_min`, `_max`, `_sum`, `nak_ways`: of the side that sent the bad flits, cycles
    from the slot that ended the first missing flit (composed) to the start of the replay.
    """

    seed: int = 1
    packets: int = 0
    cycles: int = 20000
    warm_cycles: int = 2000
    cycle_limit: int = 3_000_000
    training_limit: int = 200_000
    drain_limit: int = 400_000
    timeout: int = 4096
    weights: int = 0x11111111
    rate: float = 1.0
    stall: float = 0.0
    open: float = 1.0
    minimum: int = 1
    maximum: int = 65
    vcs: int = 255
    delay: int = 0
    skew: int = 0
    bit_offset: int = 0
    inverted: int = 0
    reversed: int = 0
    ppm: float = 0.0
    step_error_rate: float = 0.0
    burst: int = 1
    retrain_every: float = 0
    reset_every: float = 0
    cut_every: float = 0
    cut_cycles: int = 10_000
    drop_every: float = 0
    stuck_every: float = 0
    heal_every: float = 0
    close_every: float = 0
    same_entropy: int = 0
    fault_kind: int = 0
    fault_state: int = 0
    fault_later: int = 0
    sides: tuple = ()

    def lines(self):
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sides"}
        return "".join(f"{key} {value}\n" for key, value in {**values, **dict(self.sides)}.items())


class CampaignError(AssertionError):
    """A check of the bench failed; the text says which, in which cycle, and how to run it again."""


@cache
def link_bench(**changes):
    """The bench of `LinkConfig(**changes)`."""
    return LinkBench(LinkConfig(**changes))


class LinkBench:
    """Two ports of `link`, built once per content of the sources."""

    def __init__(self, link):
        self.link = link
        defines = {
            "BEAT": link.beat_bytes,
            "LANES": link.lanes,
            "SEQUENCE_BITS": SEQUENCE_BITS,
            "DEPTHS": ",".join(str(UNIT_GRANULES * units) for units in link.vc_units),
            "COUNTER_NAMES": ",".join(COUNTERS),
        }
        verilog = emit(LinkPort(link), "link", checks=True)
        self._program = build("link", verilog, _SOURCE, defines, control=_PUBLIC)

    def run(self, scenario):
        """{name: number} of a Scenario; CampaignError when a check failed."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(scenario.lines())
            file.flush()
            done = subprocess.run(
                [self._program, file.name], capture_output=True, text=True, check=False
            )
        if done.returncode:
            raise CampaignError(f"{scenario}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        rows = (line.split() for line in done.stdout.splitlines())
        return {name: int(value) for name, value in rows}
