"""`python -m verif.formal [--fast] [name ...]`: runs proofs and prints what came out."""

import argparse
import sys

from verif.formal.properties import PROOFS
from verif.formal.run import run


def main():
    parser = argparse.ArgumentParser(prog="verif.formal", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="proofs, all by default")
    parser.add_argument("--fast", action="store_true", help="only those of `make test`")
    arguments = parser.parse_args()
    known = {proof.name: proof for proof in PROOFS}
    for name in arguments.names:
        if name not in known:
            parser.error(f"no proof {name!r}; there are {', '.join(known)}")
    chosen = [known[name] for name in arguments.names or known]
    good = True
    print(
        f"{'property':28}{'method':>12}{'depth':>7}{'proved':>8}{'cover':>7}{'mutant':>24}{'s':>8}"
    )
    for proof in chosen:
        if arguments.fast and proof.slow:
            continue
        for row in run(proof):
            good = good and row.good
            fails = "-"
            if proof.claims:
                fault = proof.claims[row.claim].mutation
                at = f"fails at {row.mutant}" if row.mutant is not None else "HOLDS"
                fails = f"{fault} {at}"
            cover = "NONE" if row.cover is None else row.cover
            print(
                f"{row.proof + ' ' + row.claim:28}{proof.method:>12}{proof.depth:>7}"
                f"{'yes' if row.proved else 'NO':>8}{cover if proof.claims else '-':>7}"
                f"  {fails:>28}{row.seconds:8.1f}",
                flush=True,
            )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
