"""What the parts of the generator hand to each other: boxes of memory, operations to place."""

from dataclasses import dataclass, field
from typing import NamedTuple

HBM = 0


class Box(NamedTuple):
    """Partitions [p0, p1) and bytes [low, high) of a space (0: HBM, whose only partition is 0)."""

    space: int
    p0: int
    p1: int
    low: int
    high: int

    def meets(self, other):
        """Whether the two may share bytes."""
        return (
            self.space == other.space
            and self.p0 < other.p1
            and other.p0 < self.p1
            and self.low < other.high
            and other.low < self.high
        )


def box_of(pattern):
    """Box of an access pattern without registers."""
    low, high = pattern.bounding_box()
    return Box(int(pattern.space), *pattern.partitions, low, high)


@dataclass
class Spec:
    """An instruction that is still to be placed, with the bytes that it may touch."""

    name: str
    arguments: dict
    reads: list = field(default_factory=list)
    writes: list = field(default_factory=list)

    def clashes(self, other):
        """Whether the order of the two matters."""
        return any(a.meets(b) for a in self.writes for b in other.reads + other.writes) or any(
            a.meets(b) for a in other.writes for b in self.reads
        )


@dataclass
class Copy:
    """A descriptor that is still to be placed; `update` is filled in when it is."""

    descriptor: object
    reads: list
    writes: list
