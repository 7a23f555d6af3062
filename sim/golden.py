"""Runs the same jobs on the golden model and gives the same kind of image."""

import numpy as np

from golden.chip import GoldenChip
from golden.chips import GoldenChips
from isa.address_map import SEQUENCERS
from isa.geometry import WORD_BYTES
from sim.image import DmaState, Image, SequencerState
from sim.testbench import PAIR, hbm_beats


def golden_image(chip, result):
    """Image of a GoldenChip after the run that gave `result`."""
    size = hbm_beats(chip.config) * WORD_BYTES
    return Image(
        hbm=chip.read(0, size),
        sbuf=chip.memories.sbuf.bytes.copy(),
        psum=chip.memories.psum.bytes.copy(),
        semaphores=result.semaphores,
        sequencers={index: _sequencer(result.sequencers[index]) for index in SEQUENCERS},
        dma=[DmaState(int(d.cause), d.error_address, d.descriptors, d.bytes) for d in result.dma],
        semaphore_error=result.semaphore_error,
    )


def _sequencer(status):
    return SequencerState(
        status.state,
        status.cause,
        status.pc,
        status.wait_semaphore,
        status.wait_value,
        status.retired,
        status.notify_value,
        status.notify_count,
        np.array(status.gpr, dtype=np.uint32),
    )


def run_golden(config, jobs, *, chip=None, **options):
    """Run the jobs in order on one golden chip; returns [(Image, golden Result)], memories
    persisting between jobs.
    """
    chip = chip or GoldenChip(config, **options)
    results = []
    for job in jobs:
        result = chip.run(job.program, job.inputs)
        results.append((golden_image(chip, result), result))
    return results


def run_golden_chips(config, rounds, *, links=PAIR, chips=None, **options):
    """Run rounds of [Job of each chip] in order on joined golden chips; returns [[(Image, golden
    Result) of each chip] of each round].
    """
    chips = chips or GoldenChips([config] * len(rounds[0]), links, **options)
    found = []
    for jobs in rounds:
        results = chips.run([job.program for job in jobs], [job.inputs for job in jobs])
        found.append(
            [
                (golden_image(chip, result), result)
                for chip, result in zip(chips.chips, results, strict=True)
            ]
        )
    return found
