"""Absolute credit: what a VC may send, and the limit that its receive buffer grants."""

from isa.link import CREDIT_BITS, UNIT_GRANULES, Reason

UNITS = 1 << CREDIT_BITS
"""Limits count in units, modulo this."""
GRANULES = UNITS * UNIT_GRANULES
"""Counters of granules count modulo this."""


class CreditCounter:
    """Sender's side of one VC.

    sent: granules sent first time.  limit, advertised: units, of the last and of the first update;
    known: whether there was one.
    """

    def __init__(self):
        self.sent = self.limit = self.advertised = 0
        self.known = False

    @property
    def available(self):
        """Granules that may be sent."""
        return (UNIT_GRANULES * self.limit - self.sent) % GRANULES

    def spend(self, granules):
        """Granules are sent for the first time."""
        assert granules <= self.available, "sent beyond the limit"
        self.sent = (self.sent + granules) % GRANULES

    def update(self, limit):
        """A limit from a slot: Reason.BAD_CREDIT if it lies beyond the buffer, else NONE."""
        if not self.known:
            self.known, self.limit, self.advertised = True, limit, limit
        elif (limit - self.limit) % UNITS < UNITS // 2:
            granted = (UNIT_GRANULES * limit - self.sent) % GRANULES
            if granted > UNIT_GRANULES * self.advertised:
                return Reason.BAD_CREDIT
            self.limit = limit
        return Reason.NONE


class CreditReturn:
    """Receiver's side of one VC: `capacity` of the buffer and granules that have `left` it."""

    def __init__(self, units):
        self.capacity = UNIT_GRANULES * units
        self.left = 0

    def leave(self, granules):
        """Granules leave the buffer."""
        self.left = (self.left + granules) % GRANULES

    @property
    def limit(self):
        """Absolute limit in units, to be sent to the peer."""
        return (self.capacity + self.left) // UNIT_GRANULES % UNITS
