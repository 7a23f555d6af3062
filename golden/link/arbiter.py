"""Weighted round robin of the VCs, by flits."""

from isa.link import VCS


class Arbiter:
    """weights: flits of each VC in a round, 0 counts as 1."""

    def __init__(self, weights=(1,) * VCS):
        self.weights = list(weights)
        self.current, self.count = VCS - 1, 15

    def pick(self, eligible):
        """The VC among `eligible` (container) that is next, None if it is empty.  No effect."""
        weight = max(1, self.weights[self.current])
        if self.current in eligible and self.count < weight:
            return self.current
        order = ((self.current + step) % VCS for step in range(1, VCS + 1))
        return next((vc for vc in order if vc in eligible), None)

    def grant(self, vc):
        """A picked flit starts (short) or is announced (long)."""
        if vc == self.current:
            self.count += 1
        else:
            self.current, self.count = vc, 1
