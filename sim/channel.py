"""Settings of the channel model between two chips (`sim/models/channel.sv`)."""

from dataclasses import dataclass, field, fields
from typing import Any

_PER_LANE = {"skew": 16, "offset": 8, "stuck_zero": 1, "stuck_one": 1, "invert": 1, "silent": 1}
_PER_LANE["noise"] = 1
_WIDTHS = {"seed": 32, "delay": 16, "error_rate": 32, "error_burst": 16, "drop_rate": 32}
_WIDTHS |= {"reverse": 1, "tx_gap": 32, "rx_gap": 32, "elastic": 1}
RANDOM = 1 << 32
"""Rates are thresholds of a random number in 0..RANDOM - 1."""


@dataclass(frozen=True, kw_only=True)
class Wires:
    """One direction.  Names as in channel.sv; skew .. noise: one number per lane, () for zeros.

    error_rate, drop_rate: of a symbol of a lane; tx_gap, rx_gap: of a cycle; all in 1 / RANDOM.
    """

    delay: int = 0
    skew: tuple = ()
    offset: tuple = ()
    error_rate: int = 0
    error_burst: int = 0
    drop_rate: int = 0
    stuck_zero: tuple = ()
    stuck_one: tuple = ()
    invert: tuple = ()
    reverse: int = 0
    silent: tuple = ()
    noise: tuple = ()
    tx_gap: int = 0
    rx_gap: int = 0
    elastic: int = 0

    def numbers(self):
        """{name: integer} of the inputs of channel.sv, lanes packed."""
        found = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in _PER_LANE:
                width = _PER_LANE[item.name]
                value = sum(int(number) << width * lane for lane, number in enumerate(value))
            found[item.name] = value
        return found


@dataclass(frozen=True)
class Channel:
    """A link's wires in both directions, a to b and b to a."""

    ab: Wires = field(default_factory=Wires)
    ba: Wires = field(default_factory=Wires)

    def plusargs(self, index, seed):
        """Plusargs of channel `index` of the testbench."""
        found = []
        for name, wires in (("ab", self.ab), ("ba", self.ba)):
            numbers = {"seed": (seed + index) % RANDOM, **wires.numbers()}
            found += [f"+channel{index}_{name}_{key}={value:x}" for key, value in numbers.items()]
        return found


def both(**settings: Any):
    """A Channel with the same settings in both directions."""
    return Channel(Wires(**settings), Wires(**settings))


def inputs(lanes):
    """{name: bits} of the settings of one direction."""
    return {**_WIDTHS, **{name: width * lanes for name, width in _PER_LANE.items()}}
