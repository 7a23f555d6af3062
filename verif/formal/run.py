"""Runs proofs: the claims, the covers, and each mutant, which must fail."""

import re
import tempfile
import time
from dataclasses import dataclass

from verif.formal import solver
from verif.formal.proof import INDUCTION

_REACHED = re.compile(r"Reached cover statement in step (\d+) at .*\(\$(\d+)\)")
_UNREACHED = re.compile(r"Unreached cover statement at .*\(\$(\d+)\)")


@dataclass(frozen=True)
class Row:
    """What came out of a claim.  proved, and mutant: where the mutant failed, None if it did not;
    cover: {step at which the claim's cover was reached}, None if it was not.
    """

    proof: str
    claim: str
    proved: bool
    cover: int | None
    mutant: int | None
    seconds: float

    @property
    def good(self):
        return self.proved and self.cover is not None and self.mutant is not None


def _cover_steps(log, names):
    """{property: step} of the covers reached.  Cells are numbered as the harness made them."""
    reached = {int(cell): int(step) for step, cell in _REACHED.findall(log)}
    cells = sorted([*reached, *map(int, _UNREACHED.findall(log))])
    if len(cells) != len(names):
        raise solver.SolverError(f"{len(names)} covers built, {len(cells)} reported:\n{log}")
    named = dict(zip(names, (reached.get(cell) for cell in cells), strict=True))
    return {name: step for name, step in named.items() if step is not None}


def prove(proof, folder):
    """Verdict of the claims of a proof, all at once, with its invariants."""
    model = solver.lower(proof.build(), f"{folder}/claims", checks=proof.checks)
    verdict = solver.bounded(model, proof.depth)
    if verdict.passed and proof.method == INDUCTION:
        step = solver.induction(model, proof.depth)
        return solver.Verdict(
            step.passed, proof.depth, verdict.seconds + step.seconds, verdict.log + step.log
        )
    return verdict


def covers(proof, folder):
    """{property: step at which its cover is reached}."""
    harness = proof.build()
    model = solver.lower(harness, f"{folder}/covers", checks=proof.checks)
    return _cover_steps(solver.covers(model, proof.cover_depth).log, harness.reached)


def mutant(proof, name, folder):
    """Step at which the mutant breaks claim `name`, None if it does not."""
    claim = proof.claims[name]
    harness = proof.build(mutation=claim.mutation, only=name)
    verdict = solver.bounded(solver.lower(harness, f"{folder}/{name}"), claim.depth)
    return None if verdict.passed else verdict.step


def run(proof):
    """Rows of a proof, one for each claim; one for the whole where it only repeats the claims of a
    smaller size.  The seconds of claims and covers are in the first row.
    """
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        verdict = prove(proof, folder)
        if not proof.claims:
            return [Row(proof.name, "all", verdict.passed, 0, 0, time.monotonic() - began)]
        steps = covers(proof, folder)
        rows = []
        for name in proof.claims:
            step = mutant(proof, name, folder)
            seconds = time.monotonic() - began
            began = time.monotonic()
            rows.append(Row(proof.name, name, verdict.passed, steps.get(name), step, seconds))
        return rows
