"""Fixture verbs of the chip tests: run jobs on RTL and golden model, demand equal images."""

from celosia.programs.library import PROGRAMS
from isa.geometry import preset
from sim.golden import run_golden
from sim.image import compare
from sim.rtl import run_jobs
from sim.script import Job

DEEP = {
    "pe_multiply_stages": 2,
    "pe_add_stages": 4,
    "psum_add_stages": 4,
    "vector_stages": 4,
    "fetch_depth": 8,
}
"""Another pipeline: results must not depend on it."""


def shallow(name):
    """The preset."""
    return preset(name)


def deep(name):
    """The preset with deeper pipelines and a smaller instruction buffer."""
    return preset(name).with_(**DEEP)


def library_jobs(config, names=PROGRAMS, *, seed=1, repeat=1, **options):
    """(cases, jobs) of library programs, each `repeat` times in a row."""
    cases = [PROGRAMS[name](config, seed) for name in names for _ in range(repeat)]
    return cases, [Job(case.program, case.inputs, **options) for case in cases]


def assert_equal(config, jobs, *, golden_options=None, **options):
    """Run the jobs on both; every image must be equal.  Returns the Batch of the RTL and the golden
    results.
    """
    batch = run_jobs(config, jobs, **options)
    expected = run_golden(config, jobs, **(golden_options or {}))
    for index, (job, result, (image, _)) in enumerate(
        zip(jobs, batch.results, expected, strict=True)
    ):
        comparison = compare(result.image, image, job.program)
        assert comparison.match, f"job {index} with {options}:\n{comparison}"
    return batch, expected
