"""Shared by the tests of the race checker: a small chip whose memories are written everywhere."""

import numpy as np

from golden.chip import GoldenChip
from isa.address_map import psum_address, sbuf_address
from isa.builder import ProgramBuilder
from isa.fields import Space
from isa.geometry import preset
from isa.pattern import AccessPattern

CONFIG = preset("tiny")
AT = 256
"""Byte of SBUF or PSUM that the accesses of this file meet at."""


def operand(space=Space.SBUF, dtype=0, offset=AT, count=4, partitions=4):
    return AccessPattern(space, dtype, 0, partitions, offset, ((1, count),))


def builder_with_data():
    builder = ProgramBuilder(CONFIG)
    builder.hbm_tensor("data", (1024,), 0, "input", bytes(4096))
    return builder


def run(program, **options):
    """A run on memories that are written everywhere; the Result with its hazards."""
    chip = GoldenChip(CONFIG, on_hazard="report")
    for partition in range(4):
        chip.write(sbuf_address(CONFIG, partition, 0), np.zeros(CONFIG.sbuf_bytes, np.uint8))
        chip.write(psum_address(CONFIG, partition, 0), np.zeros(CONFIG.psum_bytes, np.uint8))
    return chip.run(program, **options)
