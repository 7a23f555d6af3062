"""What the checker reports, and where an access came from."""

from dataclasses import dataclass
from typing import NamedTuple

from golden.memory import Memory

RACE = "race"
UNINITIALISED = "uninitialised"
OVERLAP = "overlap"


class Origin(NamedTuple):
    """An instruction (sequencer, index), a descriptor (DMA engine, address) or a fetch."""

    agent: str
    index: int


@dataclass(frozen=True)
class Hazard:
    """One defect of a program.

    kind: "race" (two accesses, one of them a write, that nothing orders), "uninitialised" (a read
    of bytes that nobody wrote) or "overlap" (source and destination of one instruction share bytes
    without being the same element for element). `second` is None unless kind is "race". partitions
    and bytes are half-open ranges; HBM has one partition. The texts describe the origins.
    """

    kind: str
    first: Origin
    second: Origin | None
    memory: Memory
    partitions: tuple
    bytes: tuple
    first_text: str
    second_text: str = ""

    def __str__(self):
        where = f"{self.memory.name} bytes {self.bytes[0]:#x}..{self.bytes[1] - 1:#x}"
        if self.memory != Memory.HBM:
            where += f" of partitions {self.partitions[0]}..{self.partitions[1] - 1}"
        if self.kind == RACE:
            return f"race on {where}: nothing orders\n    {self.first_text}\n    {self.second_text}"
        if self.kind == UNINITIALISED:
            return f"read of {where}, never written, by\n    {self.first_text}"
        return f"source and destination overlap on {where} in\n    {self.first_text}"


class HazardError(RuntimeError):
    """The program ran but is not sound; `hazards` lists why and `result` is the outcome of this
    order.
    """

    def __init__(self, hazards, result):
        listed = "\n".join(f"  {hazard}" for hazard in hazards[:20])
        more = f"\n  and {len(hazards) - 20} more" if len(hazards) > 20 else ""
        super().__init__(f"{len(hazards)} hazards:\n{listed}{more}")
        self.hazards = hazards
        self.result = result
