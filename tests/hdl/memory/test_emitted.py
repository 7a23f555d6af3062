# amaranth: UnusedElaboratable=no
"""The emitted Verilog of Sbuf and Psum does in Icarus what Amaranth simulates; no X gets out."""

import numpy as np
import pytest

from hdl.memory.psum import Psum
from hdl.memory.sbuf import Sbuf
from isa.geometry import preset
from verif.icarus import assert_same, ports

CONFIG = preset("tiny")
CYCLES = 150

pytestmark = [
    pytest.mark.icarus,
]


def random_inputs(component, rng, **probabilities):
    """Stimuli of random bits; inputs of one bit are 1 with 0.5 or the probability given."""
    inputs, _ = ports(component)
    stimuli = []
    for _ in range(CYCLES):
        stimulus = {}
        for name, signal in inputs.items():
            if len(signal) == 1:
                stimulus[name] = int(rng.random() < probabilities.get(name, 0.5))
            else:
                stimulus[name] = int.from_bytes(rng.bytes(len(signal) // 8 + 1), "little") & (
                    (1 << len(signal)) - 1)
        stimuli.append(stimulus)
    return stimuli


def data_outputs(component):
    """Outputs that come out of memories: unknown until read."""
    return [name for name, signal in ports(component)[1].items() if name.endswith("data")]


def test_sbuf(tmp_path):
    make = lambda: Sbuf(CONFIG, 2, 2, 2)  # noqa: E731
    stimuli = random_inputs(make(), np.random.default_rng(1))
    for stimulus in stimuli:
        stimulus["deny"] &= 0x11
    known = assert_same(make, stimuli, tmp_path, unknown_until_valid=data_outputs(make()))
    assert known > CYCLES * CONFIG.partitions * 128


@pytest.mark.parametrize("stages", [1, 4])
def test_psum(stages, tmp_path):
    config = CONFIG.with_(psum_add_stages=stages)
    make = lambda: Psum(config, 2, 1, 1)  # noqa: E731
    stimuli = random_inputs(make(), np.random.default_rng(2))
    for stimulus in stimuli:
        stimulus["deny"] &= 0x0101
        stimulus["accumulate__word"] &= 7
        stimulus["read0__req__payload"] &= 7
    known = assert_same(make, stimuli, tmp_path, unknown_until_valid=data_outputs(make()))
    assert known > CYCLES * CONFIG.partitions * 32
