"""What every harness shares."""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, ResetSignal

__all__ = ["AnyConst", "AnySeq", "Harness", "inner"]


def inner(m, name):
    """Signal `name` that the elaborated module `m` drives itself: for mutants, which drive it once
    more, and for invariants on registers that are no attribute.
    """
    m = getattr(m, "_elaboratable_", m)  # inside ResetInserter
    found = [signal for signal in m._driving if signal.name == name]  # noqa: SLF001
    if len(found) != 1:
        raise LookupError(f"{len(found)} signals {name!r} among those driven, must be 1")
    return found[0]


class Harness(Elaboratable):
    """A design under proof with its environment, its properties and its covers.

    Free inputs are `AnySeq`, constants that may have any value `AnyConst`.

    mutation: name of the fault to build in; properties are then expected to fail.
    only: build this property alone and no invariant, for the search of a counterexample.
    """

    def __init__(self, *, mutation=None, only=None):
        self.mutation, self.only = mutation, only
        self.reached = []
        """Property of each cover, in the order of their making."""

    def begin(self, m):
        """No reset behind power-up: registers start at their initial values."""
        m.d.comb += Assume(~ResetSignal("sync"))

    def assume(self, m, condition):
        m.d.comb += Assume(condition)

    def prove(self, m, name, condition):
        """Property `name`; several conditions may share a name."""
        if self.only in (None, name):
            m.d.comb += Assert(condition)

    def invariant(self, m, condition):
        """Proved like a property; it carries the induction."""
        if self.only is None:
            m.d.comb += Assert(condition)

    def reach(self, m, name, condition):
        """A state that must be reachable, so that property `name` does not hold of nothing."""
        self.reached.append(name)
        if self.only is None:
            m.d.comb += Cover(condition)
