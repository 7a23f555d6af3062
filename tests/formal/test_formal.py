"""The proofs of verif/formal: claims hold, covers are reached, every mutant is found."""

import pytest

from verif.formal.page import PAGE, page
from verif.formal.proof import Claim, Proof
from verif.formal.properties import PROOFS
from verif.formal.run import run


def _cases():
    for proof in PROOFS:
        yield pytest.param(proof, id=proof.name, marks=[pytest.mark.nightly] if proof.slow else [])


@pytest.mark.parametrize("proof", list(_cases()))
def test_proof(proof):
    rows = run(proof)
    assert [row for row in rows if not row.good] == []
    if proof.claims:
        assert [row.claim for row in rows] == list(proof.claims)


def test_a_false_claim_is_not_proved():
    """The runner itself: a mutant in the place of the design gives no good row."""
    proof = next(proof for proof in PROOFS if proof.name == "gate")
    broken = Proof(
        name="broken",
        build=lambda **options: proof.build(**{**options, "mutation": "forgetful"}),
        method=proof.method,
        depth=proof.depth,
        claims=proof.claims,
    )
    assert [row.proved for row in run(broken)] == [False]


def test_a_mutant_that_holds_is_reported():
    proof = next(proof for proof in PROOFS if proof.name == "gate")
    blind = Proof(
        name="blind",
        build=lambda **options: proof.build(),
        method=proof.method,
        depth=proof.depth,
        claims={"gate_stands": Claim(text="", mutation="none", depth=3)},
    )
    assert [(row.proved, row.mutant, row.good) for row in run(blind)] == [(True, None, False)]


def test_page_is_current():
    assert PAGE.read_text() == page()
