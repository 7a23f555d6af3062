"""Who gets which bank in this cycle."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import RoundRobin
from hdl.lib.tile import add_tile


class BankArbiter(wiring.Component):
    """One round-robin arbiter per bank over all requesters; combinational.

    A requester asks for one bank a cycle and waits until it is granted: at most `requesters` - 1
    grants of others if the bank is not blocked.

    Members
    -------
    valid : In(requesters)
    bank : In(array of requesters)
        The bank each asks for.
    block : In(banks)
        These banks grant nothing in this cycle.
    ready : Out(requesters)
        Granted (only where `valid`).
    grant : Out(array of banks)
        For each bank, one-hot or zero, the requester that has it.
    """

    def __init__(self, *, banks, requesters):
        self.banks, self.requesters = banks, requesters
        super().__init__({
            "valid": In(requesters),
            "bank": In(data.ArrayLayout(range(banks), requesters)),
            "block": In(banks),
            "ready": Out(requesters),
            "grant": Out(data.ArrayLayout(requesters, banks)),
        })

    def elaborate(self, platform):
        m = Module()
        granted = 0
        for b in range(self.banks):
            arbiter = add_tile(m, platform, f"bank{b}", RoundRobin(self.requesters))
            wanted = Cat(self.valid[r] & (self.bank[r] == b) for r in range(self.requesters))
            grant = Signal(self.requesters, name=f"grant{b}")
            m.d.comb += [
                arbiter.request.eq(wanted),
                arbiter.advance.eq(~self.block[b]),
                grant.eq(arbiter.grant & (~self.block[b]).replicate(self.requesters)),
                self.grant[b].eq(grant),
            ]
            granted |= grant
        m.d.comb += self.ready.eq(granted)
        return m
