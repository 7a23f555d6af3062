"""Generators that a program seeds, on the golden model."""

import numpy as np
import pytest

from golden.chip import GoldenChip
from isa.geometry import preset
from verif.equality import assert_same
from verif.seeded_program import ENGINES, expected, first_words, seeded_program


def outputs(config, seed):
    """{output: codes} of the program on a chip behind its reset."""
    chip, program = GoldenChip(config), seeded_program(config, seed)
    result = chip.run(program)
    assert result.ok, result.errors()
    return {
        tensor.name: np.frombuffer(
            bytes(chip.read(tensor.address, tensor.size_bytes)), f"u{tensor.dtype.itemsize}"
        ).reshape(tensor.shape)
        for tensor in program.with_role("output")
    }


@pytest.mark.parametrize("name", ["tiny", "small"])
@pytest.mark.parametrize("seed", [None, 0, 1, (1 << 64) - 1])
def test_words_are_those_of_plain_integers(name, seed):
    got = outputs(preset(name), seed)
    for output, codes in expected(preset(name), seed).items():
        assert_same(got[output], codes)


def test_lanes_draw_alike_after_a_reset_and_differ_when_seeded():
    unseeded, seeded = (outputs(preset("small"), seed) for seed in (None, 3))
    words = [word for name in ENGINES for word in first_words(unseeded[f"before_{name}"])]
    assert len(words) == 32 and len(set(words)) == 1
    words = [word for name in ENGINES for word in first_words(seeded[f"before_{name}"])]
    assert len(set(words)) == 32
    again = outputs(preset("small"), 4)
    assert not set(words) & {w for name in ENGINES for w in first_words(again[f"before_{name}"])}
