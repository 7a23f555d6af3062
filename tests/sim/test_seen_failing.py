"""The comparison can fail: models and designs that are wrong on purpose must be caught.

Each fault is one that a plausible mistake would make. The programs are those of the other tests.
"""

import re

import numpy as np
import pytest

from celosia.programs.library import PROGRAMS
from golden.arith import convert, matmul
from golden.arith.formats import BF16
from golden.semaphores import Semaphores
from sim import rtl
from sim.golden import run_golden
from sim.image import compare
from sim.rtl import run_jobs
from sim.script import Job
from verif.chip_runs import shallow

CONFIG = shallow("tiny")


@pytest.fixture(scope="module")
def reference():
    """(job, image of the RTL)."""
    job = Job(PROGRAMS["odd_gemm"](CONFIG, 1).program)
    return job, run_jobs(CONFIG, [job]).results[0].image


def verdict(reference):
    job, image = reference
    return compare(image, run_golden(CONFIG, [job], on_hazard="report")[0][0], job.program)


def test_the_right_model_passes(reference):
    assert verdict(reference).match


def reversed_rows(monkeypatch):
    chain = matmul.chain
    monkeypatch.setattr(matmul, "chain", lambda s, x: chain(s[::-1], x[::-1]))


def dropped_accumulation(monkeypatch):
    monkeypatch.setattr(matmul, "accumulate", lambda old, tile: tile)


def truncating_narrowing(monkeypatch):
    def truncated(x, form, **_):
        assert form is BF16
        return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)

    monkeypatch.setattr(convert, "narrow", truncated)


def extra_semaphore_update(monkeypatch):
    """The count of one semaphore is one too high in the end."""
    update = Semaphores.update

    def one_more(self, semaphore, kind, value):
        update(self, semaphore, kind, value)
        self.values[255] = 1

    monkeypatch.setattr(Semaphores, "update", one_more)


@pytest.mark.parametrize(
    "fault", [reversed_rows, dropped_accumulation, truncating_narrowing, extra_semaphore_update]
)
def test_wrong_model_is_caught(reference, monkeypatch, fault):
    fault(monkeypatch)
    assert not verdict(reference).match


def test_one_flipped_bit_anywhere_is_caught(reference):
    job, _ = reference
    ((image, _),) = run_golden(CONFIG, [job])
    for name in ("hbm", "sbuf", "psum"):
        changed, _ = run_golden(CONFIG, [job])[0]
        getattr(changed, name).reshape(-1)[-1] ^= 1
        comparison = compare(changed, image, job.program)
        assert comparison.count == 1 and comparison.mismatches[0].where == name


FAULTS = {
    "byte lane of the block RAMs": (
        r"(module blockram_\d+_\d+_8\b.*?)if \(w_en\[1\]\)",
        r"\1if (1'b0)",
    ),
    "write of the block RAMs": (
        r"(module blockram_\d+_\d+_8\b.*?)memory\[w_addr\]",
        r"\1memory[w_addr ^ 1'b1]",
    ),
}


@pytest.mark.icarus
@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_design_is_caught(reference, monkeypatch, fault):
    """Faults in the emitted Verilog, in Icarus."""
    job, _ = reference
    emitted = rtl.emitted
    pattern, replacement = FAULTS[fault]

    def broken(config, *, checks):
        text, count = re.subn(pattern, replacement, emitted(config, checks=False), flags=re.DOTALL)
        assert count > 0, "the fault found no place"
        return text

    monkeypatch.setattr(rtl, "emitted", broken)
    image = run_jobs(CONFIG, [job], simulator="icarus").results[0].image
    assert not verdict((job, image)).match
