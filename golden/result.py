"""What a run leaves behind, apart from the memories."""

from dataclasses import dataclass, field

import numpy as np

from isa.address_map import Cause, DmaCause, Sequencer, State


@dataclass(frozen=True)
class SequencerStatus:
    """Status registers of a sequencer. gpr: uint32 [64]; wait_*: of a timed-out wait, else 0."""

    state: State
    cause: Cause
    pc: int
    wait_semaphore: int
    wait_value: int
    retired: int
    notify_value: int
    notify_count: int
    gpr: np.ndarray
    message: str = ""
    """Why it stopped with an error, in words."""


@dataclass(frozen=True)
class DmaStatus:
    """Status registers of a DMA engine. bytes: modulo 2^32."""

    cause: DmaCause
    error_address: int
    descriptors: int
    bytes: int


@dataclass(frozen=True)
class Result:
    """Outcome of one run. semaphores: int32 [256]; hazards: list of `golden.hazard.Hazard`."""

    sequencers: dict
    dma: list
    semaphores: np.ndarray
    semaphore_error: int
    instructions: int
    hazards: list = field(default_factory=list)

    @property
    def ok(self):
        """No sequencer and no DMA engine has an error, no semaphore overflowed, no hazards."""
        stopped = any(s.state == State.ERROR for s in self.sequencers.values())
        failed = any(d.cause != DmaCause.NONE for d in self.dma)
        return not (stopped or failed or self.semaphore_error or self.hazards)

    def errors(self):
        """One line for each error and each hazard."""
        lines = []
        for sequencer, status in self.sequencers.items():
            if status.state == State.ERROR:
                lines.append(
                    f"{sequencer.text}[{status.pc}]: {status.cause.name}: {status.message}"
                )
        for i, status in enumerate(self.dma):
            if status.cause != DmaCause.NONE:
                lines.append(f"dma{i}: {status.cause.name} at descriptor {status.error_address:#x}")
        if self.semaphore_error:
            lines.append(f"semaphore {self.semaphore_error & 0xFF} overflowed")
        return lines + [str(hazard) for hazard in self.hazards]

    def __getitem__(self, sequencer):
        return self.sequencers[Sequencer(sequencer)]


def collect(sequencers, engines, semaphores, instructions, hazards):
    """The Result of the units after a run."""
    return Result(
        sequencers={
            s.index: SequencerStatus(
                s.state,
                s.cause,
                s.pc,
                s.wait_semaphore,
                s.wait_value,
                s.retired,
                s.notify_value,
                s.notify_count,
                np.array(s.registers, np.uint32),
                s.message,
            )
            for s in sequencers
        },
        dma=[
            DmaStatus(e.cause, e.error_address, e.descriptors, e.bytes % (1 << 32)) for e in engines
        ],
        semaphores=np.array(semaphores.values, np.int32),
        semaphore_error=semaphores.error,
        instructions=instructions,
        hazards=hazards,
    )
