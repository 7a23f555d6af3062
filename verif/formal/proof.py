"""What a proof is."""

from collections.abc import Callable
from dataclasses import dataclass, field

from verif.formal.harness import Harness

INDUCTION, BOUNDED = "induction", "bounded"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """text: what holds.  mutation: the fault that must break it, within `depth` steps."""

    text: str
    mutation: str
    depth: int = 12


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A harness and its claims.

    depth: of the method: k of k-induction, or steps from power-up.  cover_depth: within which every
    cover is reached.  checks: elaborate those of `hdl.lib.check` too.  slow: not in `make test`.
    repeats: name of the proof whose properties these are, at another size, when there are no
    `claims` (its covers and mutants are not run again).
    """

    name: str
    build: Callable[..., Harness]
    method: str
    depth: int
    claims: dict
    cover_depth: int = 14
    checks: bool = False
    slow: bool = False
    size: str = field(default="")
    repeats: str = field(default="")
