"""Control slots of flits that go out."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.arbiter import one_hot_index
from hdl.link.composer import COMMAND_BITS, Kind
from hdl.link.credit_updates import CreditUpdates
from hdl.link.ports import SLOT_LAYOUT, VC_BITS, Limits, Reverse
from hdl.link.replay_buffer import FlitInfo
from isa.link import LONG_GRANULES, NO_PACKET, SEQUENCE_BITS, FlitType


class SlotBuild(wiring.Component):
    """Gathers over the beats of a flit what its slot says, complete at the last one.

    Members
    -------
    clear : In, pulse: as after reset.
    start : In, pulse: sending starts.
    compose .. next_format : In: of Composer.
    goes_out : In: a slot leaves; without it the slot is for the replay buffer only.
    begins, poison : In: of TransmitQueues, for the granules that this beat takes.
    copy : In: what is kept of a flit sent before.
    reverse, limits : see `hdl.link.ports`.
    epoch : In.
    info : Out: what is to be kept of a new payload flit, at its last beat.
    slot : Out, combinational, its CRC zero.
    """

    def __init__(self, link):
        self.link = link
        super().__init__(
            {
                "clear": In(1),
                "start": In(1),
                "compose": In(1),
                "kind": In(Kind),
                "long": In(1),
                "vc": In(VC_BITS),
                "valid": In(range(LONG_GRANULES + 1)),
                "sequence": In(SEQUENCE_BITS),
                "command": In(COMMAND_BITS),
                "first_beat": In(1),
                "beat": In(range(link.long_beats)),
                "granules": In(range(link.beat_granules + 1)),
                "next_format": In(1),
                "goes_out": In(1),
                "begins": In(link.beat_granules),
                "poison": In(link.beat_granules),
                "copy": In(FlitInfo),
                "reverse": In(Reverse()),
                "limits": In(Limits()),
                "epoch": In(2),
                "info": Out(FlitInfo),
                "slot": Out(SLOT_LAYOUT),
            }
        )

    def elaborate(self, platform):
        m = Module()
        granules = self.link.beat_granules
        m.submodules.updates = updates = CreditUpdates()
        wiring.connect(m, wiring.flipped(self.limits), updates.limits)

        # Where the first packet of the flit begins, and whether a granule is bad
        used, begins = Signal(granules), Signal(granules)
        found, held_found = Signal(), Signal()
        bad, held_bad = Signal(), Signal()
        first, held_first = Signal(6), Signal(6)
        position = Cat(Const(0, granules.bit_length() - 1), self.beat)
        m.d.comb += [
            used.eq(Cat(self.granules > i for i in range(granules))),
            begins.eq(self.begins & used),
            found.eq((~self.first_beat & held_found) | (begins != 0)),
            bad.eq((~self.first_beat & held_bad) | ((self.poison & used) != 0)),
            first.eq(NO_PACKET),
        ]
        with m.If(~self.first_beat & held_found):
            m.d.comb += first.eq(held_first)
        with m.Elif(begins != 0):
            m.d.comb += first.eq(
                position + one_hot_index(begins & (~begins + 1)[:granules], granules)
            )
        with m.If(self.compose):
            m.d.sync += [held_found.eq(found), held_first.eq(first), held_bad.eq(bad)]

        slot, kept = self.slot, Signal(FlitInfo)
        new, again = Signal(), Signal()
        m.d.comb += [
            updates.clear.eq(self.clear),
            updates.start.eq(self.start),
            updates.taken.eq(self.goes_out),
            self.reverse.nak_taken.eq(self.goes_out & slot.nak),
            self.info.long.eq(self.long),
            self.info.poison.eq(bad),
            self.info.vc.eq(self.vc),
            self.info.first.eq(first),
            self.info.valid.eq(self.valid),
            new.eq(self.kind == Kind.DATA),
            again.eq(self.kind == Kind.RESEND),
            kept.eq(Mux(again, self.copy, self.info)),
            slot.sequence.eq(self.sequence),
            slot.acknowledge.eq(self.reverse.expected),
            slot.nak.eq(self.reverse.nak & ~self.long),
            slot.replayed.eq(again),
            slot.payload.eq(new | again),
            slot.first.eq(NO_PACKET),
            slot.credit_a_vc.eq(updates.a_vc),
            slot.credit_a.eq(updates.a),
            slot.credit_b_vc.eq(updates.b_vc),
            slot.credit_b.eq(updates.b),
            slot.next_format.eq(self.next_format),
            slot.epoch.eq(self.epoch),
            slot.command.eq(self.command),
            slot.congestion.eq(self.limits.congestion),
        ]
        with m.If(new | again):
            m.d.comb += [
                slot.type.eq(FlitType.DATA),
                slot.poison.eq(kept.poison),
                slot.vc.eq(kept.vc),
                slot.first.eq(kept.first),
                slot.valid.eq(kept.valid),
            ]
        with m.Elif(self.kind == Kind.REPLAY):
            m.d.comb += slot.type.eq(FlitType.REPLAY)
        with m.Else():
            m.d.comb += slot.type.eq(FlitType.CONTROL)
        return m
